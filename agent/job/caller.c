/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller of a request, as the kernel identifies it. */
#include "agent/job/caller.h"

#include "libmigrate/core/plain.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-login.h>
#include <unistd.h>

/* The kernel limits a program's name to 16 bytes; a unit's name may have 256. */
#define NAME_BYTES_MAX 256

/* Whoever named the process may have put anything into the name. */
static char *take_name(const char *text) {
  g_autofree char *valid = g_utf8_make_valid(text, -1);

  mig_text_make_plain(valid);
  g_strstrip(valid);
  if (!*valid)
    return NULL;
  return g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), NAME_BYTES_MAX));
}

/* The kernel generates /proc/PID/comm from memory: one read returns all of it and does not block. */
static char *read_comm(pid_t pid) {
  g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char text[64] = "";
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

  if (fd >= 0)
    close(fd);
  return n > 0 ? take_name(text) : NULL;
}

static char *read_unit(pid_t pid) {
  char *unit = NULL, *name;

  if (sd_pid_get_unit(pid, &unit) < 0)
    return NULL;
  name = take_name(unit);
  free(unit);
  return name;
}

Caller *caller_new(const VarlinkPeer *peer) {
  Caller *caller = g_new0(Caller, 1);

  *caller = (Caller){.uid = peer->uid, .gid = peer->gid, .pid = peer->pid};
  /* 0: the process is in a PID namespace that cannot be seen from here; sd_pid_get_unit() would take 0 for ourselves. */
  if (peer->pid > 0) {
    caller->unit = read_unit(peer->pid);
    caller->comm = read_comm(peer->pid);
  }
  return caller;
}

Caller *caller_copy(const Caller *caller) {
  Caller *copy;

  if (!caller)
    return NULL;
  copy = g_memdup2(caller, sizeof *caller);
  copy->unit = g_strdup(caller->unit);
  copy->comm = g_strdup(caller->comm);
  return copy;
}

void caller_free(Caller *caller) {
  if (!caller)
    return;
  g_free(caller->unit);
  g_free(caller->comm);
  g_free(caller);
}

char *caller_describe(const Caller *caller) {
  return g_strdup_printf("uid %u (pid %d%s%s%s%s)", (unsigned)caller->uid, (int)caller->pid,
                         caller->unit ? ", " : "", caller->unit ? caller->unit : "", caller->comm ? ", " : "",
                         caller->comm ? caller->comm : "");
}

json_t *caller_to_json(const Caller *caller) {
  return json_pack("{sI sI sI ss* ss*}", "uid", (json_int_t)caller->uid, "gid", (json_int_t)caller->gid,
                   "pid", (json_int_t)caller->pid, "unit", caller->unit, "comm", caller->comm);
}

static bool get_number(json_t *object, const char *key, json_int_t max, json_int_t *ret_value) {
  json_t *value = json_object_get(object, key);

  *ret_value = json_integer_value(value);
  return json_is_integer(value) && *ret_value >= 0 && *ret_value <= max;
}

Caller *caller_from_json(json_t *object) {
  json_int_t uid, gid, pid;
  Caller *caller;

  if (!get_number(object, "uid", UINT32_MAX, &uid) || !get_number(object, "gid", UINT32_MAX, &gid) ||
      !get_number(object, "pid", INT32_MAX, &pid))
    return NULL;
  caller = g_new0(Caller, 1);
  *caller = (Caller){.uid = (uid_t)uid, .gid = (gid_t)gid, .pid = (pid_t)pid};
  caller->unit = g_strdup(json_string_of(object, "unit"));
  caller->comm = g_strdup(json_string_of(object, "comm"));
  return caller;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon to measure. */
#include "tests/bench/bench-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

void die(const char *format, ...) {
  va_list args;

  va_start(args, format);
  fprintf(stderr, "bench: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}

static void remove_tree(const char *path) {
  g_autoptr(GDir) directory = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);

  for (const char *name; directory && (name = g_dir_read_name(directory));) {
    g_autofree char *child = g_build_filename(path, name, NULL);

    remove_tree(child);
  }
  g_remove(path);
}

static void write_script(const char *path, const DaemonOptions *options) {
  json_t *domains = json_object();
  json_t *script;

  for (unsigned i = 0; i < options->domains; i++) {
    char name[32];

    g_snprintf(name, sizeof name, "vm%u", i);
    json_object_set_new(domains, name,
                        json_pack("{ss sI si}", "host", "a", "memory_bytes",
                                  (json_int_t)options->memory_bytes, "dirty_bytes_per_s", 0));
  }
  script = json_pack("{s{s{} s{}} so s{sI}}", "hosts", "a", "b", "domains", domains, "link", "bytes_per_s",
                     (json_int_t)options->link_bytes_per_s);
  if (!script || json_dump_file(script, path, 0) < 0)
    die("%s cannot be written", path);
  json_decref(script);
}

static int notify_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  g_strlcpy(address.sun_path, path, sizeof address.sun_path);
  if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
    die("%s: %s", path, g_strerror(errno));
  return fd;
}

static void await_ready(int fd) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  char message[512];

  do {
    memset(message, 0, sizeof message);
    if (poll(&poll_fd, 1, PATIENCE_MS) != 1 || recv(fd, message, sizeof message - 1, 0) < 0)
      die("the daemon does not serve");
  } while (!strstr(message, "READY=1"));
}

static void run(const Daemon *daemon, const char *notify) {
  const DaemonOptions *options = &daemon->options;
  const char *program = options->program ? options->program : g_getenv("HANDOFFD_FAKE");
  g_autofree char *log = g_build_filename(daemon->directory, "log", NULL);
  g_autofree char *scripted = g_strdup_printf("fake://%s?host=a", daemon->control);
  g_autofree char *watchdog_us = g_strdup_printf("%u000", options->watchdog_ms);
  int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  setenv("NOTIFY_SOCKET", notify, 1);
  setenv("FAKE_CONTROL", daemon->control, 1);
  unsetenv("WATCHDOG_PID");
  unsetenv("WATCHDOG_USEC");
  if (options->watchdog_ms > 0)
    setenv("WATCHDOG_USEC", watchdog_us, 1);
  unsetenv("LISTEN_FDS");
  execl(program, "handoffd", "--config", daemon->config, "--socket", daemon->socket, "--state-dir",
        daemon->state_directory, "--libvirt-uri", options->libvirt_uri ? options->libvirt_uri : scripted,
        NULL);
  _exit(127);
}

void daemon_start(Daemon *daemon) {
  g_autofree char *notify = g_build_filename(daemon->directory, "notify", NULL);
  int fd;

  g_remove(notify);
  fd = notify_socket(notify);
  daemon->pid = fork();
  if (daemon->pid == 0)
    run(daemon, notify);
  await_ready(fd);
  if (daemon->options.watchdog_ms > 0)
    daemon->notify_fd = fd;
  else
    close(fd);
}

void daemon_kill(Daemon *daemon) {
  if (daemon->pid > 0) {
    kill(daemon->pid, SIGKILL);
    waitpid(daemon->pid, NULL, 0);
  }
  daemon->pid = 0;
  if (daemon->notify_fd >= 0)
    close(daemon->notify_fd);
  daemon->notify_fd = -1;
}

Daemon *daemon_new(const DaemonOptions *options) {
  const char *base = g_getenv("BENCH_DIR");
  Daemon *daemon = g_new0(Daemon, 1);
  g_autofree char *text = NULL;

  daemon->options = *options;
  daemon->notify_fd = -1;
  daemon->directory = g_build_filename(base ? base : "/var/tmp", "handoffd-bench-XXXXXX", NULL);
  if (!g_mkdtemp(daemon->directory))
    die("%s: %s", daemon->directory, g_strerror(errno));
  daemon->socket = g_build_filename(daemon->directory, "socket", NULL);
  daemon->control = g_build_filename(daemon->directory, "control.json", NULL);
  daemon->state_directory = g_build_filename(daemon->directory, "state", NULL);
  daemon->config = g_build_filename(daemon->directory, "handoffd.conf", NULL);
  text = g_strdup_printf("[Agent]\n%s[Policy]\n%s", options->config ? options->config : "",
                         options->policy ? options->policy : "");
  if (!g_file_set_contents(daemon->config, text, -1, NULL))
    die("%s cannot be written", daemon->config);
  write_script(daemon->control, options);
  daemon_start(daemon);
  return daemon;
}

void daemon_free(Daemon *daemon) {
  if (!daemon)
    return;
  daemon_kill(daemon);
  remove_tree(daemon->directory);
  g_free(daemon->directory);
  g_free(daemon->socket);
  g_free(daemon->control);
  g_free(daemon->state_directory);
  g_free(daemon->config);
  g_free(daemon);
}

VarlinkClient *daemon_connect(const Daemon *daemon) {
  g_autoptr(GError) error = NULL;
  VarlinkClient *client = varlink_client_connect(daemon->socket, &error);

  if (!client)
    die("%s", error->message);
  return client;
}

json_t *call(VarlinkClient *client, const char *method, json_t *parameters) {
  g_autofree char *full = g_strconcat("io.handoffd.Agent.", method, NULL);
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (!varlink_client_call(client, full, parameters, PATIENCE_MS, &reply, &error))
    die("%s: %s", method, error->message);
  if (reply.error)
    die("%s: %s", method, reply.error);
  return json_incref(reply.parameters);
}

char *daemon_start_move(const Daemon *daemon, VarlinkClient *client, unsigned domain) {
  g_autofree char *name = g_strdup_printf("vm%u", domain);
  json_t *answer =
      call(client, "Start", json_pack("{ss ss}", "domain", name, "target", "qemu+tcp://b/system"));
  char *id = g_strdup(json_string_value(json_object_get(json_object_get(answer, "job"), "id")));

  json_decref(answer);
  return id;
}

void await_phase(const Daemon *daemon, const char *job, const char *phase) {
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  g_autoptr(GError) error = NULL;
  bool there = false;

  varlink_client_send(client, "io.handoffd.Agent.Watch", json_pack("{ss}", "job", job), VARLINK_CALL_MORE,
                      NULL);
  while (!there) {
    g_auto(VarlinkReply) reply = {0};
    const char *now;

    if (!varlink_client_receive(client, PATIENCE_MS, &reply, &error))
      die("Watch: %s", error->message);
    now = json_string_value(json_object_get(json_object_get(reply.parameters, "job"), "phase"));
    there = g_strcmp0(now, phase) == 0;
    if (!there && !reply.continues)
      die("Watch: the job is %s instead of %s", now, phase);
  }
}

/* The sum of all lines that begin so, in KiB. */
static long sum_lines(const char *text, const char *name) {
  g_autofree char *key = g_strconcat("\n", name, ":", NULL);
  long sum = 0;

  for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
    sum += strtol(at + strlen(key), NULL, 10);
  return sum;
}

Memory daemon_memory(const Daemon *daemon) {
  g_autofree char *rollup_path = g_strdup_printf("/proc/%d/smaps_rollup", (int)daemon->pid);
  g_autofree char *status_path = g_strdup_printf("/proc/%d/status", (int)daemon->pid);
  g_autofree char *rollup = NULL, *status = NULL;

  if (!g_file_get_contents(rollup_path, &rollup, NULL, NULL) ||
      !g_file_get_contents(status_path, &status, NULL, NULL))
    die("%s cannot be read", rollup_path);
  return (Memory){
      .rss = sum_lines(rollup, "Rss"),
      .pss = sum_lines(rollup, "Pss"),
      .private_pages = sum_lines(rollup, "Private_Clean") + sum_lines(rollup, "Private_Dirty"),
      .shared = sum_lines(rollup, "Shared_Clean") + sum_lines(rollup, "Shared_Dirty"),
      .anonymous = sum_lines(rollup, "Anonymous"),
      .threads = sum_lines(status, "Threads"),
      .peak_rss = sum_lines(status, "VmHWM"),
  };
}

double daemon_cpu_s(const Daemon *daemon) {
  g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)daemon->pid);
  g_autofree char *text = NULL;
  unsigned long user = 0, system_time = 0;
  const char *fields;

  if (!g_file_get_contents(path, &text, NULL, NULL))
    die("%s cannot be read", path);
  fields = strrchr(text, ')');
  if (!fields ||
      sscanf(fields + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system_time) != 2)
    die("%s is not understood", path);
  return (double)(user + system_time) / (double)sysconf(_SC_CLK_TCK);
}

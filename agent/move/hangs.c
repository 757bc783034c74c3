/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that a libvirtd does not answer, and how they are reported.
 *
 * Theory of Operation. callwatch.c knows which calls are late. This file checks several times a second, and reports a late
 * call once when it appears and once when it is gone. A second thread that hangs in the same call is not reported again. A
 * hanging call blocks only its own thread, so it is a warning. It goes to the journal, to the events of the domain's job, to
 * clients that read the job or the node, to the metrics, and to the service manager. */
#include "agent/move/hangs.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/libvirtd/callwatch.h"
#include "agent/move/lifecycle.h"
#include "agent/move/mover.h"

#include <inttypes.h>
#include <string.h>

typedef struct Hang {
  const char *what; /* static */
  char *uri;
  char *about; /* or NULL */
  int64_t since_usec;
  uint64_t since_ms;
  unsigned calls; /* as of the last check */
} Hang;

static void hang_free(gpointer data) {
  Hang *hang = data;

  g_free(hang->uri);
  g_free(hang->about);
  g_free(hang);
}

Hangs *hangs_new(void) {
  return g_ptr_array_new_with_free_func(hang_free);
}

static Hang *find(const Hangs *hangs, const CallWatchLate *late) {
  for (guint i = 0; i < hangs->len; i++) {
    Hang *hang = hangs->pdata[i];

    if (hang->what == late->what && strcmp(hang->uri, late->uri) == 0 &&
        g_strcmp0(hang->about, late->about) == 0)
      return hang;
  }
  return NULL;
}

static Job *job_of(const Mover *mover, const Hang *hang) {
  return hang->about ? job_table_find_active(mover->jobs->table, hang->about) : NULL;
}

static char *time_of_day(int64_t usec) {
  g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(usec / G_USEC_PER_SEC);

  return g_date_time_format(time, "%H:%M:%S");
}

/* --- messages --- */

static void G_GNUC_PRINTF(5, 6)
    tell(Mover *mover, const Hang *hang, int priority, const char *message_id, const char *format, ...) {
  Job *job = job_of(mover, hang);
  g_autofree char *text = NULL, *since = g_strdup_printf("%" PRId64, hang->since_usec);
  const LogField fields[] = {
      {NAMES_FIELD_LIBVIRT_URI, hang->uri},
      {NAMES_FIELD_LIBVIRT_CALL, hang->what},
      {NAMES_FIELD_SINCE_USEC, since},
      {NAMES_FIELD_JOB_ID, job ? job->id : NULL},
      {NAMES_FIELD_DOMAIN_NAME, job ? job->domain_name : NULL},
      {NAMES_FIELD_DOMAIN_UUID, job ? job->domain_uuid : NULL},
  };
  va_list args;

  va_start(args, format);
  text = g_strdup_vprintf(format, args);
  va_end(args);
  log_message(priority, message_id, fields, G_N_ELEMENTS(fields), "%s%s%s",
              job           ? job->domain_name
              : hang->about ? hang->about
                            : "",
              hang->about ? ": " : "", text);
  if (!job)
    return;
  job_add_event(job, "warning", MIG_CAUSE_NONE, "%s", text);
  jobs_state_changed(mover->jobs, job);
}

static void tell_begin(Mover *mover, const Hang *hang) {
  g_autofree char *since = time_of_day(hang->since_usec);

  tell(mover, hang, LOG_WARNING, NAMES_MESSAGE_CALL_HANGS,
       "libvirtd at %s has not answered for %" PRIu64
       " s, since %s: %s. Only work that needs this answer is blocked",
       hang->uri, (clock_now_ms() - hang->since_ms) / 1000, since, hang->what);
}

static void tell_end(Mover *mover, const Hang *hang) {
  tell(mover, hang, LOG_NOTICE, NULL, "libvirtd at %s answered after %" PRIu64 " s: %s", hang->uri,
       (clock_now_ms() - hang->since_ms) / 1000, hang->what);
}

/* --- checks --- */

static bool note_late(Mover *mover, const CallWatchLate *late) {
  Hang *hang = find(mover->hangs, late);

  if (hang) {
    hang->calls++;
    return false;
  }
  hang = g_new0(Hang, 1);
  hang->what = late->what;
  hang->uri = g_strdup(late->uri);
  hang->about = g_strdup(late->about);
  hang->since_ms = late->since_ms;
  hang->since_usec = g_get_real_time() - (int64_t)(clock_now_ms() - late->since_ms) * 1000;
  hang->calls = 1;
  g_ptr_array_add(mover->hangs, hang);
  tell_begin(mover, hang);
  return true;
}

void hangs_tick(Mover *mover) {
  g_autoptr(GPtrArray) late = call_watch_list_late(hypervisor_get_driver(mover->hypervisor), clock_now_ms());
  bool changed = false;

  for (guint i = 0; i < mover->hangs->len; i++)
    ((Hang *)mover->hangs->pdata[i])->calls = 0;
  for (guint i = 0; i < late->len; i++)
    changed |= note_late(mover, late->pdata[i]);
  for (guint i = mover->hangs->len; i > 0; i--) {
    const Hang *hang = mover->hangs->pdata[i - 1];

    if (hang->calls > 0)
      continue;
    tell_end(mover, hang);
    g_ptr_array_remove_index(mover->hangs, i - 1);
    changed = true;
  }
  if (changed)
    mover_status_changed(mover);
}

/* --- queries --- */

unsigned hangs_count(const Hangs *hangs) {
  unsigned n = 0;

  for (guint i = 0; i < hangs->len; i++)
    n += ((const Hang *)hangs->pdata[i])->calls;
  return n;
}

json_t *hangs_to_json(const Hangs *hangs, const char *domain_uuid) {
  json_t *array = json_array();

  for (guint i = 0; i < hangs->len; i++) {
    const Hang *hang = hangs->pdata[i];
    json_t *object;

    if (domain_uuid && g_strcmp0(domain_uuid, hang->about) != 0)
      continue;
    object = json_pack("{ss ss sI}", "call", hang->what, "libvirt_uri", hang->uri, "since_usec_realtime",
                       (json_int_t)hang->since_usec);
    if (hang->about)
      json_object_set_new(object, "domain", json_string(hang->about));
    json_array_append_new(array, object);
  }
  return array;
}

char *hangs_describe(const Hangs *hangs) {
  unsigned n = hangs_count(hangs);
  g_autofree char *since = NULL;
  const Hang *oldest = NULL;

  for (guint i = 0; i < hangs->len; i++) {
    const Hang *hang = hangs->pdata[i];

    if (!oldest || hang->since_ms < oldest->since_ms)
      oldest = hang;
  }
  if (!oldest)
    return g_strdup("");
  since = time_of_day(oldest->since_usec);
  return g_strdup_printf("; %u call%s to libvirtd hang%s, since %s: %s (%s)", n, n == 1 ? "" : "s",
                         n == 1 ? "s" : "", since, oldest->what, oldest->uri);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The format of records.
 *
 * Theory of Operation. Each record states its format. An older one is upgraded step by step when it is read, and written in the
 * present format when its job next changes; so a newer agent can replace this one at any time. A newer format is not guessed
 * at: the agent does not start (daemon/agent.c), lest it forget acknowledged jobs. A new field needs no new format if its
 * absence is unambiguous; a field that changes its meaning needs one, and a row here. */
#include "agent/job/recordformat.h"

#include <gio/gio.h>

/* Format 1 had only the time of day, so setting the clock could time out a waiting job. */
static void add_pending_since_ms(json_t *record) {
  json_t *jobs = json_object_get(record, "agent");
  gint64 now_ms = g_get_monotonic_time() / 1000;
  gint64 since_usec = json_integer_value(json_object_get(jobs, "pending_since_usec"));
  gint64 waited_ms;

  if (!json_is_object(jobs) || since_usec <= 0)
    return;
  waited_ms = (g_get_real_time() - since_usec) / 1000;
  json_object_set_new(jobs, "pending_since_ms", json_integer(now_ms - CLAMP(waited_ms, 0, now_ms - 1)));
}

/* Format 2 had libvirt's times only. */
static void add_total_time(json_t *record) {
  json_t *job = json_object_get(record, "job"), *result = json_object_get(job, "result");
  json_t *agent = json_object_get(record, "agent");
  gint64 created_usec = json_integer_value(json_object_get(job, "created_usec_realtime"));
  gint64 finished_usec = json_integer_value(json_object_get(job, "finished_usec_realtime"));
  json_t *libvirt_time = json_object_get(result, "total_time_ms");
  json_t *downtime = json_object_get(result, "downtime_ms");

  /* One that goes on has been under way since its request; nobody knows in what part. */
  if (!json_is_object(result)) {
    json_object_set_new(agent, "times", json_pack("{sI}", "since_usec", (json_int_t)created_usec));
    return;
  }
  if (libvirt_time)
    json_object_set(result, "libvirt_time_ms", libvirt_time);
  if (downtime)
    json_object_set(result, "libvirt_downtime_ms", downtime);
  json_object_set_new(result, "total_time_ms", json_integer(MAX(finished_usec - created_usec, 0) / 1000));
}

/* The step from each format to the next. */
static void (*const steps[])(json_t *record) = {
    [1] = add_pending_since_ms,
    [2] = add_total_time,
};
G_STATIC_ASSERT(G_N_ELEMENTS(steps) == RECORD_FORMAT);

bool record_upgrade(json_t *record, GError **error) {
  json_int_t format = json_integer_value(json_object_get(record, "format"));

  if (format > RECORD_FORMAT) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                "format %lld is newer than this agent knows (%d): written by a newer handoffd",
                (long long)format, RECORD_FORMAT);
    return false;
  }
  if (format < 1) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "missing or invalid format");
    return false;
  }
  for (; format < RECORD_FORMAT; format++)
    steps[format](record);
  json_object_set_new(record, "format", json_integer(RECORD_FORMAT));
  return true;
}

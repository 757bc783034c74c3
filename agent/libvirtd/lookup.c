/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain lookups, as local calls. */
#include "agent/libvirtd/lookup.h"

/* Additional time for measuring. */
#define MEASURE_MS 24000

typedef struct LookupTask {
  LookupAnswer answer; /* first: the caller gets it for the task */
  char *domain;
  bool measure;
} LookupTask;

static void task_free(gpointer data) {
  LookupTask *task = data;

  mig_domain_facts_clear(&task->answer.facts);
  g_free(task->domain);
  g_free(task);
}

/* QEMU samples 512 pages per GiB: for a small guest that is so few that one measurement is off by 20 %, so it is repeated. */
#define SMALL_GUEST_BYTES (2 * MIG_GIB_BYTES)

/* A short and a longer interval: two points of the curve. One that cannot be measured is left out. */
static void measure(LookupTask *task, const MigDriverOps *ops, MigConn *conn) {
  static const unsigned seconds[] = {1, 3, 1, 3};
  LookupAnswer *answer = &task->answer;
  size_t n =
      answer->facts.memory_bytes < SMALL_GUEST_BYTES ? G_N_ELEMENTS(seconds) : G_N_ELEMENTS(seconds) / 2;

  for (size_t i = 0; i < n; i++)
    ops->probe_dirty_rate(conn, answer->facts.uuid, seconds[i], &answer->probe, NULL);
}

static bool run(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  LookupTask *task = data;

  if (!driver->ops->domain_facts(conn, task->domain, &task->answer.facts, error))
    return false;
  if (task->measure)
    measure(task, driver->ops, conn);
  return true;
}

void lookup_domain(LocalCalls *calls, const char *domain, bool measure_it, LocalCallDoneFunc done,
                   gpointer user_data) {
  LookupTask *task = g_new0(LookupTask, 1);

  task->domain = g_strdup(domain);
  task->measure = measure_it;
  local_calls_run(
      calls,
      &(LocalCall){.run = run, .task = task, .free_task = task_free, .extra_ms = measure_it ? MEASURE_MS : 0},
      done, user_data);
}

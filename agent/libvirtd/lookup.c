/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain lookups, as local calls. */
#include "agent/libvirtd/lookup.h"

#include "agent/libvirtd/local-call.h"

#define THREADS 4
/* Additional time for measuring. */
#define MEASURE_MS 24000

struct Lookup {
  LocalCalls *local_calls;
};

/* The thread's part of a lookup. */
typedef struct LookupTask {
  char *domain;
  bool measure;
  LookupAnswer answer;
} LookupTask;

/* The main thread's part of a lookup. */
typedef struct LookupCaller {
  LookupFunc done;
  gpointer user_data;
} LookupCaller;

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
  uint64_t bytes_per_s;

  for (size_t i = 0; i < n; i++)
    if (ops->probe_dirty_rate(conn, answer->facts.uuid, seconds[i], &bytes_per_s, &answer->probe.cpu_share,
                              NULL))
      mig_dirty_curve_observe(&answer->probe.curve, seconds[i], (double)bytes_per_s * seconds[i]);
}

static bool run(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  LookupTask *task = data;

  if (!driver->ops->domain_facts(conn, task->domain, &task->answer.facts, error))
    return false;
  if (task->measure)
    measure(task, driver->ops, conn);
  return true;
}

static void on_done(gpointer data, const GError *error, gpointer user_data) {
  g_autofree LookupCaller *caller = user_data;
  LookupTask *task = data;

  caller->done(task ? &task->answer : NULL, error, caller->user_data);
}

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms) {
  Lookup *lookup = g_new0(Lookup, 1);

  lookup->local_calls = local_calls_new(driver, hypervisor, context, THREADS, timeout_ms);
  return lookup;
}

void lookup_free(Lookup *lookup) {
  if (!lookup)
    return;
  local_calls_free(lookup->local_calls);
  g_free(lookup);
}

void lookup_domain(Lookup *lookup, const char *domain, bool measure_it, LookupFunc done, gpointer user_data) {
  LookupTask *task = g_new0(LookupTask, 1);
  LookupCaller *caller = g_new0(LookupCaller, 1);
  LocalCall call = {
      .run = run, .task = task, .free_task = task_free, .extra_ms = measure_it ? MEASURE_MS : 0};

  task->domain = g_strdup(domain);
  task->measure = measure_it;
  caller->done = done;
  caller->user_data = user_data;
  local_calls_run(lookup->local_calls, &call, on_done, caller);
}

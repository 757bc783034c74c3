/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain lookups: errands that ask for one domain. */
#include "agent/libvirtd/lookup.h"

#include "agent/libvirtd/local-call.h"

#define THREADS 4
/* What measuring may take on top. */
#define MEASURE_MS 24000

struct Lookup {
  Errands *errands;
};

/* One lookup: the thread's. */
typedef struct Task {
  char *domain;
  bool measure;
  LookupAnswer answer;
} Task;

/* One lookup: the main thread's. */
typedef struct Asker {
  LookupFunc done;
  gpointer user_data;
} Asker;

static void task_free(gpointer data) {
  Task *task = data;

  mig_domain_facts_clear(&task->answer.facts);
  g_free(task->domain);
  g_free(task);
}

/* QEMU looks at 512 pages of each GiB: of a small guest those are so few that a measurement is 20 % off, and is repeated. */
#define SMALL_GUEST_BYTES (2 * MIG_GIB_BYTES)

/* A short time and a longer one: two points of the curve. One that cannot be measured is left out. */
static void measure(Task *task, const MigDriverOps *ops, MigConn *conn) {
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
  Task *task = data;

  if (!driver->ops->domain_facts(conn, task->domain, &task->answer.facts, error))
    return false;
  if (task->measure)
    measure(task, driver->ops, conn);
  return true;
}

static void on_done(gpointer data, const GError *error, gpointer user_data) {
  g_autofree Asker *asker = user_data;
  Task *task = data;

  asker->done(task ? &task->answer : NULL, error, asker->user_data);
}

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms) {
  Lookup *lookup = g_new0(Lookup, 1);

  lookup->errands = errands_new(driver, hypervisor, context, THREADS, timeout_ms);
  return lookup;
}

void lookup_free(Lookup *lookup) {
  if (!lookup)
    return;
  errands_free(lookup->errands);
  g_free(lookup);
}

void lookup_domain(Lookup *lookup, const char *domain, bool measure_it, LookupFunc done, gpointer user_data) {
  Task *task = g_new0(Task, 1);
  Asker *asker = g_new0(Asker, 1);
  Errand errand = {.run = run, .task = task, .free_task = task_free, .extra_ms = measure_it ? MEASURE_MS : 0};

  task->domain = g_strdup(domain);
  task->measure = measure_it;
  asker->done = done;
  asker->user_data = user_data;
  errands_run(lookup->errands, &errand, on_done, asker);
}

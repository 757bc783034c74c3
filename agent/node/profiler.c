/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The profiler.
 *
 * Theory of Operation. Every ProfileInterval= it lists the running domains and measures them one after the other: QEMU hashes a
 * sample of the guest's pages, waits for one or three seconds, and hashes them again. What it finds is added to the profile in
 * the domain's metadata (core/profile.c). So there is no file to keep: a guest takes its profile along when it migrates, and an
 * agent that was restarted finds it there.
 *
 * Nothing is measured while a migration runs in either direction: it needs the CPU and the link more. An idle agent begins
 * START_MS after its start, since a guest that boots is like no other. */
#include "agent/node/profiler.h"

#include "agent/base/clock.h"
#include "agent/libvirtd/local-call.h"
#include "agent/node/node.h"

#define START_MS 60000
/* A measurement may take this much longer than other calls. */
#define EXTRA_MS 10000

struct Profiler {
  Node *node;
  LocalCalls *local_calls;
  GQueue waiting;    /* UUIDs of this round */
  uint64_t since_ms; /* when the last round began; before the first: when the agent did */
  unsigned rounds;
  bool asking;
  Profiling count;
};

typedef struct ProfileTask {
  char *uuid;         /* NULL: list the domains */
  int64_t fresh_usec; /* a profile that is newer needs no measurement */
  GPtrArray *active;  /* of a list */
  bool measured;
  uint64_t took_ms;
} ProfileTask;

static void task_free(gpointer data) {
  ProfileTask *task = data;

  g_clear_pointer(&task->active, g_ptr_array_unref);
  g_free(task->uuid);
  g_free(task);
}

/* --- on a thread --- */

static bool measure(MigDriver *driver, MigConn *conn, ProfileTask *task, GError **error) {
  g_auto(MigDomainFacts) facts = {0};
  uint64_t begun_ms = clock_now_ms();
  MigProbe probe = {0};
  unsigned seconds;

  if (!driver->ops->domain_facts(conn, task->uuid, &facts, error))
    return false;
  if (facts.state != MIG_END_RUNNING || facts.profile.at_usec > task->fresh_usec)
    return true;
  seconds = mig_profile_seconds(&facts.profile);
  if (!driver->ops->probe_dirty_rate(conn, task->uuid, seconds, &probe, error))
    return false;
  mig_profile_note(&facts.profile, g_get_real_time(), seconds, &probe);
  task->measured = true;
  task->took_ms = clock_now_ms() - begun_ms;
  return driver->ops->write_profile(conn, task->uuid, &facts.profile, error);
}

static bool run(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  ProfileTask *task = data;

  if (task->uuid)
    return measure(driver, conn, task, error);
  task->active = driver->ops->list_active(conn, error);
  return task->active != NULL;
}

/* --- on the main thread --- */

/* A guest that is gone, or busy, is measured in another round. */
static void on_done(gpointer data, const GError *error, gpointer user_data) {
  Profiler *profiler = user_data;
  const ProfileTask *task = data;

  profiler->asking = false;
  if (error) {
    profiler->count.failed++;
    return;
  }
  profiler->count.measured += task->measured;
  profiler->count.took_ms += task->took_ms;
  for (guint i = 0; task->active && i < task->active->len; i++)
    g_queue_push_tail(&profiler->waiting, g_strdup(((const MigActiveDomain *)task->active->pdata[i])->uuid));
}

/* Takes `uuid`. */
static void ask(Profiler *profiler, char *uuid) {
  ProfileTask *task = g_new0(ProfileTask, 1);
  const LocalCall call = {.run = run, .task = task, .free_task = task_free, .extra_ms = uuid ? EXTRA_MS : 0};

  task->uuid = uuid;
  task->fresh_usec = g_get_real_time() - (int64_t)profiler->node->config->profile_interval_ms * 500;
  profiler->asking = true;
  local_calls_run(profiler->local_calls, &call, on_done, profiler);
}

static bool is_migrating(const Jobs *jobs) {
  const GPtrArray *all = job_table_all(jobs->table);

  for (guint i = all->len; i > 0; i--) {
    const Job *job = all->pdata[i - 1];

    if (!job_is_final(job) && job->phase != MIG_PHASE_PENDING)
      return true;
  }
  return false;
}

static bool is_due(const Profiler *profiler, uint64_t now_ms) {
  unsigned interval_ms = profiler->node->config->profile_interval_ms;
  unsigned wait_ms = profiler->rounds > 0 ? interval_ms : MIN(START_MS, interval_ms);

  return interval_ms > 0 && (profiler->waiting.length > 0 || now_ms - profiler->since_ms >= wait_ms);
}

void profiler_tick(Profiler *profiler) {
  uint64_t now_ms = clock_now_ms();

  if (profiler->asking || !is_due(profiler, now_ms) ||
      !hypervisor_get_state(profiler->node->mover->hypervisor)->reachable ||
      is_migrating(profiler->node->jobs))
    return;
  if (profiler->waiting.length == 0) {
    profiler->since_ms = now_ms;
    profiler->rounds++;
  }
  ask(profiler, g_queue_pop_head(&profiler->waiting));
}

const Profiling *profiler_count(const Profiler *profiler) {
  return &profiler->count;
}

Profiler *profiler_new(Node *node) {
  Profiler *profiler = g_new0(Profiler, 1);

  profiler->node = node;
  profiler->since_ms = clock_now_ms();
  profiler->local_calls =
      local_calls_new(node->mover->hypervisor, node->mover->context, 1, node->config->connect_timeout_ms);
  return profiler;
}

void profiler_free(Profiler *profiler) {
  if (!profiler)
    return;
  local_calls_free(profiler->local_calls);
  g_queue_clear_full(&profiler->waiting, g_free);
  g_free(profiler);
}

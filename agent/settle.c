/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a worker finds out what became of its migration.
 *
 * Theory of Operation. Whatever the migration's call returned, both ends are asked, the source first, until
 * mig_verdict() says something final: a failed call does not mean that the domain did not move, and a broken
 * connection means nothing at all. Meanwhile what is known is reported when it changes, a migration that is found
 * under way is watched to its end, and a cut post-copy is resumed again and again. */
#include "agent/worker-private.h"

#define VERDICT_PAUSE_MIN_MS 100
#define VERDICT_PAUSE_MAX_MS 2000
#define WATCH_PAUSE_MS       1000
#define RESUME_PAUSE_MIN_MS  500
#define RESUME_PAUSE_MAX_MS  10000

/* Both ends, as they answer now. */
typedef struct Ends {
  MigVerdictInput input;
  GError *source_error;
  GError *target_error;
  bool have_final;
  MigFinalStats final;
} Ends;

static void ends_clear(Ends *ends) {
  g_clear_error(&ends->source_error);
  g_clear_error(&ends->target_error);
  *ends = (Ends){0};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ends, ends_clear)

static void ask_source(Worker *worker, Ends *ends) {
  HypervisorConn *conn =
      hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &ends->source_error);
  MigDomainStatus status = {0};

  if (!conn)
    return;
  if (worker->driver->ops->domain_status(hypervisor_conn_get(conn), worker->domain_uuid, &status,
                                         &ends->source_error)) {
    ends->input.source = status.state;
    ends->input.job_active = status.job_active;
  }
  hypervisor_release(conn, ends->source_error);
}

/* Keeps the target's connection in *conn while it works. */
static void ask_target(Worker *worker, MigConn **conn, Ends *ends) {
  const MigDriverOps *ops = worker->driver->ops;
  MigDomainStatus status = {0};

  if (*conn && !ops->is_alive(*conn)) {
    ops->close(*conn);
    *conn = NULL;
  }
  if (!*conn)
    *conn = ops->open(worker->driver, worker->target_uri, worker->connect_timeout_ms, NULL, NULL,
                      &ends->target_error);
  if (!*conn)
    return;
  if (ops->domain_status(*conn, worker->domain_uuid, &status, &ends->target_error)) {
    ends->input.target = status.state;
    if (status.state == MIG_END_RUNNING || status.state == MIG_END_PAUSED)
      ends->have_final = ops->final_stats(*conn, worker->domain_uuid, &ends->final, NULL);
  } else {
    ops->close(*conn);
    *conn = NULL;
  }
}

static char *describe_ends(const Ends *ends, const char *why) {
  return g_strdup_printf(
      "source: %s%s%s%s; target: %s%s%s; %s", mig_end_state_name(ends->input.source),
      ends->input.job_active ? ", migration job active" : "", ends->source_error ? ", " : "",
      ends->source_error ? ends->source_error->message : "", mig_end_state_name(ends->input.target),
      ends->target_error ? ", " : "", ends->target_error ? ends->target_error->message : "", why);
}

/* Tries to let a cut post-copy go on. "Still running" is no failure: QEMU goes on by itself. */
static void resume_post_copy(Worker *worker, const char *evidence, unsigned *pause) {
  MigMigrateRequest request = {
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = worker->policy,
      .resume_post_copy = true,
  };
  GError *error = NULL;
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);

  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  if (conn) {
    worker->driver->ops->migrate(hypervisor_conn_get(conn), &request, &error);
    hypervisor_release(conn, error);
  }
  *pause = error ? MIN(*pause * 2, RESUME_PAUSE_MAX_MS) : RESUME_PAUSE_MIN_MS;
  worker_post(worker,
              &(WorkerReport){.kind = WORKER_RESUMING, .evidence = g_strdup(evidence), .error = error});
}

void worker_settle(Worker *worker) {
  unsigned pause = VERDICT_PAUSE_MIN_MS, resume_pause = RESUME_PAUSE_MIN_MS;
  g_autofree char *said = NULL;
  MigConn *target = NULL;
  bool attached = false;

  for (;;) {
    g_auto(Ends) ends = {0};
    const char *why = "";
    MigVerdict verdict;
    char *evidence;

    /* The source first: see mig_verdict(). */
    ends.input.completed_event = worker_is_completed(worker);
    ask_source(worker, &ends);
    ask_target(worker, &target, &ends);
    verdict = mig_verdict(&ends.input, &why);
    evidence = describe_ends(&ends, why);

    if (ends.input.job_active && verdict == MIG_VERDICT_WAIT) {
      /* Under way without a call of ours in it: after a restart, or after a lost connection. Watch it. */
      if (!attached)
        worker_post(worker,
                    &(WorkerReport){.kind = WORKER_ATTACHED, .ends = ends.input, .evidence = evidence});
      else
        g_free(evidence);
      attached = true;
      g_clear_pointer(&said, g_free);
      worker_pause_ms(worker, WATCH_PAUSE_MS);
      pause = VERDICT_PAUSE_MIN_MS;
      continue;
    }
    attached = false;
    if (verdict != MIG_VERDICT_WAIT && verdict != MIG_VERDICT_RECOVER) {
      worker_post(worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                          .verdict = verdict,
                                          .ends = ends.input,
                                          .evidence = evidence,
                                          .have_final = ends.have_final,
                                          .final = ends.final});
      break;
    }
    if (verdict == MIG_VERDICT_RECOVER) {
      resume_post_copy(worker, evidence, &resume_pause);
      g_free(evidence);
      worker_pause_ms(worker, resume_pause);
      continue;
    }
    if (g_strcmp0(said, evidence) != 0) {
      g_free(said);
      said = g_strdup(evidence);
      worker_post(worker,
                  &(WorkerReport){.kind = WORKER_UNSETTLED, .ends = ends.input, .evidence = evidence});
    } else {
      g_free(evidence);
    }
    worker_pause_ms(worker, pause);
    pause = MIN(pause * 2, VERDICT_PAUSE_MAX_MS);
  }
  if (target)
    worker->driver->ops->close(target);
}

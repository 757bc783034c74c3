/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a worker finds out what became of its migration.
 *
 * Theory of Operation. Whatever the migration's call returned, both ends are asked, the source first, and the answers given
 * to mig_settle_step(), which decides all the rest: when to look again, what may be done to a domain, when a verdict
 * stands. Here is only what it takes to look and to act, and to report: what is known, when it changes; a migration that is
 * found under way; each action. */
#include "agent/worker-private.h"

/* Both ends, as they answer now. */
typedef struct Ends {
  MigSettleLook look;
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
    ends->look.source = status.state;
    ends->look.source_defined = status.persistent;
    ends->look.job_active = status.job_active;
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
    ends->look.target = status.state;
    ends->look.target_defined = status.persistent;
    ends->look.target_start_failed = status.start_failed;
    if (status.state == MIG_END_RUNNING || status.state == MIG_END_PAUSED)
      ends->have_final = ops->final_stats(*conn, worker->domain_uuid, &ends->final, NULL);
  } else {
    ops->close(*conn);
    *conn = NULL;
  }
}

static char *describe_ends(const Ends *ends, const char *why) {
  return g_strdup_printf(
      "source: %s%s%s%s; target: %s%s%s; %s", mig_end_state_name(ends->look.source),
      ends->look.job_active ? ", migration job active" : "", ends->source_error ? ", " : "",
      ends->source_error ? ends->source_error->message : "", mig_end_state_name(ends->look.target),
      ends->target_error ? ", " : "", ends->target_error ? ends->target_error->message : "", why);
}

/* --- the actions --- */

static bool resume_post_copy(Worker *worker, MigConn *source, GError **error) {
  MigMigrateRequest request = {
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = worker->policy,
      .resume_post_copy = true,
  };

  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  return worker->driver->ops->migrate(source, &request, error);
}

static bool resume_source(Worker *worker, MigConn *source, GError **error) {
  return worker->driver->ops->resume(source, worker->domain_uuid, error);
}

static bool undefine(Worker *worker, MigConn *conn, GError **error) {
  return worker->driver->ops->undefine(conn, worker->domain_uuid, error);
}

static const struct {
  bool at_target;
  bool (*take)(Worker *worker, MigConn *conn, GError **error);
} touches[] = {
    [MIG_TOUCH_RESUME_POST_COPY] = {false, resume_post_copy},
    [MIG_TOUCH_RESUME_SOURCE] = {false, resume_source},
    [MIG_TOUCH_UNDEFINE_TARGET] = {true, undefine},
    [MIG_TOUCH_UNDEFINE_SOURCE] = {false, undefine},
};
G_STATIC_ASSERT(G_N_ELEMENTS(touches) == MIG_TOUCH_COUNT);

/* The target's connection is the one that it just answered on. */
static bool take(Worker *worker, MigConn *target, MigTouch touch, GError **error) {
  HypervisorConn *conn;
  bool ok;

  if (touches[touch].at_target)
    return touches[touch].take(worker, target, error);
  conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, error);
  if (!conn)
    return false;
  ok = touches[touch].take(worker, hypervisor_conn_get(conn), error);
  hypervisor_release(conn, error && *error ? *error : NULL);
  return ok;
}

/* --- the loop --- */

/* What was reported last, so that only news is. */
typedef struct Said {
  bool attached;
  MigAwaits awaits;
  char *evidence;
} Said;

static void say_attached(Worker *worker, Said *said, const char *evidence) {
  if (!said->attached)
    worker_post(worker, &(WorkerReport){.kind = WORKER_ATTACHED, .evidence = g_strdup(evidence)});
  said->attached = true;
  g_clear_pointer(&said->evidence, g_free);
}

static void say_unsettled(Worker *worker, Said *said, const MigSettleStep *step, const char *evidence) {
  said->attached = false;
  if (g_strcmp0(said->evidence, evidence) == 0 && said->awaits == step->awaits)
    return;
  g_free(said->evidence);
  said->evidence = g_strdup(evidence);
  said->awaits = step->awaits;
  worker_post(worker, &(WorkerReport){.kind = WORKER_UNSETTLED,
                                      .awaits = step->awaits,
                                      .plan = step->plan,
                                      .evidence = g_strdup(evidence)});
}

static void touch(Worker *worker, MigSettle *settle, MigConn *target, const MigSettleStep *step,
                  const char *evidence) {
  GError *error = NULL;
  bool ok = take(worker, target, step->touch, &error);

  mig_settle_note_touched(settle, worker_now_ms(), step->touch, ok);
  worker_post(worker, &(WorkerReport){.kind = WORKER_TOUCHED,
                                      .touch = step->touch,
                                      .plan = step->plan,
                                      .evidence = g_strdup(evidence),
                                      .error = error});
}

static void look(Worker *worker, MigConn **target, Ends *ends) {
  ends->look.began_ms = worker_now_ms();
  ends->look.completed = worker_is_completed(worker);
  ends->look.call_taken = worker->call_taken;
  /* The source first: see mig_verdict_answer(). */
  ask_source(worker, ends);
  ask_target(worker, target, ends);
  ends->look.ended_ms = worker_now_ms();
}

/* True: a verdict stands, and was reported. */
static bool go_on(Worker *worker, MigSettle *settle, Said *said, MigConn *target, const Ends *ends) {
  g_autofree char *evidence = NULL;
  MigSettleStep step;

  mig_settle_step(settle, &ends->look, &step);
  evidence = describe_ends(ends, step.why);
  switch (step.next) {
  case MIG_SETTLE_DONE:
    worker_post(worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                        .verdict = step.verdict,
                                        .left = step.left,
                                        .evidence = g_steal_pointer(&evidence),
                                        .have_final = ends->have_final,
                                        .final = ends->final});
    return true;
  case MIG_SETTLE_TOUCH:
    said->attached = false;
    touch(worker, settle, target, &step, evidence);
    return false;
  case MIG_SETTLE_LOOK:
    if (step.under_way)
      say_attached(worker, said, evidence);
    else if (step.verdict == MIG_VERDICT_WAIT)
      say_unsettled(worker, said, &step, evidence);
    worker_pause_ms(worker, step.wait_ms);
    return false;
  }
  g_return_val_if_reached(true);
}

void worker_settle(Worker *worker) {
  MigSettleRecord record = worker_get_record(worker);
  MigConn *target = NULL;
  bool paused = record.paused_by_agent, settled = false;
  MigSettle settle;
  Said said = {0};

  mig_settle_init(&settle, &record);
  while (!settled) {
    g_auto(Ends) ends = {0};

    record = worker_get_record(worker);
    if (record.paused_by_agent && !paused)
      mig_settle_note_paused(&settle);
    paused = record.paused_by_agent;
    look(worker, &target, &ends);
    settled = go_on(worker, &settle, &said, target, &ends);
  }
  g_free(said.evidence);
  if (target)
    worker->driver->ops->close(target);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a worker determines the outcome of its migration.
 *
 * Theory of Operation. Whatever the migration's call returned, both ends are asked, the source first. Their answers go to
 * mig_settle_step(), which decides everything else: when to look again, what may be done to a domain, when a verdict stands. This
 * file only looks, acts and reports: what is known, whenever it changes; a migration found in progress; each action. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"
/* How soon to ask again after an end did not answer. Asking is cheap: a silent end takes a second or more, and one that refuses
 * at once is nearby. */
#define NO_ANSWER_PAUSE_MS 300

/* How soon to check again whether a pause of the guest was answered. */
#define PAUSING_MS 100

/* The present answers of both ends. */
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

typedef struct Settling {
  Worker *worker;
  MigSettle settle;
  EndpointBasis source, target; /* the domain's state at each end at the last look */
  bool paused, answered;        /* as given to mig_settle_set_paused() */
  unsigned tries;               /* attempts to resume post-copy */

  /* The last report, so that only changes are reported. */
  bool attached;
  MigAwaits awaits;
  char *evidence;
  MigSettleLook told;
} Settling;

/* An unknown id counts as a different one. */
static bool is_replaced(const Worker *worker, const MigDomainStatus *status) {
  return status->id != 0 && status->id != worker->source_id;
}

static void take_source(Worker *worker, const EndpointAnswer *answer, MigSettleLook *look) {
  const MigDomainStatus *status = &answer->status;
  bool own = status->job_outgoing && worker_owns_job(worker, status->job_elapsed_ms);

  if (!status->job_active)
    worker_note_no_job(worker);
  look->source_watched_since_ms = answer->watched_since_ms;
  look->source = status->state;
  look->source_defined = status->persistent;
  look->source_replaced = is_replaced(worker, status);
  look->source_ended = status->ended || worker_sees(worker, &worker->ended_here);
  look->job_active = status->job_active;
  /* libvirt has one migration of a domain at a time. Until the call is answered it may be this one, whatever its age. */
  look->job_foreign = status->job_active && !own && worker->call_taken && !worker->reattach;
}

static void look(Settling *settling, Ends *ends) {
  Worker *worker = settling->worker;
  EndpointAnswer answer = {0};

  ends->look.began_ms = clock_now_ms();
  ends->look.completed = worker_sees(worker, &worker->completed);
  ends->look.call_taken = worker->call_taken;
  ends->look.call_failed = worker->call_failed;
  ends->look.pausing = worker_sees(worker, &worker->pausing);
  /* The source first: see mig_verdict_answer(). */
  settling->source = settling->target = (EndpointBasis){0};
  if (worker_ask_source(worker, &answer, &ends->source_error)) {
    settling->source = (EndpointBasis){answer.status.state, answer.status.id};
    take_source(worker, &answer, &ends->look);
  }
  if (worker_ask_target(worker, &answer, &ends->target_error)) {
    settling->target = (EndpointBasis){answer.status.state, answer.status.id};
    ends->look.target_watched_since_ms = answer.watched_since_ms;
    ends->look.target_had_guest = answer.had_guest;
    ends->look.target_ended = answer.ended;
    ends->look.target_incoming = answer.status.job_active && !answer.status.job_outgoing;
    ends->look.target = answer.status.state;
    ends->look.target_defined = answer.status.persistent;
    ends->look.target_start_failed = answer.status.start_failed;
    ends->have_final = answer.have_final;
    ends->final = answer.final;
  }
  ends->look.ended_ms = clock_now_ms();
}

static char *describe_ends(const Ends *ends, const char *why) {
  return g_strdup_printf(
      "source: %s%s%s%s; target: %s%s%s; %s", mig_end_state_name(ends->look.source),
      ends->look.job_active ? ", migration job active" : "", ends->source_error ? ", " : "",
      ends->source_error ? ends->source_error->message : "", mig_end_state_name(ends->look.target),
      ends->target_error ? ", " : "", ends->target_error ? ends->target_error->message : "", why);
}

/* --- the actions --- */

/* Blocks until the post-copy has ended, or is interrupted again. */
static bool resume_post_copy(Settling *settling, GError **error) {
  Worker *worker = settling->worker;
  MigMigrateRequest request = {
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = &worker->policy,
      .resume_post_copy = true,
  };
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, error);
  g_autoptr(GError) failure = NULL;
  bool ok;

  if (!conn)
    return false;
  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  worker_take_limits(worker);
  ok = worker_migrate(worker, conn->conn, &request, &failure);
  hypervisor_release(conn, failure);
  if (!ok)
    g_propagate_error(error, g_steal_pointer(&failure));
  return ok;
}

/* An action that was sent but not answered may still be carried out; the next looks will tell. */
static bool act(Endpoint *endpoint, bool (*ask)(Endpoint *, const EndpointBasis *, bool *, GError **),
                const EndpointBasis *basis, GError **error) {
  bool sent = false, ok = ask(endpoint, basis, &sent, error);

  if (!ok && sent && g_error_matches(*error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT))
    g_prefix_error(error, "requested, but not answered: ");
  return ok;
}

static bool resume_source(Settling *settling, GError **error) {
  return act(settling->worker->source, endpoint_resume, &settling->source, error);
}

static bool undefine_target(Settling *settling, GError **error) {
  return act(settling->worker->target, endpoint_undefine, &settling->target, error);
}

static bool undefine_source(Settling *settling, GError **error) {
  return act(settling->worker->source, endpoint_undefine, &settling->source, error);
}

static bool (*const touches[])(Settling *settling, GError **error) = {
    [MIG_TOUCH_RESUME_POST_COPY] = resume_post_copy,
    [MIG_TOUCH_RESUME_SOURCE] = resume_source,
    [MIG_TOUCH_UNDEFINE_TARGET] = undefine_target,
    [MIG_TOUCH_UNDEFINE_SOURCE] = undefine_source,
};
G_STATIC_ASSERT(G_N_ELEMENTS(touches) == MIG_TOUCH_COUNT);

static void touch(Settling *settling, const MigSettleStep *step, const char *evidence) {
  WorkerReport report = {.touch = step->touch, .plan = step->plan};
  uint64_t again_ms;
  bool ok;

  settling->attached = false;
  report.tries = step->touch == MIG_TOUCH_RESUME_POST_COPY ? ++settling->tries : 1;
  report.kind = WORKER_TOUCHING;
  report.evidence = g_strdup(evidence);
  worker_post(settling->worker, &report);

  report.error = NULL;
  ok = touches[step->touch](settling, &report.error);
  again_ms = mig_settle_note_touched(&settling->settle, clock_now_ms(), step->touch, ok);
  report.kind = WORKER_TOUCHED;
  report.again_ms = ok ? 0 : again_ms;
  report.evidence = g_strdup(evidence);
  worker_post(settling->worker, &report);
}

/* --- the loop --- */

static void say_attached(Settling *settling, const char *evidence) {
  if (!settling->attached)
    worker_post(settling->worker, &(WorkerReport){.kind = WORKER_ATTACHED, .evidence = g_strdup(evidence)});
  settling->attached = true;
  g_clear_pointer(&settling->evidence, g_free);
}

/* The words change more often than the facts: an end can fail to answer in many ways. */
static void say_unsettled(Settling *settling, const MigSettleStep *step, const Ends *ends,
                          const char *evidence) {
  bool news = settling->attached || !settling->evidence || settling->awaits != step->awaits ||
              settling->told.source != ends->look.source || settling->told.target != ends->look.target ||
              settling->told.job_active != ends->look.job_active;

  settling->attached = false;
  if (!news && g_strcmp0(settling->evidence, evidence) == 0)
    return;
  g_free(settling->evidence);
  settling->evidence = g_strdup(evidence);
  settling->awaits = step->awaits;
  settling->told = ends->look;
  worker_post(settling->worker, &(WorkerReport){.kind = WORKER_UNSETTLED,
                                                .awaits = step->awaits,
                                                .source = ends->look.source,
                                                .target = ends->look.target,
                                                .plan = step->plan,
                                                .news = news,
                                                .evidence = g_strdup(evidence)});
}

/* An event is under way for half a round trip, give or take; what libvirtd and the rounding add is another millisecond. */
static uint64_t hearing_error_ms(const Worker *worker) {
  if (worker->source_took_us == 0 || worker->target_took_us == 0)
    return 0;
  return ((worker->source_took_us + worker->target_took_us) / 2 + 999) / 1000 + 1;
}

static bool unanswered(const Ends *ends) {
  return ends->look.source == MIG_END_UNKNOWN || ends->look.target == MIG_END_UNKNOWN;
}

/* True: a verdict stands and was reported. */
static bool go_on(Settling *settling, const Ends *ends) {
  g_autofree char *evidence = NULL;
  bool seen_there, completed;
  MigSettleStep step;

  mig_settle_step(&settling->settle, &ends->look, &step);
  mig_settle_get_learnt(&settling->settle, &seen_there, &completed);
  worker_learn(settling->worker, seen_there, completed);
  evidence = describe_ends(ends, step.why);
  switch (step.next) {
  case MIG_SETTLE_DONE:
    if (!worker_end_steering(settling->worker)) {
      worker_pause_ms(settling->worker, PAUSING_MS);
      return false;
    }
    worker_post(settling->worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                                  .verdict = step.verdict,
                                                  .left = step.left,
                                                  .source = ends->look.source,
                                                  .target = ends->look.target,
                                                  .came_back = ends->look.source_replaced,
                                                  .evidence = g_steal_pointer(&evidence),
                                                  .error_ms = hearing_error_ms(settling->worker),
                                                  .have_final = ends->have_final,
                                                  .final = ends->final});
    return true;
  case MIG_SETTLE_TOUCH:
    /* What was seen must be on stable storage before an action rests on it. */
    if (step.touch != MIG_TOUCH_RESUME_POST_COPY &&
        !worker_sees(settling->worker, &settling->worker->recorded)) {
      worker_pause_ms(settling->worker, PAUSING_MS);
      return false;
    }
    touch(settling, &step, evidence);
    return false;
  case MIG_SETTLE_LOOK:
    if (step.under_way)
      say_attached(settling, evidence);
    else if (step.verdict == MIG_VERDICT_WAIT)
      say_unsettled(settling, &step, ends, evidence);
    worker_pause_ms(settling->worker,
                    unanswered(ends) ? MIN(step.wait_ms, NO_ANSWER_PAUSE_MS) : step.wait_ms);
    return false;
  }
  g_return_val_if_reached(true);
}

void worker_settle(Worker *worker) {
  MigSettleRecord record = worker_get_record(worker);
  Settling settling = {
      .worker = worker,
      .paused = record.paused_by_agent,
      .answered = record.pause_answered,
  };
  bool settled = false;

  mig_settle_init(&settling.settle, &record, worker->stayed_ms);
  while (!settled && !worker_sees(worker, &worker->over)) {
    unsigned pauses = worker_count_pauses(worker);
    g_auto(Ends) ends = {0};

    record = worker_get_record(worker);
    if (record.paused_by_agent != settling.paused || record.pause_answered != settling.answered)
      mig_settle_set_paused(&settling.settle, record.paused_by_agent, record.pause_answered);
    settling.paused = record.paused_by_agent;
    settling.answered = record.pause_answered;
    mig_settle_set_word(&settling.settle, record.told_it_stayed, record.told_it_ran);
    look(&settling, &ends);
    settled = go_on(&settling, &ends);
    /* It was seen running since: any pause from now on is not the agent's, in the job's record, too. */
    if (settling.paused && !settling.settle.record.paused_by_agent)
      worker_forget_pause(worker, pauses);
  }
  g_free(settling.evidence);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the queue to the checks, and back to the queue if the checks find something that may pass.
 *
 * Theory of Operation. A job waits in the queue (queue.c) for its turn. Then it has a slot, and first runs its checks. If
 * they find nothing, it migrates. If they find something that waiting cannot cure, it fails at once. If they find something
 * that may pass, such as a target that is down, it gives up its slot, goes back to the queue and is checked again later.
 * After UnschedulableTimeout= of that it fails with what it last saw; PendingTimeout= limits its waiting as a whole. */
#include "agent/move/admit.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/bandwidth.h"
#include "agent/move/finish.h"
#include "agent/move/lifecycle.h"
#include "agent/move/run.h"

#include <inttypes.h>

/* How many give up per tick: each writes a record, and clients must not wait for all of them. */
#define OVERDUE_MAX 200

static const char *name_of_target(const Job *job) {
  return job->target_name ? job->target_name : job->target_uri;
}

/* Checks and migrations need this node's libvirtd; migrations also need a share of the bandwidth. */
static void set_gate(Mover *mover) {
  const HypervisorState *state = hypervisor_get_state(mover->hypervisor);
  g_autofree char *message = NULL;

  if (mover->host_going_down) {
    job_queue_set_gate(mover->jobs->queue, MIG_ADMISSION_NODE, mig_cause_name(MIG_CAUSE_HOST_SHUTDOWN),
                       "this host is shutting down; the migration starts when the host is up again");
    return;
  }
  if (state->reachable) {
    message = bandwidth_explain_lack(mover);
    job_queue_set_gate(mover->jobs->queue, message ? MIG_ADMISSION_BANDWIDTH_LIMIT : MIG_ADMISSION_START,
                       mig_admission_name(MIG_ADMISSION_BANDWIDTH_LIMIT), message);
    return;
  }
  message = g_strdup_printf("this node's libvirtd %s%s",
                            state->message ? "does not answer: " : "has not answered yet",
                            state->message ? state->message : "");
  job_queue_set_gate(mover->jobs->queue, MIG_ADMISSION_NODE,
                     state->message ? mig_cause_name(MIG_CAUSE_SOURCE_UNREACHABLE) : "AGENT_STARTING",
                     message);
}

void admit_push(Mover *mover, Job *job) {
  job_queue_push(mover->jobs->queue, job, clock_now_ms());
}

void admit_jobs(Mover *mover) {
  MigTurn turn;
  Job *job;

  bandwidth_step(mover);
  for (;;) {
    set_gate(mover);
    turn = job_queue_next(mover->jobs->queue, clock_now_ms(), &job);
    if (turn == MIG_TURN_NONE)
      return;
    jobs_enter_phase(mover->jobs, job, MIG_PHASE_PREPARING,
                     turn == MIG_TURN_START ? "checking the domain and the target"
                                            : "checking again whether it can start");
    jobs_state_changed(mover->jobs, job);
    run_start(mover, job, false);
  }
}

/* The job is in the queue again; frees its run. */
static void back_to_pending(Mover *mover, Job *job, const char *message) {
  g_clear_pointer(&job->run, run_free);
  jobs_enter_phase(mover->jobs, job, MIG_PHASE_PENDING, message);
  jobs_state_changed(mover->jobs, job);
  admit_jobs(mover);
}

bool admit_passed(Mover *mover, Job *job) {
  if (job_queue_passed(mover->jobs->queue, job, clock_now_ms()))
    return true;
  back_to_pending(mover, job, "nothing blocks it any more; waiting for its turn");
  return false;
}

void admit_hold(Mover *mover, Job *job, MigHold hold, const char *reason, MigCause cause,
                const GError *error) {
  g_autofree char *message = g_strdup_printf("%s: %s", reason, error->message);
  JobPending pending;

  job_queue_hold(mover->jobs->queue, job, hold, reason, cause, error, clock_now_ms());
  job_queue_explain(mover->jobs->queue, job, clock_now_ms(), &pending);
  /* Log it once, not at each retry. */
  if (pending.condition && pending.condition->tries == 1)
    log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_HELD, "cannot start yet (%s), will check again: %s", reason,
            error->message);
  g_free(pending.message);
  back_to_pending(mover, job, message);
}

/* --- how long --- */

/* By the monotonic clock: setting the time of day makes no job give up. UINT64_MAX: never. */
static uint64_t pending_until_ms(const Mover *mover, const Job *job) {
  unsigned timeout_ms = mover->config->pending_timeout_ms;

  return timeout_ms == 0 ? UINT64_MAX : job->pending_since_ms + timeout_ms;
}

static uint64_t held_until_ms(const Mover *mover, const Job *job) {
  uint64_t since_ms = mig_queue_held_since_ms(&job->place.waiting);
  unsigned timeout_ms = mover->config->unschedulable_timeout_ms;

  return since_ms == 0 || timeout_ms == 0 ? UINT64_MAX : since_ms + timeout_ms;
}

static uint64_t until_ms(const Mover *mover, const Job *job) {
  return MIN(pending_until_ms(mover, job), held_until_ms(mover, job));
}

int64_t admit_until_usec(const Mover *mover, const Job *job) {
  uint64_t until = until_ms(mover, job);

  return until == UINT64_MAX ? 0 : g_get_real_time() + ((int64_t)until - (int64_t)clock_now_ms()) * 1000;
}

static void fail_held(Mover *mover, Job *job, const JobCondition *condition, uint64_t held_ms) {
  job_note_failure(job, condition->cause, condition->error,
                   "%s; unchanged for %" PRIu64 " s (checked %u times), the longest it may wait for %s "
                   "(UnschedulableTimeout=)",
                   condition->error ? condition->error->message : mig_cause_describe(condition->cause),
                   held_ms / 1000, condition->tries, name_of_target(job));
  finish_unmoved(mover, job);
}

static void fail_pending(Mover *mover, Job *job, const JobPending *pending) {
  job_note_failure(job, MIG_CAUSE_PENDING_TIMEOUT, NULL,
                   "waited %u s in the queue (PendingTimeout=), most recently because: %s. Raise "
                   "PendingTimeout= or the limit that delayed it, or try again later",
                   mover->config->pending_timeout_ms / 1000, pending->message);
  finish_unmoved(mover, job);
}

static void give_up(Mover *mover, Job *job, uint64_t now_ms) {
  JobPending pending;

  job_queue_explain(mover->jobs->queue, job, now_ms, &pending);
  if (pending.condition && held_until_ms(mover, job) <= now_ms)
    fail_held(mover, job, pending.condition, now_ms - pending.held_since_ms);
  else
    fail_pending(mover, job, &pending);
  g_free(pending.message);
}

void admit_tick(Mover *mover) {
  g_autoptr(GPtrArray) overdue = g_ptr_array_new();
  uint64_t now_ms = clock_now_ms();

  for (Job *job = job_queue_first(mover->jobs->queue); job && overdue->len < OVERDUE_MAX;
       job = job_queue_after(job))
    if (now_ms >= until_ms(mover, job))
      g_ptr_array_add(overdue, job);
  /* The end of one may start others, which then no longer wait. */
  for (guint i = 0; i < overdue->len; i++)
    if (((Job *)overdue->pdata[i])->phase == MIG_PHASE_PENDING)
      give_up(mover, overdue->pdata[i], now_ms);
  admit_jobs(mover);
}

void admit_on_job(Job *job, JobChange change, gpointer mover) {
  if (change == JOB_CHANGE_OVER)
    admit_jobs(mover);
}

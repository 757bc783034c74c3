/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's way through its phases.
 *
 * Theory of Operation. Everything here runs on the main thread and only reacts: to a client, a job's run, a libvirt
 * event, the clock. A job is accepted once its record is durable, and admitted when a slot is free. Its run prepares
 * (run.c). The record says "migrating" on stable storage *before* anything may move, so that an agent that is killed and
 * restarted knows which domains may be migrating. From then on only a verdict from both ends finishes the job. */
#include "agent/move/lifecycle.h"

#include "agent/base/clock.h"
#include "agent/job/jobjson.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/admit.h"
#include "agent/move/finish.h"
#include "agent/move/incoming.h"
#include "agent/move/run.h"

#include <inttypes.h>
#include <string.h>

/* --- a new job --- */

typedef struct Accepting {
  Mover *mover;
  LifecycleAcceptedFunc done;
  gpointer user_data;
} Accepting;

static void on_accepted(const char *id, const GError *error, gpointer user_data) {
  g_autofree Accepting *accepting = user_data;
  Mover *mover = accepting->mover;
  Job *job = job_table_find_id(mover->jobs->table, id);

  if (!job)
    return;
  if (error) {
    log_job(job, LOG_ERR, NAMES_MESSAGE_STORE_FAILED, "refused: could not store its record: %s",
            error->message);
    accepting->done(job, error, accepting->user_data);
    store_remove(mover->jobs->store, job->id);
    job_table_remove(mover->jobs->table, job);
    return;
  }
  job->durable = true;
  jobs_tell(mover->jobs, job, JOB_CHANGE_ACCEPTED);
  log_job_by(job, job->caller, LOG_INFO, NAMES_MESSAGE_JOB_ACCEPTED,
             "accepted for migration to %s (job %.8s)", job->target_name ? job->target_name : job->target_uri,
             job->id);
  admit_push(mover, job);
  accepting->done(job, NULL, accepting->user_data);
  admit_jobs(mover);
}

void lifecycle_accept(Mover *mover, Job *job, LifecycleAcceptedFunc done, gpointer user_data) {
  Accepting *accepting;
  g_autoptr(GError) error = NULL;

  if (!job_check_limits(job, &error) ||
      !damaged_permits(mover->jobs->damaged, job->request_key, job->domain_uuid, &error)) {
    log_job(job, LOG_ERR, NAMES_MESSAGE_STORE_FAILED, "refused: %s", error->message);
    done(job, error, user_data);
    job_free(job);
    return;
  }
  accepting = g_new0(Accepting, 1);
  accepting->mover = mover;
  accepting->done = done;
  accepting->user_data = user_data;
  job_add_event(job, "accepted", MIG_CAUSE_NONE, "accepted for migration to %s",
                job->target_name ? job->target_name : job->target_uri);
  job_table_add(mover->jobs->table, job);
  jobs_save(mover->jobs, job, on_accepted, accepting);
}

/* --- requests of clients --- */

LifecycleAbort lifecycle_take_back(Mover *mover, Job *job, MigCause cause, const Caller *caller,
                                   const char *why) {
  JobRun *run = job->run;

  if (job_is_final(job))
    return LIFECYCLE_ABORT_OVER;
  if (job->stage == MIG_STAGE_POST_COPY)
    return LIFECYCLE_ABORT_POST_COPY;
  if (job->abort_requested)
    return LIFECYCLE_ABORT_ASKED;

  job->abort_requested = true;
  job_add_event(job, "abort_requested", cause, "%s", why);
  log_job_by(job, caller, LOG_NOTICE, NAMES_MESSAGE_JOB_ABORT_REQUESTED, "aborting: %s", why);
  if (!run || !run_has_failed(run))
    job_note_failure(job, cause, NULL, "aborted: %s", why);
  if (!run || !run_may_be_moving(run)) {
    finish_unmoved(mover, job);
    return LIFECYCLE_ABORT_ASKED;
  }
  run_abort(run);
  jobs_state_changed(mover->jobs, job);
  return LIFECYCLE_ABORT_ASKED;
}

LifecycleAbort lifecycle_abort(Mover *mover, Job *job, const Caller *caller) {
  g_autofree char *who = caller_describe(caller), *why = g_strdup_printf("requested by %s", who);

  if (job->lease && !job_is_final(job))
    return incoming_release(mover, job, caller) ? LIFECYCLE_ABORT_ASKED : LIFECYCLE_ABORT_INCOMING;
  return lifecycle_take_back(mover, job, MIG_CAUSE_USER_ABORT, caller, why);
}

/* Why a migration cannot be forced to complete now; NULL: it can. */
static const char *why_not_complete(const Job *job) {
  if (job->phase != MIG_PHASE_MIGRATING || !job->run || !run_may_be_moving(job->run))
    return "only a migrating job can be forced to complete";
  if (job->stage == MIG_STAGE_POST_COPY)
    return "it is already in post-copy and will complete by itself";
  if (job->abort_requested)
    return "its abort has already been requested";
  return NULL;
}

/* The record says that the agent pauses the guest: now it may. If the migration then fails, the agent knows to resume the
 * guest. A pause that does not happen must not stay in the record: a pause by the guest's owner would be taken for it. */
static void on_pause_recorded(const char *id, const GError *error, gpointer user_data) {
  Mover *mover = user_data;
  Job *job = jobs_take_saved(mover->jobs, id, error);
  const char *why;

  if (!job || !job->run || !run_wants_pause(job->run))
    return;
  why = error ? "could not write the pause to stable storage" : why_not_complete(job);
  if (why)
    run_drop_pause(job->run, why);
  else
    run_complete(job->run, MIG_ACTION_PAUSE);
}

const char *lifecycle_complete(Mover *mover, Job *job, MigActionKind kind, const char *who) {
  const char *why;

  if (job->lease)
    return "this is an incoming migration, and the source's agent controls it: complete it there";
  why = why_not_complete(job);
  if (why)
    return why;
  if (kind == MIG_ACTION_PAUSE && run_wants_pause(job->run))
    return "its pause has already been requested, and libvirt has not answered yet";
  if (kind == MIG_ACTION_START_POST_COPY && !(job->have_plan && job->plan.post_copy))
    return "the migration was started without post-copy: start it with allow_post_copy=yes";
  job_add_event(job, "decision", MIG_CAUSE_NONE, "%s: requested by %s", mig_action_name(kind), who);
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_DECISION, "%s: requested by %s", mig_action_name(kind), who);
  if (kind == MIG_ACTION_PAUSE) {
    run_want_pause(job->run);
    jobs_announce(mover->jobs, job);
    jobs_save(mover->jobs, job, on_pause_recorded, mover);
  } else {
    run_complete(job->run, kind);
    jobs_state_changed(mover->jobs, job);
  }
  return NULL;
}

/* The operator's answer is on stable storage: now it counts. */
static void on_word_recorded(const char *id, const GError *error, gpointer user_data) {
  Mover *mover = user_data;
  Job *job = jobs_take_saved(mover->jobs, id, error);

  if (!job || !job->run)
    return;
  if (!error) {
    run_set_word(job->run);
    return;
  }
  job->record.told_it_ran = job->record.told_it_stayed = false;
  job_add_event(job, "warning", MIG_CAUSE_NONE,
                "could not write that answer to stable storage, so it does not count: %s", error->message);
  jobs_state_changed(mover->jobs, job);
}

const char *lifecycle_settle(Mover *mover, Job *job, bool it_ran, const char *who) {
  const char *refusal;

  if (job->lease)
    return "this is an incoming migration, and the source's agent controls it: settle it there";
  if (it_ran ? job->record.told_it_ran : job->record.told_it_stayed)
    return NULL;
  if (job->phase != MIG_PHASE_RECOVERING || !job->run || !run_asks_operator(job->run))
    return "it is not waiting for an operator: only a job whose outcome nobody else can know can be settled "
           "this way";
  refusal = mig_settle_refuse_word(&job->record, it_ran);
  if (refusal)
    return refusal;
  job->record.told_it_ran = it_ran;
  job->record.told_it_stayed = !it_ran;
  job_add_event(job, "decision", MIG_CAUSE_NONE, "%s says that the guest %s at the target", who,
                it_ran ? "ran" : "never ran");
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_DECISION, "%s says that the guest %s at the target", who,
          it_ran ? "ran" : "never ran");
  jobs_announce(mover->jobs, job);
  jobs_save(mover->jobs, job, on_word_recorded, mover);
  return NULL;
}

/* Was the migration started with this ability? */
static bool was_asked_for(const Job *job, MigPolicyKey key) {
  if (mig_policy_get(&job->policy, key))
    return true;
  return job->have_plan &&
         (key == MIG_POLICY_ALLOW_POST_COPY ? job->plan.post_copy : job->plan.auto_converge);
}

static bool may_tune_key(const Job *job, const MigPolicy *changes, const MigPolicyKeyInfo *info) {
  bool moves = job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING;

  switch (info->tunable) {
  case MIG_TUNABLE_BEFORE_START:
    return job->phase == MIG_PHASE_PENDING;
  case MIG_TUNABLE_TO_NO:
    return !moves || !mig_policy_get(changes, info->key) || was_asked_for(job, info->key);
  case MIG_TUNABLE_ALWAYS:
    break;
  }
  return true;
}

static bool may_tune(const Job *job, const MigPolicy *changes, const char **ret_key) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);

    if ((changes->set & (UINT32_C(1) << key)) && !may_tune_key(job, changes, info)) {
      *ret_key = info->name;
      return false;
    }
  }
  return true;
}

static char *describe_changes(const MigPolicy *changes) {
  g_autoptr(GString) text = g_string_new(NULL);

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    char value[32];

    if (!(changes->set & (UINT32_C(1) << key)))
      continue;
    mig_policy_format(changes, (MigPolicyKey)key, value, sizeof value);
    g_string_append_printf(text, "%s%s=%s", text->len ? ", " : "",
                           mig_policy_key_info((MigPolicyKey)key)->name, value);
  }
  return g_string_free(g_steal_pointer(&text), FALSE);
}

bool lifecycle_tune(Mover *mover, Job *job, const MigPolicy *changes, const char *who, const char **ret_key) {
  g_autofree char *text = describe_changes(changes);

  if (!may_tune(job, changes, ret_key))
    return false;
  mig_policy_merge(&job->policy, changes);
  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++)
    if (changes->set & (UINT32_C(1) << key))
      job->policy_sources[key] = GOAL_SOURCE_TUNED;
  job_queue_update(mover->jobs->queue, job);
  if (job->run)
    run_tune(job->run, changes);
  job_add_event(job, "tuned", MIG_CAUSE_NONE, "by %s: %s", who, text);
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_TUNED, "goals changed by %s: %s", who, text);
  jobs_state_changed(mover->jobs, job);
  return true;
}

/* --- start of the agent, clock, libvirt events --- */

void lifecycle_adopt(Mover *mover, Job *job) {
  if (job->lease) {
    incoming_adopt(mover, job);
    return;
  }
  switch (job->phase) {
  case MIG_PHASE_PENDING:
    admit_push(mover, job);
    break;
  case MIG_PHASE_PREPARING:
    /* The record says "migrating" before anything moves, so nothing has. */
    job_add_event(job, "agent_restarted", MIG_CAUSE_NONE,
                  "the agent was restarted; starting the checks over");
    if (job_queue_try_enter(mover->jobs->queue, job)) {
      run_start(mover, job, false);
      break;
    }
    jobs_enter_phase(mover->jobs, job, MIG_PHASE_PENDING, "back in the queue; waiting for its turn");
    admit_push(mover, job);
    jobs_state_changed(mover->jobs, job);
    break;
  case MIG_PHASE_MIGRATING:
    jobs_enter_phase(mover->jobs, job, MIG_PHASE_RECOVERING, "asking both ends for the outcome");
    G_GNUC_FALLTHROUGH;
  case MIG_PHASE_RECOVERING:
    job_add_event(job, "agent_restarted", MIG_CAUSE_NONE,
                  "the agent was restarted; taking over the migration");
    job_queue_enter(mover->jobs->queue, job);
    run_adopt(mover, job);
    jobs_state_changed(mover->jobs, job);
    break;
  default:
    break;
  }
}

void lifecycle_tick(Mover *mover) {
  g_autoptr(GPtrArray) unfinished = g_ptr_array_new();
  const GPtrArray *all = job_table_all(mover->jobs->table);
  uint64_t now_ms = clock_now_ms();

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (!job_is_final(job))
      g_ptr_array_add(unfinished, job);
  }
  /* A tick may finish its job and start others. */
  for (guint i = 0; i < unfinished->len; i++) {
    Job *job = unfinished->pdata[i];

    if (job->lease)
      incoming_tick(mover, job, now_ms);
    else if (job->run)
      run_tick(job->run, now_ms);
  }
  admit_tick(mover);
}

void lifecycle_handle_event(Mover *mover, const MigVirtEvent *event) {
  Job *job = job_table_find_active(mover->jobs->table, event->uuid);

  if (!job || job->lease)
    incoming_handle_event(mover, job, event);
  else if (job->run)
    run_handle_event(job->run, event);
}

bool lifecycle_detach(Job *job) {
  if (!job->run)
    return false;
  g_clear_pointer(&job->run, run_free);
  return true;
}

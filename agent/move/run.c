/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job in progress: its worker's reports, and what follows from them.
 *
 * Theory of Operation. A run begins with the checks and ends with a refusal or a verdict; in between the monitor
 * decides and the worker acts. All of it is on the main thread. A report may end and free the run, so do not use it
 * after finish_job().
 *
 * The first cause wins: whoever first requests or sees the end (a client's abort, the monitor, the migration's own error)
 * notes it, and it becomes the job's failure if the verdict is that the domain did not migrate. Until then the migration's
 * own error is kept as it is, since only the verdict tells what it means.
 *
 * This file starts and controls the run; outcome.c ends it, recover.c handles one that is stuck. */
#include "agent/move/run-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/admit.h"
#include "agent/move/finish.h"
#include "agent/move/lifecycle.h"
#include "agent/move/link.h"

#include <inttypes.h>
#include <string.h>

/* Retry interval when what was learned could not be written. */
#define KEEP_AGAIN_MS 5000

void run_free(JobRun *run) {
  bandwidth_leave(run);
  worker_free(run->worker);
  g_clear_error(&run->error);
  g_free(run);
}

/* --- from preparing to migrating --- */

/* The goals with the plan applied: for the start, and again for a resume of post-copy. */
static MigPolicy start_policy(const Job *job) {
  MigPolicy policy = job->policy;

  if (job->have_plan) {
    policy.values[MIG_POLICY_ALLOW_AUTO_CONVERGE] = job->plan.auto_converge;
    policy.values[MIG_POLICY_ALLOW_POST_COPY] = job->plan.post_copy;
    policy.values[MIG_POLICY_MAX_DOWNTIME_MS] = MAX(job->plan.downtime_ms, 1);
  }
  return policy;
}

static void make_plan(JobRun *run) {
  Job *job = run->job;
  MigPolicy policy = job->policy;
  MigLinkFacts link;
  char text[400];

  link_recall(run->mover, job->target_uri, &link);
  if (run->avoid_post_copy)
    policy.values[MIG_POLICY_ALLOW_POST_COPY] = 0;
  bandwidth_limit(run, &policy);
  mig_plan(&run->probe, job->memory_bytes, &link, &policy, &job->plan);
  job->have_plan = true;
  if (job->plan.forecast.ways[MIG_WAY_PRE_COPY].bar == MIG_WAY_UNKNOWN)
    return;
  mig_forecast_describe(&job->plan.forecast, text, sizeof text);
  job_add_event(job, "decision", MIG_CAUSE_NONE, "forecast before the start: %s", text);
}

/* The record says that the domain may be migrating: now it may. */
static void on_start_recorded(const char *id, const GError *error, gpointer user_data) {
  Mover *mover = user_data;
  Job *job = job_table_find_id(mover->jobs->table, id);
  MigPolicy policy;

  if (!job || !job->run || job->run->go_given)
    return;
  if (error) {
    jobs_note_save_failure(mover->jobs, id, error);
    job_note_failure(job, MIG_CAUSE_INTERNAL, NULL, "could not write the start to stable storage: %s",
                     error->message);
    finish_unmoved(mover, job);
    return;
  }
  jobs_announce(mover->jobs, job);
  job->run->go_given = true;
  policy = start_policy(job);
  bandwidth_limit(job->run, &policy);
  worker_go(job->run->worker, &policy, job->plan.throttle_initial_pct, job->plan.throttle_increment_pct);
}

static bool is_known(const GPtrArray *findings, const char *code) {
  for (guint i = 0; findings && i < findings->len; i++)
    if (strcmp(((const JobFinding *)findings->pdata[i])->code, code) == 0)
      return true;
  return false;
}

/* Each is also an event, so that the job's history tells why; once, even if the job is checked again and again. */
static void note_findings(Job *job, const MigCheckReport *check) {
  g_autoptr(GPtrArray) before = NULL;

  if (!check)
    return;
  before = g_steal_pointer(&job->findings);
  for (size_t i = 0; i < check->count; i++) {
    const MigFinding *finding = &check->findings[i];

    job_add_finding(job, finding->code, finding->blocks, finding->transient, finding->seen, finding->remedy);
    if (!is_known(before, finding->code))
      job_add_event(job, finding->blocks ? "blocker" : "warning", finding->cause, "%s: %s %s", finding->code,
                    finding->seen, finding->remedy);
  }
}

static void on_prepared(JobRun *run, const WorkerReport *report) {
  Mover *mover = run->mover;
  Job *job = run->job;

  if (!admit_passed(mover, job))
    return;
  note_findings(job, report->check);
  job->memory_bytes = report->domain.memory_bytes;
  job->disk_bytes = mig_policy_get(&job->policy, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_NONE
                        ? 0
                        : report->domain.local_disk_bytes;
  job->record = report->record;
  job->source_id = report->source_id;
  job->job_began_ms = 0;
  run->probe = report->probe;
  run->avoid_post_copy = report->check && report->check->avoid_post_copy;
  /* For its share. */
  job_times_enter(&job->times, JOB_PART_QUEUED, clock_now_ms());
  bandwidth_join(run, report->domain.local_disks);
}

void run_begin(JobRun *run) {
  Mover *mover = run->mover;
  Job *job = run->job;

  job->started_ms = clock_now_ms();
  job->started_usec = g_get_real_time();
  make_plan(run);
  job->steering = (MigSteering){0};
  monitoring_start(run);
  job->stage = MIG_STAGE_PRE_COPY;
  jobs_enter_phase(mover->jobs, job, MIG_PHASE_MIGRATING, "checks passed; starting the migration");
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "starting migration to %s, %" PRIu64 " MiB of memory",
          job->target_name ? job->target_name : job->target_uri, job->memory_bytes / MIG_MIB_BYTES);
  /* Announced once it is durable: a restart must not announce the same start again. */
  jobs_save(mover->jobs, job, on_start_recorded, mover);
}

static void on_refused(JobRun *run, const WorkerReport *report) {
  note_findings(run->job, report->check);
  if (report->hold != MIG_HOLD_NONE) {
    admit_hold(run->mover, run->job, report->hold,
               report->reason ? report->reason : mig_cause_name(report->cause), report->cause, report->error);
    return;
  }
  job_note_failure(run->job, report->cause, report->error, "%s",
                   report->evidence ? report->evidence : report->error->message);
  finish_unmoved(run->mover, run->job);
}

/* --- while migrating --- */

static void note_silence(JobRun *run, const WorkerReport *report) {
  bool silent = !report->sample.valid;

  if (silent == run->silent)
    return;
  run->silent = silent;
  if (silent)
    job_add_event(run->job, "warning", MIG_CAUSE_NONE,
                  "libvirt does not report progress: %s; the migration continues without it, and its "
                  "deadline still applies",
                  report->error ? report->error->message : "no reason given");
  else
    job_add_event(run->job, "warning", MIG_CAUSE_NONE, "libvirt reports progress again");
  jobs_state_changed(run->mover->jobs, run->job);
}

static void note_begun(JobRun *run, uint64_t job_began_ms) {
  if (run->job->begun)
    return;
  run->job->begun = true;
  run->job->job_began_ms = job_began_ms;
  jobs_state_changed(run->mover->jobs, run->job);
}

static void on_sample(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  note_silence(run, report);
  if (report->sample.valid && report->sample.active) {
    note_begun(run, report->job_began_ms);
    job->sample = report->sample;
    job->have_sample = true;
    job->revision++;
  }
  bandwidth_note_sample(run, &report->sample);
  monitoring_step(run, &report->sample);
  recover_on_sample(run, &report->sample);
  if (report->sample.valid && report->sample.active) {
    timing_on_sample(run);
    recorder_note(run->mover->jobs, job);
  }
  jobs_tell(run->mover->jobs, job, JOB_CHANGE_NUMBERS);
}

static void on_acted(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;
  const char *what = mig_action_name(report->action.kind);

  if (report->action.kind == MIG_ACTION_PAUSE && report->action.downtime_ms == 0)
    run_settle_pause(run);
  if (report->action.kind == MIG_ACTION_NONE && run->bandwidth.in) {
    bandwidth_note_set(run, report->error);
    return;
  }
  if (report->action.kind == MIG_ACTION_NONE) {
    what = "new bandwidth limit";
    if (!limits_note_set(run, report->error))
      return;
  }
  if (!report->error) {
    job_add_event(job, "action", MIG_CAUSE_NONE, "%s: accepted by libvirt", what);
  } else {
    job_add_event(job, "warning", MIG_CAUSE_NONE, "%s: refused: %s", what, report->error->message);
    log_job(job, LOG_WARNING, NULL, "%s was refused: %s", what, report->error->message);
    monitoring_note_refused(run, report->action.kind);
  }
  jobs_state_changed(run->mover->jobs, job);
}

static void on_learnt_recorded(const char *id, const GError *error, gpointer user_data) {
  Mover *mover = user_data;
  Job *job = jobs_take_saved(mover->jobs, id, error);

  if (!job || !job->run)
    return;
  if (error)
    job->run->keep_again_ms = clock_now_ms() + KEEP_AGAIN_MS;
  else
    worker_note_recorded(job->run->worker);
}

static void keep_learnt(JobRun *run) {
  run->keep_again_ms = 0;
  jobs_announce(run->mover->jobs, run->job);
  jobs_save(run->mover->jobs, run->job, on_learnt_recorded, run->mover);
}

/* The worker waits until what it saw is on record before it relies on it. The rest of the record is the main thread's. */
static void on_learnt(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job->record.seen_there = report->record.seen_there;
  job->record.completed = report->record.completed;
  keep_learnt(run);
}

static void on_in_clear(JobRun *run, const WorkerReport *report) {
  job_add_event(run->job, "warning", MIG_CAUSE_NONE,
                "no TLS certificates; migrating UNENCRYPTED (tls=yes allows fallback): %s",
                report->error->message);
  log_job(run->job, LOG_WARNING, NULL,
          "no TLS certificates; migrating UNENCRYPTED (tls=yes allows fallback): %s", report->error->message);
  jobs_state_changed(run->mover->jobs, run->job);
}

static void on_report(Worker *worker, const WorkerReport *report, gpointer user_data) {
  JobRun *run = user_data;

  if (run_note_pause(run))
    jobs_state_changed(run->mover->jobs, run->job);
  switch (report->kind) {
  case WORKER_PREPARED:
    on_prepared(run, report);
    break;
  case WORKER_REFUSED:
    on_refused(run, report);
    break;
  case WORKER_CANCELLED:
    /* Whoever cancelled it has finished the job and freed the worker. */
    break;
  case WORKER_SAMPLE:
    on_sample(run, report);
    break;
  case WORKER_ACTED:
    on_acted(run, report);
    break;
  case WORKER_IN_CLEAR:
    on_in_clear(run, report);
    break;
  case WORKER_RETURNED:
    outcome_on_returned(run, report);
    break;
  case WORKER_RESUMED:
    timing_on_resumed(run, report);
    break;
  case WORKER_ATTACHED:
    recover_on_attached(run, report);
    break;
  case WORKER_LEARNT:
    on_learnt(run, report);
    break;
  case WORKER_UNSETTLED:
    recover_on_unsettled(run, report);
    break;
  case WORKER_TOUCHING:
    recover_on_touching(run, report);
    break;
  case WORKER_TOUCHED:
    recover_on_touched(run, report);
    break;
  case WORKER_SETTLED:
    outcome_on_settled(run, report);
    break;
  }
}

/* --- public functions --- */

/* A second of measuring pays off where the result decides how to start. */
static bool wants_probe(const MigPolicy *policy) {
  return mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE) ||
         mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY) ||
         mig_policy_get(policy, MIG_POLICY_MAX_PAUSE_MS) > 0;
}

void run_start(Mover *mover, Job *job, bool reattach) {
  JobRun *run = g_new0(JobRun, 1);
  MigPolicy start = start_policy(job);
  WorkerRequest request = {
      .name = job->id,
      .domain_uuid = job->domain_uuid,
      .target_uri = job->target_uri,
      .migrate_uri = job->migrate_uri,
      .policy = reattach ? &start : &job->policy,
      .reattach = reattach,
      .record = job->record,
      .begun = reattach && job->begun,
      .source_id = reattach ? job->source_id : 0,
      .started_ms = reattach ? job->started_ms : 0,
      .job_began_ms = reattach ? job->job_began_ms : 0,
      .probe = wants_probe(&job->policy),
      .connect_timeout_ms = mover->config->connect_timeout_ms,
      .poll_interval_ms = mover->config->poll_interval_ms,
  };

  run->mover = mover;
  run->job = job;
  run->go_given = run->adopted = reattach;
  run->prepare_until_ms = clock_now_ms() + mover->config->prepare_timeout_ms;
  job->run = run;
  run->worker = worker_start(mover->hypervisor, &request, mover->context, on_report, run);
}

/* Were the limits changed since the start, or should they have been? It is unknown which of them libvirt has. */
static bool has_limits_of_its_own(const Job *job) {
  return job->share_bytes_per_s > 0 ||
         job->policy_sources[MIG_POLICY_BANDWIDTH_BYTES_PER_S] == GOAL_SOURCE_TUNED ||
         job->policy_sources[MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S] == GOAL_SOURCE_TUNED;
}

void run_adopt(Mover *mover, Job *job) {
  run_start(mover, job, true);
  bandwidth_adopt(job->run);
  if (!job->run->bandwidth.in && has_limits_of_its_own(job))
    job->run->limits_due_ms = 1;
  if (job->started_ms > 0)
    monitoring_start(job->run);
  /* An abort that was decided and reported before the restart still holds, also one by a guard. */
  if (job->abort_requested || (job->failure.cause != MIG_CAUSE_NONE && job->stage != MIG_STAGE_POST_COPY))
    run_abort(job->run);
}

bool run_may_be_moving(const JobRun *run) {
  return run->go_given;
}

bool run_asks_operator(const JobRun *run) {
  return run->asks_operator;
}

void run_set_word(JobRun *run) {
  const MigSettleRecord *record = &run->job->record;

  worker_set_word(run->worker, record->told_it_stayed, record->told_it_ran);
}

bool run_has_failed(const JobRun *run) {
  return run->error != NULL;
}

void run_abort(JobRun *run) {
  job_set_next_action(run->job, "waits for libvirt to cancel the migration");
  worker_act(run->worker, &(MigAction){.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_USER_ABORT});
}

void run_complete(JobRun *run, MigActionKind kind) {
  if (run->monitoring)
    mig_monitor_note_taken(&run->monitor, kind);
  if (monitoring_note_steering(run))
    jobs_save(run->mover->jobs, run->job, NULL, NULL);
  worker_act(run->worker, &(MigAction){.kind = kind});
}

void run_tune(JobRun *run, const MigPolicy *changes) {
  const uint32_t bandwidth = (UINT32_C(1) << MIG_POLICY_BANDWIDTH_BYTES_PER_S) |
                             (UINT32_C(1) << MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);

  if (!run->monitoring)
    return;
  monitoring_retune(run);
  if ((changes->set & bandwidth) && !bandwidth_retune(run))
    limits_set_own(run);
}

/* Others need all the bandwidth and do not give it up; its checks do not stay valid forever. */
static void hold_without_share(JobRun *run) {
  g_autofree char *lack = bandwidth_explain_lack(run->mover);
  g_autoptr(GError) error = NULL;

  g_set_error(&error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
              "no share of MaxBandwidth= became free within %u s%s%s",
              run->mover->config->prepare_timeout_ms / 1000, lack ? ": " : "", lack ? lack : "");
  admit_hold(run->mover, run->job, MIG_HOLD_JOB, mig_admission_name(MIG_ADMISSION_BANDWIDTH_LIMIT),
             MIG_CAUSE_PENDING_TIMEOUT, error);
}

void run_tick(JobRun *run, uint64_t now_ms) {
  Job *job = run->job;

  if (run->keep_again_ms > 0 && now_ms >= run->keep_again_ms)
    keep_learnt(run);
  worker_tick(run->worker);

  if (job->phase == MIG_PHASE_PREPARING && now_ms >= run->prepare_until_ms && bandwidth_waits(run)) {
    hold_without_share(run);
    return;
  }
  if (job->phase == MIG_PHASE_PREPARING && now_ms >= run->prepare_until_ms) {
    job_note_failure(job, MIG_CAUSE_PREPARE_TIMEOUT, NULL,
                     "the checks did not finish within %u s: libvirtd on this node or on the target hangs",
                     run->mover->config->prepare_timeout_ms / 1000);
    finish_unmoved(run->mover, job);
    return;
  }
  monitoring_tick(run, now_ms);
  limits_tick(run, now_ms);
  if (run->silent)
    jobs_tell(run->mover->jobs, job, JOB_CHANGE_NUMBERS);
}

void run_handle_event(JobRun *run, const MigVirtEvent *event) {
  if (!run->go_given)
    return;
  timing_on_event(run, event);
  if (event->kind == MIG_VIRT_EVENT_JOB_DONE) {
    if (event->success) {
      run->have_final = true;
      run->final = event->final;
    }
    worker_note_job_done(run->worker, event->success);
  } else if (event->kind == MIG_VIRT_EVENT_STATE) {
    worker_note_ended_here(run->worker, event->ended);
    worker_note_job_done(run->worker, false);
  }
}

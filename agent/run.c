/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job that is being worked on: what its worker reports, and what follows from it.
 *
 * Theory of Operation. A run begins with the checks and ends with a refusal or a verdict; in between the monitor
 * decides and the worker acts. All of it is on the main thread; a report may end the run, and free it, so nothing is
 * done with it after lifecycle_finish().
 *
 * The first cause: whoever wants or sees the end first (a client's abort, the monitor, the migration's own error)
 * notes it; it becomes the job's failure if the verdict is that the domain did not move. The migration's own error
 * is kept as it is until then, since only the verdict tells what it meant. */
#include "agent/run.h"

#include "agent/admit.h"
#include "agent/lifecycle.h"
#include "agent/link.h"
#include "agent/log.h"
#include "agent/recorder.h"
#include "agent/watch.h"
#include "agent/worker.h"
#include "libmigrate/core/monitor.h"

#include <inttypes.h>
#include <string.h>

struct JobRun {
  Agent *agent;
  Job *job;
  Worker *worker;
  MigMonitor monitor;
  bool monitoring;
  bool adopted;  /* it may be under way since before this process */
  bool go_given; /* the migration may be under way */
  uint64_t prepare_until_ms;
  GError *error;   /* what the migration's call said, and nobody had asked for an end before */
  bool have_final; /* from libvirt's event */
  MigFinalStats final;
  bool silent; /* libvirtd does not answer the steerer; said once */
};

void run_free(JobRun *run) {
  worker_free(run->worker);
  g_clear_error(&run->error);
  g_free(run);
}

/* --- from preparing to migrating --- */

static void note_deadline(JobRun *run) {
  uint64_t deadline_ms = mig_monitor_deadline_ms(&run->monitor);

  run->job->deadline_ms = deadline_ms == UINT64_MAX ? 0 : deadline_ms;
}

static void start_monitor(JobRun *run) {
  Job *job = run->job;

  mig_monitor_init(&run->monitor, &job->policy, job->started_ms, job->memory_bytes, job->disk_bytes);
  if (job->have_plan)
    mig_monitor_set_plan(&run->monitor, &job->plan);
  run->monitoring = true;
  note_deadline(run);
}

/* The goals as the plan has them: what libvirt is asked for, at the start and again at a resume of post-copy. */
static MigPolicy start_policy(const Job *job) {
  MigPolicy policy = job->policy;

  if (job->have_plan) {
    policy.values[MIG_POLICY_ALLOW_AUTO_CONVERGE] = job->plan.auto_converge;
    policy.values[MIG_POLICY_ALLOW_POST_COPY] = job->plan.post_copy;
    policy.values[MIG_POLICY_MAX_DOWNTIME_MS] = MAX(job->plan.downtime_ms, 1);
  }
  return policy;
}

static void make_plan(JobRun *run, const MigProbe *probe) {
  Job *job = run->job;
  MigLinkFacts link;
  char text[400];

  link_recall(run->agent, job->target_uri, &link);
  mig_plan(probe, job->memory_bytes, &link, &job->policy, &job->plan);
  job->have_plan = true;
  if (job->plan.forecast.ways[MIG_WAY_PRE_COPY].bar == MIG_WAY_UNKNOWN)
    return;
  mig_forecast_describe(&job->plan.forecast, text, sizeof text);
  job_add_event(job, "decision", MIG_CAUSE_NONE, "forecast before the start: %s", text);
}

/* The record says that the domain may be on its way: now it may. */
static void on_start_recorded(const char *id, const GError *error, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = job_table_find_id(agent->jobs, id);
  MigPolicy policy;

  if (!job || !job->run || job->run->go_given)
    return;
  if (error) {
    lifecycle_note_save_failure(agent, id, error);
    job_note_failure(job, MIG_CAUSE_INTERNAL, NULL, "the start could not be put on stable storage: %s",
                     error->message);
    lifecycle_finish_unmoved(agent, job);
    return;
  }
  lifecycle_announce(agent, job);
  job->run->go_given = true;
  policy = start_policy(job);
  worker_go(job->run->worker, &policy, job->plan.throttle_initial_pct, job->plan.throttle_increment_pct);
}

static void on_prepared(JobRun *run, const WorkerReport *report) {
  Agent *agent = run->agent;
  Job *job = run->job;

  if (!admit_passed(agent, job))
    return;
  job->memory_bytes = report->domain.memory_bytes;
  job->disk_bytes = mig_policy_get(&job->policy, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_NONE
                        ? 0
                        : report->domain.local_disk_bytes;
  job->started_ms = agent_now_ms();
  job->started_usec = g_get_real_time();
  job->record = report->record;
  make_plan(run, &report->probe);
  start_monitor(run);
  job->stage = MIG_STAGE_PRE_COPY;
  lifecycle_enter_phase(agent, job, MIG_PHASE_MIGRATING, "the checks passed; the migration begins");
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "the migration to %s begins, %" PRIu64 " MiB of memory",
          job->target_name ? job->target_name : job->target_uri, job->memory_bytes / MIG_MIB_BYTES);
  /* Announced when it is durable: who is told that it migrates shall not be told so again after a restart. */
  lifecycle_save(agent, job, on_start_recorded, agent);
}

static void on_refused(JobRun *run, const WorkerReport *report) {
  if (report->hold != MIG_HOLD_NONE) {
    admit_hold(run->agent, run->job, report->hold,
               report->reason ? report->reason : mig_cause_name(report->cause), report->cause, report->error);
    return;
  }
  job_note_failure(run->job, report->cause, report->error, "%s", report->error->message);
  lifecycle_finish_unmoved(run->agent, run->job);
}

/* --- while migrating --- */

static void on_stage(JobRun *run, MigStage stage) {
  Job *job = run->job;

  job->stage = stage;
  job_add_event(job, "stage", MIG_CAUSE_NONE, "now in %s", mig_stage_name(stage));
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STAGE, "now in %s", mig_stage_name(stage));
  lifecycle_state_changed(run->agent, job);
}

static void take_action(JobRun *run, const MigAction *action) {
  Job *job = run->job;

  job_add_event(job, "decision", action->cause, "%s: %s", mig_action_name(action->kind), action->message);
  if (action->kind == MIG_ACTION_ABORT) {
    if (!run->error)
      job_note_failure(job, action->cause, NULL, "%s", action->message);
    log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_GUARD, "aborted by the agent: %s", action->message);
    job_set_next_action(job, "waits for the migration to be cancelled");
  } else {
    log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_DECISION, "%s: %s", mig_action_name(action->kind),
            action->message);
  }
  worker_act(run->worker, action);
  lifecycle_state_changed(run->agent, job);
}

static void note_forecast(JobRun *run) {
  const MigForecast *forecast = mig_monitor_forecast(&run->monitor);
  Job *job = run->job;
  const MigWayForecast *way;

  if (!forecast)
    return;
  way = &forecast->ways[MIN(forecast->best, MIG_WAY_COUNT - 1)];
  job->have_forecast = true;
  job->forecast_way = forecast->best;
  job->forecast_total_ms = forecast->best == MIG_WAY_COUNT ? 0 : (uint64_t)(way->total_s * 1000);
  job->forecast_pause_ms = forecast->best == MIG_WAY_COUNT ? 0 : (uint64_t)(way->pause_s * 1000);
  job->forecast_floor_ms = (uint64_t)(forecast->floor_s * 1000);
}

static void step_monitor(JobRun *run, const MigSample *sample) {
  Job *job = run->job;
  MigAction action;

  if (!run->monitoring)
    return;
  mig_monitor_step(&run->monitor, sample, &action);
  job->percent = MAX(job->percent, mig_monitor_percent(&run->monitor));
  if (sample->valid && sample->active && mig_monitor_stage(&run->monitor) != job->stage)
    on_stage(run, mig_monitor_stage(&run->monitor));
  job->link_bytes_per_s = MAX(job->link_bytes_per_s, mig_monitor_link_bytes_per_s(&run->monitor));
  note_forecast(run);
  if (action.kind != MIG_ACTION_NONE)
    take_action(run, &action);
}

static void note_silence(JobRun *run, const WorkerReport *report) {
  bool silent = !report->sample.valid;

  if (silent == run->silent)
    return;
  run->silent = silent;
  if (silent)
    job_add_event(run->job, "warning", MIG_CAUSE_NONE,
                  "libvirt does not tell how far it is: %s; the migration goes on "
                  "without that, its deadline holds",
                  report->error ? report->error->message : "no reason given");
  else
    job_add_event(run->job, "warning", MIG_CAUSE_NONE, "libvirt tells again how far it is");
  lifecycle_state_changed(run->agent, run->job);
}

static void note_begun(JobRun *run) {
  if (run->job->begun)
    return;
  run->job->begun = true;
  lifecycle_state_changed(run->agent, run->job);
}

static void on_sample(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  note_silence(run, report);
  if (report->sample.valid && report->sample.active) {
    note_begun(run);
    job->sample = report->sample;
    job->have_sample = true;
    job->revision++;
  }
  step_monitor(run, &report->sample);
  if (report->sample.valid && report->sample.active)
    recorder_note(run->agent, job);
  watch_notify(run->agent, job, false);
}

static void on_acted(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;
  const char *what = mig_action_name(report->action.kind);

  if (report->action.kind == MIG_ACTION_NONE)
    what = "new bandwidth limit";
  if (!report->error) {
    job_add_event(job, "action", MIG_CAUSE_NONE, "%s: accepted by libvirt", what);
  } else {
    job_add_event(job, "warning", MIG_CAUSE_NONE, "%s: refused: %s", what, report->error->message);
    log_job(job, LOG_WARNING, NULL, "%s was refused: %s", what, report->error->message);
    if (run->monitoring)
      mig_monitor_note_refused(&run->monitor, report->action.kind);
  }
  lifecycle_state_changed(run->agent, job);
}

/* --- the end of a migration --- */

static void on_returned(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (!report->error)
    return;
  job_add_event(job, "action", MIG_CAUSE_NONE, "the migration ended with an error, both ends are asked: %s",
                report->error->message);
  if (job->failure.cause == MIG_CAUSE_NONE)
    run->error = g_error_copy(report->error);
  lifecycle_state_changed(run->agent, job);
}

static void note_evidence(Job *job, const char *evidence) {
  g_free(job->evidence);
  job->evidence = g_strdup(evidence);
}

/* Of the migration's own error, when nobody had asked for an end. */
static MigCause cause_of_migration(const GError *error) {
  static const struct {
    MigVirtError error;
    MigCause cause;
  } causes[] = {
      {MIG_VIRT_ERROR_UNREACHABLE, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_TIMEOUT, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_NO_DOMAIN, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_NOT_RUNNING, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_DENIED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_SAME_HOST, MIG_CAUSE_SAME_HOST},
      {MIG_VIRT_ERROR_EXISTS, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET},
      {MIG_VIRT_ERROR_BUSY, MIG_CAUSE_DOMAIN_BUSY},
      {MIG_VIRT_ERROR_ABORTED, MIG_CAUSE_CANCELLED_ELSEWHERE},
      {MIG_VIRT_ERROR_UNSUPPORTED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_INVALID, MIG_CAUSE_REFUSED},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(causes); i++)
    if (g_error_matches(error, MIG_VIRT_ERROR, (gint)causes[i].error))
      return causes[i].cause;
  return MIG_CAUSE_LIBVIRT_ERROR;
}

/* The final count: libvirt's event at the source has it, else the target. */
static void take_final_stats(JobRun *run, const WorkerReport *report) {
  const MigFinalStats *final = run->have_final ? &run->final : report->have_final ? &report->final : NULL;
  Job *job = run->job;

  if (!final)
    return;
  job->have_total_time = final->total_time_ms > 0;
  job->total_time_ms = final->total_time_ms;
  job->have_downtime = final->have_downtime;
  job->downtime_ms = final->downtime_ms;
  job->have_transferred = final->transferred_bytes > 0;
  job->transferred_bytes = final->transferred_bytes;
}

static void settle_moved(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (job->failure.cause != MIG_CAUSE_NONE) {
    job_add_event(job, "warning", job->failure.cause,
                  "the end that was asked for (%s) came too late: it had moved",
                  mig_cause_name(job->failure.cause));
    job_clear_failure(job);
  }
  take_final_stats(run, report);
  if (!job->have_total_time && job->started_ms > 0) {
    job->have_total_time = true;
    job->total_time_ms = agent_now_ms() - job->started_ms;
  }
  lifecycle_finish(run->agent, job, MIG_PHASE_SUCCEEDED, "target", g_strdup(report->evidence));
}

/* The record said that it may be on its way, and it never was: the agent was killed in between. */
static void begin_anew(JobRun *run) {
  Agent *agent = run->agent;
  Job *job = run->job;

  g_clear_pointer(&job->run, run_free);
  recorder_forget(agent, job);
  job->started_ms = 0;
  job->started_usec = 0;
  lifecycle_enter_phase(agent, job, MIG_PHASE_PREPARING,
                        "the agent was restarted before the migration had begun; the checks begin anew");
  run_start(agent, job, false);
  lifecycle_state_changed(agent, job);
}

static void settle_unmoved(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (run->adopted && !job->begun && job->phase == MIG_PHASE_RECOVERING &&
      job->failure.cause == MIG_CAUSE_NONE) {
    begin_anew(run);
    return;
  }

  if (run->error)
    job_note_failure(job, cause_of_migration(run->error), run->error, "%s", run->error->message);
  else
    job_note_failure(
        job, MIG_CAUSE_LIBVIRT_ERROR, NULL,
        "the migration ended while the agent was away, and libvirt no longer says why: see its log");
  lifecycle_finish(run->agent, job, lifecycle_phase_of_cause(job->failure.cause), "source",
                   g_strdup(report->evidence));
}

static void settle_gone(JobRun *run, const WorkerReport *report) {
  job_note_failure(run->job, MIG_CAUSE_GUEST_STOPPED, run->error, "%s", report->evidence);
  lifecycle_finish(run->agent, run->job, MIG_PHASE_FAILED, "none", g_strdup(report->evidence));
}

static void settle_split(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job_note_failure(job, MIG_CAUSE_INTERNAL, run->error,
                   "both ends have a live copy: touch neither before it is known which one is the guest (%s)",
                   report->evidence);
  log_job(job, LOG_CRIT, NAMES_MESSAGE_JOB_SPLIT, "both ends have a live copy; nothing was touched: %s",
          report->evidence);
  lifecycle_finish(run->agent, job, MIG_PHASE_FAILED, "unknown", g_strdup(report->evidence));
}

static void on_settled(JobRun *run, const WorkerReport *report) {
  if (report->left) {
    note_evidence(run->job, report->evidence);
    job_add_event(run->job, "warning", MIG_CAUSE_NONE, "%s", report->left);
    log_job(run->job, LOG_WARNING, NAMES_MESSAGE_JOB_LEFTOVER, "%s (%s)", report->left, report->evidence);
  }
  switch (report->verdict) {
  case MIG_VERDICT_SUCCEEDED:
    settle_moved(run, report);
    return;
  case MIG_VERDICT_AT_SOURCE:
    settle_unmoved(run, report);
    return;
  case MIG_VERDICT_GONE:
    settle_gone(run, report);
    return;
  case MIG_VERDICT_SPLIT:
    settle_split(run, report);
    return;
  case MIG_VERDICT_WAIT:
  case MIG_VERDICT_RECOVER:
  case MIG_VERDICT_COUNT:
    break;
  }
  g_return_if_reached();
}

static void on_unsettled(JobRun *run, const WorkerReport *report) {
  bool operator= report->awaits == MIG_AWAITS_OPERATOR;
  Job *job = run->job;

  note_evidence(job, report->evidence);
  job_set_next_action(job, report->plan);
  if (job->phase == MIG_PHASE_MIGRATING)
    lifecycle_enter_phase(run->agent, job, MIG_PHASE_RECOVERING, report->evidence);
  else
    job_add_event(job, operator? "warning" : "action", MIG_CAUSE_NONE, "%s", report->evidence);
  log_job(job, operator? LOG_ERR : LOG_WARNING,
               operator? NAMES_MESSAGE_JOB_NEEDS_OPERATOR : NAMES_MESSAGE_JOB_OUTCOME_UNKNOWN,
          "where it runs is not settled yet: %s", report->evidence);
  lifecycle_state_changed(run->agent, job);
}

static void on_resuming(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job->stage = MIG_STAGE_POST_COPY;
  if (job->phase == MIG_PHASE_MIGRATING)
    lifecycle_enter_phase(run->agent, job, MIG_PHASE_RECOVERING, report->evidence);
  else
    job_add_event(job, "action", MIG_CAUSE_NONE, "resume of the post-copy: %s",
                  report->error ? report->error->message : "done");
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_RECOVERING,
          "post-copy is cut (%s); the last try to resume it: %s", report->evidence,
          report->error ? report->error->message : "worked");
}

/* The other actions on a domain: rare enough to be told each time, with what they rest on. */
static void on_domain_touched(JobRun *run, const WorkerReport *report) {
  const char *result = report->error ? report->error->message : "done";
  Job *job = run->job;

  if (job->phase == MIG_PHASE_MIGRATING)
    lifecycle_enter_phase(run->agent, job, MIG_PHASE_RECOVERING, report->evidence);
  job_add_event(job, report->error ? "warning" : "action", MIG_CAUSE_NONE, "%s (%s): %s", report->plan,
                report->evidence, result);
  log_job(job, report->error ? LOG_WARNING : LOG_NOTICE, NAMES_MESSAGE_JOB_DOMAIN_TOUCHED, "%s (%s): %s",
          report->plan, report->evidence, result);
}

static void on_touched(JobRun *run, const WorkerReport *report) {
  note_evidence(run->job, report->evidence);
  job_set_next_action(run->job, report->plan);
  if (report->touch == MIG_TOUCH_RESUME_POST_COPY)
    on_resuming(run, report);
  else
    on_domain_touched(run, report);
  lifecycle_state_changed(run->agent, run->job);
}

static void on_attached(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job_set_next_action(job, NULL);
  if (job->phase == MIG_PHASE_RECOVERING)
    lifecycle_enter_phase(run->agent, job, MIG_PHASE_MIGRATING, report->evidence);
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_ADOPTED, "the migration is under way, and is steered on: %s",
          report->evidence);
  lifecycle_state_changed(run->agent, job);
}

static void on_report(Worker *worker, const WorkerReport *report, gpointer user_data) {
  JobRun *run = user_data;

  switch (report->kind) {
  case WORKER_PREPARED:
    on_prepared(run, report);
    break;
  case WORKER_REFUSED:
    on_refused(run, report);
    break;
  case WORKER_CANCELLED:
    /* Whoever cancelled has finished the job, and freed the worker. */
    break;
  case WORKER_SAMPLE:
    on_sample(run, report);
    break;
  case WORKER_ACTED:
    on_acted(run, report);
    break;
  case WORKER_RETURNED:
    on_returned(run, report);
    break;
  case WORKER_ATTACHED:
    on_attached(run, report);
    break;
  case WORKER_UNSETTLED:
    on_unsettled(run, report);
    break;
  case WORKER_TOUCHED:
    on_touched(run, report);
    break;
  case WORKER_SETTLED:
    on_settled(run, report);
    break;
  }
}

/* --- what the rest of the agent asks of a run --- */

/* A second of measuring pays where the answer decides how to start. */
static bool wants_probe(const MigPolicy *policy) {
  return mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE) ||
         mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY) ||
         mig_policy_get(policy, MIG_POLICY_MAX_PAUSE_MS) > 0;
}

void run_start(Agent *agent, Job *job, bool reattach) {
  JobRun *run = g_new0(JobRun, 1);
  WorkerRequest request = {
      .name = job->id,
      .domain_uuid = job->domain_uuid,
      .target_uri = job->target_uri,
      .migrate_uri = job->migrate_uri,
      .policy = reattach ? start_policy(job) : job->policy,
      .reattach = reattach,
      .record = job->record,
      .begun = reattach && job->begun,
      .probe = wants_probe(&job->policy),
      .connect_timeout_ms = agent->config->connect_timeout_ms,
      .poll_interval_ms = agent->config->poll_interval_ms,
  };

  run->agent = agent;
  run->job = job;
  run->go_given = run->adopted = reattach;
  run->prepare_until_ms = agent_now_ms() + agent->config->prepare_timeout_ms;
  job->run = run;
  run->worker = worker_start(agent->hypervisor, agent->driver, &request, agent->context, on_report, run);
}

void run_adopt(Agent *agent, Job *job) {
  run_start(agent, job, true);
  if (job->started_ms > 0)
    start_monitor(job->run);
  if (job->abort_requested)
    run_abort(job->run);
}

bool run_may_be_moving(const JobRun *run) {
  return run->go_given;
}

bool run_has_failed(const JobRun *run) {
  return run->error != NULL;
}

void run_abort(JobRun *run) {
  job_set_next_action(run->job, "waits for the migration to be cancelled");
  worker_act(run->worker, &(MigAction){.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_USER_ABORT});
}

void run_complete(JobRun *run, MigActionKind kind) {
  if (run->monitoring)
    mig_monitor_note_taken(&run->monitor, kind);
  worker_act(run->worker, &(MigAction){.kind = kind});
}

void run_tune(JobRun *run, const MigPolicy *changes) {
  const uint32_t bandwidth = (UINT32_C(1) << MIG_POLICY_BANDWIDTH_BYTES_PER_S) |
                             (UINT32_C(1) << MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);
  const MigPolicy *policy = &run->job->policy;

  if (!run->monitoring)
    return;
  mig_monitor_set_policy(&run->monitor, policy);
  note_deadline(run);
  if (changes->set & bandwidth)
    worker_set_bandwidth(run->worker, mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S),
                         mig_policy_get(policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S));
}

void run_tick(JobRun *run, uint64_t now_ms) {
  Job *job = run->job;

  if (job->phase == MIG_PHASE_PREPARING && now_ms >= run->prepare_until_ms) {
    job_note_failure(job, MIG_CAUSE_PREPARE_TIMEOUT, NULL,
                     "the checks did not end within %u s: a libvirtd, of this node or of the target, hangs",
                     run->agent->config->prepare_timeout_ms / 1000);
    lifecycle_finish_unmoved(run->agent, job);
    return;
  }
  if (run->monitoring) {
    MigAction action;

    mig_monitor_tick(&run->monitor, now_ms, &action);
    if (action.kind != MIG_ACTION_NONE)
      take_action(run, &action);
  }
  if (run->silent)
    watch_notify(run->agent, job, false);
}

void run_handle_event(JobRun *run, const MigVirtEvent *event) {
  if (!run->go_given)
    return;
  if (event->kind == MIG_VIRT_EVENT_JOB_DONE) {
    if (event->success) {
      run->have_final = true;
      run->final = event->final;
    }
    worker_note_job_done(run->worker, event->success);
  } else if (event->kind == MIG_VIRT_EVENT_STATE) {
    worker_note_job_done(run->worker, false);
  }
}

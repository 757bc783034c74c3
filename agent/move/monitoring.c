/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor of a run: feeds it, and acts on its decisions. */
#include "agent/move/run-private.h"

#include "agent/job/log.h"

#include <string.h>

static void note_deadline(JobRun *run) {
  uint64_t deadline_ms = mig_monitor_deadline_ms(&run->monitor);

  run->job->deadline_ms = deadline_ms == UINT64_MAX ? 0 : deadline_ms;
}

bool monitoring_note_steering(JobRun *run) {
  MigSteering steering;

  if (!run->monitoring)
    return false;
  mig_monitor_get_steering(&run->monitor, &steering);
  if (memcmp(&steering, &run->job->steering, sizeof steering) == 0)
    return false;
  run->job->steering = steering;
  return true;
}

void monitoring_start(JobRun *run) {
  Job *job = run->job;

  mig_monitor_init(&run->monitor, &job->policy, job->started_ms, job->memory_bytes, job->disk_bytes);
  if (job->have_plan)
    mig_monitor_set_plan(&run->monitor, &job->plan);
  if (run->adopted)
    mig_monitor_take_up(&run->monitor, &job->steering);
  if (run->adopted && job->record.paused_by_agent)
    mig_monitor_note_taken(&run->monitor, MIG_ACTION_PAUSE);
  if (run->bandwidth.in)
    mig_monitor_set_share(&run->monitor, mig_share_per_stream(&run->bandwidth.share));
  run->monitoring = true;
  monitoring_note_steering(run);
  note_deadline(run);
}

static void on_stage(JobRun *run, MigStage stage) {
  Job *job = run->job;

  job->stage = stage;
  job_add_event(job, "stage", MIG_CAUSE_NONE, "now in %s", mig_stage_name(stage));
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STAGE, "now in %s", mig_stage_name(stage));
  jobs_state_changed(run->mover->jobs, job);
}

static void take_action(JobRun *run, const MigAction *action) {
  Job *job = run->job;

  monitoring_note_steering(run);
  run->mover->actions[action->kind]++;
  job_add_event(job, "decision", action->cause, "%s: %s", mig_action_name(action->kind), action->message);
  if (action->kind == MIG_ACTION_ABORT) {
    if (!run->error)
      job_note_failure(job, action->cause, NULL, "%s", action->message);
    log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_GUARD, "aborted by the agent: %s", action->message);
    job_set_next_action(job, "waits for libvirt to cancel the migration");
  } else {
    log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_DECISION, "%s: %s", mig_action_name(action->kind),
            action->message);
  }
  worker_act(run->worker, action);
  jobs_state_changed(run->mover->jobs, job);
}

static void note_forecast(JobRun *run) {
  const MigForecast *forecast = mig_monitor_forecast(&run->monitor);
  Job *job = run->job;
  const MigWayForecast *way;

  if (!forecast)
    return;
  way = &forecast->ways[MIN(forecast->best, MIG_WAY_COUNT - 1)];
  job->forecast.known = true;
  job->forecast.way = forecast->best;
  job->forecast.total_ms = forecast->best == MIG_WAY_COUNT ? 0 : (uint64_t)(way->total_s * 1000);
  job->forecast.pause_ms = forecast->best == MIG_WAY_COUNT ? 0 : (uint64_t)(way->pause_s * 1000);
  job->forecast.floor_ms = (uint64_t)(forecast->floor_s * 1000);
}

void monitoring_step(JobRun *run, const MigSample *sample) {
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
  else if (monitoring_note_steering(run))
    jobs_save(run->mover->jobs, job, NULL, NULL);
}

void monitoring_tick(JobRun *run, uint64_t now_ms) {
  MigAction action;

  if (!run->monitoring)
    return;
  mig_monitor_tick(&run->monitor, now_ms, &action);
  if (action.kind != MIG_ACTION_NONE)
    take_action(run, &action);
}

void monitoring_retune(JobRun *run) {
  mig_monitor_set_policy(&run->monitor, &run->job->policy);
  note_deadline(run);
}

void monitoring_note_refused(JobRun *run, MigActionKind kind) {
  if (run->monitoring)
    mig_monitor_note_refused(&run->monitor, kind);
  monitoring_note_steering(run);
}

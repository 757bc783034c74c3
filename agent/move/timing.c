/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When each part of a migration begins, and for how long its guest stands still.
 *
 * Theory of Operation. libvirt's events tell: a pass began, the guest stopped at the source, the guest runs at the target. Both
 * libvirtds' events reach this process, and are timed by one clock as they arrive, so the clocks of the hosts do not matter; what
 * does is how long an event is under way, which half a round trip to each end bounds. Statistics lag behind events by a poll.
 * They count only for what was missed: while no agent ran, or a connection was down. Then the times are inexact. */
#include "agent/base/clock.h"
#include "agent/move/run-private.h"

/* An event that was sent or read late may make the time between two of them too short. Then libvirt's count is longer, by more
 * than this and the error. */
#define LATE_MS 10

/* Parts only follow one another: news of an earlier one is old. `seen`: that is when it began. */
static void enter(JobRun *run, JobPart part, uint64_t at_ms, bool seen) {
  JobTimes *times = &run->job->times;

  if (part <= times->part)
    return;
  times->inexact = times->inexact || !seen;
  job_times_enter(times, part, at_ms);
  jobs_save(run->mover->jobs, run->job, NULL, NULL);
}

/* A guest that does not run makes no switch that can be seen. */
static bool saw_switch(const Job *job) {
  return job->times.resumed_ms > 0 || !job->record.ran_before;
}

/* --- events --- */

static void on_state(JobRun *run, const MigVirtEvent *event) {
  JobTimes *times = &run->job->times;

  switch (event->state) {
  case MIG_END_PAUSED:
  case MIG_END_PAUSED_MIGRATION:
  case MIG_END_PAUSED_POSTCOPY:
    if (times->stopped_ms == 0)
      times->stopped_ms = event->at_ms;
    enter(run, JOB_PART_SWITCH, event->at_ms, times->part >= JOB_PART_FIRST_PASS);
    break;
  case MIG_END_RUNNING:
    times->stopped_ms = 0;
    if (times->part == JOB_PART_SWITCH)
      job_times_enter(times, JOB_PART_PASSES, event->at_ms);
    break;
  default:
    break;
  }
}

void timing_on_event(JobRun *run, const MigVirtEvent *event) {
  bool first = event->kind == MIG_VIRT_EVENT_ITERATION && event->iteration <= 1;

  if (event->kind == MIG_VIRT_EVENT_ITERATION)
    enter(run, first ? JOB_PART_FIRST_PASS : JOB_PART_PASSES, event->at_ms, true);
  else if (event->kind == MIG_VIRT_EVENT_STATE)
    on_state(run, event);
  else if (event->kind == MIG_VIRT_EVENT_JOB_DONE && event->success)
    enter(run, JOB_PART_SETTLE, event->at_ms, saw_switch(run->job));
}

/* libvirt says it twice in post-copy: when the guest begins to run, and when all of its memory is there. */
void timing_on_resumed(JobRun *run, const WorkerReport *report) {
  bool post_copy = report->target == MIG_END_RUNNING_POSTCOPY;
  JobTimes *times = &run->job->times;

  if (times->resumed_ms == 0 && (post_copy || run->job->stage != MIG_STAGE_POST_COPY))
    times->resumed_ms = report->at_ms;
  enter(run, post_copy ? JOB_PART_POST_COPY : JOB_PART_SETTLE, report->at_ms,
        times->stopped_ms > 0 && times->resumed_ms > 0);
}

/* --- statistics, and the call --- */

static JobPart part_of(const Job *job) {
  const MigSample *sample = &job->sample;

  if (job->stage == MIG_STAGE_POST_COPY)
    return JOB_PART_POST_COPY;
  if (sample->iteration == 0)
    return sample->disk_processed_bytes > 0 ? JOB_PART_DISKS : JOB_PART_BEGIN;
  return sample->iteration == 1 ? JOB_PART_FIRST_PASS : JOB_PART_PASSES;
}

void timing_on_sample(JobRun *run) {
  JobPart part = part_of(run->job);
  bool lags = part > run->job->times.part;

  /* No event tells of the disks. */
  if (part == JOB_PART_DISKS || (lags && run->times_lag))
    enter(run, part, run->job->sample.now_ms, part == JOB_PART_DISKS);
  run->times_lag = lags;
}

void timing_on_returned(JobRun *run, const GError *error) {
  if (!error)
    enter(run, JOB_PART_SETTLE, clock_now_ms(), saw_switch(run->job));
  else if (mig_virt_error_is_answer(error) && run->job->stage != MIG_STAGE_POST_COPY)
    enter(run, JOB_PART_SETTLE, clock_now_ms(), true);
}

/* --- the downtime --- */

static const char *why_unknown(const Job *job) {
  if (!job->record.ran_before)
    return "the guest was not running";
  if (job->times.stopped_ms == 0)
    return "the agent was not running when the guest stopped, or had no connection to this node's libvirtd";
  return "the agent had no connection to the target's libvirtd when the guest resumed there";
}

void timing_take_downtime(JobRun *run, const WorkerReport *report, const MigFinalStats *final) {
  Job *job = run->job;
  const JobTimes *times = &job->times;
  JobResult *result = &job->result;
  bool post_copy = job->stage == MIG_STAGE_POST_COPY || times->spent_ms[JOB_PART_POST_COPY] > 0;
  bool ran = job->record.ran_before;
  bool heard = ran && times->stopped_ms > 0 && times->resumed_ms > 0 && report->error_ms > 0;
  uint64_t between_ms = heard ? times->resumed_ms - MIN(times->stopped_ms, times->resumed_ms) : 0;

  /* In post-copy, libvirt counts only until the source has sent the devices' state. For a guest that was paused it counts as if
   * it had run. */
  result->have_libvirt_downtime = ran && final && final->have_downtime && !post_copy;
  result->libvirt_downtime_ms = result->have_libvirt_downtime ? final->downtime_ms : 0;
  result->have_downtime = heard || result->have_libvirt_downtime;
  if (heard && between_ms + report->error_ms + LATE_MS >= result->libvirt_downtime_ms) {
    result->downtime_ms = between_ms;
    result->downtime_error_ms = report->error_ms;
  } else {
    result->downtime_ms = result->libvirt_downtime_ms;
  }
  if (!result->have_downtime)
    result->downtime_unknown = why_unknown(job);
}

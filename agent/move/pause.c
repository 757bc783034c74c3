/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pause of the guest by the agent, as kept in the record. */
#include "agent/move/run-private.h"

#include "agent/job/log.h"

/* The record follows the worker: the guest was paused, or may have been. But it claims a pause before the pause happens, and
 * keeps that claim until the worker has reported the result. */
bool run_note_pause(JobRun *run) {
  MigSettleRecord *record = &run->job->record;
  MigSettleRecord known;

  if (run->pause_wanted || !run->go_given)
    return false;
  known = worker_get_record(run->worker);
  if (record->paused_by_agent == known.paused_by_agent && record->pause_answered == known.pause_answered)
    return false;
  record->paused_by_agent = known.paused_by_agent;
  record->pause_answered = known.pause_answered;
  return true;
}

void run_want_pause(JobRun *run) {
  run->pause_wanted = true;
  run->job->record.paused_by_agent = true;
  run->job->record.pause_answered = false;
}

bool run_wants_pause(const JobRun *run) {
  return run->pause_wanted;
}

void run_settle_pause(JobRun *run) {
  run->pause_wanted = false;
  run_note_pause(run);
}

void run_drop_pause(JobRun *run, const char *why) {
  run_settle_pause(run);
  job_add_event(run->job, "warning", MIG_CAUSE_NONE, "not paused: %s", why);
  log_job(run->job, LOG_WARNING, NULL, "not paused, although requested: %s", why);
  jobs_state_changed(run->mover->jobs, run->job);
}

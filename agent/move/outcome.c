/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a run: the result of the migration call, and the verdict. */
#include "agent/move/run-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/finish.h"
#include "agent/move/lifecycle.h"

void outcome_on_returned(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  run->flow = (JobFlow){0};
  timing_on_returned(run, report->error);
  if (!report->error)
    return;
  job_add_event(job, "action", MIG_CAUSE_NONE,
                "the migration call failed; asking both ends for the outcome: %s", report->error->message);
  if (job->failure.cause == MIG_CAUSE_NONE)
    run->error = g_error_copy(report->error);
  jobs_state_changed(run->mover->jobs, job);
}

/* The cause if nobody requested an abort: from the migration's own error. */
static MigCause cause_of_migration(const GError *error) {
  static const struct {
    MigVirtError error;
    MigCause cause;
  } causes[] = {
      {MIG_VIRT_ERROR_UNREACHABLE, MIG_CAUSE_SOURCE_UNREACHABLE},
      {MIG_VIRT_ERROR_PEER_LOST, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_TIMEOUT, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_NO_DOMAIN, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_NOT_RUNNING, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_DENIED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_SAME_HOST, MIG_CAUSE_SAME_HOST},
      {MIG_VIRT_ERROR_EXISTS, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET},
      {MIG_VIRT_ERROR_BUSY, MIG_CAUSE_DOMAIN_BUSY},
      {MIG_VIRT_ERROR_ABORTED, MIG_CAUSE_CANCELLED_ELSEWHERE},
      {MIG_VIRT_ERROR_UNSUPPORTED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_NO_TLS, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_INVALID, MIG_CAUSE_REFUSED},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(causes); i++)
    if (g_error_matches(error, MIG_VIRT_ERROR, (gint)causes[i].error))
      return causes[i].cause;
  return MIG_CAUSE_LIBVIRT_ERROR;
}

/* The final statistics: from libvirt's event at the source, otherwise from the target. */
static void take_final_stats(JobRun *run, const WorkerReport *report) {
  const MigFinalStats *final = run->have_final ? &run->final : report->have_final ? &report->final : NULL;
  Job *job = run->job;

  timing_take_downtime(run, report, final);
  if (!final)
    return;
  job->result.have_libvirt_time = final->total_time_ms > 0;
  job->result.libvirt_time_ms = final->total_time_ms;
  job->result.have_transferred = final->transferred_bytes > 0;
  job->result.transferred_bytes = final->transferred_bytes;
}

static void settle_moved(JobRun *run, const WorkerReport *report, JobWhere running_at) {
  Job *job = run->job;

  if (job->failure.cause != MIG_CAUSE_NONE) {
    job_add_event(job, "warning", job->failure.cause,
                  "the abort (%s) came too late: the guest had already migrated",
                  mig_cause_name(job->failure.cause));
    job_clear_failure(job);
  }
  take_final_stats(run, report);
  finish_job(run->mover, job, MIG_PHASE_SUCCEEDED, running_at, g_strdup(report->evidence));
}

/* The record said that it may be migrating, but it never started: the agent was killed in between. */
static void begin_anew(JobRun *run) {
  Mover *mover = run->mover;
  Job *job = run->job;

  run_settle_pause(run);
  g_clear_pointer(&job->run, run_free);
  recorder_forget(mover->jobs, job);
  job->started_ms = 0;
  job->started_usec = 0;
  jobs_enter_phase(mover->jobs, job, MIG_PHASE_PREPARING,
                   "the agent was restarted before the migration had started; starting the checks over");
  run_start(mover, job, false);
  jobs_state_changed(mover->jobs, job);
}

static void settle_unmoved(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (run->adopted && !job->begun && job->phase == MIG_PHASE_RECOVERING &&
      job->failure.cause == MIG_CAUSE_NONE && !report->came_back && !job->record.seen_there &&
      !job->record.completed) {
    begin_anew(run);
    return;
  }

  if (run->error)
    job_note_failure(job, cause_of_migration(run->error), run->error, "%s", run->error->message);
  else
    job_note_failure(job, MIG_CAUSE_LIBVIRT_ERROR, NULL,
                     "the migration ended while the agent was not watching, and libvirt no longer reports "
                     "why: see libvirt's log");
  finish_job(run->mover, job, finish_phase_of_cause(job->failure.cause), JOB_AT_SOURCE,
             g_strdup(report->evidence));
}

static void settle_gone(JobRun *run, const WorkerReport *report) {
  job_note_failure(run->job, MIG_CAUSE_GUEST_STOPPED, run->error, "%s", report->evidence);
  finish_job(run->mover, run->job, MIG_PHASE_FAILED, JOB_AT_NONE, g_strdup(report->evidence));
}

/* Nobody saw where it went. It may still be known that it had migrated to the target. */
static void settle_left(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;
  const MigSettleRecord *record = &job->record;

  if (record->seen_there || record->completed || record->told_it_ran) {
    settle_moved(run, report, JOB_AT_UNKNOWN);
    return;
  }
  /* If libvirt refused the migration, the guest did not migrate. */
  if (run->error && mig_virt_error_is_answer(run->error))
    job_note_failure(job, cause_of_migration(run->error), run->error, "%s", run->error->message);
  else
    job_note_failure(job, MIG_CAUSE_OUTCOME_UNKNOWN, run->error, "%s", report->evidence);
  finish_job(run->mover, job, MIG_PHASE_FAILED, JOB_AT_UNKNOWN, g_strdup(report->evidence));
}

static void settle_split(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job_note_failure(job, MIG_CAUSE_INTERNAL, run->error,
                   "both ends have a live copy: touch neither until you know which one is the guest (%s)",
                   report->evidence);
  log_job(job, LOG_CRIT, NAMES_MESSAGE_JOB_SPLIT, "both ends have a live copy; the agent touched neither: %s",
          report->evidence);
  finish_job(run->mover, job, MIG_PHASE_FAILED, JOB_AT_UNKNOWN, g_strdup(report->evidence));
}

/* Reports what is left behind; if that is a copy of the guest, with the command that removes it. */
static void tell_left(JobRun *run, const WorkerReport *report) {
  bool copy = report->verdict != MIG_VERDICT_AT_SOURCE && report->source != MIG_END_ABSENT &&
              report->source != MIG_END_INACTIVE;
  g_autofree char *remedy = copy ? recover_describe_remedy(run, report) : NULL;
  g_autofree char *text = g_strconcat(report->left, remedy ? ". " : NULL, remedy, NULL);

  job_set_evidence(run->job, report->evidence);
  job_add_event(run->job, "warning", MIG_CAUSE_NONE, "%s", text);
  log_job(run->job, LOG_WARNING, NAMES_MESSAGE_JOB_LEFTOVER, "%s (%s)", text, report->evidence);
}

void outcome_on_settled(JobRun *run, const WorkerReport *report) {
  if (report->left)
    tell_left(run, report);
  switch (report->verdict) {
  case MIG_VERDICT_SUCCEEDED:
    settle_moved(run, report, JOB_AT_TARGET);
    return;
  case MIG_VERDICT_AT_SOURCE:
    settle_unmoved(run, report);
    return;
  case MIG_VERDICT_GONE:
    settle_gone(run, report);
    return;
  case MIG_VERDICT_LEFT:
    settle_left(run, report);
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

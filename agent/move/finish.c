/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a job. */
#include "agent/move/finish.h"

#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/run.h"

#include <inttypes.h>
#include <string.h>

static void log_success(const Job *job) {
  g_autofree char *parts = job_times_describe(&job->times);
  double total_s = (double)job->result.total_time_ms / 1000;

  if (job->lease)
    log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_SUCCEEDED, "arrived after %.1f s (%s)", total_s, parts);
  else if (job->result.have_downtime)
    log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_SUCCEEDED,
            "migrated to %s in %.1f s (%s), downtime %" PRIu64 " ms",
            job->target_name ? job->target_name : job->target_uri, total_s, parts, job->result.downtime_ms);
  else
    log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_SUCCEEDED, "migrated to %s in %.1f s (%s), downtime unknown: %s",
            job->target_name ? job->target_name : job->target_uri, total_s, parts,
            job->result.downtime_unknown);
}

static void log_end(const Job *job) {
  if (job->phase == MIG_PHASE_SUCCEEDED)
    log_success(job);
  else if (job->lease)
    log_job(job, job->phase == MIG_PHASE_ABORTED ? LOG_NOTICE : LOG_WARNING,
            job->phase == MIG_PHASE_ABORTED ? NAMES_MESSAGE_JOB_ABORTED : NAMES_MESSAGE_JOB_FAILED,
            job->phase == MIG_PHASE_ABORTED ? "incoming migration aborted (%s): %s"
                                            : "incoming migration failed (%s): %s",
            mig_cause_name(job->failure.cause), job->failure.message);
  else if (job->phase == MIG_PHASE_ABORTED)
    log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_ABORTED, "migration aborted (%s): %s",
            mig_cause_name(job->failure.cause), job->failure.message);
  else
    log_job(job, LOG_ERR, NAMES_MESSAGE_JOB_FAILED, "migration failed (%s): %s",
            mig_cause_name(job->failure.cause), job->failure.message);
}

void finish_job(Mover *mover, Job *job, MigPhase phase, JobWhere running_at, char *evidence) {
  g_autofree char *message = NULL;

  job_set_evidence(job, evidence);
  job->result.running_at = running_at;
  if (phase == MIG_PHASE_SUCCEEDED) {
    job->percent = 100;
    job->times.inexact = job->times.inexact || job->times.part != JOB_PART_SETTLE;
    message =
        g_strdup_printf("%s (%s)",
                        running_at == JOB_AT_TARGET ? "runs at the target"
                                                    : "it migrated to the target and is no longer there",
                        evidence);
  } else {
    message = g_strdup_printf("%s: %s", mig_cause_name(job->failure.cause), job->failure.message);
  }
  if (job->run)
    run_settle_pause(job->run);
  recorder_end(mover->jobs, job);
  g_free(evidence);
  job_queue_remove(mover->jobs->queue, job);
  g_clear_pointer(&job->run, run_free);
  jobs_enter_phase(mover->jobs, job, phase, message);
  jobs_tell(mover->jobs, job, JOB_CHANGE_FINISHED);
  log_end(job);
  jobs_state_changed(mover->jobs, job);
  jobs_tell(mover->jobs, job, JOB_CHANGE_OVER);
}

MigPhase finish_phase_of_cause(MigCause cause) {
  switch (cause) {
  case MIG_CAUSE_USER_ABORT:
  case MIG_CAUSE_DEADLINE:
  case MIG_CAUSE_LEASE_EXPIRED:
  case MIG_CAUSE_NO_PROGRESS:
  case MIG_CAUSE_LINK_STALLED:
  case MIG_CAUSE_NOT_CONVERGING:
  case MIG_CAUSE_HOST_SHUTDOWN:
    return MIG_PHASE_ABORTED;
  default:
    return MIG_PHASE_FAILED;
  }
}

void finish_unmoved(Mover *mover, Job *job) {
  /* If the checks found it not running, do not claim that it runs here. */
  finish_job(mover, job, finish_phase_of_cause(job->failure.cause),
             job->failure.cause == MIG_CAUSE_DOMAIN_NOT_RUNNING ? JOB_AT_UNKNOWN : JOB_AT_SOURCE,
             g_strdup("the migration was not started"));
}

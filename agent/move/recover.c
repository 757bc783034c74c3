/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run whose outcome is open, or that is stuck: what is reported about it, and when.
 *
 * Theory of Operation. A job is `recovering` while it is not certain that its migration makes progress: an end does not
 * answer, the two do not fit together yet, post-copy was interrupted, or has not moved a byte for STALL_MS, with the guest
 * perhaps waiting for its memory. It is `migrating` again once libvirt reports it as running, or bytes flow. What both ends
 * say goes to the job's evidence, attempts go to its recovery. Only a change makes an event, since an interruption may last
 * for hours, with a new attempt every two seconds. */
#include "agent/move/run-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/lifecycle.h"
#include "agent/move/remedy.h"

#include <inttypes.h>

#define STALL_MS 3000

/* TCP retransmits after two minutes at most, however long the link was down. */
#define DEAF_MS 150000

/* Two, since the first sample after an interruption may include bytes from before it. */
#define RISES_MIN 2

static bool flows(const JobRun *run) {
  return run->flow.rises >= RISES_MIN && clock_now_ms() < run->flow.moved_ms + STALL_MS;
}

static void go_on(JobRun *run, const char *message) {
  Job *job = run->job;

  run->asks_operator = false;
  job_set_next_action(job, NULL);
  run->deaf_since_ms = 0;
  run->operator_called = false;
  if (job->phase == MIG_PHASE_RECOVERING)
    jobs_enter_phase(run->mover->jobs, job, MIG_PHASE_MIGRATING, message);
}

/* --- reports of the worker --- */

char *recover_describe_remedy(const JobRun *run, const WorkerReport *report) {
  const Job *job = run->job;
  const RemedyPlaces places = {
      .domain = job->domain_name,
      .job = job->id,
      .source_uri = hypervisor_get_uri(run->mover->hypervisor),
      .target_uri = job->target_uri,
      .seen_there = job->record.seen_there || job->record.completed,
  };

  return remedy_describe(report->source, report->target, &places);
}

/* The plan, and if it needs an operator, the commands that settle the job. */
static void set_plan(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;
  g_autofree char *remedy =
      report->awaits == MIG_AWAITS_OPERATOR ? recover_describe_remedy(run, report) : NULL;
  g_autofree char *plan = remedy ? g_strdup_printf("%s %s", report->plan, remedy) : g_strdup(report->plan);

  run->asks_operator = report->awaits == MIG_AWAITS_OPERATOR;
  job_set_next_action(job, plan);
}

void recover_on_unsettled(JobRun *run, const WorkerReport *report) {
  bool operator= report->awaits == MIG_AWAITS_OPERATOR;
  Job *job = run->job;

  run->deaf_since_ms = 0;
  run->operator_called = false;
  job_set_evidence(job, report->evidence);
  set_plan(run, report);
  if (!report->news && job->phase == MIG_PHASE_RECOVERING) {
    jobs_announce(run->mover->jobs, job);
    return;
  }
  if (job->phase == MIG_PHASE_MIGRATING)
    jobs_enter_phase(run->mover->jobs, job, MIG_PHASE_RECOVERING, report->evidence);
  else
    job_add_event(job, operator? "warning" : "action", MIG_CAUSE_NONE, "%s", report->evidence);
  log_job(job, operator? LOG_ERR : LOG_WARNING,
               operator? NAMES_MESSAGE_JOB_NEEDS_OPERATOR : NAMES_MESSAGE_JOB_OUTCOME_UNKNOWN,
          "cannot yet determine which host runs the guest: %s. %s", report->evidence, job->next_action);
  jobs_state_changed(run->mover->jobs, job);
}

void recover_on_touching(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job_set_evidence(job, report->evidence);
  if (!run->operator_called)
    job_set_next_action(job, report->plan);
  if (report->touch != MIG_TOUCH_RESUME_POST_COPY)
    return;
  job->stage = MIG_STAGE_POST_COPY;
  job->recovery.tries = report->tries;
  job->recovery.tried_usec = g_get_real_time();
  job->recovery.again_usec = 0;
  if (job->phase == MIG_PHASE_RECOVERING || flows(run)) {
    jobs_announce(run->mover->jobs, job);
    return;
  }
  run->flow = (JobFlow){0};
  jobs_enter_phase(run->mover->jobs, job, MIG_PHASE_RECOVERING, report->evidence);
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_RECOVERING,
          "post-copy was interrupted; the agent resumes it as soon as it can: %s", report->evidence);
  jobs_state_changed(run->mover->jobs, job);
}

/* QEMU reports that its stream is intact. That is true after an interruption that TCP survives: libvirt gave up, QEMU did
 * not, and continues once TCP retransmits. But QEMU 7.2 reports it forever if the stream broke after the last page was sent
 * and before the target had it: then the pages that were lost with it are gone for good. */
static const char *on_still_running(JobRun *run) {
  Job *job = run->job;

  if (run->deaf_since_ms == 0 || flows(run))
    run->deaf_since_ms = clock_now_ms();
  if (clock_now_ms() < run->deaf_since_ms + DEAF_MS)
    return "QEMU reports its stream as intact and continues by itself once the link works again; the agent "
           "watches it";
  job_set_next_action(
      job, "needs an operator: check whether the link works and whether the guest responds at the target. If "
           "the link works and the guest hangs, the guest is lost (QEMU 7.2 does not notice when the stream "
           "breaks at the very end of post-copy): only then destroy both copies, and the job ends by itself");
  if (!run->operator_called)
    log_job(job, LOG_ERR, NAMES_MESSAGE_JOB_NEEDS_OPERATOR,
            "the source's QEMU still reports its post-copy stream as intact, but no data has moved for %d s: "
            "check the link, then both ends (virsh domstate --reason, virsh domjobinfo)",
            DEAF_MS / 1000);
  run->operator_called = true;
  return "QEMU still reports its stream as intact, but no data is moving: needs an operator";
}

static void on_resumed(JobRun *run, const WorkerReport *report) {
  JobRecovery *recovery = &run->job->recovery;
  Job *job = run->job;
  const char *text = report->error ? report->error->message : NULL;

  if (g_error_matches(report->error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_STILL_RUNNING))
    text = on_still_running(run);
  else
    run->deaf_since_ms = 0;
  if (report->again_ms)
    recovery->again_usec = g_get_real_time() + ((int64_t)report->again_ms - (int64_t)clock_now_ms()) * 1000;
  if (g_strcmp0(recovery->error, text) == 0 && text) {
    jobs_announce(run->mover->jobs, job);
    return;
  }
  g_free(recovery->error);
  recovery->error = job_copy_text(text);
  job_add_event(job, "action", MIG_CAUSE_NONE, "post-copy resume, attempt %u: %s", recovery->tries,
                text ? text : "done");
  log_job(job, text ? LOG_WARNING : LOG_NOTICE, NAMES_MESSAGE_JOB_RECOVERING,
          "post-copy resume, attempt %u: %s", recovery->tries, text ? text : "done");
  jobs_state_changed(run->mover->jobs, job);
}

/* The other actions on a domain: rare enough to report each, with its evidence. */
static void on_domain_touched(JobRun *run, const WorkerReport *report) {
  const char *result = report->error ? report->error->message : "done";
  Job *job = run->job;

  if (job->phase == MIG_PHASE_MIGRATING)
    jobs_enter_phase(run->mover->jobs, job, MIG_PHASE_RECOVERING, report->evidence);
  job_add_event(job, report->error ? "warning" : "action", MIG_CAUSE_NONE, "%s (%s): %s", report->plan,
                report->evidence, result);
  log_job(job, report->error ? LOG_WARNING : LOG_NOTICE, NAMES_MESSAGE_JOB_DOMAIN_TOUCHED, "%s (%s): %s",
          report->plan, report->evidence, result);
  jobs_state_changed(run->mover->jobs, job);
}

void recover_on_touched(JobRun *run, const WorkerReport *report) {
  run->mover->touches[report->touch][!report->error]++;
  if (report->touch == MIG_TOUCH_RESUME_POST_COPY)
    on_resumed(run, report);
  else
    on_domain_touched(run, report);
}

void recover_on_attached(JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  go_on(run, report->evidence);
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_ADOPTED,
          "the migration is in progress; the agent controls it again: %s", report->evidence);
  jobs_state_changed(run->mover->jobs, job);
}

/* --- statistics --- */

static void on_flow(JobRun *run) {
  Job *job = run->job;

  if (job->phase != MIG_PHASE_RECOVERING || !flows(run))
    return;
  go_on(run, "data is moving again: post-copy continues");
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_ADOPTED, "data is moving again: post-copy continues");
  jobs_state_changed(run->mover->jobs, job);
}

static void on_stall(JobRun *run) {
  static const char message[] =
      "no data has moved for 3 s in post-copy: the guest at the target is waiting for memory that is still "
      "at the source. Check the link; destroy neither copy";
  Job *job = run->job;

  if (job->phase != MIG_PHASE_MIGRATING)
    return;
  run->flow.rises = 0;
  job_set_evidence(job, message);
  job_set_next_action(job, "watches the stream and libvirt, which notices a broken link after half a minute");
  jobs_enter_phase(run->mover->jobs, job, MIG_PHASE_RECOVERING, message);
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_RECOVERING, "%s", message);
  jobs_state_changed(run->mover->jobs, job);
}

void recover_on_sample(JobRun *run, const MigSample *sample) {
  JobFlow *flow = &run->flow;

  if (!sample->valid || !sample->active || run->job->stage != MIG_STAGE_POST_COPY)
    return;
  if (!flow->known || sample->memory_processed_bytes != flow->bytes) {
    flow->rises += flow->known;
    flow->known = true;
    flow->bytes = sample->memory_processed_bytes;
    flow->moved_ms = sample->now_ms;
    on_flow(run);
  } else if (sample->now_ms >= flow->moved_ms + STALL_MS && sample->memory_remaining_bytes > 0) {
    on_stall(run);
  }
}

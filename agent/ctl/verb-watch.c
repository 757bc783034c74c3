/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl watch and abort: following a job that is there already. */
#include "agent/ctl/call.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/interrupt.h"

#include <string.h>

/* Following was ended by a signal, which harms nobody. */
static ExitStatus report_follow(Ctl *ctl, const Failure *failure) {
  if (interrupt_pending() == 0 || ctl->options.json)
    return failure_report(failure, &ctl->term, ctl->options.json);
  term_print(&ctl->term, "No longer watching; what is under way goes on.\n");
  return failure->status;
}

ExitStatus verb_watch(Ctl *ctl) {
  g_auto(Failure) failure = {0};
  json_t *ended = NULL;
  JobView job;

  interrupt_catch();
  if (!follow_job(ctl, ctl->options.args[0], &ended, &failure))
    return report_follow(ctl, &failure);

  ExitStatus status = EXIT_INTERNAL;
  if (job_view_read(ended, &job)) {
    if (!ctl->options.json)
      follow_summary(&ctl->term, &job);
    status = exit_status_of_job(job.phase, job.cause);
  }
  json_decref(ended);
  return status;
}

/* The request was granted if the domain is at the source in the end, whatever ended the move first. */
static ExitStatus abort_status(const JobView *job) {
  if (job->phase == MIG_PHASE_ABORTED)
    return EXIT_DONE;
  if (job->phase == MIG_PHASE_FAILED && g_strcmp0(job->running_at, "source") == 0)
    return EXIT_DONE;
  return EXIT_FAILED;
}

static ExitStatus wait_for_abort(Ctl *ctl, const char *id) {
  g_auto(Failure) failure = {0};
  json_t *ended = NULL;
  ExitStatus status = EXIT_INTERNAL;
  JobView job;

  if (!follow_job(ctl, id, &ended, &failure))
    return report_follow(ctl, &failure);
  if (job_view_read(ended, &job)) {
    status = abort_status(&job);
    if (!ctl->options.json && job.phase == MIG_PHASE_SUCCEEDED)
      term_print(&ctl->term, "Too late: the move had come to its end.\n");
    if (!ctl->options.json)
      follow_summary(&ctl->term, &job);
  }
  json_decref(ended);
  return status;
}

ExitStatus verb_abort(Ctl *ctl) {
  g_auto(Failure) failure = {0};
  json_t *reply = NULL;
  JobView job;
  ExitStatus status = EXIT_DONE;

  interrupt_catch();
  /* Repeating an abort does no harm either. */
  if (!ctl_call_again(ctl, "io.handoffd.Agent.Abort", json_pack("{s:s}", "job", ctl->options.args[0]), &reply,
                      &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  if (ctl->options.json)
    term_print_json(&ctl->term, reply);
  if (!job_view_read(json_object_get(reply, "job"), &job)) {
    failure_set_own(&failure, FAILURE_PROTOCOL, "Abort gave no job that can be understood.");
    status = failure_report(&failure, &ctl->term, ctl->options.json);
  } else if (!ctl->options.no_wait) {
    g_autofree char *id = g_strdup(job.id);

    status = wait_for_abort(ctl, id);
  } else if (!ctl->options.json) {
    term_print(&ctl->term,
               "The abort of job %s is under way: handoffctl watch %.8s tells what comes of it.\n", job.id,
               job.id);
  }
  json_decref(reply);
  return status;
}

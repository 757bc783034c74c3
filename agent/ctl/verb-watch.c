/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl watch, abort, complete and settle: acting on and following an existing job. */
#include "agent/ctl/call.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/interrupt.h"

#include <string.h>

/* Reports why following ended. A signal is not an error. */
static ExitStatus report_follow(Ctl *ctl, const Failure *failure) {
  if (interrupt_pending() == 0 || ctl->options.json)
    return failure_report(failure, &ctl->term, ctl->options.json);
  term_print(&ctl->term, "No longer watching; migrations in progress continue.\n");
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

/* The abort succeeded if the domain ends up on the source, whatever stopped the migration first. */
static ExitStatus abort_status(const JobView *job) {
  if (job->phase == MIG_PHASE_ABORTED)
    return EXIT_DONE;
  if (job->phase == MIG_PHASE_FAILED && g_strcmp0(job->running_at, "source") == 0)
    return EXIT_DONE;
  return EXIT_FAILED;
}

/* A request about a job that the agent has accepted; what remains is to wait. `what` names it. */
typedef struct Asked {
  const char *what;
  const char *too_late; /* printed if the migration succeeded nevertheless; NULL: success was the aim */
  ExitStatus (*status_of)(const JobView *job);
} Asked;

static ExitStatus wait_for_end(Ctl *ctl, const char *id, const Asked *asked) {
  g_auto(Failure) failure = {0};
  json_t *ended = NULL;
  ExitStatus status = EXIT_INTERNAL;
  JobView job;

  if (!follow_job(ctl, id, &ended, &failure))
    return report_follow(ctl, &failure);
  if (job_view_read(ended, &job)) {
    status = asked->status_of(&job);
    if (!ctl->options.json && asked->too_late && job.phase == MIG_PHASE_SUCCEEDED)
      term_print(&ctl->term, "%s", asked->too_late);
    if (!ctl->options.json)
      follow_summary(&ctl->term, &job);
  }
  json_decref(ended);
  return status;
}

static ExitStatus await(Ctl *ctl, json_t *reply, const Asked *asked) {
  g_auto(Failure) failure = {0};
  JobView job;

  if (ctl->options.json)
    term_print_json(&ctl->term, reply);
  if (!job_view_read(json_object_get(reply, "job"), &job)) {
    failure_set_own(&failure, FAILURE_PROTOCOL, "the reply contains no valid job.");
    return failure_report(&failure, &ctl->term, ctl->options.json);
  }
  if (!ctl->options.no_wait)
    return wait_for_end(ctl, job.id, asked);
  if (!ctl->options.json)
    term_print(&ctl->term, "Requested the %s of job %s. Follow it with handoffctl watch %.8s.\n", asked->what,
               job.id, job.id);
  return EXIT_DONE;
}

ExitStatus verb_abort(Ctl *ctl) {
  static const Asked asked = {"abort", "Too late: the migration had already completed.\n", abort_status};
  g_auto(Failure) failure = {0};
  json_t *parameters = json_pack("{s:s}", "job", ctl->options.args[0]), *reply = NULL;
  ExitStatus status;

  interrupt_catch();
  /* An abort is safe to repeat. */
  if (!ctl_call_again(ctl, "io.handoffd.Agent.Abort", parameters, &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  status = await(ctl, reply, &asked);
  json_decref(reply);
  return status;
}

static ExitStatus complete_status(const JobView *job) {
  return exit_status_of_job(job->phase, job->cause);
}

ExitStatus verb_complete(Ctl *ctl) {
  static const Asked asked = {"completion", NULL, complete_status};
  g_auto(Failure) failure = {0};
  json_t *parameters = json_pack("{s:s, s:s}", "job", ctl->options.args[0], "by", ctl->options.by);
  json_t *reply = NULL;
  ExitStatus status;

  interrupt_catch();
  /* Not repeated: if the first call was carried out, a second one is refused, which would look like a failure. */
  if (!ctl_call(ctl, "io.handoffd.Agent.Complete", parameters, &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  status = await(ctl, reply, &asked);
  json_decref(reply);
  return status;
}

ExitStatus verb_settle(Ctl *ctl) {
  static const Asked asked = {"settlement", NULL, complete_status};
  g_auto(Failure) failure = {0};
  json_t *parameters =
      json_pack("{s:s, s:b}", "job", ctl->options.args[0], "ran_at_target", (int)ctl->options.ran);
  json_t *reply = NULL;
  ExitStatus status;

  interrupt_catch();
  if (!ctl_call_again(ctl, "io.handoffd.Agent.Settle", parameters, &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  status = await(ctl, reply, &asked);
  json_decref(reply);
  return status;
}

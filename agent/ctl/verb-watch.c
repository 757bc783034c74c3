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

/* The abort succeeded if the domain ends up on the source, whatever stopped the migration first. */
static ExitStatus abort_status(const JobView *job) {
  if (job->phase == MIG_PHASE_ABORTED)
    return EXIT_DONE;
  if (job->phase == MIG_PHASE_FAILED && g_strcmp0(job->running_at, "source") == 0)
    return EXIT_DONE;
  return EXIT_FAILED;
}

static ExitStatus usual_status(const JobView *job) {
  return exit_status_of_job(job->phase, job->cause);
}

/* A request about a job that the agent has accepted; what remains is to wait. `what` names it. */
static const struct Asked {
  const char *what;
  const char *too_late; /* printed if the migration succeeded nevertheless; NULL: success was the aim */
  ExitStatus (*status_of)(const JobView *job);
} asked[VERB_COUNT] = {
    [VERB_WATCH] = {NULL, NULL, usual_status},
    [VERB_ABORT] = {"abort", "Too late: the migration had already completed.\n", abort_status},
    [VERB_COMPLETE] = {"completion", NULL, usual_status},
    [VERB_SETTLE] = {"settlement", NULL, usual_status},
};

static ExitStatus wait_for_end(Ctl *ctl, const char *id) {
  const struct Asked *wanted = &asked[ctl->options.verb];
  g_auto(Failure) failure = {0};
  json_t *ended = NULL;
  ExitStatus status = EXIT_INTERNAL;
  JobView job;

  if (!follow_job(ctl, id, &ended, &failure))
    return report_follow(ctl, &failure);
  if (job_view_read(ended, &job)) {
    status = wanted->status_of(&job);
    if (!ctl->options.json && wanted->too_late && job.phase == MIG_PHASE_SUCCEEDED)
      term_print(&ctl->term, "%s", wanted->too_late);
    if (!ctl->options.json)
      follow_summary(&ctl->term, &job);
  }
  json_decref(ended);
  return status;
}

ExitStatus verb_watch(Ctl *ctl) {
  interrupt_catch();
  return wait_for_end(ctl, ctl->options.args[0]);
}

static ExitStatus await(Ctl *ctl, json_t *reply) {
  JobView job;

  ctl_print_json(ctl, reply);
  if (!job_view_read(json_object_get(reply, "job"), &job))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply contains no valid job.");
  if (!ctl->options.no_wait)
    return wait_for_end(ctl, job.id);
  if (!ctl->options.json)
    term_print(&ctl->term, "Requested the %s of job %s. Follow it with handoffctl watch %.8s.\n",
               asked[ctl->options.verb].what, job.id, job.id);
  return EXIT_DONE;
}

ExitStatus verb_abort(Ctl *ctl) {
  interrupt_catch();
  /* An abort is safe to repeat. */
  return ctl_ask(ctl, ctl_call_again, "io.handoffd.Agent.Abort",
                 json_pack("{s:s}", "job", ctl->options.args[0]), await);
}

ExitStatus verb_complete(Ctl *ctl) {
  interrupt_catch();
  /* Not repeated: if the first call was carried out, a second one is refused, which would look like a failure. */
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Complete",
                 json_pack("{s:s, s:s}", "job", ctl->options.args[0], "by", ctl->options.by), await);
}

ExitStatus verb_settle(Ctl *ctl) {
  interrupt_catch();
  return ctl_ask(ctl, ctl_call_again, "io.handoffd.Agent.Settle",
                 json_pack("{s:s, s:b}", "job", ctl->options.args[0], "ran_at_target", (int)ctl->options.ran),
                 await);
}

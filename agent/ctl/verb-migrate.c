/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl migrate: starts a migration and follows it. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/interrupt.h"

static ExitStatus say_detached(Ctl *ctl, const Failure *failure, const JobView *job) {
  if (ctl->options.json)
    return failure_report(failure, &ctl->term, true);
  term_print(&ctl->term,
             "Detached; the migration of %s continues.\n"
             "  follow it: handoffctl watch %.8s\n"
             "  abort it:  handoffctl abort %.8s\n",
             job->domain, job->id, job->id);
  return failure->status;
}

static bool start(Ctl *ctl, json_t **ret_reply, JobView *ret_job, Failure *failure) {
  const Options *options = &ctl->options;
  g_autofree char *made_up = g_uuid_string_random();
  const char *key = options->request_key ? options->request_key : made_up;
  json_t *policy = policy_to_json(&options->policy, options->policy.set);
  /* s* and o*: absent when NULL. */
  json_t *parameters = json_pack("{s:s, s:s, s:s*, s:s*, s:o*, s:s}", "domain", options->args[0], "target",
                                 options->args[1], "migrate_uri", options->migrate_uri, "policy_name",
                                 options->policy_name, "policy", policy, "request_key", key);

  if (options->even_if_cordoned)
    json_object_set_new(parameters, "even_if_cordoned", json_true());
  /* With the key, repeating the call yields the same job: a lost reply does no harm. */
  if (!ctl_call_again(ctl, "io.handoffd.Agent.Start", parameters, ret_reply, failure)) {
    if (interrupt_pending() != 0) {
      g_autofree char *text = g_strdup_printf(
          "the agent has not answered yet. If it accepted the migration, the migration continues: "
          "handoffctl list --domain %s",
          options->args[0]);
      failure_set_signal(failure, interrupt_pending(), text);
    }
    return false;
  }
  if (job_view_read(json_object_get(*ret_reply, "job"), ret_job))
    return true;
  failure_set_own(failure, FAILURE_PROTOCOL, "the reply to Start contains no valid job.");
  json_decref(*ret_reply);
  return false;
}

static void say_started(Ctl *ctl, json_t *reply, const JobView *job) {
  Term *term = &ctl->term;

  if (ctl->options.json) {
    term_print_json(term, reply);
    return;
  }
  if (json_is_false(json_object_get(reply, "created")))
    term_print(term, "Job %s: migration of %s to %s, as requested earlier with this request key.\n", job->id,
               job->domain, job_view_target(job));
  else
    term_print(term, "Job %s: migration of %s to %s.\n", job->id, job->domain, job_view_target(job));
  if (ctl->options.detach)
    term_print(term, "  follow it: handoffctl watch %.8s\n", job->id);
  fflush(term->out);
}

ExitStatus verb_migrate(Ctl *ctl) {
  g_auto(Failure) failure = {0};
  json_t *reply = NULL, *ended = NULL;
  JobView job, last;
  ExitStatus status;

  interrupt_catch();
  if (!start(ctl, &reply, &job, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  say_started(ctl, reply, &job);
  if (ctl->options.detach) {
    json_decref(reply);
    return EXIT_DONE;
  }

  if (!follow_job(ctl, job.id, &ended, &failure)) {
    status = interrupt_pending() != 0 ? say_detached(ctl, &failure, &job)
                                      : failure_report(&failure, &ctl->term, ctl->options.json);
  } else {
    job_view_read(ended, &last);
    if (!ctl->options.json)
      follow_summary(&ctl->term, &last);
    status = exit_status_of_job(last.phase, last.cause);
    json_decref(ended);
  }
  json_decref(reply);
  return status;
}

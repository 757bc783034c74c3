/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl cordon and uncordon: make this node refuse new work, or accept it again. */
#include "agent/ctl/call.h"
#include "agent/ctl/failure.h"

static ExitStatus change(Ctl *ctl, const char *method, json_t *parameters, const char *done) {
  g_auto(Failure) failure = {0};
  json_t *reply = NULL;

  if (!ctl_call(ctl, method, parameters, &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  if (ctl->options.json)
    term_print_json(&ctl->term, reply);
  else
    term_print(&ctl->term, "%s\n", done);
  json_decref(reply);
  return EXIT_DONE;
}

ExitStatus verb_cordon(Ctl *ctl) {
  g_autofree char *reason = ctl->options.args[0] ? g_strjoinv(" ", ctl->options.args) : NULL;

  /* s*: absent when NULL. */
  return change(ctl, "io.handoffd.Agent.Cordon", json_pack("{s:s*}", "reason", reason),
                "This node no longer accepts new work; jobs accepted earlier continue.");
}

ExitStatus verb_uncordon(Ctl *ctl) {
  return change(ctl, "io.handoffd.Agent.Uncordon", json_object(), "This node accepts new work again.");
}

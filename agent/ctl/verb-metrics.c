/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl metrics: metrics in Prometheus text format. */
#include "agent/ctl/call.h"
#include "agent/ctl/failure.h"

ExitStatus verb_metrics(Ctl *ctl) {
  g_auto(Failure) failure = {0};
  json_t *reply = NULL;

  if (!ctl_call(ctl, "io.handoffd.Agent.GetMetrics", json_object(), &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  if (ctl->options.json)
    term_print_json(&ctl->term, reply);
  else
    term_print(&ctl->term, "%s", json_string_of(reply, "text"));
  json_decref(reply);
  return EXIT_DONE;
}

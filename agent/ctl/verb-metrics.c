/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl metrics: metrics in Prometheus text format. */
#include "agent/ctl/call.h"
#include "agent/ctl/failure.h"

static ExitStatus print_metrics(Ctl *ctl, json_t *reply) {
  if (!ctl_print_json(ctl, reply))
    term_print(&ctl->term, "%s", json_string_of(reply, "text"));
  return EXIT_DONE;
}

ExitStatus verb_metrics(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.GetMetrics", json_object(), print_metrics);
}

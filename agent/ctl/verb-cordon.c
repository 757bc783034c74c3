/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl cordon and uncordon: make this node refuse new work, or accept it again. */
#include "agent/ctl/call.h"
#include "agent/ctl/failure.h"

static ExitStatus print_cordoned(Ctl *ctl, json_t *reply) {
  if (!ctl_print_json(ctl, reply))
    term_print(&ctl->term, "This node no longer accepts new work; jobs accepted earlier continue.\n");
  return EXIT_DONE;
}

ExitStatus verb_cordon(Ctl *ctl) {
  g_autofree char *reason = ctl->options.args[0] ? g_strjoinv(" ", ctl->options.args) : NULL;

  /* s*: absent when NULL. */
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Cordon", json_pack("{s:s*}", "reason", reason),
                 print_cordoned);
}

static ExitStatus print_uncordoned(Ctl *ctl, json_t *reply) {
  if (!ctl_print_json(ctl, reply))
    term_print(&ctl->term, "This node accepts new work again.\n");
  return EXIT_DONE;
}

ExitStatus verb_uncordon(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Uncordon", json_object(), print_uncordoned);
}

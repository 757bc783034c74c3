/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl check: everything that prevents a migration. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/findings.h"

static void add_count(GString *text, unsigned n, const char *what) {
  if (n > 0)
    g_string_append_printf(text, "%s %u %s%s", text->len > 0 ? "," : ":", n, what, n == 1 ? "" : "s");
}

/* Waiting helps only if every blocker is transient. */
static void print_answer(Ctl *ctl, bool can_move, const FindingsCount *count) {
  g_autoptr(GString) text = g_string_new(NULL);

  add_count(text, count->blockers, "blocker");
  add_count(text, count->warnings, "warning");
  if (count->transient > 0 && count->transient == count->blockers)
    g_string_append(text, "; waiting may help");
  term_print(&ctl->term, "%s %s to %s%s.\n", ctl->options.args[0],
             can_move ? "can be migrated" : "cannot be migrated", ctl->options.args[1], text->str);
}

static ExitStatus take_reply(Ctl *ctl, json_t *reply) {
  json_t *findings = json_object_get(reply, "findings"), *can_move = json_object_get(reply, "can_move");
  FindingsCount count = findings_count(findings);

  if (!json_is_array(findings) || !json_is_boolean(can_move))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Check is not valid.");
  if (!ctl_print_json(ctl, reply)) {
    print_answer(ctl, json_is_true(can_move), &count);
    findings_print(&ctl->term, findings, false);
  }
  return json_is_true(can_move) ? EXIT_DONE : EXIT_REFUSED;
}

static json_t *parameters_of(const Options *options) {
  /* s* and o*: absent when NULL. */
  json_t *parameters = json_pack("{s:s, s:s, s:s*, s:o*}", "domain", options->args[0], "target",
                                 options->args[1], "policy_name", options->policy_name, "policy",
                                 policy_to_json(&options->policy, options->policy.set));

  if (options->even_if_cordoned)
    json_object_set_new(parameters, "even_if_cordoned", json_true());
  return parameters;
}

ExitStatus verb_check(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Check", parameters_of(&ctl->options), take_reply);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl forecast: how a migration would go, without starting it. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"
#include "agent/ctl/progress.h"

/* The agent measures the guest for about 4 s, and may have to wait for libvirt first. */
G_STATIC_ASSERT(CALL_TIMEOUT_MS >= 20000);

/* The message lists the ways, separated by "; ": print one per line. */
static void print_ways(Term *term, const char *message) {
  g_auto(GStrv) ways = g_strsplit(message, "; ", -1);

  for (unsigned i = 0; ways[i]; i++)
    print_field(term, i == 0 ? "ways" : "", "%s", ways[i]);
}

static void print_deadline(Term *term, int64_t deadline_ms) {
  if (deadline_ms >= 0)
    print_field(term, "deadline", "%s", format_duration_ms(deadline_ms).text);
  else
    print_field(term, "deadline", "none");
}

static void print_forecast(Ctl *ctl, json_t *reply, MigStage way, bool meets_policy) {
  Term *term = &ctl->term;
  const char *domain = ctl->options.args[0], *target = ctl->options.args[1];
  const char *message = json_string_of(reply, "message");
  int64_t total_ms = json_int_of(reply, "total_time_ms"), pause_ms = json_int_of(reply, "pause_ms");

  if (way == MIG_STAGE_NONE) {
    term_print(term, "No permitted way completes a migration of %s to %s.\n", domain, target);
  } else {
    term_print(term, "%s would be migrated to %s by %s in about %s, with a pause of about %s.\n", domain,
               target, progress_way_words(way), format_duration_ms(total_ms).text,
               format_duration_ms(pause_ms).text);
    print_field(term, "way", "%s", progress_way_words(way));
    print_field(term, "total time", "%s", format_duration_ms(total_ms).text);
    print_field(term, "pause", "%s", format_duration_ms(pause_ms).text);
  }
  print_field(term, "floor", "%s: the shortest pause of pre-copy on this link",
              format_duration_ms(json_int_of(reply, "floor_ms")).text);
  print_deadline(term, json_int_of(reply, "deadline_ms"));
  print_field(term, "dirty rate", "%s", format_rate(json_int_of(reply, "dirty_rate_bytes_per_s")).text);
  print_field(term, "bandwidth", "%s", format_rate(json_int_of(reply, "bandwidth_bytes_per_s")).text);
  if (message)
    print_ways(term, message);
  if (!meets_policy)
    print_field(term, "next", "%s", cause_next_step(MIG_CAUSE_NOT_CONVERGING));
}

static json_t *parameters_of(const Options *options) {
  /* s* and o*: absent when NULL. */
  json_t *parameters = json_pack("{s:s, s:s, s:s*, s:o*}", "domain", options->args[0], "target",
                                 options->args[1], "policy_name", options->policy_name, "policy",
                                 policy_to_json(&options->policy, options->policy.set));

  if (options->bandwidth_bytes_per_s > 0)
    json_object_set_new(parameters, "bandwidth_bytes_per_s",
                        json_integer((json_int_t)options->bandwidth_bytes_per_s));
  return parameters;
}

static ExitStatus take_reply(Ctl *ctl, json_t *reply) {
  const char *name = json_string_of(reply, "way");
  int way = name ? mig_stage_from_name(name) : MIG_ENUM_UNKNOWN;
  json_t *meets_policy = json_object_get(reply, "meets_policy");

  if (way == MIG_ENUM_UNKNOWN || !json_is_boolean(meets_policy))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Forecast is not valid.");
  if (!ctl_print_json(ctl, reply))
    print_forecast(ctl, reply, (MigStage)way, json_is_true(meets_policy));
  return json_is_true(meets_policy) ? EXIT_DONE : EXIT_REFUSED;
}

/* The line that says what takes so long must be gone before anything else is printed. */
static bool call_and_clear(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_reply,
                           Failure *failure) {
  bool ok = ctl_call(ctl, method, parameters, ret_reply, failure);

  term_clear(&ctl->term);
  return ok;
}

ExitStatus verb_forecast(Ctl *ctl) {
  if (!ctl->options.json && ctl->term.redraws)
    term_draw(&ctl->term, "Measuring the guest's dirty rate for a few seconds...");
  return ctl_ask(ctl, call_and_clear, "io.handoffd.Agent.Forecast", parameters_of(&ctl->options), take_reply);
}

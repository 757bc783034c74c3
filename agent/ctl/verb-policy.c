/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl policy: the goals of a migration, and where each of them comes from. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/jobview.h"
#include "agent/ctl/print.h"

#include <string.h>

/* The source of a goal in words. */
static char *describe_source(json_t *goal) {
  static const struct {
    const char *source;
    const char *words; /* %s: the policy's name */
  } rows[] = {
      {"builtin", "built-in default"},
      {"node", "[Policy]"},
      {"matched", "[Policy %s], chosen by Match="},
      {"named", "[Policy %s], as requested"},
      {"request", "request"},
  };
  const char *source = json_string_of(goal, "source"), *name = json_string_of(goal, "policy_name");

  for (size_t i = 0; source && i < G_N_ELEMENTS(rows); i++) {
    const char *hole = strstr(rows[i].words, "%s");

    if (strcmp(rows[i].source, source) != 0)
      continue;
    if (!hole)
      return g_strdup(rows[i].words);
    return g_strdup_printf("%.*s%s%s", (int)(hole - rows[i].words), rows[i].words, name ? name : "?",
                           hole + 2);
  }
  return g_strdup(or_dash(source));
}

static void print_goals(Term *term, json_t *goals) {
  static const char *const titles[] = {"KEY", "VALUE", "SOURCE", "LOCATION", NULL};
  g_autoptr(Table) table = table_new(titles);
  json_t *goal;
  size_t i;

  json_array_foreach (goals, i, goal) {
    g_autofree char *source = describe_source(goal);

    table_add(table, "%s", or_dash(json_string_of(goal, "key")));
    table_add(table, "%s", or_dash(json_string_of(goal, "value")));
    table_add(table, "%s", source);
    table_add(table, "%s", or_dash(json_string_of(goal, "place")));
  }
  table_print(table, term);
}

static char *describe_conditions(json_t *conditions) {
  g_autoptr(GString) text = g_string_new(NULL);
  json_t *condition;
  size_t i;

  json_array_foreach (conditions, i, condition) {
    json_t *holds = json_object_get(condition, "holds");

    g_string_append_printf(text, "%s%s%s", i > 0 ? ", " : "", or_dash(json_string_of(condition, "text")),
                           json_is_false(holds)  ? " (no)"
                           : json_is_true(holds) ? " (yes)"
                                                 : "");
  }
  return text->len > 0 ? g_string_free(g_steal_pointer(&text), FALSE) : g_strdup("-");
}

static void print_policies(Term *term, json_t *policies) {
  static const char *const titles[] = {"POLICY", "MATCH", "CONDITIONS", "LOCATION", NULL};
  g_autoptr(Table) table = table_new(titles);
  json_t *policy;
  size_t i;

  json_array_foreach (policies, i, policy) {
    g_autofree char *conditions = describe_conditions(json_object_get(policy, "conditions"));

    table_add(table, "%s", or_dash(json_string_of(policy, "name")));
    table_add(table, "%s",
              json_bool_of(policy, "chosen")    ? "chosen"
              : json_bool_of(policy, "matches") ? "yes, but less specific"
                                                : "no");
    table_add(table, "%s", conditions);
    table_add(table, "%s", or_dash(json_string_of(policy, "place")));
  }
  table_print(table, term);
}

static ExitStatus print_answer(Ctl *ctl, json_t *reply) {
  Term *term = &ctl->term;
  json_t *domain = json_object_get(reply, "domain"), *policies = json_object_get(reply, "policies");

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (domain)
    term_print(term, "Goals for a migration of %s (%s):\n", or_dash(json_string_of(domain, "name")),
               or_dash(json_string_of(domain, "uuid")));
  else
    term_print(term, "Goals for a domain that matches no policy:\n");
  print_goals(term, json_object_get(reply, "goals"));
  if (json_array_size(policies) > 0) {
    term_print(term, "\n");
    print_policies(term, policies);
  }
  return EXIT_DONE;
}

ExitStatus verb_policy(Ctl *ctl) {
  const Options *options = &ctl->options;
  /* s* and o*: absent when NULL. */
  json_t *parameters =
      json_pack("{s:s*, s:s*, s:o*}", "domain", options->args[0], "policy_name", options->policy_name,
                "policy", policy_to_json(&options->policy, options->policy.set));

  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.GetPolicy", parameters, print_answer);
}

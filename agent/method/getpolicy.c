/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetPolicy: the goals that a migration would have, and where each of them comes from. */
#include "agent/method/methods.h"

#include "agent/request/params.h"

#include <string.h>

typedef struct PolicyCall {
  Methods *methods;
  VarlinkCall *call;
  char *domain; /* or NULL */
  GoalsParam asked;
} PolicyCall;

static void question_free(PolicyCall *question) {
  if (!question)
    return;
  varlink_call_unref(question->call);
  g_free(question->domain);
  goals_param_clear(&question->asked);
  g_free(question);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyCall, question_free)

static json_t *goal_to_json(const Goals *goals, const Config *config, MigPolicyKey key) {
  GoalSource source = (GoalSource)goals->sources[key];
  const ConfigPolicy *policy = source == GOAL_SOURCE_MATCHED ? goals->matched
                               : source == GOAL_SOURCE_NAMED ? goals->named
                                                             : NULL;
  char value[64];
  json_t *object;

  mig_policy_format(&goals->policy, key, value, sizeof value);
  object = json_pack("{ss ss ss}", "key", mig_policy_key_info(key)->name, "value", value, "source",
                     goal_source_name(source));
  json_set_string(object, "policy_name", policy ? policy->name : NULL);
  json_set_string(object, "place", goals_place(goals, config, key));
  return object;
}

static json_t *named_to_json(const ConfigPolicy *policy, const MigMatchFacts *facts, bool chosen) {
  json_t *conditions = json_array();

  for (guint i = 0; i < policy->matches->len; i++) {
    json_t *condition = json_pack("{ss}", "text", policy->match_texts->pdata[i]);

    if (facts)
      json_object_set_new(condition, "holds",
                          json_boolean(mig_match_holds(&g_array_index(policy->matches, MigMatch, i), facts)));
    json_array_append_new(conditions, condition);
  }
  return json_pack("{ss ss so sb sb}", "name", policy->name, "place", policy->place, "conditions", conditions,
                   "matches", (int)(facts && config_policy_matches(policy, facts)), "chosen", (int)chosen);
}

static gint compare_names(gconstpointer a, gconstpointer b) {
  return strcmp((*(const ConfigPolicy *const *)a)->name, (*(const ConfigPolicy *const *)b)->name);
}

/* `facts` may be NULL. */
static void answer(const PolicyCall *question, const MigDomainFacts *facts) {
  const Config *config = question->methods->config;
  MigMatchFacts match_facts = facts ? params_match_facts(facts) : (MigMatchFacts){0};
  g_autoptr(GPtrArray) sorted = g_ptr_array_new();
  json_t *goals_json, *policies, *reply;
  Goals goals;

  if (!params_resolve_goals(question->methods->requests, question->call, &question->asked, facts, &goals))
    return;
  goals_json = json_array();
  policies = json_array();
  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++)
    json_array_append_new(goals_json, goal_to_json(&goals, config, (MigPolicyKey)key));
  for (guint i = 0; i < config->policies->len; i++)
    g_ptr_array_add(sorted, config->policies->pdata[i]);
  g_ptr_array_sort(sorted, compare_names);
  for (guint i = 0; i < sorted->len; i++)
    json_array_append_new(policies, named_to_json(sorted->pdata[i], facts ? &match_facts : NULL,
                                                  sorted->pdata[i] == goals.matched));
  reply = json_pack("{so so}", "goals", goals_json, "policies", policies);
  if (facts)
    json_object_set_new(reply, "domain", json_pack("{ss ss}", "name", facts->name, "uuid", facts->uuid));
  varlink_call_reply(question->call, reply, false);
}

static void on_domain(gpointer task, const GError *error, gpointer user_data) {
  const LookupAnswer *found = task;
  g_autoptr(PolicyCall) question = user_data;

  if (error)
    reply_lookup_error(question->methods->requests, question->call, question->domain, error);
  else
    answer(question, &found->facts);
}

void methods_get_policy(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(PolicyCall) question = g_new0(PolicyCall, 1);

  question->methods = user_data;
  question->call = varlink_call_ref(call);
  question->domain = g_strdup(json_string_of(parameters, "domain"));
  if (!params_take_goals(question->methods->requests, call, parameters, &question->asked))
    return;
  if (!question->domain) {
    answer(question, NULL);
    return;
  }
  lookup_domain(question->methods->lookups, question->domain, false, on_domain, question);
  (void)g_steal_pointer(&question);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The goals of a migration, resolved. */
#include "agent/config/goals.h"

#include "libmigrate/core/table.h"

static const char *const source_names[] = {
    [GOAL_SOURCE_DEFAULT] = "builtin", [GOAL_SOURCE_NODE] = "node",       [GOAL_SOURCE_MATCHED] = "matched",
    [GOAL_SOURCE_NAMED] = "named",     [GOAL_SOURCE_REQUEST] = "request", [GOAL_SOURCE_TUNED] = "tuned",
};
TABLE_COVERS(source_names, GOAL_SOURCE_COUNT);

const char *goal_source_name(GoalSource source) {
  return table_name(source_names, GOAL_SOURCE_COUNT, (int)source);
}

int goal_source_from_name(const char *name) {
  return table_find(source_names, GOAL_SOURCE_COUNT, name);
}

static void lay_over(Goals *goals, const MigPolicy *over, GoalSource source) {
  for (unsigned key = 0; over && key < MIG_POLICY_KEY_COUNT; key++)
    if (over->set & (UINT32_C(1) << key))
      goals->sources[key] = (uint8_t)source;
  if (over)
    mig_policy_merge(&goals->policy, over);
}

void goals_resolve(const Config *config, const ConfigPolicy *named, const MigPolicy *over,
                   const MigMatchFacts *facts, Goals *ret_goals) {
  Goals goals = {.named = named, .matched = facts ? config_match_policy(config, facts) : NULL};

  mig_policy_init(&goals.policy);
  lay_over(&goals, &config->node_policy.policy, GOAL_SOURCE_NODE);
  lay_over(&goals, goals.matched ? &goals.matched->policy : NULL, GOAL_SOURCE_MATCHED);
  lay_over(&goals, named ? &named->policy : NULL, GOAL_SOURCE_NAMED);
  lay_over(&goals, over, GOAL_SOURCE_REQUEST);
  *ret_goals = goals;
}

const char *goals_place(const Goals *goals, const Config *config, MigPolicyKey key) {
  switch ((GoalSource)goals->sources[key]) {
  case GOAL_SOURCE_NODE:
    return config->node_policy.places[key];
  case GOAL_SOURCE_MATCHED:
    return goals->matched->places[key];
  case GOAL_SOURCE_NAMED:
    return goals->named->places[key];
  default:
    return NULL;
  }
}

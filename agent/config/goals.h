/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The goals of a migration, resolved: the value of each key, and the layer that it came from. */
#pragma once

#include "agent/config/config.h"

/* Later layers override earlier ones, key by key. */
typedef enum GoalSource {
  GOAL_SOURCE_DEFAULT, /* built in */
  GOAL_SOURCE_NODE,    /* [Policy] */
  GOAL_SOURCE_MATCHED, /* the [Policy NAME] whose Match= fits the domain best */
  GOAL_SOURCE_NAMED,   /* the [Policy NAME] that the request names */
  GOAL_SOURCE_REQUEST,
  GOAL_SOURCE_TUNED, /* changed by Tune */
  GOAL_SOURCE_COUNT
} GoalSource;

/* As in the interface's type GoalSource; NULL out of range. */
const char *goal_source_name(GoalSource source);

/* The value of a name, or MIG_ENUM_UNKNOWN. */
int goal_source_from_name(const char *name);

typedef struct Goals {
  MigPolicy policy;
  uint8_t sources[MIG_POLICY_KEY_COUNT]; /* GoalSource */
  const ConfigPolicy *named, *matched;   /* borrowed from the configuration; NULL: none */
} Goals;

/* `named`, `over` (the request's own goals) and `facts` may be NULL; without `facts` no policy matches. */
void goals_resolve(const Config *config, const ConfigPolicy *named, const MigPolicy *over,
                   const MigMatchFacts *facts, Goals *ret_goals);

/* Where a goal was set: FILE:LINE, or NULL if not in a file. */
const char *goals_place(const Goals *goals, const Config *config, MigPolicyKey key);

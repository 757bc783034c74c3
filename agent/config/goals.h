/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The goals of a move, resolved: every key's value, and which layer it came from. */
#pragma once

#include "agent/config/config.h"

/* The later one wins, key by key. */
typedef enum GoalSource {
  GOAL_SOURCE_DEFAULT, /* built in */
  GOAL_SOURCE_NODE,    /* [Policy] */
  GOAL_SOURCE_MATCHED, /* the [Policy NAME] whose Match= fits the domain best */
  GOAL_SOURCE_NAMED,   /* the [Policy NAME] that the request names */
  GOAL_SOURCE_REQUEST,
  GOAL_SOURCE_TUNED, /* while the job was there */
  GOAL_SOURCE_COUNT
} GoalSource;

/* As in the interface's type GoalSource; NULL out of range. */
const char *goal_source_name(GoalSource source);

/* The value of a name, or MIG_ENUM_UNKNOWN. */
int goal_source_from_name(const char *name);

typedef struct Goals {
  MigPolicy policy;
  uint8_t sources[MIG_POLICY_KEY_COUNT]; /* GoalSource */
  const ConfigPolicy *named, *matched;   /* of the configuration, borrowed; NULL: none */
} Goals;

/* `named` and `over` (what the request itself gives) may be NULL; so may `facts`: then no policy matches. */
void goals_resolve(const Config *config, const ConfigPolicy *named, const MigPolicy *over,
                   const MigMatchFacts *facts, Goals *ret_goals);

/* Where a key of these goals stands: FILE:LINE, or NULL for what is of no file. */
const char *goals_place(const Goals *goals, const Config *config, MigPolicyKey key);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [Policy] and [Policy NAME]: goals, where each is set, and which domains they apply to. */
#pragma once

#include "libmigrate/core/match.h"
#include "libmigrate/core/policy.h"

#include <glib.h>

typedef struct ConfigPolicy {
  char *name;                         /* NULL: the node's default */
  char *place;                        /* FILE:LINE where its section was first opened, or NULL */
  MigPolicy policy;                   /* keys as in the interface, or in CamelCase */
  char *places[MIG_POLICY_KEY_COUNT]; /* FILE:LINE of each key that is set */
  GArray *matches;                    /* MigMatch, of Match=: all must hold */
  GPtrArray *match_texts;             /* char *: their texts */
  /* A Match= was not understood: the policy applies only by name, lest it match more domains than intended. */
  bool unmatched;
} ConfigPolicy;

void config_policy_init(ConfigPolicy *policy, const char *name);
void config_policy_clear(ConfigPolicy *policy);

/* Does it have Match= lines, all of them understood? */
bool config_policy_chooses(const ConfigPolicy *policy);

/* Does it match this domain? */
bool config_policy_matches(const ConfigPolicy *policy, const MigMatchFacts *facts);

/* Sets a key or adds a Match=, from a line of a file; an empty value restores the default. `place` is FILE:LINE. Returns NULL, or
 * the error in words. */
char *config_policy_set(ConfigPolicy *policy, const char *name, const char *value, const char *place);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [Policy] and [Policy NAME]: goals, where each of them stands, and which domains they are for. */
#pragma once

#include "libmigrate/core/match.h"
#include "libmigrate/core/policy.h"

#include <glib.h>

typedef struct ConfigPolicy {
  char *name;                         /* NULL: the node's default */
  char *place;                        /* FILE:LINE of its section, where it was opened first; or NULL */
  MigPolicy policy;                   /* keys as in the interface, or in CamelCase */
  char *places[MIG_POLICY_KEY_COUNT]; /* FILE:LINE of each key that is set */
  GArray *matches;                    /* MigMatch, of Match=: all must hold */
  GPtrArray *match_texts;             /* char *: their texts */
  bool
      unmatched; /* a Match= was not understood: it is for those alone who name it, not for more domains than meant */
} ConfigPolicy;

void config_policy_init(ConfigPolicy *policy, const char *name);
void config_policy_clear(ConfigPolicy *policy);

/* Is it for domains that it chooses itself? */
bool config_policy_chooses(const ConfigPolicy *policy);

/* Is it for this domain? */
bool config_policy_matches(const ConfigPolicy *policy, const MigMatchFacts *facts);

/* Sets a key, or adds a condition, from a line of a file; an empty value brings the default back. `place` is FILE:LINE. NULL, or
 * what is wrong, in words. */
char *config_policy_set(ConfigPolicy *policy, const char *name, const char *value, const char *place);

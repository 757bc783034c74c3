/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A policy in words: the defaults, and "max_pause_ms=4s allow_post_copy=yes" over them. */
#pragma once

#include "libmigrate/core/policy.h"

#include "tests/unit/core/rows.h"

static inline MigPolicy policy_of(const char *words) {
  MigPolicy policy;
  char copy[256], message[256];
  mig_policy_init(&policy);
  snprintf(copy, sizeof(copy), "%s", words ? words : "");
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    if (mig_policy_set_text(&policy, word, equals + 1, message, sizeof(message)) != MIG_POLICY_OK)
      fail_msg("%s", message);
  }
  return policy;
}

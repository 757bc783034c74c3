/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A policy as JSON, for both ends of a call and for records. */
#pragma once

#include "libmigrate/core/policy.h"

#include <jansson.h>

#define POLICY_ALL_KEYS UINT32_MAX

/* The interface's type Policy with these keys, a bit for each: policy->set, or all. NULL without any. */
json_t *policy_to_json(const MigPolicy *policy, uint32_t keys);

/* Parses a Policy; any key may be absent or null. On failure ret_key (static or borrowed from `object`) names the key, and
 * ret_message says what would be accepted. */
bool policy_from_json(json_t *object, MigPolicy *ret_policy, const char **ret_key, char *ret_message,
                      size_t message_size);

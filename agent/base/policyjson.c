/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A policy as JSON, for both ends of a call and for records. */
#include "agent/base/policyjson.h"

#include <glib.h>
#include <inttypes.h>

json_t *policy_to_json(const MigPolicy *policy, uint32_t keys) {
  json_t *object = keys ? json_object() : NULL;

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    uint64_t value = policy->values[key];
    json_t *json = NULL;

    if (!(keys & (UINT32_C(1) << key)))
      continue;
    switch (info->type) {
    case MIG_POLICY_TYPE_INT:
      json = json_integer((json_int_t)value); /* no key allows more than fits */
      break;
    case MIG_POLICY_TYPE_BOOL:
      json = json_boolean(value);
      break;
    case MIG_POLICY_TYPE_ENUM:
      json = json_string(info->enum_names[value]);
      break;
    }
    json_object_set_new_nocheck(object, info->name, json);
  }
  return object;
}

/* A number beyond all integers is beyond all limits, too; converting it could yield anything, such as 0 for no limit. */
static uint64_t count_of_number(json_t *value) {
  if (json_is_integer(value))
    return (uint64_t)json_integer_value(value);
  return json_real_value(value) < 9e18 ? (uint64_t)json_real_value(value) : UINT64_MAX;
}

static MigPolicyError policy_set_json(MigPolicy *policy, const MigPolicyKeyInfo *info, json_t *value,
                                      char *ret_message, size_t message_size) {
  switch (info->type) {
  case MIG_POLICY_TYPE_INT:
    if (!json_is_number(value) || json_number_value(value) < 0) {
      g_snprintf(ret_message, message_size, "%s takes a number from %" PRIu64 " to %" PRIu64, info->name,
                 info->min, info->max);
      return MIG_POLICY_ERROR_NOT_A_NUMBER;
    }
    return mig_policy_set(policy, info->key, count_of_number(value), ret_message, message_size);
  case MIG_POLICY_TYPE_BOOL:
    if (!json_is_boolean(value)) {
      g_snprintf(ret_message, message_size, "%s takes true or false", info->name);
      return MIG_POLICY_ERROR_NOT_A_BOOLEAN;
    }
    return mig_policy_set(policy, info->key, json_is_true(value), ret_message, message_size);
  case MIG_POLICY_TYPE_ENUM:
    return mig_policy_set_text(policy, info->name, json_is_string(value) ? json_string_value(value) : "",
                               ret_message, message_size);
  }
  return MIG_POLICY_ERROR_UNKNOWN_KEY;
}

bool policy_from_json(json_t *object, MigPolicy *ret_policy, const char **ret_key, char *ret_message,
                      size_t message_size) {
  MigPolicy policy;
  const char *key;
  json_t *value;

  mig_policy_init(&policy);
  json_object_foreach (object, key, value) {
    const MigPolicyKeyInfo *info = mig_policy_key_by_name(key);

    if (info && json_is_null(value))
      continue;
    *ret_key = key;
    if (!info) {
      g_snprintf(ret_message, message_size, "unknown key");
      return false;
    }
    if (policy_set_json(&policy, info, value, ret_message, message_size) != MIG_POLICY_OK)
      return false;
  }
  *ret_policy = policy;
  return true;
}

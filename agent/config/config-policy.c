/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [Policy] and [Policy NAME]: goals, where each is set, and which domains they apply to. */
#include "agent/config/config-policy.h"

#include <string.h>

/* The name of an interface key in a file: CamelCase, without the unit, which goes into the value.
 * max_downtime_ms=300 is MaxDowntime=300ms, completion_timeout_s_per_gib=150 is CompletionTimeoutPerGiB=150s,
 * bandwidth_bytes_per_s=33554432 is Bandwidth=32M. Case does not matter, so tls is TLS= as well. */
static const struct {
  const char *suffix;
  const char *becomes;
} unit_suffixes[] = {
    {"_bytes_per_s", ""}, {"_s_per_gib", "PerGiB"}, {"_ms", ""}, {"_s", ""}, {"_pct", ""},
};

void config_policy_init(ConfigPolicy *policy, const char *name) {
  *policy = (ConfigPolicy){.name = g_strdup(name)};
  mig_policy_init(&policy->policy);
  policy->matches = g_array_new(FALSE, FALSE, sizeof(MigMatch));
  policy->match_texts = g_ptr_array_new_with_free_func(g_free);
}

void config_policy_clear(ConfigPolicy *policy) {
  g_free(policy->name);
  g_free(policy->place);
  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++)
    g_free(policy->places[key]);
  g_array_unref(policy->matches);
  g_ptr_array_unref(policy->match_texts);
}

/* Which domains */

bool config_policy_chooses(const ConfigPolicy *policy) {
  return policy->matches->len > 0 && !policy->unmatched;
}

bool config_policy_matches(const ConfigPolicy *policy, const MigMatchFacts *facts) {
  for (guint i = 0; i < policy->matches->len; i++)
    if (!mig_match_holds(&g_array_index(policy->matches, MigMatch, i), facts))
      return false;
  return config_policy_chooses(policy);
}

static char *add_match(ConfigPolicy *policy, const char *value) {
  if (!policy->name)
    return g_strdup("Match= belongs in a [Policy NAME]: [Policy] applies to every domain");
  if (!*value) {
    g_array_set_size(policy->matches, 0);
    g_ptr_array_set_size(policy->match_texts, 0);
    policy->unmatched = false;
    return NULL;
  }
  char *text = g_strdup(value), message[300];
  MigMatch match;
  if (!mig_match_parse(text, &match, message, sizeof message)) {
    g_free(text);
    policy->unmatched = true;
    return g_strdup_printf(
        "Match= takes %s, not \"%.80s\"; until this is corrected the policy matches no domain", message,
        value);
  }
  g_ptr_array_add(policy->match_texts, text);
  g_array_append_val(policy->matches, match);
  return NULL;
}

/* Keys */

static void key_in_file_style(const MigPolicyKeyInfo *info, char *ret_name, size_t size) {
  g_autofree char *base = g_strdup(info->name);
  const char *end = "";
  for (size_t i = 0; i < G_N_ELEMENTS(unit_suffixes); i++)
    if (g_str_has_suffix(base, unit_suffixes[i].suffix)) {
      base[strlen(base) - strlen(unit_suffixes[i].suffix)] = '\0';
      end = unit_suffixes[i].becomes;
      break;
    }
  size_t used = 0;
  bool start = true;
  for (const char *p = base; *p && used + 1 < size; p++) {
    if (*p != '_')
      ret_name[used++] = start ? g_ascii_toupper(*p) : *p;
    start = *p == '_';
  }
  ret_name[used] = '\0';
  g_strlcat(ret_name, end, size);
}

static const MigPolicyKeyInfo *find_policy_key(const char *name) {
  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info(key);
    char camel[64];
    key_in_file_style(info, camel, sizeof(camel));
    if (g_ascii_strcasecmp(name, info->name) == 0 || g_ascii_strcasecmp(name, camel) == 0)
      return info;
  }
  return NULL;
}

static char *list_keys(void) {
  g_autoptr(GString) names = g_string_new(NULL);
  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    char camel[64];
    key_in_file_style(mig_policy_key_info(key), camel, sizeof(camel));
    g_string_append_printf(names, "%s=, ", camel);
  }
  g_string_append(names, "Match=");
  return g_string_free(g_steal_pointer(&names), FALSE);
}

char *config_policy_set(ConfigPolicy *policy, const char *name, const char *value, const char *place) {
  if (g_ascii_strcasecmp(name, "Match") == 0)
    return add_match(policy, value);
  const MigPolicyKeyInfo *info = find_policy_key(name);
  if (!info) {
    g_autofree char *names = list_keys();
    return g_strdup_printf("unknown key %.80s= in a [Policy]; known keys: %s", name, names);
  }
  if (!*value) {
    policy->policy.values[info->key] = info->default_value;
    policy->policy.set &= ~(UINT32_C(1) << info->key);
    g_clear_pointer(&policy->places[info->key], g_free);
    return NULL;
  }
  char message[256];
  if (mig_policy_set_text(&policy->policy, info->name, value, message, sizeof(message)) != MIG_POLICY_OK)
    return g_strdup(message);
  g_free(policy->places[info->key]);
  policy->places[info->key] = g_strdup(place);
  return NULL;
}

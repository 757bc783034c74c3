/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: its sections, their settings, and the warnings about what is not understood. */
#include "agent/config/config.h"

#include "agent/config/config-files.h"
#include "agent/config/config-values.h"
#include "libmigrate/core/uri.h"

#include <string.h>

/* A key of [Agent] or [Target NAME]. */
typedef struct Setting {
  const char *name;
  const char *default_text;
  ConfigParseFunc parse;
  size_t offset;
  ConfigRange range;
} Setting;

#define SECOND CONFIG_SECOND_MS
#define MINUTE CONFIG_MINUTE_MS
#define HOUR   CONFIG_HOUR_MS
#define DAY    CONFIG_DAY_MS

#define ROW(type, name, text, parser, field, ...)                                                            \
  {                                                                                                          \
    name, text, config_parse_##parser, offsetof(type, field), {                                              \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }
#define KEY(...)        ROW(Config, __VA_ARGS__)
#define TARGET_KEY(...) ROW(ConfigTarget, __VA_ARGS__)

static const Setting agent_keys[] = {
    KEY("MaxOutgoing", "2", count, max_outgoing, 1, 1000, 0),
    KEY("MaxPerTarget", "0", count, max_per_target, 0, 1000, 0),
    KEY("LinkBandwidth", "0", rate, link_bytes_per_s, 0, INT64_MAX, 0),
    KEY("MaxBandwidth", "0", rate, max_bandwidth_bytes_per_s, 0, UINT64_C(1) << 40, 0),
    KEY("MaxIncoming", "2", count, max_incoming, 1, 1000, 0),
    KEY("LeaseTimeout", "5min", ms, lease_timeout_ms, 1 * SECOND, 1 * DAY, SECOND),
    KEY("IncomingURI", "", libvirt_uri, incoming_uri, 0),
    KEY("IncomingMigrateURI", "", migrate_uri, incoming_migrate_uri, 0),
    KEY("MaxJobs", "10000", count, max_jobs, 1, 1000000, 0),
    KEY("KeepFinished", "1000", count, keep_finished, 0, 1000000, 0),
    KEY("KeepFinishedSec", "7d", s, keep_finished_s, 0, 3650 * DAY / SECOND, SECOND),
    KEY("PublicRead", "node", public_read, public_read, 0, 0, 0),
    KEY("Group", "handoff", group, group, 0, 0, 0),
    KEY("AllowTargets", "", allow_targets, allow_targets, 0),
    KEY("PollInterval", "400ms", ms, poll_interval_ms, 50, 10 * SECOND, 1),
    KEY("ConnectTimeout", "10s", ms, connect_timeout_ms, 100, 10 * MINUTE, SECOND),
    KEY("PrepareTimeout", "60s", ms, prepare_timeout_ms, 1 * SECOND, 1 * HOUR, SECOND),
    KEY("PendingTimeout", "15min", ms, pending_timeout_ms, 0, 7 * DAY, SECOND),
    KEY("UnschedulableTimeout", "5min", ms, unschedulable_timeout_ms, 0, 7 * DAY, SECOND),
    KEY("PriorityAging", "5min", ms, priority_aging_ms, 0, 7 * DAY, SECOND),
    KEY("EvaluateInterval", "1min", ms, evaluate_interval_ms, 0, 1 * DAY, SECOND),
    KEY("ProfileInterval", "15min", ms, profile_interval_ms, 0, 7 * DAY, SECOND),
    KEY("WatchInterval", "250ms", ms, watch_interval_ms, 10, 1 * MINUTE, 1),
    KEY("MetricsFile", "", path, metrics_file, 0),
    KEY("MetricsInterval", "15s", ms, metrics_interval_ms, 1 * SECOND, 1 * HOUR, SECOND),
};

static const Setting target_keys[] = {
    TARGET_KEY("LibvirtURI", "", libvirt_uri, libvirt_uri, 0),
    TARGET_KEY("MigrateURI", "", migrate_uri, migrate_uri, 0),
    TARGET_KEY("MaxOutgoing", "0", count, max_outgoing, 0, 1000, 0),
    TARGET_KEY("LinkBandwidth", "0", rate, link_bytes_per_s, 0, INT64_MAX, 0),
};

/* The object */

static void target_free(ConfigTarget *target) {
  g_free(target->name);
  g_free(target->libvirt_uri);
  g_free(target->migrate_uri);
  g_free(target->place);
  g_free(target);
}

static void policy_free(ConfigPolicy *policy) {
  config_policy_clear(policy);
  g_free(policy);
}

Config *config_new(void) {
  Config *config = g_new0(Config, 1);
  for (size_t i = 0; i < G_N_ELEMENTS(agent_keys); i++) {
    const Setting *key = &agent_keys[i];
    g_autofree char *bad = key->parse(key->default_text, &key->range, (char *)config + key->offset);
    g_assert(!bad);
  }
  config_policy_init(&config->node_policy, NULL);
  config->targets = g_ptr_array_new_with_free_func((GDestroyNotify)target_free);
  config->policies = g_ptr_array_new_with_free_func((GDestroyNotify)policy_free);
  config->warnings = g_ptr_array_new_with_free_func(g_free);
  return config;
}

void config_free(Config *config) {
  if (!config)
    return;
  g_free(config->group);
  g_strfreev(config->allow_targets);
  g_free(config->metrics_file);
  g_free(config->incoming_uri);
  g_free(config->incoming_migrate_uri);
  config_policy_clear(&config->node_policy);
  g_ptr_array_unref(config->targets);
  g_ptr_array_unref(config->policies);
  g_ptr_array_unref(config->warnings);
  g_free(config);
}

const ConfigTarget *config_find_target(const Config *config, const char *name) {
  for (guint i = 0; name && i < config->targets->len; i++) {
    const ConfigTarget *target = g_ptr_array_index(config->targets, i);
    if (strcmp(target->name, name) == 0)
      return target;
  }
  return NULL;
}

const ConfigPolicy *config_find_policy(const Config *config, const char *name) {
  for (guint i = 0; name && i < config->policies->len; i++) {
    const ConfigPolicy *policy = g_ptr_array_index(config->policies, i);
    if (strcmp(policy->name, name) == 0)
      return policy;
  }
  return NULL;
}

const ConfigPolicy *config_match_policy(const Config *config, const MigMatchFacts *facts) {
  const ConfigPolicy *best = NULL;
  unsigned best_rank = 0;
  for (guint i = 0; i < config->policies->len; i++) {
    const ConfigPolicy *policy = g_ptr_array_index(config->policies, i);
    if (!config_policy_matches(policy, facts))
      continue;
    unsigned rank =
        mig_match_rank((const MigMatch *)(const void *)policy->matches->data, policy->matches->len);
    if (!best || rank > best_rank || (rank == best_rank && strcmp(policy->name, best->name) < 0)) {
      best = policy;
      best_rank = rank;
    }
  }
  return best;
}

/* Reading */

typedef struct Reader {
  Config *config;
  guint dropped; /* warnings past the limit */
  const ConfigPlace *place;

  /* the open section */
  enum {
    SECTION_NONE, /* before the first one */
    SECTION_SKIPPED,
    SECTION_AGENT,
    SECTION_POLICY,
    SECTION_TARGET
  } section;
  ConfigTarget *target;
  ConfigPolicy *policy;
} Reader;

static void warn_at(Reader *reader, const char *origin, const char *text) {
  if (reader->config->warnings->len >= CONFIG_WARNINGS_MAX) {
    reader->dropped++;
    return;
  }
  g_autofree char *whole = g_strconcat(origin, ": ", text, NULL);
  g_ptr_array_add(reader->config->warnings, g_utf8_make_valid(whole, -1)); /* it goes into JSON */
}

static char *here(const Reader *reader) {
  return g_strdup_printf("%s:%u", reader->place->file, reader->place->line);
}

static void G_GNUC_PRINTF(2, 3) warn(Reader *reader, const char *format, ...) {
  va_list args;
  va_start(args, format);
  g_autofree char *text = g_strdup_vprintf(format, args), *origin = here(reader);
  va_end(args);
  warn_at(reader, origin, text);
}

/* An empty value restores the default. */
static void set_by_table(Reader *reader, const Setting *settings, size_t n, const char *section, void *object,
                         const char *name, const char *value) {
  for (size_t i = 0; i < n; i++) {
    if (g_ascii_strcasecmp(name, settings[i].name) != 0)
      continue;
    g_autofree char *accepted = settings[i].parse(*value ? value : settings[i].default_text,
                                                  &settings[i].range, (char *)object + settings[i].offset);
    if (accepted)
      warn(reader, "%s= takes %s, not \"%.80s\"", settings[i].name, accepted, value);
    return;
  }
  g_autoptr(GString) names = g_string_new(NULL);
  for (size_t i = 0; i < n; i++)
    g_string_append_printf(names, "%s%s=", i ? ", " : "", settings[i].name);
  warn(reader, "unknown key %.80s= in %s; known keys: %s", name, section, names->str);
}

static ConfigPolicy *find_or_add_policy(Reader *reader, const char *name) {
  ConfigPolicy *policy = (ConfigPolicy *)config_find_policy(reader->config, name);
  if (policy)
    return policy;
  policy = g_new0(ConfigPolicy, 1);
  config_policy_init(policy, name);
  g_ptr_array_add(reader->config->policies, policy);
  return policy;
}

static ConfigTarget *find_or_add_target(Reader *reader, const char *name) {
  ConfigTarget *target = (ConfigTarget *)config_find_target(reader->config, name);
  if (target)
    return target;
  target = g_new0(ConfigTarget, 1);
  target->name = g_strdup(name);
  g_ptr_array_add(reader->config->targets, target);
  return target;
}

static void on_begin(gpointer user_data) {
  ((Reader *)user_data)->section = SECTION_NONE;
}

static void on_section(const ConfigPlace *place, const char *text, gpointer user_data) {
  Reader *reader = user_data;
  reader->place = place;
  reader->section = SECTION_SKIPPED;
  reader->target = NULL;
  reader->policy = NULL;
  if (!text)
    return;

  size_t length = strcspn(text, " \t");
  const char *name = text + length + strspn(text + length, " \t");
  g_autofree char *word = g_strndup(text, length);
  if (g_ascii_strcasecmp(word, "Agent") == 0 && !*name) {
    reader->section = SECTION_AGENT;
  } else if (g_ascii_strcasecmp(word, "Policy") == 0) {
    reader->section = SECTION_POLICY;
    reader->policy = *name ? find_or_add_policy(reader, name) : &reader->config->node_policy;
  } else if (g_ascii_strcasecmp(word, "Target") == 0 && *name) {
    if (strstr(name, "://")) {
      warn(reader, "a target's name cannot be a URI: use [Target NAME] with LibvirtURI=%.80s", name);
      return;
    }
    reader->section = SECTION_TARGET;
    reader->target = find_or_add_target(reader, name);
  } else {
    warn(reader,
         "unknown section [%.80s], skipped; known sections: [Agent], [Policy], [Policy NAME] and [Target "
         "NAME]",
         text);
    return;
  }
  char **first = reader->target ? &reader->target->place : reader->policy ? &reader->policy->place : NULL;
  if (first && !*first)
    *first = here(reader);
}

static void set_policy(Reader *reader, const char *name, const char *value) {
  g_autofree char *place = here(reader);
  g_autofree char *wrong = config_policy_set(reader->policy, name, value, place);
  if (wrong)
    warn_at(reader, place, wrong);
}

static void on_setting(const ConfigPlace *place, const char *name, const char *value, gpointer user_data) {
  Reader *reader = user_data;
  reader->place = place;
  switch (reader->section) {
  case SECTION_AGENT:
    set_by_table(reader, agent_keys, G_N_ELEMENTS(agent_keys), "[Agent]", reader->config, name, value);
    break;
  case SECTION_POLICY:
    set_policy(reader, name, value);
    break;
  case SECTION_TARGET:
    set_by_table(reader, target_keys, G_N_ELEMENTS(target_keys), "a [Target NAME]", reader->target, name,
                 value);
    break;
  case SECTION_NONE:
    warn(reader, "keys before the first section, such as [Agent], are skipped");
    reader->section = SECTION_SKIPPED;
    break;
  case SECTION_SKIPPED:
    break;
  }
}

static void on_complaint(const ConfigPlace *place, const char *text, gpointer user_data) {
  Reader *reader = user_data;
  reader->place = place;
  warn(reader, "%s", text);
}

/* Even with all of the node's bandwidth to itself, a guest could not transfer its memory once within the deadline. Policies
 * without a deadline of their own inherit the node's, which is warned about once. */
static void check_deadline(Reader *reader, const ConfigPolicy *given, const MigPolicy *policy) {
  uint64_t s_per_gib = mig_policy_get(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  uint64_t cap = reader->config->max_bandwidth_bytes_per_s;
  bool own = given == &reader->config->node_policy ||
             (given->policy.set & (UINT32_C(1) << MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB));
  if (!own || cap == 0 || s_per_gib == 0 || cap >= MIG_GIB_BYTES / s_per_gib)
    return;
  g_autofree char *text = g_strdup_printf("MaxBandwidth= transfers a GiB in %" G_GUINT64_FORMAT
                                          " s, but CompletionTimeoutPerGiB= aborts a migration "
                                          "after %" G_GUINT64_FORMAT " s per GiB",
                                          MIG_GIB_BYTES / cap, s_per_gib);
  warn_at(reader, given->place ? given->place : "[Agent]", text);
}

/* A name without a [Target] allows less than intended: safe, but rarely wanted. */
static void check_allowed_names(Reader *reader) {
  for (char **pattern = reader->config->allow_targets; pattern && *pattern; pattern++) {
    MigAllow allow;
    if (!mig_allow_parse(*pattern, &allow) || allow.kind != MIG_ALLOW_NAME || strpbrk(*pattern, "*?") ||
        config_find_target(reader->config, *pattern))
      continue;
    g_autofree char *text =
        g_strdup_printf("AllowTargets= names %.80s, but there is no such [Target]; to allow a host, use a "
                        "URI such as qemu+tls://%.80s/system",
                        *pattern, *pattern);
    warn_at(reader, "[Agent]", text);
  }
}

/* Checks that need the whole configuration. */
static void check_whole(Reader *reader) {
  Config *config = reader->config;
  for (guint i = 0; i < config->targets->len;) {
    ConfigTarget *target = g_ptr_array_index(config->targets, i);
    if (target->libvirt_uri) {
      i++;
      continue;
    }
    g_autofree char *text = g_strdup_printf("[Target %.80s] has no LibvirtURI=; ignored", target->name);
    warn_at(reader, target->place, text);
    g_ptr_array_remove_index(config->targets, i);
  }
  check_allowed_names(reader);
  /* Conflicts that hold for every domain and host; the others show when the domain is known. */
  const MigPolicyFacts newest = {.qemu_version = UINT64_MAX, .libvirt_version = UINT64_MAX};
  for (guint i = 0; i <= config->policies->len; i++) {
    const ConfigPolicy *given = i ? g_ptr_array_index(config->policies, i - 1) : &config->node_policy;
    MigPolicy policy = config->node_policy.policy;
    const MigConflict *conflicts[8];
    mig_policy_merge(&policy, &given->policy);
    size_t n = given->place ? mig_policy_conflicts(&policy, &newest, conflicts, G_N_ELEMENTS(conflicts)) : 0;
    for (size_t k = 0; k < MIN(n, G_N_ELEMENTS(conflicts)); k++) {
      g_autofree char *text =
          g_strdup_printf("[Policy%s%.80s]: %s", i ? " " : "", i ? given->name : "", conflicts[k]->message);
      warn_at(reader, given->place, text);
    }
    check_deadline(reader, given, &policy);
  }
  if (reader->dropped > 0)
    g_ptr_array_add(config->warnings, g_strdup_printf("and %u more", reader->dropped));
}

static const ConfigFileHooks hooks = {on_begin, on_section, on_setting, on_complaint};

Config *config_load_from(const char *path, const char *const *directories, GError **error) {
  g_autoptr(Config) config = config_new();
  Reader reader = {.config = config};
  if (!config_files_read(path, directories, &hooks, &reader, error))
    return NULL;
  check_whole(&reader);
  return g_steal_pointer(&config);
}

Config *config_from_texts(char **texts, const size_t *sizes, size_t n) {
  Config *config = config_new();
  Reader reader = {.config = config};
  for (size_t i = 0; i < n; i++)
    config_files_parse("text", texts[i], sizes[i], &hooks, &reader);
  check_whole(&reader);
  return config;
}

Config *config_load(const char *path, GError **error) {
  static const char *const directories[] = {"/etc/handoffd", "/run/handoffd", "/usr/lib/handoffd", NULL};
  return config_load_from(path, directories, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values of settings: from text to a field, with the range of each. */
#include "agent/config/config-values.h"

#include "libmigrate/core/uri.h"

#include <errno.h>
#include <string.h>

static const struct {
  const char *name;
  ConfigPublicRead value;
} public_reads[] = {
    {"none", CONFIG_PUBLIC_READ_NONE},
    {"node", CONFIG_PUBLIC_READ_NODE},
    {"all", CONFIG_PUBLIC_READ_ALL},
};

/* --- times --- */

bool config_parse_duration_ms(const char *text, uint64_t default_unit_ms, uint64_t *ret_ms) {
  static const struct {
    const char *name;
    uint64_t ms;
  } units[] = {{"ms", 1},
               {"s", CONFIG_SECOND_MS},
               {"min", CONFIG_MINUTE_MS},
               {"h", CONFIG_HOUR_MS},
               {"d", CONFIG_DAY_MS}};
  uint64_t total = 0;
  bool bare = false, any = false;

  for (const char *p = text;;) {
    while (g_ascii_isspace(*p))
      p++;
    if (!*p)
      break;
    if (!g_ascii_isdigit(*p) || bare)
      return false; /* "10 20": a number without a unit stands alone */
    errno = 0;
    char *end;
    uint64_t value = g_ascii_strtoull(p, &end, 10), factor = 0;
    if (errno == ERANGE)
      return false;
    while (g_ascii_isspace(*end))
      end++;
    size_t length = 0;
    while (g_ascii_isalpha(end[length]))
      length++;
    if (length == 0) {
      if (any)
        return false;
      bare = true;
      factor = default_unit_ms;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(units) && factor == 0; i++)
      if (strlen(units[i].name) == length && strncmp(units[i].name, end, length) == 0)
        factor = units[i].ms;
    if (factor == 0 || !g_uint64_checked_mul(&value, value, factor) ||
        !g_uint64_checked_add(&total, total, value))
      return false;
    any = true;
    p = end + length;
  }
  if (any)
    *ret_ms = total;
  return any;
}

/* For people: in the largest unit that gives a whole number. */
static char *duration_text(uint64_t ms) {
  static const struct {
    const char *name;
    uint64_t ms;
  } units[] = {
      {"d", CONFIG_DAY_MS}, {"h", CONFIG_HOUR_MS}, {"min", CONFIG_MINUTE_MS}, {"s", CONFIG_SECOND_MS}};
  for (size_t i = 0; ms > 0 && i < G_N_ELEMENTS(units); i++)
    if (ms % units[i].ms == 0)
      return g_strdup_printf("%" G_GUINT64_FORMAT "%s", ms / units[i].ms, units[i].name);
  return g_strdup_printf("%" G_GUINT64_FORMAT "ms", ms);
}

/* --- settings --- */

char *config_parse_count(const char *text, const ConfigRange *range, void *field) {
  guint64 value;
  if (!g_ascii_string_to_unsigned(text, 10, range->min, range->max, &value, NULL))
    return g_strdup_printf("a whole number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, range->min,
                           range->max);
  *(unsigned *)field = (unsigned)value;
  return NULL;
}

static char *parse_time(const char *text, uint64_t min_ms, uint64_t max_ms, uint64_t unit_ms,
                        uint64_t *ret_ms) {
  if (config_parse_duration_ms(text, unit_ms, ret_ms) && *ret_ms >= min_ms && *ret_ms <= max_ms)
    return NULL;
  g_autofree char *min = duration_text(min_ms), *max = duration_text(max_ms);
  return g_strdup_printf("a time from %s to %s, in ms, s, min, h or d", min, max);
}

char *config_parse_ms(const char *text, const ConfigRange *range, void *field) {
  uint64_t ms = 0;
  char *accepted = parse_time(text, range->min, range->max, range->unit_ms, &ms);
  if (!accepted)
    *(unsigned *)field = (unsigned)ms;
  return accepted;
}

char *config_parse_s(const char *text, const ConfigRange *range, void *field) {
  uint64_t ms = 0;
  char *accepted =
      parse_time(text, range->min * CONFIG_SECOND_MS, range->max * CONFIG_SECOND_MS, range->unit_ms, &ms);
  if (!accepted && ms % CONFIG_SECOND_MS != 0)
    return g_strdup("whole seconds");
  if (!accepted)
    *(uint64_t *)field = ms / CONFIG_SECOND_MS;
  return accepted;
}

/* Like the bandwidth of a policy: 100M, 1G. */
char *config_parse_rate(const char *text, const ConfigRange *range, void *field) {
  MigPolicy policy;
  char message[160];
  mig_policy_init(&policy);
  if (mig_policy_set_text(&policy, "bandwidth_bytes_per_s", text, message, sizeof message) != MIG_POLICY_OK)
    return g_strdup("bytes per second, such as 100M or 1G, or 0");
  uint64_t rate = mig_policy_get(&policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  if (rate < range->min || rate > range->max)
    return g_strdup_printf("from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " bytes per second", range->min,
                           range->max);
  *(uint64_t *)field = rate;
  return NULL;
}

char *config_parse_public_read(const char *text, const ConfigRange *range, void *field) {
  for (size_t i = 0; i < G_N_ELEMENTS(public_reads); i++)
    if (g_ascii_strcasecmp(text, public_reads[i].name) == 0) {
      *(ConfigPublicRead *)field = public_reads[i].value;
      return NULL;
    }
  return g_strdup("none, node or all");
}

char *config_parse_group(const char *text, const ConfigRange *range, void *field) {
  size_t good = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  if (good == 0 || text[good] || good > 31 || *text == '-')
    return g_strdup("a group name: up to 31 letters, digits, '_', '.' and '-'");
  g_free(*(char **)field);
  *(char **)field = g_strdup(text);
  return NULL;
}

/* A pattern that is not understood allows nothing; the others still apply. If all were dropped instead, callers could name what
 * the owner means to keep from them. */
char *config_parse_allow_targets(const char *text, const ConfigRange *range, void *field) {
  g_auto(GStrv) words = g_strsplit_set(text, ", \t", -1);
  g_autoptr(GPtrArray) patterns = g_ptr_array_new_with_free_func(g_free);
  bool all = true;

  for (char **word = words; *word; word++) {
    MigAllow allow;

    if (!**word)
      continue;
    if (mig_allow_parse(*word, &allow))
      g_ptr_array_add(patterns, g_strdup(*word));
    else
      all = false;
  }
  g_clear_pointer((char ***)field, g_strfreev);
  if (patterns->len > 0 || !all) {
    g_ptr_array_add(patterns, NULL);
    *(char ***)field = (char **)g_ptr_array_free(g_steal_pointer(&patterns), FALSE);
  }
  return all ? NULL
             : g_strdup(
                   "names of [Target]s, URIs such as qemu+tls://*.example.org/system and networks such as "
                   "10.0.0.0/8 (other words allow nothing)");
}

char *config_parse_path(const char *text, const ConfigRange *range, void *field) {
  if (*text && (!g_path_is_absolute(text) || g_str_has_suffix(text, "/")))
    return g_strdup("the absolute path of a file");
  g_free(*(char **)field);
  *(char **)field = *text ? g_strdup(text) : NULL;
  return NULL;
}

static char *parse_uri(const char *text, const char *example, char **field) {
  if (*text && !strstr(text, ":/"))
    return g_strdup_printf("a URI such as %s", example);
  g_free(*field);
  *field = *text ? g_strdup(text) : NULL;
  return NULL;
}

char *config_parse_libvirt_uri(const char *text, const ConfigRange *range, void *field) {
  return parse_uri(text, "qemu+tls://HOST/system", field);
}

char *config_parse_migrate_uri(const char *text, const ConfigRange *range, void *field) {
  return parse_uri(text, "tcp://ADDRESS", field);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the configuration: where the files are, how a line is read, what each key takes. */
#include "agent/config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Theory of operation
 *
 * A file is lines: [Section] or [Section NAME], Key=Value, # or ; and a comment, nothing. A later value
 * replaces an earlier one, an empty one brings the default back, a section may come again and goes on where
 * it was. Whatever is not understood costs that line only, and a warning that says what would be.
 *
 * libeconf, which reads such files for others, was tried (0.5.1) and does not do for this: one bad section
 * header loses the whole file; of a key given twice the first counts, in silence; a line without '=' is glued
 * to the value above it, in silence, and takes over its line number; '#' cuts a value, and so a URI, in the
 * middle. */

/* Enough for thousands of targets; what is longer is not a configuration. */
#define FILE_SIZE_MAX (1024 * 1024)
/* They all go into one answer of GetNode. */
#define WARNINGS_MAX 100

typedef struct Reader {
  Config *config;
  GHashTable *origins; /* "section NAME" → "FILE:LINE" where it was first opened */
  const char *file;
  unsigned line;
  guint dropped; /* warnings past the limit */
} Reader;

/* Parses `text` into `field`, or returns what would be accepted, for a warning. */
typedef char *(*ParseFunc)(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);

static char *parse_count(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);
static char *parse_ms(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);
static char *parse_s(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);
static char *parse_public_read(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);
static char *parse_group(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field);

typedef struct AgentKey {
  const char *name;
  const char *default_text;
  ParseFunc parse;
  size_t offset;
  uint64_t min, max; /* inclusive, in the unit of the field */
  uint64_t unit_ms;  /* of a time without a unit */
} AgentKey;

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const AgentKey agent_keys[] = {
    {"MaxOutgoing", "2", parse_count, offsetof(Config, max_outgoing), 1, 1000, 0},
    {"MaxJobs", "10000", parse_count, offsetof(Config, max_jobs), 1, 1000000, 0},
    {"KeepFinished", "1000", parse_count, offsetof(Config, keep_finished), 0, 1000000, 0},
    {"KeepFinishedSec", "7d", parse_s, offsetof(Config, keep_finished_s), 0, 3650 * DAY / SECOND, SECOND},
    {"PublicRead", "node", parse_public_read, offsetof(Config, public_read), 0, 0, 0},
    {"Group", "handoff", parse_group, offsetof(Config, group), 0, 0, 0},
    {"PollInterval", "400ms", parse_ms, offsetof(Config, poll_interval_ms), 50, 10 * SECOND, 1},
    {"ConnectTimeout", "10s", parse_ms, offsetof(Config, connect_timeout_ms), 100, 10 * MINUTE, SECOND},
    {"PrepareTimeout", "60s", parse_ms, offsetof(Config, prepare_timeout_ms), 1 * SECOND, 1 * HOUR, SECOND},
    {"PendingTimeout", "15min", parse_ms, offsetof(Config, pending_timeout_ms), 0, 7 * DAY, SECOND},
    {"WatchInterval", "250ms", parse_ms, offsetof(Config, watch_interval_ms), 10, 1 * MINUTE, 1},
};

static const struct {
  const char *name;
  ConfigPublicRead value;
} public_reads[] = {
    {"none", CONFIG_PUBLIC_READ_NONE},
    {"node", CONFIG_PUBLIC_READ_NODE},
    {"all", CONFIG_PUBLIC_READ_ALL},
};

static const struct {
  const char *name;
  size_t offset;
} target_keys[] = {
    {"LibvirtURI", offsetof(ConfigTarget, libvirt_uri)},
    {"MigrateURI", offsetof(ConfigTarget, migrate_uri)},
};

/* How a key of the interface is called in a file: its words with capitals, and its unit left to the value.
 * max_downtime_ms=300 is MaxDowntime=300ms, completion_timeout_s_per_gib=150 is CompletionTimeoutPerGiB=150s,
 * bandwidth_bytes_per_s=33554432 is Bandwidth=32M. Case does not matter, so tls is TLS= as well. */
static const struct {
  const char *suffix;
  const char *becomes;
} unit_suffixes[] = {
    {"_bytes_per_s", ""}, {"_s_per_gib", "PerGiB"}, {"_ms", ""}, {"_s", ""}, {"_pct", ""},
};

/* Times */

bool config_parse_duration_ms(const char *text, uint64_t default_unit_ms, uint64_t *ret_ms) {
  static const struct {
    const char *name;
    uint64_t ms;
  } units[] = {{"ms", 1}, {"s", SECOND}, {"min", MINUTE}, {"h", HOUR}, {"d", DAY}};
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

/* For people: the largest unit that says it in whole numbers. */
static char *duration_text(uint64_t ms) {
  static const struct {
    const char *name;
    uint64_t ms;
  } units[] = {{"d", DAY}, {"h", HOUR}, {"min", MINUTE}, {"s", SECOND}};
  for (size_t i = 0; ms > 0 && i < G_N_ELEMENTS(units); i++)
    if (ms % units[i].ms == 0)
      return g_strdup_printf("%" G_GUINT64_FORMAT "%s", ms / units[i].ms, units[i].name);
  return g_strdup_printf("%" G_GUINT64_FORMAT "ms", ms);
}

/* Values */

static char *parse_count(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field) {
  guint64 value;
  if (!g_ascii_string_to_unsigned(text, 10, min, max, &value, NULL))
    return g_strdup_printf("a whole number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, min, max);
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

static char *parse_ms(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field) {
  uint64_t ms = 0;
  char *accepted = parse_time(text, min, max, unit_ms, &ms);
  if (!accepted)
    *(unsigned *)field = (unsigned)ms;
  return accepted;
}

static char *parse_s(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field) {
  uint64_t ms = 0;
  char *accepted = parse_time(text, min * SECOND, max * SECOND, unit_ms, &ms);
  if (!accepted && ms % SECOND != 0)
    return g_strdup("whole seconds");
  if (!accepted)
    *(uint64_t *)field = ms / SECOND;
  return accepted;
}

static char *parse_public_read(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field) {
  for (size_t i = 0; i < G_N_ELEMENTS(public_reads); i++)
    if (g_ascii_strcasecmp(text, public_reads[i].name) == 0) {
      *(ConfigPublicRead *)field = public_reads[i].value;
      return NULL;
    }
  return g_strdup("none, node or all");
}

static char *parse_group(const char *text, uint64_t min, uint64_t max, uint64_t unit_ms, void *field) {
  size_t good = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  if (good == 0 || text[good] || good > 31 || *text == '-')
    return g_strdup("the name of a group: up to 31 letters, digits, '_', '.' and '-'");
  g_free(*(char **)field);
  *(char **)field = g_strdup(text);
  return NULL;
}

/* The object */

static void target_free(ConfigTarget *target) {
  g_free(target->name);
  g_free(target->libvirt_uri);
  g_free(target->migrate_uri);
  g_free(target);
}

static void policy_free(ConfigPolicy *policy) {
  g_free(policy->name);
  g_free(policy);
}

Config *config_new(void) {
  Config *config = g_new0(Config, 1);
  for (size_t i = 0; i < G_N_ELEMENTS(agent_keys); i++) {
    const AgentKey *key = &agent_keys[i];
    g_autofree char *bad =
        key->parse(key->default_text, key->min, key->max, key->unit_ms, (char *)config + key->offset);
    g_assert(!bad);
  }
  mig_policy_init(&config->policy);
  config->targets = g_ptr_array_new_with_free_func((GDestroyNotify)target_free);
  config->policies = g_ptr_array_new_with_free_func((GDestroyNotify)policy_free);
  config->warnings = g_ptr_array_new_with_free_func(g_free);
  return config;
}

void config_free(Config *config) {
  if (!config)
    return;
  g_free(config->group);
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

/* Warnings */

static void warn_at(Reader *reader, const char *origin, const char *text) {
  if (reader->config->warnings->len >= WARNINGS_MAX) {
    reader->dropped++;
    return;
  }
  g_autofree char *whole = g_strconcat(origin, ": ", text, NULL);
  g_ptr_array_add(reader->config->warnings, g_utf8_make_valid(whole, -1)); /* they go into JSON */
}

static char *here(const Reader *reader) {
  return g_strdup_printf("%s:%u", reader->file, reader->line);
}

static void G_GNUC_PRINTF(2, 3) warn(Reader *reader, const char *format, ...) {
  va_list args;
  va_start(args, format);
  g_autofree char *text = g_strdup_vprintf(format, args), *origin = here(reader);
  va_end(args);
  warn_at(reader, origin, text);
}

/* Sections */

typedef struct Section {
  enum {
    SECTION_NONE, /* before the first one */
    SECTION_SKIPPED,
    SECTION_AGENT,
    SECTION_POLICY,
    SECTION_TARGET
  } kind;
  ConfigTarget *target;
  MigPolicy *policy;
} Section;

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

static void set_agent(Reader *reader, const char *name, const char *value) {
  for (size_t i = 0; i < G_N_ELEMENTS(agent_keys); i++) {
    const AgentKey *key = &agent_keys[i];
    if (g_ascii_strcasecmp(name, key->name) != 0)
      continue;
    g_autofree char *accepted = key->parse(*value ? value : key->default_text, key->min, key->max,
                                           key->unit_ms, (char *)reader->config + key->offset);
    if (accepted)
      warn(reader, "%s= takes %s, not \"%.80s\"", key->name, accepted, value);
    return;
  }
  g_autoptr(GString) names = g_string_new(NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(agent_keys); i++)
    g_string_append_printf(names, "%s%s=", i ? ", " : "", agent_keys[i].name);
  warn(reader, "there is no %.80s= in [Agent]: it has %s", name, names->str);
}

static void set_policy(Reader *reader, const Section *section, const char *name, const char *value) {
  const MigPolicyKeyInfo *info = find_policy_key(name);
  if (!info) {
    g_autoptr(GString) names = g_string_new(NULL);
    for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
      char camel[64];
      key_in_file_style(mig_policy_key_info(key), camel, sizeof(camel));
      g_string_append_printf(names, "%s%s=", key ? ", " : "", camel);
    }
    warn(reader, "there is no %.80s= in a [Policy]: it has %s", name, names->str);
    return;
  }
  if (!*value) {
    section->policy->values[info->key] = info->default_value;
    section->policy->set &= ~(UINT32_C(1) << info->key);
    return;
  }
  char message[256];
  if (mig_policy_set_text(section->policy, info->name, value, message, sizeof(message)) != MIG_POLICY_OK)
    warn(reader, "%s", message);
}

static void set_target(Reader *reader, const Section *section, const char *name, const char *value) {
  for (size_t i = 0; i < G_N_ELEMENTS(target_keys); i++) {
    if (g_ascii_strcasecmp(name, target_keys[i].name) != 0)
      continue;
    if (*value && !strstr(value, ":/")) {
      warn(reader, "%s= takes a URI such as %s, not \"%.80s\"", target_keys[i].name,
           i == 0 ? "qemu+tls://HOST/system" : "tcp://ADDRESS", value);
      return;
    }
    char **field = (char **)((char *)section->target + target_keys[i].offset);
    g_free(*field);
    *field = *value ? g_strdup(value) : NULL;
    return;
  }
  warn(reader, "there is no %.80s= in a [Target NAME]: it has LibvirtURI= and MigrateURI=", name);
}

/* `text` is what stands between the brackets. */
static void open_section(Reader *reader, char *text, Section *ret_section) {
  *ret_section = (Section){.kind = SECTION_SKIPPED};
  text = g_strstrip(text);
  size_t length = strcspn(text, " \t");
  const char *name = text + length + strspn(text + length, " \t");
  g_autofree char *word = g_strndup(text, length);

  if (g_ascii_strcasecmp(word, "Agent") == 0 && !*name) {
    ret_section->kind = SECTION_AGENT;
  } else if (g_ascii_strcasecmp(word, "Policy") == 0) {
    ret_section->kind = SECTION_POLICY;
    ConfigPolicy *policy = (ConfigPolicy *)config_find_policy(reader->config, name);
    if (*name && !policy) {
      policy = g_new0(ConfigPolicy, 1);
      policy->name = g_strdup(name);
      mig_policy_init(&policy->policy);
      g_ptr_array_add(reader->config->policies, policy);
    }
    ret_section->policy = policy ? &policy->policy : &reader->config->policy;
  } else if (g_ascii_strcasecmp(word, "Target") == 0 && *name) {
    if (strstr(name, "://")) {
      warn(reader, "the name of a target cannot be a URI: write [Target NAME] and LibvirtURI=%.80s", name);
      return;
    }
    ret_section->kind = SECTION_TARGET;
    ret_section->target = (ConfigTarget *)config_find_target(reader->config, name);
    if (!ret_section->target) {
      ret_section->target = g_new0(ConfigTarget, 1);
      ret_section->target->name = g_strdup(name);
      g_ptr_array_add(reader->config->targets, ret_section->target);
    }
  } else {
    warn(reader,
         "there is no section [%.80s], it is skipped: there are [Agent], [Policy], [Policy NAME] and [Target "
         "NAME]",
         text);
    return;
  }
  void *object = ret_section->target ? (void *)ret_section->target : (void *)ret_section->policy;
  if (object && !g_hash_table_contains(reader->origins, object))
    g_hash_table_insert(reader->origins, object, here(reader));
}

static void read_line(Reader *reader, char *line, Section *section) {
  line = g_strstrip(line);
  if (!*line || *line == '#' || *line == ';')
    return;
  if (*line == '[') {
    size_t length = strlen(line);
    if (line[length - 1] != ']') {
      *section = (Section){.kind = SECTION_SKIPPED};
      warn(reader, "a section needs its closing bracket, as in [Agent]; what follows is skipped");
      return;
    }
    line[length - 1] = '\0';
    open_section(reader, line + 1, section);
    return;
  }
  char *equals = strchr(line, '=');
  if (!equals || equals == line) {
    warn(reader, "a line is Key=Value, [Section], or # and a comment, not \"%.80s\"", line);
    return;
  }
  *equals = '\0';
  const char *name = g_strchomp(line), *value = g_strchug(equals + 1);
  switch (section->kind) {
  case SECTION_AGENT:
    set_agent(reader, name, value);
    break;
  case SECTION_POLICY:
    set_policy(reader, section, name, value);
    break;
  case SECTION_TARGET:
    set_target(reader, section, name, value);
    break;
  case SECTION_NONE:
    warn(reader, "keys belong into a section, such as [Agent]: all up to the first one is skipped");
    section->kind = SECTION_SKIPPED;
    break;
  case SECTION_SKIPPED:
    break;
  }
}

/* Files */

static bool read_file(Reader *reader, const char *path, GError **error) {
  struct stat st;
  g_autofree char *text = NULL, *display = g_filename_display_name(path);
  gsize size = 0;
  if (stat(path, &st) < 0) {
    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno), "cannot read %s: %s", display,
                g_strerror(errno));
    return false;
  }
  if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
    return true; /* /dev/null: masked */
  /* Nothing that a read could wait for, such as a FIFO. */
  if (!S_ISREG(st.st_mode) || st.st_size > FILE_SIZE_MAX) {
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "cannot read %s: %s", display,
                S_ISREG(st.st_mode) ? "larger than 1 MiB" : "not a regular file");
    return false;
  }
  if (!g_file_get_contents(path, &text, &size, error)) {
    g_prefix_error(error, "cannot read the configuration: ");
    return false;
  }

  Section section = {.kind = SECTION_NONE};
  reader->file = display;
  reader->line = 0;
  char *next = text;
  if (size >= 3 && memcmp(next, "\xef\xbb\xbf", 3) == 0)
    next += 3;
  while (next < text + size) {
    char *line = next, *end = memchr(next, '\n', (size_t)(text + size - next));
    if (!end)
      end = text + size;
    next = end + 1;
    reader->line++;
    *end = '\0'; /* at the end of the text: GLib's own terminator */
    if (strlen(line) != (size_t)(end - line) || !g_utf8_validate(line, -1, NULL)) {
      warn(reader, "this line is not text, and is skipped");
      continue;
    }
    read_line(reader, line, &section);
  }
  return true;
}

static gint compare_names(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The drop-ins' names, sorted, each once. */
static bool list_dropins(const char *const *directories, GPtrArray *names, GError **error) {
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  for (size_t i = 0; directories[i]; i++) {
    g_autofree char *path = g_build_filename(directories[i], "handoffd.conf.d", NULL);
    g_autoptr(GError) local = NULL;
    g_autoptr(GDir) dir = g_dir_open(path, 0, &local);
    if (!dir) {
      if (g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        continue;
      g_propagate_error(error, g_steal_pointer(&local));
      return false;
    }
    for (const char *name; (name = g_dir_read_name(dir));)
      if (*name != '.' && g_str_has_suffix(name, ".conf") && !g_hash_table_contains(seen, name)) {
        char *copy = g_strdup(name);
        g_ptr_array_add(names, copy);
        g_hash_table_add(seen, copy);
      }
  }
  g_ptr_array_sort(names, compare_names);
  return true;
}

/* Reads `name` from the first directory that has it. */
static bool read_first(Reader *reader, const char *const *directories, const char *name, GError **error) {
  for (size_t i = 0; directories[i]; i++) {
    g_autofree char *path = g_build_filename(directories[i], name, NULL);
    struct stat st;
    if (stat(path, &st) == 0 || errno != ENOENT)
      return read_file(reader, path, error);
  }
  return true;
}

/* What can be said only once all is read. */
static void check_whole(Reader *reader) {
  Config *config = reader->config;
  for (guint i = 0; i < config->targets->len;) {
    ConfigTarget *target = g_ptr_array_index(config->targets, i);
    if (target->libvirt_uri) {
      i++;
      continue;
    }
    g_autofree char *text =
        g_strdup_printf("[Target %.80s] has no LibvirtURI=, and is left out", target->name);
    warn_at(reader, g_hash_table_lookup(reader->origins, target), text);
    g_ptr_array_remove_index(config->targets, i);
  }
  /* What excludes each other for every domain and host; the rest is found when the domain is known. */
  const MigPolicyFacts newest = {.qemu_version = UINT64_MAX, .libvirt_version = UINT64_MAX};
  for (guint i = 0; i <= config->policies->len; i++) {
    const ConfigPolicy *named = i ? g_ptr_array_index(config->policies, i - 1) : NULL;
    const MigPolicy *given = named ? &named->policy : &config->policy;
    const char *origin = g_hash_table_lookup(reader->origins, given);
    MigPolicy policy = config->policy;
    const MigConflict *conflicts[8];
    mig_policy_merge(&policy, given);
    size_t n = origin ? mig_policy_conflicts(&policy, &newest, conflicts, G_N_ELEMENTS(conflicts)) : 0;
    for (size_t c = 0; c < MIN(n, G_N_ELEMENTS(conflicts)); c++) {
      g_autofree char *text = g_strdup_printf("[Policy%s%.80s]: %s", named ? " " : "",
                                              named ? named->name : "", conflicts[c]->message);
      warn_at(reader, origin, text);
    }
  }
  if (reader->dropped > 0)
    g_ptr_array_add(config->warnings, g_strdup_printf("and %u more", reader->dropped));
}

Config *config_load_from(const char *path, const char *const *directories, GError **error) {
  g_autoptr(Config) config = config_new();
  g_autoptr(GHashTable) origins = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  Reader reader = {.config = config, .origins = origins};
  if (path) {
    if (!read_file(&reader, path, error))
      return NULL;
  } else {
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!read_first(&reader, directories, "handoffd.conf", error) || !list_dropins(directories, names, error))
      return NULL;
    for (guint i = 0; i < names->len; i++) {
      g_autofree char *name = g_build_filename("handoffd.conf.d", g_ptr_array_index(names, i), NULL);
      if (!read_first(&reader, directories, name, error))
        return NULL;
    }
  }
  check_whole(&reader);
  return g_steal_pointer(&config);
}

Config *config_load(const char *path, GError **error) {
  static const char *const directories[] = {"/etc/handoffd", "/run/handoffd", "/usr/lib/handoffd", NULL};
  return config_load_from(path, directories, error);
}

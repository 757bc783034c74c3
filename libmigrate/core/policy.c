/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of policy keys, and the loops over it: setting, merging, parsing, printing. */
#include "libmigrate/core/policy.h"

#include "libmigrate/core/table.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

static const char *const compression_names[] = {
    [MIG_COMPRESSION_NONE] = "none", [MIG_COMPRESSION_XBZRLE] = "xbzrle", [MIG_COMPRESSION_ZLIB] = "zlib",
    [MIG_COMPRESSION_ZSTD] = "zstd", [MIG_COMPRESSION_COUNT] = NULL,
};
TABLE_COVERS(compression_names, MIG_COMPRESSION_COUNT + 1);

static const char *const tls_names[] = {
    [MIG_TLS_NO] = "no",
    [MIG_TLS_YES] = "yes",
    [MIG_TLS_REQUIRE] = "require",
    [MIG_TLS_COUNT] = NULL,
};
TABLE_COVERS(tls_names, MIG_TLS_COUNT + 1);

static const char *const copy_disks_names[] = {
    [MIG_COPY_DISKS_NONE] = "none",
    [MIG_COPY_DISKS_ALL] = "all",
    [MIG_COPY_DISKS_INCREMENTAL] = "incremental",
    [MIG_COPY_DISKS_COUNT] = NULL,
};
TABLE_COVERS(copy_disks_names, MIG_COPY_DISKS_COUNT + 1);

static const char *const priority_names[] = {
    [MIG_PRIORITY_RUNNING] = "running", [MIG_PRIORITY_CRITICAL] = "critical",
    [MIG_PRIORITY_USER] = "user",       [MIG_PRIORITY_MAINTENANCE] = "maintenance",
    [MIG_PRIORITY_DEFAULT] = "default", [MIG_PRIORITY_COUNT] = NULL,
};
TABLE_COVERS(priority_names, MIG_PRIORITY_COUNT + 1);

/* QEMU refuses a downtime limit above 2000 s (MAX_MIGRATE_DOWNTIME in its migration/options.c). */
#define MAX_DOWNTIME_MS UINT64_C(2000000)
/* A guest stopped for a day is not migrated live. */
#define MAX_PAUSE_MS  UINT64_C(86400000)
#define MAX_TIMEOUT_S UINT64_C(86400)
/* No link is that fast: more is a typo. This also keeps libvirt's MiB/s and all sums within 64 bits. */
#define MAX_BANDWIDTH (UINT64_C(1) << 40)
/* QEMU's multifd-channels is a uint8. */
#define MAX_CONNECTIONS 255

#define INT_KEY(k, n, u, lo, hi, def, tune, text)                                                            \
  [MIG_POLICY_##k] = {MIG_POLICY_##k,     n,   MIG_POLICY_TYPE_INT, MIG_UNIT_##u, NULL, lo, hi, def,         \
                      MIG_TUNABLE_##tune, text}
#define BOOL_KEY(k, n, def, tune, text)                                                                      \
  [MIG_POLICY_##k] = {MIG_POLICY_##k,     n,   MIG_POLICY_TYPE_BOOL, MIG_UNIT_NONE, NULL, 0, 1, def,         \
                      MIG_TUNABLE_##tune, text}
#define ENUM_KEY(k, n, names, count, def, tune, text)                                                        \
  [MIG_POLICY_##k] = {MIG_POLICY_##k, n,   MIG_POLICY_TYPE_ENUM, MIG_UNIT_NONE, names, 0,                    \
                      (count)-1,      def, MIG_TUNABLE_##tune,   text}

/* ALWAYS is only what takes effect on a running migration: the agent's own decisions, and what QEMU accepts midway.
 * TO_NO is a way that must be enabled when the migration starts, and that the agent may then leave unused. The rest
 * are flags and parameters of the start (streams, TLS…). */
static const MigPolicyKeyInfo keys[] = {
    INT_KEY(MAX_DOWNTIME_MS, "max_downtime_ms", MS, 1, MAX_DOWNTIME_MS, 300, ALWAYS,
            "longest downtime of the guest at the switchover"),
    INT_KEY(MAX_PAUSE_MS, "max_pause_ms", MS, 0, MAX_PAUSE_MS, 0, ALWAYS,
            "how long the guest may be paused to finish the migration; 0: never"),
    BOOL_KEY(ALLOW_POST_COPY, "allow_post_copy", 0, TO_NO,
             "may the guest run at the target before all of its memory is there"),
    BOOL_KEY(ALLOW_AUTO_CONVERGE, "allow_auto_converge", 0, TO_NO,
             "may the guest's CPUs be throttled until it converges"),
    INT_KEY(
        MAX_THROTTLE_PCT, "max_throttle_pct", PCT, 1, 99, 80, ALWAYS,
        "how far auto-converge may throttle the CPUs; the migration ends another way before it needs more"),
    INT_KEY(COMPLETION_TIMEOUT_S_PER_GIB, "completion_timeout_s_per_gib", S, 0, MAX_TIMEOUT_S, 150, ALWAYS,
            "deadline per GiB of guest memory; 0: none"),
    INT_KEY(DISK_TIMEOUT_S_PER_GIB, "disk_timeout_s_per_gib", S, 0, MAX_TIMEOUT_S, 800, ALWAYS,
            "added to the deadline per GiB of copied disks; 0: no deadline when disks are copied"),
    INT_KEY(PROGRESS_TIMEOUT_S, "progress_timeout_s", S, 0, MAX_TIMEOUT_S, 150, ALWAYS,
            "abort after this long without progress; 0: never"),
    INT_KEY(BANDWIDTH_BYTES_PER_S, "bandwidth_bytes_per_s", BYTES_PER_S, 0, MAX_BANDWIDTH, 0, ALWAYS,
            "bandwidth limit of the migration; 0: none"),
    INT_KEY(POST_COPY_BANDWIDTH_BYTES_PER_S, "post_copy_bandwidth_bytes_per_s", BYTES_PER_S, 0, MAX_BANDWIDTH,
            0, ALWAYS, "the same in post-copy; 0: none"),
    INT_KEY(PARALLEL_CONNECTIONS, "parallel_connections", NONE, 0, MAX_CONNECTIONS, 0, BEFORE_START,
            "memory streams (multifd); 0: a single plain stream"),
    ENUM_KEY(COMPRESSION, "compression", compression_names, MIG_COMPRESSION_COUNT, MIG_COMPRESSION_NONE,
             BEFORE_START, "memory compression"),
    ENUM_KEY(TLS, "tls", tls_names, MIG_TLS_COUNT, MIG_TLS_NO, BEFORE_START,
             "encrypt the stream: no, yes (if both ends can), require"),
    BOOL_KEY(ZEROCOPY, "zerocopy", 0, BEFORE_START, "send memory without copying it in the kernel"),
    BOOL_KEY(TUNNELLED, "tunnelled", 0, BEFORE_START, "carry the stream through libvirtd's connection"),
    ENUM_KEY(COPY_DISKS, "copy_disks", copy_disks_names, MIG_COPY_DISKS_COUNT, MIG_COPY_DISKS_NONE,
             BEFORE_START, "which disks on local storage to copy"),
    BOOL_KEY(PERSIST_TARGET, "persist_target", 1, BEFORE_START, "define the domain at the target"),
    BOOL_KEY(UNDEFINE_SOURCE, "undefine_source", 1, BEFORE_START,
             "remove the domain's definition from the source"),
    ENUM_KEY(PRIORITY, "priority", priority_names, MIG_PRIORITY_COUNT, MIG_PRIORITY_DEFAULT, BEFORE_START,
             "priority class in the queue"),
};
TABLE_COVERS(keys, MIG_POLICY_KEY_COUNT);
_Static_assert(MIG_POLICY_KEY_COUNT <= 32, "MigPolicy.set has a bit for each key");

typedef struct Suffix {
  MigUnit unit;
  const char *text;
  uint64_t factor; /* how many of the smallest suffix of the unit: ms for times, bytes, plain */
} Suffix;

/* For times, in ms whatever the key's unit; a plain number is in the key's unit. */
static const Suffix suffixes[] = {
    {MIG_UNIT_MS, "ms", 1},
    {MIG_UNIT_MS, "s", 1000},
    {MIG_UNIT_MS, "min", 60000},
    {MIG_UNIT_MS, "h", 3600000},
    {MIG_UNIT_BYTES_PER_S, "B", 1},
    {MIG_UNIT_BYTES_PER_S, "K", UINT64_C(1) << 10},
    {MIG_UNIT_BYTES_PER_S, "KiB", UINT64_C(1) << 10},
    {MIG_UNIT_BYTES_PER_S, "M", UINT64_C(1) << 20},
    {MIG_UNIT_BYTES_PER_S, "MiB", UINT64_C(1) << 20},
    {MIG_UNIT_BYTES_PER_S, "G", UINT64_C(1) << 30},
    {MIG_UNIT_BYTES_PER_S, "GiB", UINT64_C(1) << 30},
    {MIG_UNIT_BYTES_PER_S, "T", UINT64_C(1) << 40},
    {MIG_UNIT_BYTES_PER_S, "TiB", UINT64_C(1) << 40},
    {MIG_UNIT_PCT, "%", 1},
};

static const struct {
  const char *base;    /* unit of a plain number, for messages */
  const char *accepts; /* accepted suffixes */
} units[] = {
    [MIG_UNIT_NONE] = {"", ""},
    [MIG_UNIT_MS] = {" ms", ", or with ms, s, min or h"},
    [MIG_UNIT_S] = {" s", ", or with s, min or h"},
    [MIG_UNIT_BYTES_PER_S] = {" bytes/s", ", or with K, M, G or T"},
    [MIG_UNIT_PCT] = {" %", ""},
};
TABLE_COVERS(units, MIG_UNIT_COUNT);

static const struct {
  const char *text;
  uint64_t value;
} booleans[] = {
    {"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}, {"on", 1}, {"off", 0}, {"1", 1}, {"0", 0},
};

const MigPolicyKeyInfo *mig_policy_key_info(MigPolicyKey key) {
  return (unsigned)key < MIG_POLICY_KEY_COUNT ? &keys[key] : NULL;
}

const MigPolicyKeyInfo *mig_policy_key_by_name(const char *name) {
  if (!name)
    return NULL;
  for (size_t i = 0; i < MIG_POLICY_KEY_COUNT; i++)
    if (strcmp(keys[i].name, name) == 0)
      return &keys[i];
  return NULL;
}

void mig_policy_init(MigPolicy *policy) {
  for (size_t i = 0; i < MIG_POLICY_KEY_COUNT; i++)
    policy->values[i] = keys[i].default_value;
  policy->set = 0;
}

void mig_policy_merge(MigPolicy *policy, const MigPolicy *over) {
  for (size_t i = 0; i < MIG_POLICY_KEY_COUNT; i++)
    if (over->set & (UINT32_C(1) << i))
      policy->values[i] = over->values[i];
  policy->set |= over->set;
}

static void say(char *ret_message, size_t size, const char *text) {
  if (ret_message && size > 0)
    snprintf(ret_message, size, "%s", text);
}

/* What a key accepts, as half a sentence. */
static void describe(const MigPolicyKeyInfo *info, char *ret_text, size_t size) {
  switch (info->type) {
  case MIG_POLICY_TYPE_BOOL:
    snprintf(ret_text, size, "yes or no");
    return;
  case MIG_POLICY_TYPE_INT:
    snprintf(ret_text, size, "a whole number from %" PRIu64 " to %" PRIu64 "%s%s", info->min, info->max,
             units[info->unit].base, units[info->unit].accepts);
    return;
  case MIG_POLICY_TYPE_ENUM:
    break;
  }
  size_t used = 0;
  for (size_t i = 0; info->enum_names[i] && used < size; i++) {
    const char *between = i == 0 ? "" : info->enum_names[i + 1] ? ", " : " or ";
    int n = snprintf(ret_text + used, size - used, "%s%s", between, info->enum_names[i]);
    used += n > 0 ? (size_t)n : 0;
  }
}

/* "KEY takes …, not TEXT". The text is untrusted, and the message goes into JSON and onto terminals: anything but
 * printable ASCII is shown as '?'. */
static MigPolicyError refuse(MigPolicyError error, const MigPolicyKeyInfo *info, const char *text,
                             char *ret_message, size_t size) {
  char accepted[128] = "", shown[41] = "", message[256];
  describe(info, accepted, sizeof(accepted));
  for (size_t i = 0; text[i] && i < sizeof(shown) - 1; i++) {
    unsigned char c = (unsigned char)text[i];
    shown[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
  }
  snprintf(message, sizeof(message), "%s takes %s, not \"%s\"", info->name, accepted, shown);
  say(ret_message, size, message);
  return error;
}

MigPolicyError mig_policy_set(MigPolicy *policy, MigPolicyKey key, uint64_t value, char *ret_message,
                              size_t message_size) {
  const MigPolicyKeyInfo *info = mig_policy_key_info(key);
  if (!info) {
    say(ret_message, message_size, "no such policy key");
    return MIG_POLICY_ERROR_UNKNOWN_KEY;
  }
  if (value < info->min || value > info->max) {
    static const MigPolicyError errors[] = {
        [MIG_POLICY_TYPE_INT] = MIG_POLICY_ERROR_OUT_OF_RANGE,
        [MIG_POLICY_TYPE_BOOL] = MIG_POLICY_ERROR_NOT_A_BOOLEAN,
        [MIG_POLICY_TYPE_ENUM] = MIG_POLICY_ERROR_UNKNOWN_VALUE,
    };
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    return refuse(errors[info->type], info, text, ret_message, message_size);
  }
  policy->values[key] = value;
  policy->set |= UINT32_C(1) << key;
  return MIG_POLICY_OK;
}

/* The word between leading and trailing white space. */
static const char *trim(const char *text, size_t *ret_length) {
  while (isspace((unsigned char)*text))
    text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1]))
    length--;
  *ret_length = length;
  return text;
}

static bool word_is(const char *word, size_t length, const char *name) {
  return strlen(name) == length && strncasecmp(word, name, length) == 0;
}

/* "300", "2min", "32 M", "32MiB/s", in the unit of the key. */
static MigPolicyError parse_number(const MigPolicyKeyInfo *info, const char *word, size_t length,
                                   uint64_t *ret_value) {
  uint64_t value = 0;
  bool huge = false;
  size_t i = 0;
  for (; i < length && word[i] >= '0' && word[i] <= '9'; i++)
    huge |= __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(word[i] - '0'), &value);
  if (i == 0)
    return MIG_POLICY_ERROR_NOT_A_NUMBER;
  while (i < length && isspace((unsigned char)word[i]))
    i++;

  if (i < length) {
    const char *suffix = word + i;
    size_t suffix_length = length - i;
    MigUnit unit = info->unit == MIG_UNIT_S ? MIG_UNIT_MS : info->unit;
    uint64_t factor = 0;
    if (unit == MIG_UNIT_BYTES_PER_S && suffix_length > 2 &&
        strncmp(suffix + suffix_length - 2, "/s", 2) == 0)
      suffix_length -= 2;
    for (size_t s = 0; s < TABLE_LENGTH(suffixes) && factor == 0; s++)
      if (suffixes[s].unit == unit && word_is(suffix, suffix_length, suffixes[s].text))
        factor = suffixes[s].factor;
    if (factor == 0)
      return MIG_POLICY_ERROR_NOT_A_NUMBER;
    huge |= __builtin_mul_overflow(value, factor, &value);
    if (info->unit == MIG_UNIT_S && !huge) {
      if (value % 1000 != 0)
        return MIG_POLICY_ERROR_NOT_A_NUMBER; /* rounding would grant something other than requested */
      value /= 1000;
    }
  }
  if (huge)
    return MIG_POLICY_ERROR_OUT_OF_RANGE;
  *ret_value = value;
  return MIG_POLICY_OK;
}

static MigPolicyError parse_value(const MigPolicyKeyInfo *info, const char *word, size_t length,
                                  uint64_t *ret_value) {
  switch (info->type) {
  case MIG_POLICY_TYPE_INT:
    return parse_number(info, word, length, ret_value);
  case MIG_POLICY_TYPE_BOOL:
    for (size_t i = 0; i < TABLE_LENGTH(booleans); i++)
      if (word_is(word, length, booleans[i].text)) {
        *ret_value = booleans[i].value;
        return MIG_POLICY_OK;
      }
    return MIG_POLICY_ERROR_NOT_A_BOOLEAN;
  case MIG_POLICY_TYPE_ENUM:
    break;
  }
  for (size_t i = 0; info->enum_names[i]; i++)
    if (word_is(word, length, info->enum_names[i])) {
      *ret_value = i;
      return MIG_POLICY_OK;
    }
  return MIG_POLICY_ERROR_UNKNOWN_VALUE;
}

MigPolicyError mig_policy_set_text(MigPolicy *policy, const char *name, const char *text, char *ret_message,
                                   size_t message_size) {
  const MigPolicyKeyInfo *info = mig_policy_key_by_name(name);
  if (!info) {
    say(ret_message, message_size, "no such policy key");
    return MIG_POLICY_ERROR_UNKNOWN_KEY;
  }
  size_t length;
  const char *word = trim(text, &length);
  uint64_t value = 0;
  MigPolicyError error = parse_value(info, word, length, &value);
  if (error == MIG_POLICY_OK && (value < info->min || value > info->max))
    error = MIG_POLICY_ERROR_OUT_OF_RANGE;
  if (error != MIG_POLICY_OK)
    return refuse(error, info, text, ret_message, message_size);
  return mig_policy_set(policy, info->key, value, ret_message, message_size);
}

void mig_policy_format(const MigPolicy *policy, MigPolicyKey key, char *ret_text, size_t text_size) {
  const MigPolicyKeyInfo *info = mig_policy_key_info(key);
  uint64_t value = info ? policy->values[key] : 0;
  if (text_size == 0)
    return;
  ret_text[0] = '\0';
  if (!info)
    return;
  if (info->type == MIG_POLICY_TYPE_BOOL)
    snprintf(ret_text, text_size, "%s", value ? "yes" : "no");
  else if (info->type == MIG_POLICY_TYPE_ENUM && value <= info->max)
    snprintf(ret_text, text_size, "%s", info->enum_names[value]);
  else
    snprintf(ret_text, text_size, "%" PRIu64, value);
}

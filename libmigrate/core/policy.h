/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Goals for a migration: every key with its unit, range and default, as a table. Conflicts between keys as data. */
#pragma once

#include "libmigrate/core/types.h"

typedef enum MigCompression {
  MIG_COMPRESSION_NONE,
  MIG_COMPRESSION_XBZRLE,
  MIG_COMPRESSION_ZLIB,
  MIG_COMPRESSION_ZSTD,
  MIG_COMPRESSION_COUNT
} MigCompression;

typedef enum MigTls { MIG_TLS_NO, MIG_TLS_YES, MIG_TLS_REQUIRE, MIG_TLS_COUNT } MigTls;

typedef enum MigCopyDisks {
  MIG_COPY_DISKS_NONE,
  MIG_COPY_DISKS_ALL,
  MIG_COPY_DISKS_INCREMENTAL,
  MIG_COPY_DISKS_COUNT
} MigCopyDisks;

/* Highest first: the order in which jobs leave the queue. */
typedef enum MigPriority {
  MIG_PRIORITY_RUNNING,
  MIG_PRIORITY_CRITICAL,
  MIG_PRIORITY_USER,
  MIG_PRIORITY_MAINTENANCE,
  MIG_PRIORITY_DEFAULT,
  MIG_PRIORITY_COUNT
} MigPriority;

/* The order is that of the interface file's type Policy. */
typedef enum MigPolicyKey {
  MIG_POLICY_MAX_DOWNTIME_MS,
  MIG_POLICY_MAX_PAUSE_MS,
  MIG_POLICY_ALLOW_POST_COPY,
  MIG_POLICY_ALLOW_AUTO_CONVERGE,
  MIG_POLICY_MAX_THROTTLE_PCT,
  MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB,
  MIG_POLICY_DISK_TIMEOUT_S_PER_GIB,
  MIG_POLICY_PROGRESS_TIMEOUT_S,
  MIG_POLICY_BANDWIDTH_BYTES_PER_S,
  MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S,
  MIG_POLICY_PARALLEL_CONNECTIONS,
  MIG_POLICY_COMPRESSION,
  MIG_POLICY_TLS,
  MIG_POLICY_ZEROCOPY,
  MIG_POLICY_TUNNELLED,
  MIG_POLICY_COPY_DISKS,
  MIG_POLICY_PERSIST_TARGET,
  MIG_POLICY_UNDEFINE_SOURCE,
  MIG_POLICY_PRIORITY,
  MIG_POLICY_KEY_COUNT
} MigPolicyKey;

/* All values as numbers: bool 0/1, enums by their value, sizes and times in the unit of the key's name.
 * Indexed by key, so that resolving, tuning, storing and printing are loops over the table. */
typedef struct MigPolicy {
  uint64_t values[MIG_POLICY_KEY_COUNT];
  uint32_t set; /* a bit per key: set explicitly, not just a default */
} MigPolicy;

typedef enum MigPolicyType { MIG_POLICY_TYPE_INT, MIG_POLICY_TYPE_BOOL, MIG_POLICY_TYPE_ENUM } MigPolicyType;

/* What a number counts, and so which suffixes its text may have. */
typedef enum MigUnit {
  MIG_UNIT_NONE, /* not a number, or a plain count */
  MIG_UNIT_MS,
  MIG_UNIT_S, /* also seconds per GiB */
  MIG_UNIT_BYTES_PER_S,
  MIG_UNIT_PCT,
  MIG_UNIT_COUNT
} MigUnit;

/* When a key may still be changed on a job. */
typedef enum MigTunable {
  MIG_TUNABLE_BEFORE_START, /* while pending */
  MIG_TUNABLE_TO_NO, /* while migrating it can be forbidden; it stays allowed only if it was at the start */
  MIG_TUNABLE_ALWAYS /* also while migrating */
} MigTunable;

typedef struct MigPolicyKeyInfo {
  MigPolicyKey key;
  const char *name;
  MigPolicyType type;
  MigUnit unit;
  const char *const *enum_names; /* NULL-terminated, for ENUM */
  uint64_t min, max;             /* inclusive; of a BOOL 0 and 1, of an ENUM its first and last */
  uint64_t default_value;
  MigTunable tunable;
  const char *summary; /* for --help, without a full stop */
} MigPolicyKeyInfo;

/* The row of a key. Never NULL for a key below MIG_POLICY_KEY_COUNT. */
const MigPolicyKeyInfo *mig_policy_key_info(MigPolicyKey key);

/* The row of a name, or NULL. */
const MigPolicyKeyInfo *mig_policy_key_by_name(const char *name);

/* All defaults, nothing set. */
void mig_policy_init(MigPolicy *policy);

/* Keys set in `over` replace those in `policy` and count as set there. */
void mig_policy_merge(MigPolicy *policy, const MigPolicy *over);

typedef enum MigPolicyError {
  MIG_POLICY_OK,
  MIG_POLICY_ERROR_UNKNOWN_KEY,
  MIG_POLICY_ERROR_NOT_A_NUMBER,
  MIG_POLICY_ERROR_OUT_OF_RANGE,
  MIG_POLICY_ERROR_NOT_A_BOOLEAN,
  MIG_POLICY_ERROR_UNKNOWN_VALUE,
  MIG_POLICY_ERROR_COUNT
} MigPolicyError;

/* Sets one key from text as people write it. Numbers take the suffixes K, M, G, T (powers of 1024) for bytes, and ms,
 * s, min, h for times (converted to the key's unit; a fraction is refused); booleans are yes, no, true, false, on,
 * off, 1, 0. On error the policy is unchanged, and ret_message (NUL-terminated, truncated to fit) says what would be
 * accepted. */
MigPolicyError mig_policy_set_text(MigPolicy *policy, const char *name, const char *text, char *ret_message,
                                   size_t message_size);

/* Sets one key from a number (INT: the value; BOOL: 0 or 1; ENUM: the index). */
MigPolicyError mig_policy_set(MigPolicy *policy, MigPolicyKey key, uint64_t value, char *ret_message,
                              size_t message_size);

/* The value as text that mig_policy_set_text() takes: "300", "yes", "xbzrle". */
void mig_policy_format(const MigPolicy *policy, MigPolicyKey key, char *ret_text, size_t text_size);

/* The value of a key below MIG_POLICY_KEY_COUNT, in the unit of its name. */
static inline uint64_t mig_policy_get(const MigPolicy *policy, MigPolicyKey key) {
  return policy->values[key];
}

/* What decides which keys go together, about the domain and the hypervisors. */
typedef struct MigPolicyFacts {
  bool passthrough;         /* a host device is assigned to the domain */
  bool local_disks;         /* the domain has disks that the target cannot see */
  uint64_t qemu_version;    /* as libvirt counts: 7002000; 0: unknown. The lower of both ends */
  uint64_t libvirt_version; /* 9000000; 0: unknown. The lower of both ends */
} MigPolicyFacts;

/* Two things that exclude each other, or one that needs the other. */
typedef struct MigConflict {
  const char *code;     /* POST_COPY_PARALLEL */
  MigPolicyKey keys[2]; /* the keys to name; the second may be MIG_POLICY_KEY_COUNT: none */
  const char *message;  /* what excludes what, why, and what would help */
} MigConflict;

/* Writes the conflicts of a policy to ret_conflicts, at most max, and returns the total number. */
size_t mig_policy_conflicts(const MigPolicy *policy, const MigPolicyFacts *facts,
                            const MigConflict **ret_conflicts, size_t max);

/* All rules in order: for documentation, and for the test that triggers each one. Returns how many. */
size_t mig_policy_conflict_rules(const MigConflict **ret_conflicts, size_t max);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which domains a policy applies to: conditions as text, and the domain's properties that they test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One element or attribute of a domain's metadata. */
typedef struct MigMatchEntry {
  const char *path; /* {namespace}element/child@attribute: see virt/tags.h */
  const char *value;
} MigMatchEntry;

/* What people and orchestrators wrote into a domain's definition; see virt/tags.h. All zero: nothing. */
typedef struct MigDomainTags {
  char *title;
  MigMatchEntry *metadata; /* both strings of each are owned */
  size_t n_metadata;
} MigDomainTags;

/* The domain's properties. Strings may be NULL: it has none. */
typedef struct MigMatchFacts {
  const char *name;
  const char *title;
  uint64_t memory_bytes;
  const MigMatchEntry *metadata;
  size_t n_metadata;
} MigMatchFacts;

typedef enum MigMatchKind {
  MIG_MATCH_NAME,
  MIG_MATCH_TITLE,
  MIG_MATCH_MEMORY,
  MIG_MATCH_METADATA,
  MIG_MATCH_COUNT
} MigMatchKind;

typedef enum MigMatchCompare {
  MIG_MATCH_AT_LEAST, /* >= */
  MIG_MATCH_AT_MOST,  /* <= */
  MIG_MATCH_MORE,     /* > */
  MIG_MATCH_LESS      /* < */
} MigMatchCompare;

/* One condition. Its strings point into the parsed text. */
typedef struct MigMatch {
  MigMatchKind kind;
  const char *path; /* of METADATA */
  size_t path_length;
  const char *pattern; /* NULL: METADATA only needs to have the path */
  MigMatchCompare compare;
  uint64_t bytes;
} MigMatch;

/* Parses name=PATTERN, title=PATTERN, memory>=SIZE (or <=, >, <) or metadata=PATH[=PATTERN]. In a pattern, * stands
 * for any text and ? for one character. `text` must outlive the result. False: ret_message (truncated to fit) says
 * what would be accepted. */
bool mig_match_parse(const char *text, MigMatch *ret_match, char *ret_message, size_t message_size);

/* Does the condition hold? Texts are compared byte by byte, so case matters. */
bool mig_match_holds(const MigMatch *match, const MigMatchFacts *facts);

/* How specific a set of conditions is: of two sets that hold, the one with the higher rank wins. One that names the
 * domain (a name without * and ?) ranks above all others, then the one with more conditions, then the one with more
 * exact ones. 0: no conditions. */
unsigned mig_match_rank(const MigMatch *matches, size_t n);

/* Does `text` match the pattern? */
bool mig_glob(const char *pattern, const char *text);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which domains a policy applies to. */
#include "libmigrate/core/match.h"

#include "libmigrate/core/table.h"

#include <inttypes.h>
#include <stdio.h>

bool mig_glob(const char *pattern, const char *text) {
  const char *star = NULL, *star_text = NULL;

  while (*text) {
    if (*pattern == '*') {
      star = pattern++;
      star_text = text;
    } else if (*pattern == '?' || *pattern == *text) {
      pattern++;
      text++;
      /* A ? matches a whole UTF-8 character. */
      while (pattern[-1] == '?' && ((unsigned char)*text & 0xc0) == 0x80)
        text++;
    } else if (star) {
      pattern = star + 1;
      text = ++star_text;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    pattern++;
  return *pattern == '\0';
}

static const struct {
  const char *prefix;
  MigMatchKind kind;
} kinds[] = {
    {"name=", MIG_MATCH_NAME},
    {"title=", MIG_MATCH_TITLE},
    {"memory", MIG_MATCH_MEMORY},
    {"metadata=", MIG_MATCH_METADATA},
};
TABLE_COVERS(kinds, MIG_MATCH_COUNT);

static const struct {
  const char *text;
  MigMatchCompare compare;
} compares[] = {
    /* the longer ones first */
    {">=", MIG_MATCH_AT_LEAST},
    {"<=", MIG_MATCH_AT_MOST},
    {">", MIG_MATCH_MORE},
    {"<", MIG_MATCH_LESS},
};

static const struct {
  const char *text;
  unsigned shift;
} suffixes[] = {{"", 0},     {"B", 0},  {"K", 10},   {"KiB", 10}, {"M", 20},
                {"MiB", 20}, {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};

/* A whole number with a suffix. */
static bool parse_size(const char *text, uint64_t *ret_bytes) {
  uint64_t value = 0;
  const char *p = text;

  for (; *p >= '0' && *p <= '9'; p++) {
    if (value > UINT64_MAX / 10 - 1)
      return false;
    value = value * 10 + (uint64_t)(*p - '0');
  }
  if (p == text)
    return false;
  while (*p == ' ')
    p++;
  for (size_t i = 0; i < TABLE_LENGTH(suffixes); i++)
    if (strcmp(p, suffixes[i].text) == 0) {
      *ret_bytes = value << suffixes[i].shift;
      return *ret_bytes >> suffixes[i].shift == value;
    }
  return false;
}

static bool parse_memory(const char *text, MigMatch *match) {
  for (size_t i = 0; i < TABLE_LENGTH(compares); i++) {
    size_t length = strlen(compares[i].text);

    if (strncmp(text, compares[i].text, length) != 0)
      continue;
    text += length;
    while (*text == ' ')
      text++;
    match->compare = compares[i].compare;
    return parse_size(text, &match->bytes);
  }
  return false;
}

/* The path ends at the first = outside the braces of a namespace. */
static bool parse_metadata(const char *text, MigMatch *match) {
  bool in_braces = false;
  size_t length = 0;

  for (; text[length] && (in_braces || text[length] != '='); length++) {
    if (text[length] == '{')
      in_braces = true;
    else if (text[length] == '}')
      in_braces = false;
  }
  if (length == 0 || in_braces || text[length - 1] == '}' || text[length - 1] == '/' ||
      text[length - 1] == '@')
    return false;
  match->path = text;
  match->path_length = length;
  match->pattern = text[length] ? text + length + 1 : NULL;
  return true;
}

static bool parse_rest(const char *rest, MigMatch *match) {
  switch (match->kind) {
  case MIG_MATCH_NAME:
  case MIG_MATCH_TITLE:
    match->pattern = rest;
    return *rest != '\0';
  case MIG_MATCH_MEMORY:
    return parse_memory(rest, match);
  case MIG_MATCH_METADATA:
    return parse_metadata(rest, match);
  case MIG_MATCH_COUNT:
    break;
  }
  return false;
}

bool mig_match_parse(const char *text, MigMatch *ret_match, char *ret_message, size_t message_size) {
  for (size_t i = 0; i < TABLE_LENGTH(kinds); i++) {
    MigMatch match = {.kind = kinds[i].kind};
    size_t length = strlen(kinds[i].prefix);

    if (strncmp(text, kinds[i].prefix, length) != 0 || !parse_rest(text + length, &match))
      continue;
    *ret_match = match;
    return true;
  }
  snprintf(ret_message, message_size,
           "name=PATTERN, title=PATTERN, memory>=SIZE (or <=, >, <; with K, M, G or T) or "
           "metadata={NAMESPACE}ELEMENT[/CHILD][@ATTRIBUTE][=PATTERN]");
  return false;
}

static bool compare_memory(const MigMatch *match, uint64_t bytes) {
  switch (match->compare) {
  case MIG_MATCH_AT_LEAST:
    return bytes >= match->bytes;
  case MIG_MATCH_AT_MOST:
    return bytes <= match->bytes;
  case MIG_MATCH_MORE:
    return bytes > match->bytes;
  case MIG_MATCH_LESS:
    return bytes < match->bytes;
  }
  return false;
}

static bool has_metadata(const MigMatch *match, const MigMatchFacts *facts) {
  for (size_t i = 0; i < facts->n_metadata; i++) {
    const MigMatchEntry *entry = &facts->metadata[i];

    if (strlen(entry->path) == match->path_length &&
        memcmp(entry->path, match->path, match->path_length) == 0 &&
        (!match->pattern || mig_glob(match->pattern, entry->value)))
      return true;
  }
  return false;
}

bool mig_match_holds(const MigMatch *match, const MigMatchFacts *facts) {
  switch (match->kind) {
  case MIG_MATCH_NAME:
    return facts->name && mig_glob(match->pattern, facts->name);
  case MIG_MATCH_TITLE:
    return facts->title && mig_glob(match->pattern, facts->title);
  case MIG_MATCH_MEMORY:
    return compare_memory(match, facts->memory_bytes);
  case MIG_MATCH_METADATA:
    return has_metadata(match, facts);
  case MIG_MATCH_COUNT:
    break;
  }
  return false;
}

static bool is_exact(const MigMatch *match) {
  return match->pattern && !strchr(match->pattern, '*') && !strchr(match->pattern, '?');
}

/* A base-1000 digit per criterion, so that they are compared in order. */
unsigned mig_match_rank(const MigMatch *matches, size_t n) {
  unsigned named = 0, exact = 0;

  for (size_t i = 0; i < n; i++) {
    exact += is_exact(&matches[i]);
    named = named || (matches[i].kind == MIG_MATCH_NAME && is_exact(&matches[i]));
  }
  return (named * 1000 + (unsigned)(n < 999 ? n : 999)) * 1000 + (exact < 999 ? exact : 999);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Not public: tables of enum names, with their length checked at compile time. */
#pragma once

#include "libmigrate/core/types.h"

#include <string.h>

#define TABLE_LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* A table that is shorter than its enum does not compile. A test that walks the rows finds holes. */
#define TABLE_COVERS(table, count)                                                                           \
  _Static_assert(TABLE_LENGTH(table) == (size_t)(count), #table " does not cover its enum")

static inline const char *table_name(const char *const *names, size_t count, int value) {
  return value >= 0 && (size_t)value < count ? names[value] : NULL;
}

static inline int table_find(const char *const *names, size_t count, const char *name) {
  if (!name)
    return MIG_ENUM_UNKNOWN;
  for (size_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0)
      return (int)i;
  return MIG_ENUM_UNKNOWN;
}

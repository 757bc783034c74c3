/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the table that classifies a difference between two definitions. */
#pragma once

#include "libmigrate/core/changes.h"

/* Kinds of differences; a row may cover several. */
typedef enum ChangeKind {
  CHANGE_VALUE = 1 << 0,  /* a value differs, or the running domain does not have it */
  CHANGE_GONE = 1 << 1,   /* only the running domain has it: removed, or filled in by libvirt */
  CHANGE_ADDED = 1 << 2,  /* the next start adds the whole item */
  CHANGE_REMOVED = 1 << 3 /* the next start removes the whole item */
} ChangeKind;

/* Consecutive entries of one item. */
typedef struct ChangeSlice {
  const MigDefEntry *entries;
  size_t n;
} ChangeSlice;

typedef struct ChangeContext {
  const MigDefinition *whole_live;            /* all of it */
  ChangeSlice live_domain, next_domain;       /* the items "" */
  ChangeSlice live, next;                     /* the item; empty if missing */
  const MigDefEntry *live_entry, *next_entry; /* the value; NULL if missing */
} ChangeContext;

typedef bool ChangeTest(const ChangeContext *context);

typedef struct ChangeRow {
  const char *code;  /* NULL: not a change */
  unsigned kinds;    /* of ChangeKind */
  const char *items; /* patterns, separated by '|'; '*' stands for any text */
  const char *paths; /* likewise; NULL for whole items */
  ChangeTest *when;  /* NULL: always */
  MigRemedy remedy;
  bool by_migration; /* a migration works as well */
  const char *how;   /* a sentence, instead of the usual one for the remedy; or NULL */
} ChangeRow;

/* NULL past the last row. */
const ChangeRow *change_row(size_t i);

/* The first row that matches wins. NULL, or a row without a code: not a change. */
const ChangeRow *change_find(ChangeKind kind, const char *item, const char *path,
                             const ChangeContext *context);

/* Does the text match one of the patterns? */
bool change_fits(const char *patterns, const char *text);

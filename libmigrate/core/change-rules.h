/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the table of what a difference between two definitions is. */
#pragma once

#include "libmigrate/core/changes.h"

/* Kinds of differences; a row may be for several. */
typedef enum ChangeKind {
  CHANGE_VALUE = 1 << 0, /* a value differs, or the running domain has none */
  CHANGE_GONE =
      1
      << 1, /* a value that the running domain alone has: taken back, or filled in by libvirt at the start */
  CHANGE_ADDED = 1 << 2,  /* the next start has the whole item, the running domain has not */
  CHANGE_REMOVED = 1 << 3 /* the other way round */
} ChangeKind;

/* Some entries of one item. */
typedef struct ChangeSlice {
  const MigDefEntry *entries;
  size_t n;
} ChangeSlice;

typedef struct ChangeContext {
  const MigDefinition *whole_live;            /* all of it */
  ChangeSlice live_domain, next_domain;       /* the items "" */
  ChangeSlice live, next;                     /* the item; empty where it is not */
  const MigDefEntry *live_entry, *next_entry; /* of a value: it; NULL where it is not */
} ChangeContext;

/* NULL: there is none. */
const char *change_value(ChangeSlice slice, const char *path);

typedef bool ChangeTest(const ChangeContext *context);

typedef struct ChangeRow {
  const char *code;  /* NULL: no change at all */
  unsigned kinds;    /* of ChangeKind */
  const char *items; /* patterns, with '|' between them; '*' stands for any text */
  const char *paths; /* likewise; of whole items NULL */
  ChangeTest *when;  /* NULL: always */
  MigRemedy remedy;
  bool by_migration; /* beside the remedy */
  const char *how;   /* a sentence, in place of what is always said of the remedy; or NULL */
} ChangeRow;

/* NULL past the last. */
const ChangeRow *change_row(size_t i);

/* The first row that fits holds. NULL: no change; so is one without a code. */
const ChangeRow *change_find(ChangeKind kind, const char *item, const char *path,
                             const ChangeContext *context);

/* Does the text fit one of the patterns? */
bool change_fits(const char *patterns, const char *text);

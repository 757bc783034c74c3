/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables and labelled fields. */
#pragma once

#include "agent/ctl/term.h"
#include "proto/json.h"

#include <glib.h>

/* For %s with a string that may be absent. */
static inline const char *or_dash(const char *text) {
  return text ? text : "-";
}

typedef struct Table Table;

/* `titles` is NULL-terminated and lives as long as the table. */
Table *table_new(const char *const *titles);
void table_free(Table *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Table, table_free)

/* Adds the next cell. A row has as many cells as there are titles. */
void table_add(Table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Each column is as wide as its widest cell. Nothing is truncated, so cells can be pasted into a command. */
void table_print(const Table *table, Term *term);

/* "label:      text" */
void print_field(Term *term, const char *label, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* A JSON scalar in the notation of policy values on the command line: "300", "yes", "xbzrle". */
char *print_value(json_t *value);

/* An array of type HangingCall, or NULL. */
void print_hanging(Term *term, json_t *hanging);

/* Every key of an object of type Policy; those in the key table come first. */
void print_policy(Term *term, json_t *policy);

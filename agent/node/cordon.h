/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is this node cordoned: does it take no new work? Kept on stable storage. */
#pragma once

#include "agent/job/recordformat.h"
#include "agent/job/store.h"
#include "proto/server.h"

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct Node Node;

/* All zero: it is not. */
typedef struct Cordon {
  bool on;
  char *reason; /* never NULL while on */
  char *by;     /* who asked for it: "uid 0 (pid 1)" */
  int64_t since_usec;
} Cordon;

void cordon_clear(Cordon *cordon);

/* Takes the record that was read at the start. A record that cannot be read cordons the node: better no work than work that
 * somebody wanted kept away. */
void cordon_read(Cordon *cordon, json_t *record, const GError *error);

/* The interface's type CordonState, or NULL: it is not. */
json_t *cordon_to_json(const Cordon *cordon);

/* Answers a call with NodeCordoned, if the node is: true then. */
bool cordon_refuse(const Node *node, VarlinkCall *call);

/* The reason may be NULL; said again, it is since the first time, and a new reason replaces the old one. `done` is called as of
 * store_write(). */
void cordon_begin(Node *node, const char *reason, const char *by, StoreDoneFunc done, gpointer user_data);
void cordon_end(Node *node, const char *by, StoreDoneFunc done, gpointer user_data);

/* Cordons for a drain, whose record is written after this one. A node that is cordoned stays so as it is. */
void cordon_for_drain(Node *node, const char *by);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cordon: while it is on, this node takes no new work. Kept on stable storage. */
#pragma once

#include "agent/job/recordformat.h"
#include "agent/job/store.h"
#include "proto/json.h"
#include "proto/server.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Node Node;

/* All zero: not cordoned. */
typedef struct Cordon {
  bool on;
  char *reason; /* never NULL while on */
  char *by;     /* who requested it: "uid 0 (pid 1)" */
  int64_t since_usec;
} Cordon;

void cordon_clear(Cordon *cordon);

/* Takes the record that was read at startup. If it cannot be read the node is cordoned: refusing work is safer than taking
 * work that somebody meant to keep away. */
void cordon_read(Cordon *cordon, json_t *record, const GError *error);

/* The interface's type CordonState; NULL if the node is not cordoned. */
json_t *cordon_to_json(const Cordon *cordon);

/* If the node is cordoned, answers the call with NodeCordoned and returns true. */
bool cordon_refuse(const Node *node, VarlinkCall *call);

/* `reason` may be NULL. On a cordoned node the start time stays, and a new reason replaces the old one. `done` is called as by
 * store_write(). */
void cordon_begin(Node *node, const char *reason, const char *by, StoreDoneFunc done, gpointer user_data);
void cordon_end(Node *node, const char *by, StoreDoneFunc done, gpointer user_data);

/* Cordons for a drain, whose record must be written after this one. An existing cordon is left as it is. */
void cordon_for_drain(Node *node, const char *by);

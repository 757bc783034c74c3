/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emptying this node: what the rest of the agent has to do with it. */
#pragma once

#include "agent/job/jobs.h"
#include "agent/job/recordformat.h"
#include "proto/server.h"

#include <glib.h>
#include <jansson.h>

typedef struct Drains Drains;

/* The one of this agent: under way, or the last one. */
typedef struct Drain Drain;

/* Takes the record that was read at the start. One that cannot be read is said, and the drain is over; the node stays
 * cordoned. */
void drain_read(Drains *drains, json_t *record, const GError *error);

/* Goes on with what was read, once the jobs are there. */
void drain_resume(Drains *drains);

/* NULL is fine. Questions that are under way are left to themselves. */
void drain_free(Drain *drain);

/* Some times a second. */
void drain_tick(Drains *drains);

/* Observes jobs; `drains` is Drains. */
void drain_on_job(Job *job, JobChange change, gpointer drains);

/* A domain may have started or stopped. */
void drain_handle_event(Drains *drains, const MigVirtEvent *event);

/* Is one under way? */
bool drain_is_active(const Drains *drains);

/* The interface's type DrainStatus, or NULL: there is none. */
json_t *drain_to_json(const Drains *drains);

/* Answer Drain, WatchDrain and AbortDrain. */
void drain_answer_begin(Drains *drains, VarlinkCall *call, json_t *parameters);
void drain_answer_watch(Drains *drains, VarlinkCall *call);
void drain_answer_abort(Drains *drains, VarlinkCall *call);

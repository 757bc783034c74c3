/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emptying this node: what the rest of the agent has to do with it. */
#pragma once

#include "agent/job/job.h"
#include "proto/server.h"

#include <glib.h>
#include <jansson.h>

/* The id of its record, among those of the jobs. */
#define DRAIN_RECORD_ID "drain"

struct Agent;

/* The one of this agent: under way, or the last one. */
typedef struct Drain Drain;

/* Takes the record that was read at the start. One that cannot be read is said, and the drain is over; the node stays
 * cordoned. */
void drain_read(struct Agent *agent, json_t *record, const GError *error);

/* Goes on with what was read, once the jobs are there. */
void drain_resume(struct Agent *agent);

/* NULL is fine. Questions that are under way are left to themselves. */
void drain_free(Drain *drain);

/* Some times a second. */
void drain_tick(struct Agent *agent);

/* The job changed. `urgent`: its state did, not only its numbers. */
void drain_note_job(struct Agent *agent, const Job *job, bool urgent);

/* A domain may have started or stopped. */
void drain_handle_event(struct Agent *agent, const MigVirtEvent *event);

/* Is one under way? */
bool drain_is_active(const struct Agent *agent);

/* The interface's type DrainStatus, or NULL: there is none. */
json_t *drain_to_json(const struct Agent *agent);

/* Answer Drain, WatchDrain and AbortDrain. */
void drain_answer_begin(struct Agent *agent, VarlinkCall *call, json_t *parameters);
void drain_answer_watch(struct Agent *agent, VarlinkCall *call);
void drain_answer_abort(struct Agent *agent, VarlinkCall *call);

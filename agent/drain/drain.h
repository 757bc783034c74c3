/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draining this node: what the rest of the agent sees of it. */
#pragma once

#include "agent/job/jobs.h"
#include "agent/job/recordformat.h"
#include "proto/server.h"

#include <glib.h>

typedef struct Drains Drains;

/* The agent has at most one: the one in progress, or the last. */
typedef struct Drain Drain;

/* Takes the record that was read at startup. If it cannot be read, that is logged and the drain is over; the node stays
 * cordoned. */
void drain_read(Drains *drains, json_t *record, const GError *error);

/* Resumes the drain that was read. Call it once the jobs are loaded. */
void drain_resume(Drains *drains);

/* NULL is fine. Answers to outstanding questions are dropped. */
void drain_free(Drain *drain);

/* Call it several times a second. */
void drain_tick(Drains *drains);

/* A JobObserverFunc; `drains` is Drains. */
void drain_on_job(Job *job, JobChange change, gpointer drains);

/* A domain may have started or stopped. */
void drain_handle_event(Drains *drains, const MigVirtEvent *event);

/* Is a drain in progress? */
bool drain_is_active(const Drains *drains);

/* The interface's type DrainStatus; NULL if there was no drain. */
json_t *drain_to_json(const Drains *drains);

/* Answer Drain, WatchDrain and AbortDrain. */
void drain_answer_begin(Drains *drains, VarlinkCall *call, json_t *parameters);
void drain_answer_watch(Drains *drains, VarlinkCall *call);
void drain_answer_abort(Drains *drains, VarlinkCall *call);

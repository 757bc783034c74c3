/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's way through its phases: what drives it, and what is recorded, reported and started at each step. */
#pragma once

#include "agent/move/mover.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"

/* Called once a job's record is on stable storage. With `error` it could not be stored, and the job is gone. */
typedef void (*LifecycleAcceptedFunc)(Job *job, const GError *error, gpointer user_data);

/* Puts a new job into the table and on stable storage, then queues it. Takes the job. */
void lifecycle_accept(Mover *mover, Job *job, LifecycleAcceptedFunc done, gpointer user_data);

typedef enum LifecycleAbort {
  LIFECYCLE_ABORT_ASKED,
  LIFECYCLE_ABORT_OVER,
  LIFECYCLE_ABORT_POST_COPY,
  LIFECYCLE_ABORT_INCOMING /* an incoming migration, which only its source can end */
} LifecycleAbort;

/* Requests the abort of a job. The caller writes the record (jobs_save()). */
LifecycleAbort lifecycle_abort(Mover *mover, Job *job, const Caller *caller);

/* The same, for a cause of the agent's own; `why` is the message. */
LifecycleAbort lifecycle_take_back(Mover *mover, Job *job, MigCause cause, const Caller *caller,
                                   const char *why);

/* Forces a running migration to complete, by `kind`. NULL, or why it cannot. */
const char *lifecycle_complete(Mover *mover, Job *job, MigActionKind kind, const char *who);

/* A caller answers the job's question to an operator: did the guest run at the target? NULL, or why that is refused. */
const char *lifecycle_settle(Mover *mover, Job *job, bool it_ran, const char *who);

/* Changes goals; only keys set in `changes` count. False: ret_key can no longer be changed. */
bool lifecycle_tune(Mover *mover, Job *job, const MigPolicy *changes, const char *who, const char **ret_key);

/* Takes over a job that was loaded from its record. */
void lifecycle_adopt(Mover *mover, Job *job);

/* Call it several times a second: deadlines, timeouts, retries. */
void lifecycle_tick(Mover *mover);

void lifecycle_handle_event(Mover *mover, const MigVirtEvent *event);

/* Detaches from a job in progress: its migration continues without us. True if a thread is left behind. */
bool lifecycle_detach(Job *job);

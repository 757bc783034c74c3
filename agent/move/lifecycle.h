/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's way through its phases: what moves it on, and what is written, said and started at each step. */
#pragma once

#include "agent/move/mover.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"

/* Called once a job's record is on stable storage, or with `error`: it is not, and the job is gone. */
typedef void (*LifecycleAcceptedFunc)(Job *job, const GError *error, gpointer user_data);

/* Puts a new job into the table and on stable storage; queues it then. Takes the job. */
void lifecycle_accept(Mover *mover, Job *job, LifecycleAcceptedFunc done, gpointer user_data);

typedef enum LifecycleAbort {
  LIFECYCLE_ABORT_ASKED,
  LIFECYCLE_ABORT_OVER,
  LIFECYCLE_ABORT_POST_COPY,
  LIFECYCLE_ABORT_INCOMING /* it comes here, and its source alone can end that */
} LifecycleAbort;

/* Asks for the end of a job. The caller writes the record (jobs_save()). */
LifecycleAbort lifecycle_abort(Mover *mover, Job *job, const Caller *caller);

/* The same for a cause of the agent's own; `why` is in words. */
LifecycleAbort lifecycle_take_back(Mover *mover, Job *job, MigCause cause, const Caller *caller,
                                   const char *why);

/* Takes a way out of a running migration now. NULL, or why it cannot be taken. */
const char *lifecycle_complete(Mover *mover, Job *job, MigActionKind kind, const char *who);

/* A caller answers what a job asks an operator: did the guest run at the target? NULL, or why that is refused. */
const char *lifecycle_settle(Mover *mover, Job *job, bool it_ran, const char *who);

/* Changes goals. Only what is set in `changes` counts. False: ret_key cannot be changed any more. */
bool lifecycle_tune(Mover *mover, Job *job, const MigPolicy *changes, const char *who, const char **ret_key);

/* Takes up a job that was read back. */
void lifecycle_adopt(Mover *mover, Job *job);

/* Some times a second: deadlines, timeouts, what is to be written again, what is to be forgotten. */
void lifecycle_tick(Mover *mover);

void lifecycle_handle_event(Mover *mover, const MigVirtEvent *event);

/* Lets go of a job that is being worked on: its migration goes on without us. True if a thread is left behind. */
bool lifecycle_detach(Job *job);

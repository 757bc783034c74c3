/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's way through its phases: what moves it on, and what is written, said and started at each step. */
#pragma once

#include "agent/agent.h"
#include "libmigrate/core/policy.h"

/* Called once a job's record is on stable storage, or with `error`: it is not, and the job is gone. */
typedef void (*LifecycleAcceptedFunc)(Agent *agent, Job *job, const GError *error, gpointer user_data);

/* Puts a new job into the table and on stable storage; queues it then. Takes the job. */
void lifecycle_accept(Agent *agent, Job *job, LifecycleAcceptedFunc done, gpointer user_data);

/* Starts pending jobs while the limits allow it. */
void lifecycle_admit(Agent *agent);

typedef enum LifecycleAbort {
  LIFECYCLE_ABORT_ASKED,
  LIFECYCLE_ABORT_OVER,
  LIFECYCLE_ABORT_POST_COPY
} LifecycleAbort;

/* Asks for the end of a job. `who` is for the record. The caller writes the record (lifecycle_save()). */
LifecycleAbort lifecycle_abort(Agent *agent, Job *job, const char *who);

/* Changes goals. Only what is set in `changes` counts. False: ret_key cannot be changed any more. */
bool lifecycle_tune(Agent *agent, Job *job, const MigPolicy *changes, const char *who, const char **ret_key);

/* Writes the job's record. `done` may be NULL; it is called as of store_write(). */
void lifecycle_save(Agent *agent, Job *job, StoreDoneFunc done, gpointer user_data);

/* Takes up a job that was read back. */
void lifecycle_adopt(Agent *agent, Job *job);

/* Some times a second: deadlines, timeouts, what is to be written again, what is to be forgotten. */
void lifecycle_tick(Agent *agent);

void lifecycle_handle_event(Agent *agent, const MigVirtEvent *event);

/* Lets go of a job that is being worked on: its migration goes on without us. True if a thread is left behind. */
bool lifecycle_detach(Job *job);

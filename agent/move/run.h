/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job that is being worked on: its worker, its monitor, and what follows from what they say. */
#pragma once

#include "agent/move/mover.h"
#include "libmigrate/core/monitor.h"

typedef struct JobRun JobRun;

/* Puts a worker on the job, from the checks on. Sets job->run. With `reattach` its migration may be under way already. */
void run_start(Mover *mover, Job *job, bool reattach);

/* Takes up a job whose migration may be under way since before this process. */
void run_adopt(Mover *mover, Job *job);

/* The checks passed, and the job has its share of the bandwidth: the migration begins. */
void run_begin(JobRun *run);

/* Lets go of the worker. What it is at goes on in libvirtd. */
void run_free(JobRun *run);

/* Has the worker been told to migrate? Until then nothing moves, and nothing will once the run is freed. */
bool run_may_be_moving(const JobRun *run);

/* Did the migration's call return with an error already? */
bool run_has_failed(const JobRun *run);

/* Asks for the cancelling of the migration. */
void run_abort(JobRun *run);

/* Takes a way out, whatever the monitor thinks of it: MIG_ACTION_START_POST_COPY or MIG_ACTION_PAUSE. */
void run_complete(JobRun *run, MigActionKind kind);

/* The record is about to claim that the agent pauses the guest; run_complete() follows once that is durable, or
 * run_drop_pause() if it is not to be. */
void run_want_pause(JobRun *run);
bool run_wants_pause(const JobRun *run);
void run_drop_pause(JobRun *run, const char *why);

/* No pause is made any more: the record claims those alone that were, or may have been. To be called before the run is freed
 * and the record written for the last time. */
void run_settle_pause(JobRun *run);

/* The job's policy has changed in what is set in `changes`. */
void run_tune(JobRun *run, const MigPolicy *changes);

/* Some times a second. May end the job. */
void run_tick(JobRun *run, uint64_t now_ms);

/* Is its outcome open, so that only an operator can know? */
bool run_asks_operator(const JobRun *run);

/* A caller answers for where the guest ran: see worker_set_word(). */
void run_set_word(JobRun *run);

void run_handle_event(JobRun *run, const MigVirtEvent *event);

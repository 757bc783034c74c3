/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job in progress: its worker, its monitor, and what follows from their reports. */
#pragma once

#include "agent/move/mover.h"
#include "libmigrate/core/monitor.h"

typedef struct JobRun JobRun;

/* Starts a worker for the job, beginning with the checks. Sets job->run. With `reattach` it may already be migrating. */
void run_start(Mover *mover, Job *job, bool reattach);

/* Takes over a job that may have been migrating since before this process started. */
void run_adopt(Mover *mover, Job *job);

/* The checks passed, and the job has its share of the bandwidth: starts the migration. */
void run_begin(JobRun *run);

/* Detaches from the worker. What it has started continues in libvirtd. */
void run_free(JobRun *run);

/* Has the worker been told to migrate? If not, nothing moves, and nothing will after the run is freed. */
bool run_may_be_moving(const JobRun *run);

/* Has the migration call returned an error? */
bool run_has_failed(const JobRun *run);

/* Requests that the migration be cancelled. */
void run_abort(JobRun *run);

/* Forces completion, whatever the monitor thinks of it: MIG_ACTION_START_POST_COPY or MIG_ACTION_PAUSE. */
void run_complete(JobRun *run, MigActionKind kind);

/* The record is about to claim that the agent pauses the guest. run_complete() follows once that is durable, or
 * run_drop_pause() if the pause must not happen. */
void run_want_pause(JobRun *run);
bool run_wants_pause(const JobRun *run);
void run_drop_pause(JobRun *run, const char *why);

/* No pause follows any more: the record claims only those that happened or may have. Call it before the run is freed and
 * the record is written for the last time. */
void run_settle_pause(JobRun *run);

/* The keys set in `changes` have changed in the job's policy. */
void run_tune(JobRun *run, const MigPolicy *changes);

/* Call it several times a second. May end the job. */
void run_tick(JobRun *run, uint64_t now_ms);

/* Is its outcome open, and can only an operator know it? */
bool run_asks_operator(const JobRun *run);

/* A caller has said where the guest ran: see worker_set_word(). */
void run_set_word(JobRun *run);

void run_handle_event(JobRun *run, const MigVirtEvent *event);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the queue to the checks, and back to the queue if the checks find something that may pass. */
#pragma once

#include "agent/move/mover.h"

/* Puts an accepted job into the queue. */
void admit_push(Mover *mover, Job *job);

/* Starts all jobs whose turn has come. Call it after anything that may change that. */
void admit_jobs(Mover *mover);

/* The job's checks passed. False: there is no slot for it (any more); it waits again, and its run is gone. */
bool admit_passed(Mover *mover, Job *job);

/* The job's checks found something that may pass: frees its slot and its run, and queues it again.
 * `reason` is a code for what was found; `error` says it in words. `hold` is not MIG_HOLD_NONE. */
void admit_hold(Mover *mover, Job *job, MigHold hold, const char *reason, MigCause cause,
                const GError *error);

/* When a pending job fails unless something changes, in realtime µs; 0: never. */
int64_t admit_until_usec(const Mover *mover, const Job *job);

/* Several times a second: checks again the jobs that are due, and fails those that have waited too long. */
void admit_tick(Mover *mover);

/* Job observer: the end of one job lets others start. `mover` is a Mover. */
void admit_on_job(Job *job, JobChange change, gpointer mover);

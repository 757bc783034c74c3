/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From waiting to the checks, and back where the checks find something that waiting can cure. */
#pragma once

#include "agent/move/mover.h"

/* An accepted job begins to wait. */
void admit_push(Mover *mover, Job *job);

/* Lets all begin whose turn has come. To be called after whatever may have changed that. */
void admit_jobs(Mover *mover);

/* The job's checks passed. False: there is no place for it (any more); it waits again, and its run is gone. */
bool admit_passed(Mover *mover, Job *job);

/* The job's checks found something that waiting can cure: it gives back its place, its run is freed, and it waits again.
 * `reason` is a code for what was found; `error` is in words. `hold` is not MIG_HOLD_NONE. */
void admit_hold(Mover *mover, Job *job, MigHold hold, const char *reason, MigCause cause,
                const GError *error);

/* When a pending job fails if nothing changes, realtime µs; 0: never. */
int64_t admit_until_usec(const Mover *mover, const Job *job);

/* Some times a second: those whose time to look again has come, or to give up. */
void admit_tick(Mover *mover);

/* Observes jobs: the end of one lets others begin. `mover` is Mover. */
void admit_on_job(Job *job, JobChange change, gpointer mover);

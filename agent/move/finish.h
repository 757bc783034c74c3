/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a job, whoever detects it. */
#pragma once

#include "agent/move/mover.h"

/* An end that somebody decided on is an abort; any other is a failure. */
MigPhase finish_phase_of_cause(MigCause cause);

/* Ends the job, and frees its run. Takes `evidence`. The job stays in the table for now:
 * jobs_tick() forgets old ones. */
void finish_job(Mover *mover, Job *job, MigPhase phase, JobWhere running_at, char *evidence);

/* The same for a job whose migration was not started, and will not be. */
void finish_unmoved(Mover *mover, Job *job);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Following jobs: what Watch streams, as a progress line, as log lines, or as JSON. */
#pragma once

#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"
#include "agent/ctl/jobview.h"

/* Follows one job to its end, or with NULL all of them until a signal comes. True: *ret_job is the job at its
 * end, to be unreferenced. False: *failure says why, a signal among it. interrupt_catch() must have been
 * called. */
bool follow_job(Ctl *ctl, const char *job, json_t **ret_job, Failure *failure);

/* Says how a finished job ended, and what to do next if it did not succeed. */
void follow_summary(Term *term, const JobView *job);

/* "web1 runs on at the source.", or what is known of it. */
char *follow_whereabouts(const JobView *job);

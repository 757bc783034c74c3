/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Following jobs: shows the replies of Watch as a progress line, as log lines or as JSON. */
#pragma once

#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"
#include "agent/ctl/jobview.h"

/* Follows one job until it finishes, or with NULL all jobs until a signal arrives. True: *ret_job is the finished
 * job, to be unreferenced. False: *failure says why, which may be a signal. Call interrupt_catch() first. */
bool follow_job(Ctl *ctl, const char *job, json_t **ret_job, Failure *failure);

/* Prints how a finished job ended, and what to do next if it did not succeed. */
void follow_summary(Term *term, const JobView *job);

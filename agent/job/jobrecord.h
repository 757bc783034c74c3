/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's record: what of a job outlives the process. */
#pragma once

#include "agent/job/job.h"
#include "proto/json.h"

/* Builds the record. `boot_id` tells monotonic times of this boot from those of another. */
json_t *job_to_record(const Job *job, const char *boot_id);

/* Parses a record. Refuses a format newer than this agent's. */
Job *job_from_record(json_t *record, const char *boot_id, GError **error);

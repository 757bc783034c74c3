/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All jobs that the agent keeps, and lookups. */
#pragma once

#include "agent/job/job.h"

typedef struct JobTable JobTable;

JobTable *job_table_new(void);
void job_table_free(JobTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JobTable, job_table_free)

/* Takes the job. Its id and its request key must be new; a job without a seq gets the next one. */
void job_table_add(JobTable *table, Job *job);

/* Frees the job. */
void job_table_remove(JobTable *table, Job *job);

typedef enum JobLookup { JOB_LOOKUP_FOUND, JOB_LOOKUP_NONE, JOB_LOOKUP_AMBIGUOUS } JobLookup;

/* Finds an accepted (durable) job by id, by an id prefix (four digits or more), or by a domain's name or UUID: its unfinished job,
 * else its newest. If ambiguous, ret_candidates (may be NULL) gets the jobs; the caller frees the container. */
JobLookup job_table_find(JobTable *table, const char *text, Job **ret_job, GPtrArray **ret_candidates);

Job *job_table_find_id(JobTable *table, const char *id);
Job *job_table_find_request_key(JobTable *table, const char *request_key);

/* The unfinished job of a domain, or NULL. */
Job *job_table_find_active(JobTable *table, const char *domain_uuid);

/* Oldest first. Borrowed; do not change the table while iterating. */
const GPtrArray *job_table_all(const JobTable *table);

unsigned job_table_count_unfinished(const JobTable *table);
unsigned job_table_count_pending(const JobTable *table);
unsigned job_table_count_final(const JobTable *table);

/* Call after each change of a job's phase, to keep the counts. */
void job_table_note_phase(JobTable *table, MigPhase from, MigPhase to);

/* The final job that ended first by the monotonic clock, if these limits say to forget it, or NULL. */
Job *job_table_find_expired(const JobTable *table, unsigned keep, int64_t finished_before_ms);

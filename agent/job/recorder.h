/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the history of each migration: when to take a reading, when to write it, how a client gets it. */
#pragma once

#include "agent/job/jobs.h"

/* Opens the store of histories, removes those of jobs that are no longer kept, and reads those of migrations that may still run.
 * Call it after reading the records. It never fails the agent: a missing history is logged, and missing in the report. */
void recorder_open(Jobs *jobs, const char *state_directory);

/* Adds the job's latest reading. */
void recorder_note(Jobs *jobs, Job *job);

/* The job or the agent ends: writes what there is. */
void recorder_end(Jobs *jobs, Job *job);

/* Drops a history that is no longer needed. */
void recorder_forget(Jobs *jobs, Job *job);

/* Returns the samples of a job to a client, now or later. `samples` is the interface's []HistoryPoint; `func` takes it. */
typedef void (*RecorderReplyFunc)(const char *id, json_t *samples, gpointer user_data);

/* user_data is freed after `func`, or without calling it if the agent ends first. False: too many reads are waiting for the disk;
 * nothing was done. */
bool recorder_get(Jobs *jobs, const Job *job, RecorderReplyFunc func, gpointer user_data,
                  GDestroyNotify free_user_data);

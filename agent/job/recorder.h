/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the history of each migration: when a reading is taken, when it goes to the disk, how a client gets it. */
#pragma once

#include "agent/job/jobs.h"

/* Opens the store of histories, removes those of jobs that are not kept any more, and reads those of migrations that may be
 * under way. To be called once the records are read. Nothing of it can fail the agent: a history that cannot be had is said
 * in the journal, and missing in a report. */
void recorder_open(Jobs *jobs, const char *state_directory);

/* Takes the job's last reading. */
void recorder_note(Jobs *jobs, Job *job);

/* The job has ended, or the agent does: what there is goes to the disk. */
void recorder_end(Jobs *jobs, Job *job);

/* Its history is of no use any more. */
void recorder_forget(Jobs *jobs, Job *job);

/* The samples of a job for a client, now or later. `samples` is the interface's []HistoryPoint, and taken. */
typedef void (*RecorderReplyFunc)(const char *id, json_t *samples, gpointer user_data);

/* user_data is freed after `func` was called, or without that when the agent ends before. False: too many of these wait for
 * the disk, and nothing of this was done. */
bool recorder_get(Jobs *jobs, const Job *job, RecorderReplyFunc func, gpointer user_data,
                  GDestroyNotify free_user_data);

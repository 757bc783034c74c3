/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to the answers to calls: errors, and a job. */
#pragma once

#include "agent/move/lifecycle.h"
#include "agent/request/requests.h"

/* May the caller read jobs, and thus see the names of domains? */
bool reply_may_read_jobs(const Requests *requests, const VarlinkCall *call);

/* For the records: "uid 1000 (pid 4711)". */
char *reply_describe_peer(const VarlinkCall *call);

/* An error of the interface by its short name. Takes `parameters`. */
void reply_error(VarlinkCall *call, const char *name, json_t *parameters);

/* The job that `text` names; NULL: the call has been answered with an error. */
Job *reply_find_job(Requests *requests, VarlinkCall *call, const char *text);

/* The same, for the parameter "job". */
Job *reply_take_job(Requests *requests, VarlinkCall *call, json_t *parameters);

/* Answers the call once the job's current record is on stable storage; NULL: the job of that id is gone. */
typedef void (*ReplySavedFunc)(Requests *requests, VarlinkCall *call, Job *job, const char *id);
void reply_after_saving(Requests *requests, Job *job, VarlinkCall *call, ReplySavedFunc saved);

/* Answers with the job once its current record is on stable storage. */
void reply_when_saved(Requests *requests, Job *job, VarlinkCall *call);

/* The job cannot be aborted, or its lease cannot be released. */
void reply_refuse_abort(VarlinkCall *call, const Job *job, LifecycleAbort why);

/* The job cannot be completed or settled as requested. */
void reply_refuse_end(VarlinkCall *call, const Job *job, const char *message);

/* Answers with PolicyConflict if keys of the policy exclude each other for any domain and target. True: the call has
 * been answered. */
bool reply_refuse_conflict(VarlinkCall *call, const MigPolicy *policy);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the answers to calls have in common: errors, and a job. */
#pragma once

#include "agent/move/lifecycle.h"
#include "agent/request/requests.h"

/* May the caller read jobs, and so what names domains? */
bool reply_may_read_jobs(const Requests *requests, const VarlinkCall *call);

/* For the records: "uid 1000 (pid 4711)". */
char *reply_describe_peer(const VarlinkCall *call);

/* An error of the interface by its short name. Takes `parameters`. */
void reply_error(VarlinkCall *call, const char *name, json_t *parameters);

/* A string among the call's parameters, or NULL; borrowed. */
const char *reply_get_text(json_t *parameters, const char *key);

/* The job that `text` names, or NULL: answered with why not. */
Job *reply_find_job(Requests *requests, VarlinkCall *call, const char *text);

/* The same of the parameter "job". */
Job *reply_take_job(Requests *requests, VarlinkCall *call, json_t *parameters);

/* Answers with the job once its record, as it is now, is on stable storage. */
void reply_when_saved(Requests *requests, Job *job, VarlinkCall *call);

/* The job cannot be aborted, or its lease be given back. */
void reply_refuse_abort(VarlinkCall *call, const Job *job, LifecycleAbort why);

/* The job cannot be brought to its end in the way that was asked for. */
void reply_refuse_end(VarlinkCall *call, const Job *job, const char *message);

/* Answers with PolicyConflict if keys of the policy exclude each other whatever the domain and the target are. True: it
 * has been answered. */
bool reply_refuse_conflict(VarlinkCall *call, const MigPolicy *policy);

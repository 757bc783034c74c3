/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to Start, Prepare and in part Drain: the request key, the limit of jobs, the answer. */
#pragma once

#include "agent/request/requests.h"

/* The caller's name for a request, and a digest of what it requests. */
typedef struct RequestKey {
  char *key; /* or NULL */
  char *digest;
} RequestKey;

void request_key_clear(RequestKey *key);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RequestKey, request_key_clear)

/* Answers the call with an error and returns false if the key is invalid. */
bool request_key_take(VarlinkCall *call, json_t *parameters, RequestKey *ret_key);

/* True: the key is known, and the call has been or will be answered: with the job, or with RequestKeyConflict. The answer
 * waits for a lease whose images are still being created. */
bool request_answer_known(Requests *requests, VarlinkCall *call, const RequestKey *key);

/* Answers with {"job": …, "created": …}. */
void request_reply(Requests *requests, VarlinkCall *call, const Job *job, bool created);

/* Is there room for one more job? Answers with TooManyJobs and returns false if not. Jobs.starting already counts the
 * call. */
bool request_has_room(Requests *requests, VarlinkCall *call);

/* Answers a call whose lease failed: Refused, with the reason. */
void request_refuse_lease(VarlinkCall *call, const Job *job);

/* Job observer: answers the calls that wait for a lease. `requests` is a Requests. */
void request_on_job(Job *job, JobChange change, gpointer requests);

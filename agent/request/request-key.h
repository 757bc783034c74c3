/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Start and Prepare have in common, and Drain in part: the request key, the limit of jobs, the answer. */
#pragma once

#include "agent/request/requests.h"

/* The caller's name for a request, and what was asked for under it. */
typedef struct RequestKey {
  char *key; /* or NULL */
  char *digest;
} RequestKey;

void request_key_clear(RequestKey *key);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RequestKey, request_key_clear)

/* Answers the call and returns false if the key cannot be. */
bool request_key_take(VarlinkCall *call, json_t *parameters, RequestKey *ret_key);

/* True: the key is known, and the call has been answered or will be: with the job, or with RequestKeyConflict. A lease that is
 * still being made is waited for. */
bool request_answer_known(Requests *requests, VarlinkCall *call, const RequestKey *key);

/* The job of a request; {"job": …, "created": …} */
void request_reply(Requests *requests, VarlinkCall *call, const Job *job, bool created);

/* One more call may become a job. Answers with TooManyJobs and returns false if there are too many; Agent.starting counts the
 * call already. */
bool request_has_room(Requests *requests, VarlinkCall *call);

/* Answers a call whose lease cannot be used: Refused, with what keeps it. */
void request_refuse_lease(VarlinkCall *call, const Job *job);

/* Observes jobs: answers those who wait for a lease. `requests` is Requests. */
void request_on_job(Job *job, JobChange change, gpointer requests);

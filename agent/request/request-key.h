/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Start and Prepare have in common, and Drain in part: the request key, the limit of jobs, the answer. */
#pragma once

#include "agent/daemon/agent.h"

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
bool accept_answer_known(Agent *agent, VarlinkCall *call, const RequestKey *key);

/* The job of a request; {"job": …, "created": …} */
void accept_reply(Agent *agent, VarlinkCall *call, const Job *job, bool created);

/* One more call may become a job. Answers with TooManyJobs and returns false if there are too many; Agent.starting counts the
 * call already. */
bool accept_has_room(Agent *agent, VarlinkCall *call);

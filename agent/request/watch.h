/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients that watch jobs: each change is encoded once and sent to all; slow readers get the newest state. */
#pragma once

#include "agent/request/requests.h"

/* For Requests.watchers. */
GPtrArray *watch_list_new(void);

/* Watches one job, or with NULL all. Answers the call from now on. */
void watch_add(Requests *requests, Job *job, VarlinkCall *call);

/* Job observer; `requests` is a Requests. Sends a change of state at once, a change of statistics once per interval. */
void watch_on_job(Job *job, JobChange change, gpointer requests);

/* Sends what was held back until the interval was over. Call it several times a second. */
void watch_flush(Requests *requests);

void watch_free_all(Requests *requests);

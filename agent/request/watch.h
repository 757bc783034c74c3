/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Those who follow jobs: each change is encoded once and sent to all; slow readers get the newest state. */
#pragma once

#include "agent/request/requests.h"

/* For Agent.watchers. */
GPtrArray *watch_list_new(void);

/* Follows one job, or all with NULL. Answers the call from now on. */
void watch_add(Requests *requests, Job *job, VarlinkCall *call);

/* Observes jobs; `requests` is Requests. A change of state is told at once, one of the numbers alone when the interval is over. */
void watch_on_job(Job *job, JobChange change, gpointer requests);

/* Sends what was held back for the interval, where that is over. To be called some times a second. */
void watch_flush(Requests *requests);

void watch_free_all(Requests *requests);

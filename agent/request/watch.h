/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Those who follow jobs: each change is encoded once and sent to all; slow readers get the newest state. */
#pragma once

#include "agent/daemon/agent.h"

/* For Agent.watchers. */
GPtrArray *watch_list_new(void);

/* Follows one job, or all with NULL. Answers the call from now on. */
void watch_add(Agent *agent, Job *job, VarlinkCall *call);

/* The job changed. `urgent`: its state did, not only its numbers; said at once. */
void watch_notify(Agent *agent, Job *job, bool urgent);

/* Sends what was held back for the interval, where that is over. To be called some times a second. */
void watch_flush(Agent *agent);

/* The job is about to be forgotten: it is final, and its own watchers have been told. */
void watch_forget(Agent *agent, Job *job);

void watch_free_all(Agent *agent);

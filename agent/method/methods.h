/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods of io.handoffd.Agent. */
#pragma once

#include "agent/daemon/agent.h"
#include "agent/move/lifecycle.h"

/* Serves the interface on the agent's server. */
bool methods_register(Agent *agent, GError **error);

/* start.c: a method with a life of its own, since it waits for libvirtd and for the disk. */
void methods_start(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* reserve.c: likewise */
void methods_prepare(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_release(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* getpolicy.c */
void methods_get_policy(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* outlook.c */
void methods_forecast(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* check.c */
void methods_check(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* evaluate.c */
void methods_evaluate(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* May the caller read jobs, and so what names domains? */
bool methods_may_read_jobs(const Agent *agent, const VarlinkCall *call);

/* For the records: "uid 1000 (pid 4711)". */
char *methods_describe_peer(const VarlinkCall *call);

/* An error of the interface by its short name. Takes `parameters`. */
void methods_error(VarlinkCall *call, const char *name, json_t *parameters);

/* The job that the call's parameter is about, or NULL: answered with why not. */
Job *methods_find_job(Agent *agent, VarlinkCall *call, const char *text);

/* Answers with the job once its record, as it is now, is on stable storage. */
void methods_reply_when_saved(Agent *agent, Job *job, VarlinkCall *call);

/* The job cannot be aborted, or its lease be given back. */
void methods_refuse_abort(VarlinkCall *call, const Job *job, LifecycleAbort why);

/* Answers with PolicyConflict if keys of the policy exclude each other whatever the domain and the target are. True: it
 * has been answered. */
bool methods_refuse_conflict(VarlinkCall *call, const MigPolicy *policy);

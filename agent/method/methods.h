/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods of io.handoffd.Agent. Each has a file of its own name, with these exceptions: Uncordon and Release are in the files
 * of the methods they undo, and WatchDrain and AbortDrain are in drain.c. */
#pragma once

#include "agent/drain/drains.h"
#include "agent/libvirtd/lookup.h"
#include "agent/libvirtd/survey.h"

/* What the methods work with. Main thread only. */
typedef struct Methods {
  Jobs *jobs;
  Mover *mover;
  Requests *requests;
  Node *node;
  Drains *drains;
  const Config *config;
  LocalCalls *lookups, *surveys;
} Methods;

/* Adds the interface to the agent's server. */
bool methods_register(Methods *methods, GError **error);

void methods_abort(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_abort_drain(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_check(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_complete(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_cordon(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_drain(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_evaluate(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_forecast(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_get(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_get_history(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_get_metrics(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_get_node(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_get_policy(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_list(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_prepare(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_release(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_settle(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_start(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_tune(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_uncordon(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_watch(VarlinkCall *call, json_t *parameters, gpointer user_data);
void methods_watch_drain(VarlinkCall *call, json_t *parameters, gpointer user_data);

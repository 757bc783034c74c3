/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent: all its parts, wired together. Belongs to the thread that runs `context`. Private to agent/daemon. */
#pragma once

#include "agent/daemon/notify.h"
#include "agent/method/methods.h"

#include <glib.h>

typedef struct Agent {
  GMainContext *context;
  Config *config;
  MigDriver *driver; /* wrapped by call_watch_new() */
  Jobs jobs;
  Mover mover;
  Requests requests;
  Node node;
  Drains drains;
  Methods methods;
  char *hostname;
  bool hypervisor_said; /* the last state of libvirtd that was logged: it answers */
  bool hypervisor_said_once;
  GSource *tick;
  GSource *watch_tick;
  Notify *notify; /* borrowed; NULL before the daemon serves */
} Agent;

typedef struct AgentOptions {
  const char *state_directory;
  const char *libvirt_uri;
} AgentOptions;

/* Takes `config` and `driver`. Opens the store, loads the jobs, and takes over migrations in progress. */
Agent *agent_new(GMainContext *context, Config *config, MigDriver *driver, const AgentOptions *options,
                 GError **error);

/* Leaves running migrations to libvirtd, and writes outstanding records. False: threads are stuck in calls to libvirt, so the
 * process must end without any further cleanup. */
bool agent_free(Agent *agent);

/* agent->config has new contents: derives again what the agent itself derives from them. */
void agent_apply_config(Agent *agent);

/* What the agent does, in one line for the service manager. */
char *agent_describe(const Agent *agent);

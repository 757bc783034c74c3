/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent: all rooms, wired together. All of it belongs to the thread that runs `context`. Private to agent/daemon. */
#pragma once

#include "agent/daemon/notify.h"
#include "agent/method/methods.h"

#include <glib.h>

typedef struct Agent {
  GMainContext *context;
  Config *config;
  MigDriver *driver; /* of call_watch_new() */
  Jobs jobs;
  Mover mover;
  Requests requests;
  Node node;
  Drains drains;
  Methods methods;
  char *hostname;
  bool hypervisor_said; /* what was last said of libvirtd in the journal: that it answers */
  bool hypervisor_said_once;
  GSource *tick;
  GSource *watch_tick;
  Notify *notify; /* borrowed from the program; NULL before it serves */
} Agent;

typedef struct AgentOptions {
  const char *state_directory;
  const char *libvirt_uri;
} AgentOptions;

/* Takes `config` and `driver`. Opens the store, reads the jobs back, and takes up what was under way. */
Agent *agent_new(GMainContext *context, Config *config, MigDriver *driver, const AgentOptions *options,
                 GError **error);

/* Leaves running migrations to libvirtd, and what is not written yet to the disk. True: nothing of it is left
 * running. False: threads sit in calls of libvirt, so the process must end without cleaning up after itself. */
bool agent_free(Agent *agent);

/* What is in agent->config was exchanged: what the agent itself has derived from it. */
void agent_apply_config(Agent *agent);

/* One line on what the agent does, for the service manager. */
char *agent_describe(const Agent *agent);

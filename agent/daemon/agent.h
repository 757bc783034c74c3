/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent: what its parts share. All of it belongs to the thread that runs `context`. */
#pragma once

#include "agent/config/config.h"
#include "agent/daemon/notify.h"
#include "agent/drain/drain.h"
#include "agent/job/damaged.h"
#include "agent/job/historystore.h"
#include "agent/job/jobtable.h"
#include "agent/job/queue.h"
#include "agent/job/store.h"
#include "agent/libvirtd/hypervisor.h"
#include "agent/libvirtd/local-call.h"
#include "agent/libvirtd/lookup.h"
#include "agent/libvirtd/survey-pool.h"
#include "agent/node/cordon.h"
#include "agent/node/evaluate.h"
#include "agent/node/hangs.h"
#include "agent/node/hostdown.h"
#include "agent/node/logind.h"
#include "agent/node/metrics.h"
#include "agent/request/denials.h"
#include "proto/server.h"

#include <glib.h>

typedef struct Bandwidth Bandwidth;

typedef struct Agent {
  GMainContext *context;
  Config *config;
  MigDriver *driver; /* of call_watch_new() */
  Hypervisor *hypervisor;
  Lookup *lookup;
  Checker *checker;
  Errands *errands; /* of incoming jobs */
  Evaluator *evaluator;
  Store *store;
  HistoryStore *histories; /* of recorder.c; NULL: they cannot be kept */
  JobTable *jobs;
  JobQueue *queue;
  Bandwidth *bandwidth;
  Cordon cordon;
  Logind *logind;
  HostDown host_down;
  Metrics metrics;
  Drain *drain; /* the one under way, or the last; NULL: there was none */
  Hangs *hangs;
  Damaged *damaged; /* records that could not be read */
  VarlinkServer *server;
  Denials *denials;
  GPtrArray *watchers; /* Watcher: of all jobs; owned by watch.c */
  char *boot_id;
  char *hostname;
  gid_t group_gid; /* (gid_t)-1: there is no such group */
  int64_t started_usec;
  unsigned starting; /* calls of Start that wait for libvirtd */
  bool ending;       /* agent_free() is at work */
  bool store_failing;
  bool histories_failing;
  bool hypervisor_said; /* what was last said of libvirtd in the journal: that it answers */
  bool hypervisor_said_once;
  GSource *tick;
  GSource *watch_tick;
  Notify *notify;                              /* borrowed from the program; NULL before it serves */
  void (*status_changed)(struct Agent *agent); /* for the service manager; may be NULL */
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

/* agent->config was exchanged for another: what the agent itself has derived from it. */
void agent_apply_config(Agent *agent);

/* One line on what the agent does, for the service manager. */
char *agent_describe(const Agent *agent);

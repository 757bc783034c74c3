/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stands between calls and jobs: who may call, and who follows. Main thread only. */
#pragma once

#include "agent/move/mover.h"
#include "agent/request/denials.h"
#include "proto/server.h"

#include <sys/types.h>

typedef struct Requests {
  Jobs *jobs;
  Mover *mover;
  const Config *config;
  VarlinkServer *server;
  Denials *denials;
  GPtrArray *watchers; /* Watcher: of all jobs; owned by watch.c */
  gid_t group_gid;     /* (gid_t)-1: there is no such group */
} Requests;

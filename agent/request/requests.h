/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between calls and jobs: who may call, and who watches. Main thread only. */
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
  GPtrArray *watchers; /* Watcher, of all jobs; belongs to watch.c */
  gid_t group_gid;     /* (gid_t)-1: no such group */
} Requests;

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What runs jobs: this node's libvirtd, the migrations in progress, the shared bandwidth. Main thread only. */
#pragma once

#include "agent/job/jobs.h"
#include "agent/libvirtd/hypervisor.h"
#include "agent/libvirtd/local-call.h"
#include "libmigrate/core/monitor.h"

typedef struct Bandwidth Bandwidth;
typedef GPtrArray Hangs; /* of hangs.c */

typedef struct Mover {
  Jobs *jobs;
  const Config *config;
  GMainContext *context;
  Hypervisor *hypervisor;
  LocalCalls *local_calls; /* for incoming jobs */
  Bandwidth *bandwidth;
  Hangs *hangs;
  const char *hostname;
  bool host_going_down; /* no new migrations */
  bool ending;          /* this process is stopping: pending calls find no jobs */

  /* Since the process started, for the metrics. */
  uint64_t actions[MIG_ACTION_COUNT];
  uint64_t touches[MIG_TOUCH_COUNT][2]; /* failed, done */

  /* What the service manager shows has changed. May be NULL. */
  void (*status_changed)(gpointer user_data);
  gpointer status_data;
} Mover;

void mover_status_changed(const Mover *mover);

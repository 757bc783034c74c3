/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the monitor's choice of a way. */
#pragma once

#include "libmigrate/core/monitor.h"

/* A stream that has only just started has no meaningful bandwidth. */
#define CHOOSE_SETTLE_MS 1000
/* A second is calm if the guest's CPUs do less than this share of the most they were seen to do. */
#define CHOOSE_CALM_SHARE 0.5
/* Share of its CPUs; a guest that uses less looks idle. */
#define CHOOSE_LOAD_NOISE 0.02

/* Learns from a sample before it becomes monitor->last. */
void choose_observe(MigMonitor *monitor, const MigSample *sample, bool first);

/* Compares the ways and takes one, if it is time. True: ret_action says what to do. */
bool choose_way(MigMonitor *monitor, bool pass_began, MigAction *ret_action);

/* 0: `then` is in the future. */
static inline uint64_t since(uint64_t now, uint64_t then) {
  return now > then ? now - then : 0;
}

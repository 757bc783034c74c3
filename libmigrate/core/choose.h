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

/* How fast what the guest has written to is sent; 0: not known. Where only pages of zeroes were seen it is a guess, too
 * high rather than too low: it must not make a migration look hopeless. */
double choose_bandwidth(const MigMonitor *monitor);

/* What a goal (max_downtime_ms or max_pause_ms) leaves for memory, at least 1. */
uint64_t choose_goal_limit_ms(const MigMonitor *monitor, MigPolicyKey key);

/* How much the guest dirties during one pass, by the curve. */
uint64_t choose_dirtied_in_pass(const MigMonitor *monitor);

/* Memory that the stream has gone through in all. */
static inline uint64_t gone_bytes(const MigSample *sample) {
  uint64_t known = sample->memory_zero_bytes + sample->memory_normal_bytes;
  return known > sample->memory_processed_bytes ? known : sample->memory_processed_bytes;
}

/* 0: `then` is in the future. */
static inline uint64_t since(uint64_t now, uint64_t then) {
  return now > then ? now - then : 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a simulated guest dirties, advanced in closed form from event to event. */
#pragma once

#include "tests/sim/engine.h"

typedef struct SimDirtying {
  const SimGuest *guest;
  double extent[SIM_REGIONS]; /* the largest working set that the region ever has */
  double dirty[SIM_REGIONS];  /* u: distinct bytes written since the dirty log was read */
  unsigned phase_count;
  unsigned phase;
  int64_t phase_ends_us; /* INT64_MAX: never */
  int64_t noise_ends_us;
  double noise; /* factor on the rates */
  uint64_t random;
} SimDirtying;

void sim_dirtying_init(SimDirtying *dirtying, const SimGuest *guest, uint64_t seed);

/* When the rates change next. */
int64_t sim_dirtying_next_us(const SimDirtying *dirtying);

/* Enters what begins at this time. */
void sim_dirtying_change(SimDirtying *dirtying, int64_t now_us);

/* The guest runs for dt_us of its time at `speed` (1: unthrottled) of its rates. No change lies within. */
void sim_dirtying_run(SimDirtying *dirtying, int64_t dt_us, double speed);

/* What is dirty of a region; the log is read, and empty from now on. */
double sim_dirtying_harvest(SimDirtying *dirtying, unsigned region);

/* Bytes that the guest writes in a second now, counted again each time. */
double sim_dirtying_rate(const SimDirtying *dirtying);

/* How fast the guest writes when throttled by pct, 0 to 1: no slower while a busy vCPU gets what it needs. */
double sim_dirtying_speed(const SimGuest *guest, unsigned throttle_pct);

/* What share of its CPU a busy vCPU uses now, throttled by pct. */
double sim_dirtying_cpu_share(const SimDirtying *dirtying, unsigned throttle_pct);

/* What a probe of one second would say: what is written, and what share of its CPU a busy vCPU uses. */
double sim_dirtying_probe(const SimGuest *guest, double *ret_cpu_share);

/* Uniform in [0, 1). */
double sim_random(uint64_t *state);

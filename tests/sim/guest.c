/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a simulated guest dirties, advanced in closed form from event to event. */
#include "tests/sim/guest.h"

#include <math.h>

/* Theory of operation
 *
 * A region is a piece of memory that is written at the rate d, W bytes wide. u(τ) is how many distinct bytes of
 * it were written since the log was read. A cyclic writer meets no byte twice before W: u' = d until u = W. One
 * who writes at random places hits a byte that is dirty already with probability u/W: u' = d (1 − u/W), so
 * u(τ) = W (1 − e^(−dτ/W)). Both are stepped in closed form from any u, so that no step of time is too
 * long. A phase with a smaller W writes within what the larger had: u stays where it is above W. (Exact, had
 * the writes of the larger phase been at its far end; an error of at most W of the smaller one, once.) */

#define NOISE_US INT64_C(500000)
#define PROBE_US INT64_C(1000000)

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) */
double sim_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  z ^= z >> 31;
  return (double)(z >> 11) * 0x1p-53;
}

static bool phase_is_there(const SimPhase *phase) {
  return phase->duration_ms > 0 || phase->regions[0].ws_bytes > 0;
}

static void enter_phase(SimDirtying *dirtying, unsigned phase, int64_t begin_us) {
  uint64_t duration_ms = dirtying->guest->phases[phase].duration_ms;
  bool stays = duration_ms == 0 || (phase + 1 == dirtying->phase_count && !dirtying->guest->repeat);
  dirtying->phase = phase;
  dirtying->phase_ends_us = stays ? INT64_MAX : begin_us + (int64_t)duration_ms * 1000;
}

static void draw_noise(SimDirtying *dirtying, int64_t begin_us) {
  double share = dirtying->guest->noise_pct / 100.0;
  if (share <= 0) {
    dirtying->noise = 1.0;
    dirtying->noise_ends_us = INT64_MAX;
    return;
  }
  dirtying->noise = 1.0 + share * (2.0 * sim_random(&dirtying->random) - 1.0);
  dirtying->noise_ends_us = begin_us + NOISE_US;
}

void sim_dirtying_init(SimDirtying *dirtying, const SimGuest *guest, uint64_t seed) {
  *dirtying = (SimDirtying){.guest = guest, .random = seed};
  while (dirtying->phase_count < SIM_PHASES && phase_is_there(&guest->phases[dirtying->phase_count])) {
    for (unsigned i = 0; i < SIM_REGIONS; i++) {
      double ws = (double)guest->phases[dirtying->phase_count].regions[i].ws_bytes;
      if (ws > dirtying->extent[i])
        dirtying->extent[i] = ws;
    }
    dirtying->phase_count++;
  }
  enter_phase(dirtying, 0, 0);
  draw_noise(dirtying, 0);
}

int64_t sim_dirtying_next_us(const SimDirtying *dirtying) {
  return dirtying->phase_ends_us < dirtying->noise_ends_us ? dirtying->phase_ends_us
                                                           : dirtying->noise_ends_us;
}

void sim_dirtying_change(SimDirtying *dirtying, int64_t now_us) {
  while (dirtying->phase_ends_us <= now_us)
    enter_phase(dirtying, (dirtying->phase + 1) % dirtying->phase_count, dirtying->phase_ends_us);
  while (dirtying->noise_ends_us <= now_us)
    draw_noise(dirtying, dirtying->noise_ends_us);
}

static double written(const SimRegion *region, double u, double bytes) {
  double ws = (double)region->ws_bytes;
  if (u >= ws || bytes <= 0)
    return u;
  if (region->writer == SIM_WRITER_RANDOM)
    return ws - (ws - u) * exp(-bytes / ws);
  return fmin(u + bytes, ws);
}

void sim_dirtying_run(SimDirtying *dirtying, int64_t dt_us, double speed) {
  const SimPhase *phase = &dirtying->guest->phases[dirtying->phase];
  double s = (double)dt_us * 1e-6 * speed * dirtying->noise;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    if (phase->regions[i].rate_bytes_per_s > 0)
      dirtying->dirty[i] =
          written(&phase->regions[i], dirtying->dirty[i], (double)phase->regions[i].rate_bytes_per_s * s);
}

double sim_dirtying_harvest(SimDirtying *dirtying, unsigned region) {
  double dirty = dirtying->dirty[region];
  dirtying->dirty[region] = 0;
  return dirty;
}

double sim_dirtying_rate(const SimDirtying *dirtying) {
  const SimPhase *phase = &dirtying->guest->phases[dirtying->phase];
  double rate = 0;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    if (phase->regions[i].ws_bytes > 0)
      rate += (double)phase->regions[i].rate_bytes_per_s;
  return rate * dirtying->noise;
}

/* A guest that needs a tenth of its processor for its writing does all of it with half a processor. */
double sim_dirtying_speed(const SimGuest *guest, unsigned throttle_pct) {
  double left = (100.0 - throttle_pct) / 100.0, busy = guest->busy_pct ? guest->busy_pct / 100.0 : 1.0;
  double device = guest->device_pct / 100.0;
  return left >= busy ? 1.0 : device + (1.0 - device) * left / busy;
}

/* What it does but write costs nothing: a calm guest uses none. */
double sim_dirtying_cpu_share(const SimDirtying *dirtying, unsigned throttle_pct) {
  const SimGuest *guest = dirtying->guest;
  double busy = guest->busy_pct ? guest->busy_pct / 100.0 : 1.0;
  return sim_dirtying_rate(dirtying) > 0 ? fmin(busy, (100.0 - throttle_pct) / 100.0) : 0;
}

double sim_dirtying_probe(const SimGuest *guest, double *ret_cpu_share) {
  SimDirtying probed;
  SimGuest steady = *guest;
  double bytes = 0;
  *ret_cpu_share = 0;
  steady.noise_pct = 0;
  sim_dirtying_init(&probed, &steady, 0);
  for (int64_t now_us = 0, next_us; now_us < PROBE_US; now_us = next_us) {
    next_us = sim_dirtying_next_us(&probed) < PROBE_US ? sim_dirtying_next_us(&probed) : PROBE_US;
    sim_dirtying_run(&probed, next_us - now_us, 1.0);
    *ret_cpu_share += sim_dirtying_cpu_share(&probed, 0) * (double)(next_us - now_us) / PROBE_US;
    sim_dirtying_change(&probed, next_us);
  }
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    bytes += sim_dirtying_harvest(&probed, i);
  return bytes;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A migration played to the monitor as samples: how much each pass begins with is written down, and what the monitor asks
 * for is noted and changes nothing. So a row says what is seen, and not what a guest would do. */
#pragma once

#include "libmigrate/core/monitor.h"

#include "tests/unit/core/allocations.h"
#include "tests/unit/core/goals.h"

#define FILM_PASSES 24
#define FILM_TAKEN  8

/* A stretch of time, in ms. */
typedef struct FilmSpan {
  uint64_t from_ms, to_ms;
} FilmSpan;

typedef struct Film {
  const char *goals;
  double passes[FILM_PASSES]; /* MiB at their beginnings; the first: all memory. The last one stays */
  double shrinks;             /* ... or by such a share each time */
  double link;                /* MiB/s */
  double probe;               /* MiB in one second before the start; 0: there was none */
  uint64_t first_limit_ms;    /* 0: 20 */
  bool not_started_for;       /* neither post-copy nor auto-converge */
  uint64_t poll_ms;           /* 0: 400 */
  uint64_t run_ms;            /* 0: 30 s */
  uint64_t first_iteration;   /* 0: 1 */
  FilmSpan slow;              /* the link carries slow_link MiB/s */
  double slow_link;
  FilmSpan blind;     /* numbers cannot be read */
  FilmSpan disks;     /* disks are copied, and the memory waits */
  double zeroes;      /* MiB of zeroes, which the first pass begins with and goes through at 1 GiB/s */
  double owed;        /* MiB that the disks' copy is behind from then on */
  uint64_t silent_ms; /* before the first byte */
  uint64_t calm_ms,
      busy_ms;  /* the guest uses little of its CPU for so long, then all; over and over. 0: not known */
  bool busy_on; /* ... and then for ever */
  uint64_t throttled_from_ms, throttle_pct;
  unsigned refused; /* kinds of actions, as bits */
  bool deaf;        /* post-copy is accepted, and never comes */
  uint64_t tuned_at_ms;
  const char *tuned; /* goals from then on */
} Film;

typedef struct FilmTaken {
  MigAction action;
  uint64_t at_ms, pass;
} FilmTaken;

typedef struct FilmResult {
  MigMonitor monitor; /* at the end */
  FilmTaken taken[FILM_TAKEN];
  unsigned n;
  size_t allocations; /* of all steps */
} FilmResult;

typedef struct FilmReel {
  const Film *film;
  MigSample sample;
  MigBandwidth bandwidth;
  double remaining, processed, zero, pass; /* bytes */
  unsigned passes;
} FilmReel;

static inline bool film_is_in(FilmSpan span, uint64_t now_ms) {
  return now_ms >= span.from_ms && now_ms < span.to_ms;
}

static inline double film_next_pass(FilmReel *reel) {
  const Film *film = reel->film;
  reel->passes++;
  if (reel->passes < FILM_PASSES && film->passes[reel->passes] > 0)
    return film->passes[reel->passes] * (double)MIG_MIB_BYTES;
  return reel->pass * (1 - film->shrinks);
}

/* One millisecond. */
static inline void film_advance(FilmReel *reel, uint64_t now_ms) {
  const Film *film = reel->film;
  double rate = film_is_in(film->slow, now_ms) ? film->slow_link : film->link;
  double left =
      now_ms > film->silent_ms && !film_is_in(film->disks, now_ms) ? rate * (double)MIG_MIB_BYTES / 1000 : 0;
  uint64_t cycle = film->calm_ms + film->busy_ms;
  bool busy = cycle > 0 && (now_ms - 1) % cycle >= film->calm_ms;
  if (busy || (film->busy_on && now_ms > film->calm_ms))
    reel->sample.busiest_cpu_ms++;
  if (left > 0 && reel->passes == 0 && reel->zero < film->zeroes * (double)MIG_MIB_BYTES) {
    reel->zero += (double)MIG_GIB_BYTES / 1000;
    reel->remaining -= (double)MIG_GIB_BYTES / 1000;
    return;
  }
  while (left > 0) {
    double sent = left < reel->remaining ? left : reel->remaining;
    reel->processed += sent;
    reel->remaining -= sent;
    left -= sent;
    if (reel->remaining > 1e-3)
      break;
    reel->remaining = reel->pass = film_next_pass(reel);
    reel->sample.iteration++;
  }
}

static inline const MigSample *film_sample(FilmReel *reel, uint64_t now_ms) {
  const Film *film = reel->film;
  MigSample *sample = &reel->sample;
  sample->now_ms = now_ms;
  sample->valid = !film_is_in(film->blind, now_ms);
  sample->memory_processed_bytes = (uint64_t)(reel->processed + 0.5);
  sample->memory_normal_bytes = sample->memory_processed_bytes;
  sample->memory_zero_bytes = (uint64_t)(reel->zero + 0.5);
  sample->memory_remaining_bytes = (uint64_t)(reel->remaining + 0.5);
  sample->disk_remaining_bytes =
      film_is_in(film->disks, now_ms) ? MIG_GIB_BYTES : (uint64_t)(film->owed * (double)MIG_MIB_BYTES);
  sample->throttle_pct =
      film->throttled_from_ms > 0 && now_ms >= film->throttled_from_ms ? film->throttle_pct : 0;
  if (sample->valid)
    sample->bandwidth_bytes_per_s =
        mig_bandwidth_update(&reel->bandwidth, now_ms, sample->memory_processed_bytes);
  return sample;
}

static inline void film_begin(FilmReel *reel, const Film *film, MigMonitor *monitor) {
  MigPolicy policy = policy_of(film->goals);
  uint64_t memory = (uint64_t)(film->passes[0] * (double)MIG_MIB_BYTES);
  MigPlan plan = {
      .post_copy = !film->not_started_for && mig_policy_get(&policy, MIG_POLICY_ALLOW_POST_COPY),
      .auto_converge = !film->not_started_for && mig_policy_get(&policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
      .downtime_ms = film->first_limit_ms ? film->first_limit_ms : 20,
  };
  if (film->probe > 0)
    mig_dirty_curve_observe(&plan.probe.curve, 1, film->probe * (double)MIG_MIB_BYTES);
  mig_monitor_init(monitor, &policy, 0, memory, MIG_GIB_BYTES);
  mig_monitor_set_plan(monitor, &plan);
  *reel = (FilmReel){
      .film = film,
      .remaining = (double)memory,
      .pass = (double)memory,
      .sample = {.active = true,
                 .memory_total_bytes = memory,
                 .disk_total_bytes = film->disks.to_ms > 0 ? MIG_GIB_BYTES : 0,
                 .iteration = film->first_iteration ? film->first_iteration : 1,
                 .guest_cpus = film->calm_ms + film->busy_ms > 0},
  };
}

/* True: that ends it. */
static inline bool film_act(FilmReel *reel, const MigAction *action, FilmResult *result) {
  const Film *film = reel->film;
  if (action->kind == MIG_ACTION_NONE)
    return false;
  if (result->n == FILM_TAKEN)
    fail_msg("more actions than are kept: %s", action->message);
  result->taken[result->n++] =
      (FilmTaken){.action = *action, .at_ms = reel->sample.now_ms, .pass = reel->sample.iteration};
  if (action->kind == MIG_ACTION_ABORT)
    return true;
  if (film->refused & (1U << action->kind)) {
    mig_monitor_note_refused(&result->monitor, action->kind);
    return false;
  }
  return action->kind == MIG_ACTION_START_POST_COPY && !film->deaf;
}

static inline void film_play(const Film *film, FilmResult *ret_result) {
  uint64_t poll_ms = film->poll_ms ? film->poll_ms : 400, run_ms = film->run_ms ? film->run_ms : 30000;
  FilmReel reel;
  memset(ret_result, 0, sizeof(*ret_result));
  film_begin(&reel, film, &ret_result->monitor);
  for (uint64_t now = 1; now <= run_ms; now++) {
    film_advance(&reel, now);
    if (film->tuned_at_ms > 0 && now == film->tuned_at_ms) {
      MigPolicy tuned = policy_of(film->tuned);
      mig_monitor_set_policy(&ret_result->monitor, &tuned);
    }
    if (now % poll_ms != 0)
      continue;
    MigAction action;
    const MigSample *sample = film_sample(&reel, now);
    size_t before = allocations;
    mig_monitor_step(&ret_result->monitor, sample, &action);
    ret_result->allocations += allocations - before;
    if (film_act(&reel, &action, ret_result))
      return;
  }
}

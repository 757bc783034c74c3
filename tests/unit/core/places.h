/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a migration stands, in a line of a table, and the forecast from there.
 *
 * Most rows are of a guest of 1000 MiB that writes a set of 100 MiB in turn, so that f(τ) = min(d τ, W) is known exactly, and
 * each pass is min(d R/B, W): R falls by d/B from pass to pass, or stays W. The switch takes 50 ms beside the memory. */
#pragma once

#include "libmigrate/core/forecast.h"

#include "tests/unit/core/goals.h"

#include <math.h>

#define MIB    ((double)MIG_MIB_BYTES)
#define SWITCH 0.05
#define NONE   MIG_WAY_COUNT

typedef struct Seen {
  double s, mib;
} Seen;

/* MiB, MiB/s, seconds. Where memory remains 0: before the start. */
typedef struct Place {
  double memory, link;
  Seen seen[3];
  double remaining, pass, pass_s; /* of a later pass */
  double elapsed_s, deadline_s;
  unsigned throttle_pct;
  double cpu_share;
} Place;

/* W/d seconds show both: W is reached then, and the chord before it is the rate. */
#define IN_TURN(rate, set) .seen = {{(double)(set) / (rate), set}}
#define TAME               .memory = 1000, .link = 100, IN_TURN(50, 100)
#define HOPELESS           .memory = 1000, .link = 50, IN_TURN(200, 100)

static inline void assert_near(const char *what, double actual, double expected) {
  if (!(fabs(actual - expected) <= 1e-6 * fmax(1, fabs(expected))))
    fail_msg("%s is %.9g, and should be %.9g", what, actual, expected);
}

static inline MigDirtyCurve curve_of(const Place *place) {
  MigDirtyCurve curve = {0};
  for (size_t i = 0; i < LENGTH(place->seen) && place->seen[i].s > 0; i++)
    mig_dirty_curve_observe(&curve, place->seen[i].s, place->seen[i].mib * MIB);
  return curve;
}

static inline MigStanding standing_of(const Place *place) {
  bool first = place->pass <= 0;
  return (MigStanding){
      .memory_bytes = place->memory * MIB,
      .remaining_bytes = (place->remaining > 0 ? place->remaining : place->memory) * MIB,
      .pass_bytes = (first ? place->memory : place->pass) * MIB,
      .pass_s = place->pass_s,
      .first_pass = first,
      .bandwidth_bytes_per_s = place->link * MIB,
      .elapsed_s = place->elapsed_s,
      .deadline_s = place->deadline_s,
      .throttle_pct = place->throttle_pct,
      .cpu_share = place->cpu_share,
      .switch_s = SWITCH,
  };
}

static inline MigForecast forecast_of(const Place *place, const char *goals, const MigWaysOpen *open) {
  const MigWaysOpen all = {.auto_converge = true, .post_copy = true};
  MigPolicy policy = policy_of(goals);
  MigDirtyCurve curve = curve_of(place);
  MigStanding standing = standing_of(place);
  MigForecast forecast;
  mig_forecast(&curve, &standing, &policy, open ? open : &all, &forecast);
  return forecast;
}

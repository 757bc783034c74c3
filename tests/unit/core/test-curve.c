/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dirtying curve: what is kept of what was seen, when it begins anew, and what it says in between and beyond. */
#include "libmigrate/core/forecast.h"

#include "tests/unit/core/rows.h"

#include <math.h>

#define MIB  ((double)MIG_MIB_BYTES)
#define SEEN 12

/* Seconds, MiB; ended by one without time. */
typedef struct Seen {
  double s, mib;
} Seen;

static void assert_near(const char *what, double actual, double expected, double tolerance) {
  if (!(fabs(actual - expected) <= tolerance))
    fail_msg("%s is %.9g, and should be %.9g", what, actual, expected);
}

static MigDirtyCurve curve_of(const Seen *seen) {
  MigDirtyCurve curve = {0};
  for (unsigned i = 0; i < SEEN && seen[i].s > 0; i++)
    mig_dirty_curve_observe(&curve, seen[i].s, seen[i].mib * MIB);
  return curve;
}

/* What is kept */

static const struct Kept {
  const char *name;
  Seen seen[SEEN];
  Seen kept[MIG_DIRTY_POINTS + 1];
  unsigned changes;
} keeps[] = {
    {"nothing was seen", {{0}}, {{0}}},
    {"one point", {{1, 100}}, {{1, 100}}},
    {"they are kept by their time, whatever came first",
     {{2, 90}, {8, 120}, {1, 60}},
     {{1, 60}, {2, 90}, {8, 120}}},
    {"of much the same time as another: their mean", {{1, 100}, {1.2, 110}}, {{1.1, 105}}},
    {"and so for a shorter one", {{1, 100}, {0.9, 90}}, {{0.95, 95}}},
    {"the newest weighs as much as all before it", {{1, 100}, {1, 120}, {1, 100}}, {{1, 105}}},
    {"a third more time is another point", {{1, 100}, {1.4, 110}}, {{1, 100}, {1.4, 110}}},
    {"a longer time that dirtied less puts the shorter right", {{1, 100}, {4, 90}}, {{1, 90}, {4, 90}}},
    {"a shorter time that dirtied more puts the longer right", {{4, 100}, {1, 110}}, {{1, 110}, {4, 110}}},
    {"a mean that comes near to the next point is one with it, too",
     {{10, 80}, {14, 90}, {12, 84}, {13, 88}},
     {{13, 87.5}}},
    {"40 % less than can be is still the same guest", {{1, 100}, {2, 61}}, {{1, 61}, {2, 61}}},
    {"less than that is another", {{1, 100}, {2, 59}}, {{2, 59}}, .changes = 1},
    {"between two points less than the chord, by 40 %",
     {{1, 100}, {4, 160}, {2, 73}},
     {{1, 73}, {2, 73}, {4, 160}}},
    {"and by more", {{1, 100}, {4, 160}, {2, 71}}, {{2, 71}}, .changes = 1},
    {"40 % more than a curve that bends down can reach is the same guest",
     {{1, 100}, {2, 279}},
     {{1, 100}, {2, 279}}},
    {"more than that is another", {{1, 100}, {2, 281}}, {{2, 281}}, .changes = 1},
    {"in less time not more than in the longer, by 40 %", {{4, 100}, {1, 140}}, {{1, 140}, {4, 140}}},
    {"and more than that", {{4, 100}, {1, 141}}, {{1, 141}}, .changes = 1},
    {"half a MiB is noise: from nothing", {{1, 0}, {2, 0.5}}, {{1, 0}, {2, 0.5}}},
    {"half a MiB is noise: to nothing", {{1, 0.8}, {2, 0}}, {{1, 0}, {2, 0}}},
    {"an idle guest that begins to work", {{1, 0}, {2, 0.6}}, {{2, 0.6}}, .changes = 1},
    {"a guest that works becomes idle", {{1, 100}, {5, 0}}, {{5, 0}}, .changes = 1},
    {"bursts: each is a change",
     {{5, 100}, {2, 100}, {2, 1}, {1, 50}, {2, 100}, {2, 1}},
     {{2, 1}},
     .changes = 3},
    {"of a ninth the second longest goes, and the shortest and the longest stay",
     {{1, 10},
      {2, 20},
      {4, 40},
      {8, 80},
      {16, 100},
      {32, 100},
      {64, 100},
      {128, 100},
      {256, 100},
      {512, 100}},
     {{1, 10}, {2, 20}, {4, 40}, {8, 80}, {16, 100}, {32, 100}, {256, 100}, {512, 100}}},
};

static void keep(void **state) {
  const struct Kept *row = *state;
  MigDirtyCurve curve = {0};
  unsigned n = 0, changes = 0, observations = 0;
  for (unsigned i = 0; i < SEEN && row->seen[i].s > 0; i++) {
    bool same = mig_dirty_curve_observe(&curve, row->seen[i].s, row->seen[i].mib * MIB);
    observations = same ? observations + 1 : 1;
    changes += !same;
  }
  while (n < LENGTH(row->kept) && row->kept[n].s > 0)
    n++;
  assert_int_equal(curve.n, n);
  for (unsigned i = 0; i < n; i++) {
    assert_near("time", curve.points[i].s, row->kept[i].s, 1e-9);
    assert_near("MiB", curve.points[i].bytes / MIB, row->kept[i].mib, 1e-9);
  }
  assert_int_equal(curve.changes, row->changes);
  assert_int_equal(changes, row->changes);
  assert_int_equal(curve.observations, observations);
}

static const struct Nonsense {
  const char *name;
  double s, bytes;
} nonsense[] = {
    {"no time is ignored", 0, 1},
    {"time that runs backwards is ignored", -1, 1},
    {"fewer bytes than none are ignored", 1, -1},
    {"a time that is no number is ignored", NAN, 1},
    {"bytes that are no number are ignored", 1, NAN},
    {"endless time is ignored", INFINITY, 1},
    {"endless bytes are ignored", 1, INFINITY},
};

static void ignore(void **state) {
  const struct Nonsense *row = *state;
  MigDirtyCurve empty = {0}, curve = curve_of((Seen[SEEN]){{1, 60}, {2, 90}}), before = curve;
  assert_true(mig_dirty_curve_observe(&empty, row->s, row->bytes));
  assert_int_equal(empty.n + empty.observations + empty.changes, 0);
  assert_true(mig_dirty_curve_observe(&curve, row->s, row->bytes));
  assert_memory_equal(&curve, &before, sizeof(curve));
}

static void an_expected_change_forgets_the_points_and_is_not_counted(void **state) {
  MigDirtyCurve curve = curve_of((Seen[SEEN]){{1, 100}, {2, 10}, {4, 20}});
  assert_int_equal(curve.changes, 1);
  mig_dirty_curve_restart(&curve);
  assert_int_equal(curve.n, 0);
  assert_int_equal(curve.observations, 0);
  assert_int_equal(curve.changes, 1);
  assert_true(mig_dirty_curve_observe(&curve, 2, 300 * MIB)); /* nothing is left to contradict */
}

/* What it says */

static const struct Bounds {
  const char *name;
  Seen seen[SEEN];
  double s, lower, upper; /* MiB */
} bounds[] = {
    {"nothing seen, nothing said", {{0}}, 1, 0, 0},
    {"in no time nothing", {{1, 100}}, 0, 0, 0},
    {"nor before it", {{1, 100}}, -1, 0, 0},
    {"at the point itself", {{1, 100}}, 1, 100, 100},
    {"before the first: the chord to the origin, and no more than the point", {{1, 100}}, 0.25, 25, 100},
    {"beyond the only one: constant, and the chord from the origin prolonged", {{1, 100}}, 3, 100, 300},
    {"between two: their chord, and no more than the second", {{1, 60}, {2, 90}}, 1.8, 84, 90},
    {"or than the chord before the first prolonged", {{1, 60}, {4, 90}}, 1.25, 62.5, 75},
    {"beyond two: their chord prolonged", {{1, 60}, {2, 90}}, 4, 90, 150},
    {"beyond a curve that has saturated nothing is added", {{1, 90}, {2, 90}}, 1000, 90, 90},
    {"between the second and the third", {{1, 60}, {2, 90}, {10, 170}}, 2.5, 95, 105},
    {"a guest that dirties nothing", {{1, 0}}, 1000, 0, 0},
    {"points that bend up are taken as they are", {{1, 10}, {2, 28}}, 1.5, 19, 19},
};

static void bound(void **state) {
  const struct Bounds *row = *state;
  MigDirtyCurve curve = curve_of(row->seen);
  assert_near("the lower bound", mig_dirty_curve_lower(&curve, row->s) / MIB, row->lower, 1e-9);
  assert_near("the upper bound", mig_dirty_curve_upper(&curve, row->s) / MIB, row->upper, 1e-9);
}

/* Guests of a known kind, seen at some times: the truth lies between the bounds at all others. */

#define RATE 200.0
#define SET  100.0

static double in_turn(double s) {
  return fmin(RATE * s, SET);
}

static double at_random(double s) {
  return SET * (1 - exp(-RATE * s / SET));
}

static double hot_and_cold(double s) {
  return fmin(150 * s, 20) + fmin(10 * s, 300);
}

static double without_end(double s) {
  return 50 * sqrt(s);
}

static const struct Kind {
  const char *name;
  double (*f)(double s); /* MiB */
} kinds[] = {
    {"a guest that writes its set in turn lies between the bounds", in_turn},
    {"so does one that writes at random", at_random},
    {"so does one with a hot part and a cold one", hot_and_cold},
    {"so does one that never saturates", without_end},
};

static void enclose(void **state) {
  const struct Kind *row = *state;
  static const double times[][5] = {{1}, {0.05, 10}, {0.1, 0.5, 3, 20}, {7, 2, 0.6, 0.2, 0.06}};
  for (size_t i = 0; i < LENGTH(times); i++) {
    MigDirtyCurve curve = {0};
    for (unsigned k = 0; k < 5 && times[i][k] > 0; k++)
      assert_true(mig_dirty_curve_observe(&curve, times[i][k], row->f(times[i][k]) * MIB));
    for (double s = 0.01; s < 100; s *= 1.07) {
      double truth = row->f(s) * MIB;
      if (mig_dirty_curve_lower(&curve, s) > truth * (1 + 1e-12) ||
          mig_dirty_curve_upper(&curve, s) < truth * (1 - 1e-12))
        fail_msg("at %g s of %zu it is out of bounds", s, i);
    }
  }
}

static uint64_t random_next(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* Times in whole ms and few of them, so that they meet. */
static void whatever_is_seen_it_rises(void **state) {
  uint64_t seed = 88172645463325252;
  for (int run = 0; run < 5000; run++) {
    MigDirtyCurve curve = {0};
    for (int i = 0; i < 40; i++) {
      double s = (double)(1 + random_next(&seed) % 40) * (random_next(&seed) % 4 ? 0.1 : 1.5);
      double bytes = (double)(60 + random_next(&seed) % 60) * MIB;
      mig_dirty_curve_observe(&curve, s, bytes);
      assert_in_range(curve.n, 1, MIG_DIRTY_POINTS);
      for (unsigned k = 1; k < curve.n; k++)
        if (curve.points[k].s <= curve.points[k - 1].s || curve.points[k].bytes < curve.points[k - 1].bytes)
          fail_msg("run %d, observation %d: point %u falls", run, i, k);
    }
    double lower = 0, upper = 0;
    for (double s = 0; s < 100; s += 0.0625) {
      double next_lower = mig_dirty_curve_lower(&curve, s), next_upper = mig_dirty_curve_upper(&curve, s);
      if (next_lower < lower || next_upper < upper || next_upper < next_lower)
        fail_msg("run %d: it falls at %g s", run, s);
      lower = next_lower;
      upper = next_upper;
    }
  }
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, keep, keeps);
  TESTS_ADD_ROWS(&tests, ignore, nonsense);
  tests_add(&tests, "an expected change forgets the points, and is not counted",
            an_expected_change_forgets_the_points_and_is_not_counted, NULL);
  TESTS_ADD_ROWS(&tests, bound, bounds);
  TESTS_ADD_ROWS(&tests, enclose, kinds);
  tests_add(&tests, "whatever is seen, it rises", whatever_is_seen_it_rises, NULL);
  return tests_run(&tests, "curve");
}

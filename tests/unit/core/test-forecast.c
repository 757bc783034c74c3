/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The forecast: the floor, each way against values worked out by hand, the error band. */
#include "tests/unit/core/places.h"

/* The floor: the fixed point of R = f(R / B), over B; where R has none but 0, the first R / B below a millisecond. */

static const struct Floor {
  const char *name;
  Place place;
  double floor_s;
  double within; /* share by which it may be longer, for the last 2 % are not worth a pass; 0: exactly */
} floors[] = {
    {"faster than the link: the set over the link", {HOPELESS}, 2.0},
    {"as fast as the link: the same", {.memory = 1000, .link = 100, IN_TURN(100, 100)}, 1.0},
    {"one percent slower gains too little to count", {.memory = 1000, .link = 50, IN_TURN(49.5, 100)}, 2.0},
    {"half as fast: halved to below a millisecond", {TAME}, 1.0 / 1024},
    {"an idle guest has none", {.memory = 1000, .link = 100, .seen = {{1, 0}}}, 0},
    {"a guest that dirtied nothing in many passes has none",
     {.memory = 1000, .link = 100, .seen = {{0.1, 0}, {1, 0}, {10, 0}}},
     0},
    {"a set larger than the memory is the memory", {.memory = 256, .link = 50, IN_TURN(500, 500)}, 5.12},
    /* Beyond 0.1 s the chord rises by 80 MiB in 9.9 s: F = 20 + 80/9.9 (F/100 − 0.1) = 20.8791 MiB. */
    {"a hot part and a cold one: where the chord meets the link",
     {.memory = 1000, .link = 100, .seen = {{0.1, 20}, {10, 100}}},
     0.208791208,
     0.025},
    /* F = 64 + 16/0.75 (F/256 − 0.25) = 64 MiB: the knee itself. */
    {"the knee is the fixed point",
     {.memory = 4096, .link = 256, .seen = {{0.25, 64}, {1, 80}}},
     0.25,
     0.025},
    {"24 TiB on 1 GiB/s, 4 TiB of them dirtied over and over",
     {.memory = 24.0 * 1048576, .link = 1024, IN_TURN(10240, 4.0 * 1048576)},
     4096},
    {"throttled, the curve is the guest as it is now", {HOPELESS, .throttle_pct = 50}, 2.0},
    {"in the middle of a pass the same", {HOPELESS, .remaining = 40, .pass = 100, .pass_s = 1.2}, 2.0},
};

static void floor_is(void **state) {
  const struct Floor *row = *state;
  MigForecast forecast = forecast_of(&row->place, "", NULL);
  if (row->within <= 0)
    assert_near("the floor", forecast.floor_s, row->floor_s);
  else if (forecast.floor_s < row->floor_s * (1 - 1e-9) ||
           forecast.floor_s > row->floor_s * (1 + row->within))
    fail_msg("the floor is %.9g, and should be %.9g or a little more", forecast.floor_s, row->floor_s);
}

/* One way */

#define ANY -1

static const struct Way {
  const char *name;
  MigWay way;
  Place place;
  const char *goals;
  double total_s, pause_s, lost_s, sent, downtime_s; /* or ANY; `sent`: MiB */
  unsigned passes, throttle_pct;
} ways[] = {
    {"an idle guest: once over the link",
     MIG_WAY_PRE_COPY,
     {.memory = 1000, .link = 100, .seen = {{1, 0}}},
     "",
     10.05,
     0.05,
     0.05,
     1000,
     0.012,
     1},
    /* Passes of 10, 1, ½, ¼ s…: ¼ fits in 255 ms; each further one to 1/128 s costs nearly nothing. */
    {"pre-copy goes on below the goal while that is nearly free",
     MIG_WAY_PRE_COPY,
     {TAME},
     "",
     11.984375 + 0.0078125 + SWITCH,
     0.0078125 + SWITCH,
     0.0578125,
     1199.21875,
     0.012,
     8},
    /* Passes of 10, 1, 0.9, 0.81… s. 0.9 fits in 955 ms; the end after that of 0.81 is 7 % later, after 0.729 13 %. */
    {"and no further: a tenth of the time, near the link",
     MIG_WAY_PRE_COPY,
     {.memory = 1000, .link = 100, IN_TURN(90, 100)},
     "max_downtime_ms=1000",
     11.9 + 0.81 + SWITCH,
     0.81 + SWITCH,
     0.86,
     1000 + 100 + 90 + 81,
     0.853815, /* between 0.81 and 0.9: their geometric mean */
     3},
    {"a deadline ends it earlier than a shorter pause would",
     MIG_WAY_PRE_COPY,
     {TAME, .deadline_s = 11.9},
     "",
     11.5 + 0.25 + SWITCH,
     0.25 + SWITCH,
     0.3,
     1175,
     0.25,
     3},
    {"slowed down it ends as soon as the goal is met",
     MIG_WAY_PRE_COPY,
     {TAME, .throttle_pct = 50},
     "",
     11.8,
     0.3,
     0.3,
     1175,
     0.255,
     3},
    {"from the middle of a pass: what is left of it first",
     MIG_WAY_PRE_COPY,
     {TAME, .remaining = 20, .pass = 100, .pass_s = 0.8, .elapsed_s = 10.8},
     "max_downtime_ms=600", /* the next pass is ½ s: f(0.8 + 0.2) = 50 MiB; then ¼, ⅛, … */
     10.8 + 0.2 + 0.984375 + 0.0078125 + SWITCH,
     0.0078125 + SWITCH,
     ANY,
     20 + 100 - 0.78125,
     0.012,
     7},
    {"a pause: the set over the link, with room for 4 % and 5 ms more",
     MIG_WAY_PAUSE,
     {HOPELESS},
     "max_pause_ms=4s",
     22.05,
     2.05,
     2.05,
     1100,
     2.085,
     1},
    {"and no more room than the goal has",
     MIG_WAY_PAUSE,
     {HOPELESS},
     "max_pause_ms=2100",
     22.05,
     2.05,
     2.05,
     1100,
     2.055,
     1},
    {"a pause at the first pass that fits",
     MIG_WAY_PAUSE,
     {TAME},
     "max_pause_ms=600", /* 555 ms: after 10 and 1 s */
     11.55,
     0.55,
     0.55,
     1150,
     0.525,
     2},
    {"a pause from the middle of a pass",
     MIG_WAY_PAUSE,
     {HOPELESS, .remaining = 40, .pass = 100, .pass_s = 1.2, .elapsed_s = 7},
     "max_pause_ms=4s",
     7 + 0.8 + 2.05,
     2.05,
     2.05,
     140,
     2.085,
     1},
    {"a guest as fast as the link loses 60 % of its work in post-copy",
     MIG_WAY_POST_COPY,
     {HOPELESS},
     "allow_post_copy=yes",
     20.05,
     0.1,
     0.05 + 0.6 * 20,
     1000,
     0,
     0},
    {"one half as fast a quarter of that",
     MIG_WAY_POST_COPY,
     {.memory = 1000, .link = 50, IN_TURN(25, 100)},
     "allow_post_copy=yes",
     20.05,
     0.1,
     0.05 + 0.15 * 20,
     1000,
     0,
     0},
    {"post-copy from the middle of a pass: its rest, and all that was dirtied since",
     MIG_WAY_POST_COPY,
     {HOPELESS, .remaining = 40, .pass = 100, .pass_s = 1.2, .elapsed_s = 7},
     "allow_post_copy=yes",
     7 + 2.8 + SWITCH,
     0.1,
     0.05 + 0.6 * 2.8,
     140,
     0,
     0},
    {"of the first pass: its rest, and of what was sent the share that was dirtied since",
     MIG_WAY_POST_COPY,
     {HOPELESS, .remaining = 400, .pass_s = 12, .elapsed_s = 12},
     "allow_post_copy=yes",
     12 + 9.2 + SWITCH,
     0.1,
     0.05 + 0.6 * 9.2,
     460,
     0,
     0},
    {"post-copy never sends more than there is",
     MIG_WAY_POST_COPY,
     {.memory = 100, .link = 50, IN_TURN(200, 100), .remaining = 90, .pass = 100, .pass_s = 10},
     "allow_post_copy=yes",
     2.05,
     0.1,
     0.05 + 0.6 * 2,
     100,
     0,
     0},
    /* QEMU counts passes that dirtied more than half of what they sent: 100 of 1000 MiB did not, 100 of 100 did, and did
     * again at 24 s. At 90 % the rate is 20 MiB/s: passes of 2, 0.8, 0.32 s, and 0.128 s fits. */
    {"auto-converge: the smallest throttle that more than halves a pass",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS},
     "allow_auto_converge=yes max_throttle_pct=99",
     27.12 + 0.128 + SWITCH,
     0.128 + SWITCH,
     0.178 + 0.9 * (27.298 - 24),
     1000 + 3 * 100 + 40 + 16 + 6.4,
     0.255,
     6,
     90},
    /* At 95 % 10 MiB/s: passes of 2 and 0.4 s, and 0.08 s fits. Each stop takes 10 ms × 95/5. */
    {"a stronger one, where that is too late",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS, .deadline_s = 27},
     "allow_auto_converge=yes max_throttle_pct=99",
     26.4 + 0.08 + SWITCH,
     0.19,
     0.13 + 0.95 * (26.53 - 24),
     1000 + 3 * 100 + 20 + 4,
     0.255,
     5,
     95},
    {"a guest that never dirtied half of what was sent is left alone: as pre-copy",
     MIG_WAY_AUTO_CONVERGE,
     {TAME},
     "allow_auto_converge=yes",
     11.984375 + 0.0078125 + SWITCH,
     0.0078125 + SWITCH,
     0.0578125,
     1199.21875,
     0.012,
     8},
    /* At 88 % it is 24 MiB/s: 2 s × 0.48 each time, three times. QEMU leaves that as it is. */
    {"or the strongest that is permitted, where none does",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS},
     "allow_auto_converge=yes max_throttle_pct=88",
     27.4208 + 0.221184 + SWITCH,
     0.221184 + SWITCH,
     ANY,
     ANY,
     0.255,
     6,
     88},
    /* It needs a quarter of its CPU: 98 % leave it 8 % of its speed, 16 MiB/s, and each stop takes 10 ms × 98/2. */
    {"a guest that sleeps most of the time is not slowed until it gets less than it uses",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS, .cpu_share = 0.25},
     "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=500",
     26.64 + 0.2048 + SWITCH,
     0.49,
     0.2548 + 0.92 * (26.8948 - 24),
     ANY,
     0.455,
     5,
     98},
    /* The curve was seen at 50 %: at 95 % the guest is ten times slower than that. */
    {"under a throttle the next one is reckoned from it",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS, .throttle_pct = 50},
     "allow_auto_converge=yes max_throttle_pct=99",
     23.12 + 0.128 + SWITCH,
     0.19,
     ANY,
     1000 + 100 + 40 + 16 + 6.4,
     0.255,
     4,
     95},
};

static void assert_unless_any(const char *what, double actual, double expected) {
  if (expected >= 0)
    assert_near(what, actual, expected);
}

static void way_is(void **state) {
  const struct Way *row = *state;
  MigForecast forecast = forecast_of(&row->place, row->goals, NULL);
  const MigWayForecast *way = &forecast.ways[row->way];
  assert_string_equal(mig_way_bar_name(way->bar), "open");
  assert_unless_any("total", way->total_s, row->total_s);
  assert_unless_any("pause", way->pause_s, row->pause_s);
  assert_unless_any("lost work", way->lost_s, row->lost_s);
  assert_unless_any("MiB sent", way->bytes / MIB, row->sent);
  assert_unless_any("downtime limit", way->downtime_s, row->downtime_s);
  assert_int_equal(way->passes, row->passes);
  assert_int_equal(way->throttle_pct, row->throttle_pct);
}

/* The error band: how far apart the bounds of f are at the next question to it, and 5 % of what is to be sent; over B. */

static const struct Band {
  const char *name;
  Place place;
  double error_s; /* of a pause, which sends 1000 MiB and the first pass's dirty set */
} bands[] = {
    {"a curve that saturated: the link alone",
     {.memory = 1000, .link = 50, .seen = {{0.5, 100}, {20, 100}}},
     0.05 * 1100 / 50},
    {"one short look: up to all of the memory", /* in 20 s 100 MiB, or 4000 */
     {.memory = 1000, .link = 50, .seen = {{0.5, 100}}},
     (1000 + 0.05 * 1100) / 50},
    {"between two points: what they leave open", /* in 20 s 125 MiB, or 150 */
     {.memory = 1000, .link = 50, .seen = {{10, 100}, {30, 150}}},
     (25 + 0.05 * 1125) / 50},
    {"in a later pass: where that ends", /* after 2 s 100 MiB, or 400; 40 and 100 are to be sent */
     {HOPELESS, .remaining = 40, .pass = 100, .pass_s = 1.2},
     (300 + 0.05 * 140) / 50},
};

static void band_is(void **state) {
  const struct Band *row = *state;
  MigForecast forecast = forecast_of(&row->place, "max_pause_ms=10s", NULL);
  assert_near("the band", forecast.ways[MIG_WAY_PAUSE].error_s, row->error_s);
}

/* Whatever the numbers are */

static uint64_t random_next(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* From nothing to exabytes, by any power of two. */
static double random_size(uint64_t *seed) {
  return random_next(seed) % 9 == 0 ? 0 : (double)(random_next(seed) >> (random_next(seed) % 64));
}

static bool is_sane(const MigWayForecast *way, const MigStanding *standing) {
  return isfinite(way->total_s) && isfinite(way->pause_s) && isfinite(way->lost_s) && isfinite(way->bytes) &&
         isfinite(way->error_s) && isfinite(way->downtime_s) && way->total_s >= standing->elapsed_s &&
         way->pause_s >= 0 && way->lost_s >= 0 && way->bytes >= 0 && way->error_s >= 0 &&
         way->throttle_pct <= 99;
}

static void no_numbers_whatever_make_it_stumble(void **state) {
  uint64_t seed = 88172645463325252;
  unsigned open_ways = 0;
  for (int run = 0; run < 20000; run++) {
    MigDirtyCurve curve = {0};
    MigPolicy policy = policy_of("allow_post_copy=yes allow_auto_converge=yes");
    for (unsigned i = random_next(&seed) % 10; i > 0; i--)
      mig_dirty_curve_observe(&curve, random_size(&seed) / 1e6, random_size(&seed));
    mig_policy_set(&policy, MIG_POLICY_MAX_PAUSE_MS, random_next(&seed) % 100000, NULL, 0);
    mig_policy_set(&policy, MIG_POLICY_MAX_DOWNTIME_MS, 1 + random_next(&seed) % 5000, NULL, 0);
    mig_policy_set(&policy, MIG_POLICY_MAX_THROTTLE_PCT, 1 + random_next(&seed) % 99, NULL, 0);
    MigStanding standing = {
        .memory_bytes = random_size(&seed),
        .pass_s = random_size(&seed) / 1e6,
        .first_pass = random_next(&seed) % 2,
        .bandwidth_bytes_per_s = random_size(&seed),
        .elapsed_s = random_size(&seed) / 1e6,
        .deadline_s = random_size(&seed) / 1e6,
        .throttle_pct = (unsigned)(random_next(&seed) % 2 ? random_next(&seed) % 100 : 0),
        .cpu_share = (double)(random_next(&seed) % 5) / 4,
        .switch_s = (double)(random_next(&seed) % 3) / 10,
    };
    standing.pass_bytes = fmin(random_size(&seed), standing.memory_bytes);
    standing.remaining_bytes = fmin(random_size(&seed), standing.pass_bytes);
    const MigWaysOpen all = {.auto_converge = true, .post_copy = true};
    double pause_s = (double)mig_policy_get(&policy, MIG_POLICY_MAX_PAUSE_MS) / 1000;
    MigForecast forecast;
    char text[400];
    mig_forecast(&curve, &standing, &policy, &all, &forecast);
    mig_forecast_describe(&forecast, text, sizeof(text));
    assert_true(isfinite(forecast.floor_s) && forecast.floor_s >= 0);
    for (int i = 0; i < MIG_WAY_COUNT; i++) {
      const MigWayForecast *way = &forecast.ways[i];
      bool open = way->bar == MIG_WAY_OPEN;
      open_ways += open;
      /* A way that never ends has no numbers. */
      if (way->bar != MIG_WAY_UNKNOWN && way->bar != MIG_WAY_NEVER_ENDS && !is_sane(way, &standing))
        fail_msg("run %d, %s: %s", run, mig_way_name((MigWay)i), text);
      if (open && standing.deadline_s > 0 && way->total_s > standing.deadline_s)
        fail_msg("run %d, %s is open and too late", run, mig_way_name((MigWay)i));
      if (open && forecast.best == NONE)
        fail_msg("run %d, %s is open and none is best", run, mig_way_name((MigWay)i));
    }
    if (forecast.ways[MIG_WAY_PAUSE].bar == MIG_WAY_OPEN)
      assert_true(forecast.ways[MIG_WAY_PAUSE].downtime_s <= pause_s);
    assert_true(forecast.best == NONE || forecast.ways[forecast.best].bar == MIG_WAY_OPEN);
  }
  assert_in_range(open_ways, 10000, 60000); /* it was not all for nothing */
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, floor_is, floors);
  TESTS_ADD_ROWS(&tests, way_is, ways);
  TESTS_ADD_ROWS(&tests, band_is, bands);
  tests_add(&tests, "no numbers whatever make it stumble", no_numbers_whatever_make_it_stumble, NULL);
  return tests_run(&tests, "forecast");
}

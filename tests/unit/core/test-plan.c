/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plan of the start, the downtime limit for a goal, and the forecast in words. */
#include "libmigrate/core/forecast.h"

#include "tests/unit/core/goals.h"

#include <math.h>

#define MIB  ((double)MIG_MIB_BYTES)
#define NONE MIG_WAY_COUNT

/* The downtime limit for a goal */

static const struct Limit {
  const char *name;
  uint64_t goal_ms, limit_ms;
} limits[] = {
    {"a goal less the switch", 300, 255},
    {"one second", 1000, 955},
    {"the longest that QEMU takes", 2000000, 1999955},
    {"a goal just long enough for the switch", 91, 46},
    {"one too short for it: half", 90, 45},
    {"half of a small one", 30, 15},
    {"rounded up, so that there is something", 1, 1},
    {"half of three", 3, 2},
    {"none of none", 0, 0},
};

static void limit_is(void **state) {
  const struct Limit *row = *state;
  assert_int_equal(mig_downtime_limit_ms(row->goal_ms), row->limit_ms);
}

/* The plan */

/* MiB, MiB/s; a probe of so many seconds each. */
typedef struct Probe {
  double s, mib;
} Probe;

#define HOPELESS .probe = {{1, 200}}, .link = 50
#define TAME     .probe = {{1, 5}}, .link = 50

static const struct Start {
  const char *name;
  const char *goals;
  Probe probe[2];
  double cpu_share;
  uint64_t link;
  MigWay best;
  bool post_copy, auto_converge;
  unsigned initial_pct, increment_pct;
  uint64_t downtime_ms;
  uint64_t bandwidth;
} starts[] = {
    {"nothing known, nothing permitted", "", .best = NONE, .downtime_ms = 20},
    {"what is permitted is asked for where nothing is known", "allow_auto_converge=yes allow_post_copy=yes",
     .best = NONE, .post_copy = true, .auto_converge = true, .downtime_ms = 20},
    {"without a link a probe says nothing", "allow_auto_converge=yes", .probe = {{1, 200}}, .best = NONE,
     .auto_converge = true, .downtime_ms = 20},
    {"QEMU leaves a tame guest alone, so it may throttle: the link may carry less", "allow_auto_converge=yes",
     TAME, .best = MIG_WAY_PRE_COPY, .auto_converge = true, .downtime_ms = 20, .bandwidth = 50},
    {"which is not needed where post-copy helps then", "allow_auto_converge=yes allow_post_copy=yes", TAME,
     .best = MIG_WAY_PRE_COPY, .post_copy = true, .downtime_ms = 20, .bandwidth = 50},
    {"one that QEMU would throttle and that converges is not asked to be throttled",
     "allow_auto_converge=yes", .probe = {{1, 30}, {20, 400}}, .link = 50, .best = MIG_WAY_PRE_COPY,
     .downtime_ms = 20, .bandwidth = 50},
    {"post-copy is kept open though it is not needed", "allow_post_copy=yes", TAME, .best = MIG_WAY_PRE_COPY,
     .post_copy = true, .downtime_ms = 20, .bandwidth = 50},
    /* Of one second's 200 MiB the guess is 800 in 5 s. A pass of them takes 16 s; at 90 % that is 1.6 s of the guest's, with
     * 290 MiB, less than 0.45 of it. At 85 % they are 410. */
    {"a hopeless one is, by as much as more than halves a pass",
     "allow_auto_converge=yes max_throttle_pct=99", HOPELESS, .best = MIG_WAY_AUTO_CONVERGE,
     .auto_converge = true, .initial_pct = 90, .increment_pct = 1, .downtime_ms = 20, .bandwidth = 50},
    {"or by what is permitted", "allow_auto_converge=yes max_throttle_pct=88", HOPELESS,
     .best = MIG_WAY_AUTO_CONVERGE, .auto_converge = true, .initial_pct = 88, .increment_pct = 5,
     .downtime_ms = 20, .bandwidth = 50},
    /* At 80 % two passes would dirty more than half of what they send, and QEMU would go on to 85 %. */
    {"not where that would not be the end of it", "allow_auto_converge=yes max_throttle_pct=80", HOPELESS,
     .best = NONE, .auto_converge = true, .downtime_ms = 20, .bandwidth = 50},
    {"QEMU's own steps are made to land on what is permitted", "allow_auto_converge=yes max_throttle_pct=75",
     .best = NONE, .auto_converge = true, .initial_pct = 25, .increment_pct = 10, .downtime_ms = 20},
    {"and begin with it where that is less", "allow_auto_converge=yes max_throttle_pct=15", .best = NONE,
     .auto_converge = true, .initial_pct = 15, .increment_pct = 10, .downtime_ms = 20},
    {"QEMU's own bound is as good", "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=1s",
     .best = NONE, .auto_converge = true, .downtime_ms = 20},
    {"and on what keeps each stop within max_downtime_ms", /* 10 ms × 96/4 are 240 ms, of 97 they would be 323 */
     "allow_auto_converge=yes max_throttle_pct=99", .best = NONE, .auto_converge = true, .initial_pct = 26,
     .increment_pct = 10, .downtime_ms = 20},
    {"one that uses half of its CPU by more", "allow_auto_converge=yes max_throttle_pct=99", HOPELESS,
     .cpu_share = 0.5, .best = MIG_WAY_AUTO_CONVERGE, .auto_converge = true, .initial_pct = 95,
     .increment_pct = 1, .downtime_ms = 20, .bandwidth = 50},
    /* 10 ms × 83/17 are 49 ms, of 84 they would be 53. */
    {"where no stop may be as long as it would take, no way is open",
     "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=50", HOPELESS, .best = NONE,
     .auto_converge = true, .initial_pct = 23, .increment_pct = 10, .downtime_ms = 20, .bandwidth = 50},
    {"and a goal of next to nothing leaves less than QEMU's least",
     "allow_auto_converge=yes max_throttle_pct=99 max_downtime_ms=1", HOPELESS, .best = NONE,
     .auto_converge = true, .initial_pct = 9, .increment_pct = 10, .downtime_ms = 1, .bandwidth = 50},
    {"not where post-copy is the way", "allow_auto_converge=yes allow_post_copy=yes", HOPELESS,
     .best = MIG_WAY_POST_COPY, .post_copy = true, .downtime_ms = 20, .bandwidth = 50},
    {"nor where a pause is", "allow_auto_converge=yes max_throttle_pct=20 max_pause_ms=20s", HOPELESS,
     .best = MIG_WAY_PAUSE, .downtime_ms = 20, .bandwidth = 50},
    {"where no way is open it may yet help", "allow_auto_converge=yes max_throttle_pct=50", HOPELESS,
     .best = NONE, .auto_converge = true, .downtime_ms = 20, .bandwidth = 50},
    {"nor is any in time", "allow_auto_converge=yes max_throttle_pct=90 completion_timeout_s_per_gib=20",
     HOPELESS, .best = NONE, .auto_converge = true, .downtime_ms = 20, .bandwidth = 50},
    {"nothing is asked that is not permitted", "", HOPELESS, .best = NONE, .downtime_ms = 20,
     .bandwidth = 50},
    {"a limit of the bandwidth holds", "bandwidth_bytes_per_s=40M", TAME, .best = MIG_WAY_PRE_COPY,
     .downtime_ms = 20, .bandwidth = 40},
    {"one above the link's does nothing", "bandwidth_bytes_per_s=80M", TAME, .best = MIG_WAY_PRE_COPY,
     .downtime_ms = 20, .bandwidth = 50},
    {"of an unknown link the limit is reckoned with", "bandwidth_bytes_per_s=40M", .probe = {{1, 5}},
     .best = MIG_WAY_PRE_COPY, .downtime_ms = 20, .bandwidth = 40},
    {"a goal shorter than the first limit", "max_downtime_ms=30", TAME, .best = MIG_WAY_PRE_COPY,
     .downtime_ms = 15, .bandwidth = 50},
};

static MigPlan plan_of(const char *goals, const Probe *probes, double cpu_share, uint64_t memory_mib,
                       const MigLinkFacts *link) {
  MigPolicy policy = policy_of(goals);
  MigProbe probe = {.cpu_share = cpu_share};
  MigPlan plan;
  for (int i = 0; i < 2 && probes[i].s > 0; i++)
    mig_dirty_curve_observe(&probe.curve, probes[i].s, probes[i].mib * MIB);
  mig_plan(&probe, memory_mib * MIG_MIB_BYTES, link, &policy, &plan);
  return plan;
}

static void start_is(void **state) {
  const struct Start *row = *state;
  const MigLinkFacts link = {.bandwidth_bytes_per_s = row->link * MIG_MIB_BYTES};
  MigPlan plan = plan_of(row->goals, row->probe, row->cpu_share, 1000, &link);
  if (plan.forecast.best != row->best)
    fail_msg("it is %s", plan.forecast.best == NONE ? "none" : mig_way_name(plan.forecast.best));
  assert_int_equal(plan.post_copy, row->post_copy);
  assert_int_equal(plan.auto_converge, row->auto_converge);
  assert_int_equal(plan.throttle_initial_pct, row->initial_pct);
  assert_int_equal(plan.throttle_increment_pct, row->increment_pct);
  assert_int_equal(plan.downtime_ms, row->downtime_ms);
  assert_int_equal(plan.bandwidth_bytes_per_s, row->bandwidth * MIG_MIB_BYTES);
}

/* What the probe is taken for: the floor of a guest that outruns the link is its set over the link. */

static const struct Guess {
  const char *name;
  Probe probe[2];
  uint64_t memory;
  double floor_s;
} guesses[] = {
    {"one look of a second is taken for four times as much in five", {{1, 200}}, 1000, 16},
    {"but never for more than there is", {{1, 200}}, 500, 10},
    {"two looks are taken as they are", {{1, 200}, {5, 250}}, 1000, 5},
};

static void guess_is(void **state) {
  const struct Guess *row = *state;
  const MigLinkFacts link = {.bandwidth_bytes_per_s = 50 * MIG_MIB_BYTES};
  MigPlan plan = plan_of("", row->probe, 0, row->memory, &link);
  assert_true(fabs(plan.forecast.floor_s - row->floor_s) < 1e-6);
}

static void what_the_switch_took_before_is_reckoned_with(void **state) {
  const Probe idle[2] = {{1, 0}};
  const MigLinkFacts short_one = {50 * MIG_MIB_BYTES, 40}, long_one = {50 * MIG_MIB_BYTES, 240};
  MigPlan a = plan_of("", idle, 0, 1000, &short_one), b = plan_of("", idle, 0, 1000, &long_one);
  assert_true(fabs(a.forecast.ways[MIG_WAY_PRE_COPY].pause_s - 0.04) < 1e-4); /* and the dirty log */
  assert_true(fabs(b.forecast.ways[MIG_WAY_PRE_COPY].pause_s - 0.24) < 1e-4);
  assert_int_equal(b.switch_ms, 240);
}

static void the_probe_is_kept_as_it_was(void **state) {
  const Probe probe[2] = {{1, 200}};
  const MigLinkFacts link = {.bandwidth_bytes_per_s = 50 * MIG_MIB_BYTES};
  MigPlan plan = plan_of("", probe, 0.5, 1000, &link);
  assert_int_equal(plan.probe.curve.n, 1); /* the guess is for the forecast only */
  assert_true(fabs(plan.probe.cpu_share - 0.5) < 1e-9);
}

/* In words */

static const struct Words {
  const char *name;
  MigWayForecast ways[MIG_WAY_COUNT];
  const char *text;
} words[] = {
    {"a way that is open, and what is not permitted is not spoken of",
     {{.total_s = 12.04, .pause_s = 0.0578},
      {.bar = MIG_WAY_NOT_PERMITTED},
      {.bar = MIG_WAY_NOT_PERMITTED},
      {.bar = MIG_WAY_NOT_PERMITTED}},
     "pre_copy: 12.0 s in total, guest silent for 58 ms"},
    {"what bars the others",
     {{.bar = MIG_WAY_NEVER_ENDS},
      {.bar = MIG_WAY_NOT_STARTED_FOR},
      {.bar = MIG_WAY_PAUSE_TOO_LONG},
      {.total_s = 20.05, .pause_s = 0.1}},
     "pre_copy: would not converge; auto_converge: not enabled at the start; pause: pause too long; "
     "post_copy: 20.1 s in total, guest silent for 100 ms"},
    {"nothing known",
     {{.bar = MIG_WAY_UNKNOWN},
      {.bar = MIG_WAY_UNKNOWN},
      {.bar = MIG_WAY_REFUSED},
      {.bar = MIG_WAY_TOO_LATE}},
     "pre_copy: not known yet; auto_converge: not known yet; pause: tried without success; post_copy: would "
     "miss the deadline"},
};

/* Into every size, down to nothing: what fits of it, with its end, and not a byte beyond. */
static void words_are(void **state) {
  const struct Words *row = *state;
  MigForecast forecast = {.best = NONE};
  size_t length = strlen(row->text);
  memcpy(forecast.ways, row->ways, sizeof(forecast.ways));
  for (size_t size = 0; size <= length + 2; size++) {
    char text[512];
    memset(text, '#', sizeof(text));
    mig_forecast_describe(&forecast, text, size);
    size_t fits = size == 0 ? 0 : size - 1 < length ? size - 1 : length;
    assert_memory_equal(text, row->text, fits);
    if (size > 0)
      assert_int_equal(text[fits], '\0');
    for (size_t i = size; i < sizeof(text); i++)
      assert_int_equal(text[i], '#');
  }
}

static void numbers_of_any_length_are_cut(void **state) {
  MigForecast forecast = {.best = NONE};
  char text[64];
  for (int i = 0; i < MIG_WAY_COUNT; i++)
    forecast.ways[i] = (MigWayForecast){.total_s = 1e300, .pause_s = 1e300};
  mig_forecast_describe(&forecast, text, sizeof(text));
  assert_int_equal(strlen(text), sizeof(text) - 1);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, limit_is, limits);
  TESTS_ADD_ROWS(&tests, start_is, starts);
  TESTS_ADD_ROWS(&tests, guess_is, guesses);
  tests_add(&tests, "what the switch took before is reckoned with",
            what_the_switch_took_before_is_reckoned_with, NULL);
  tests_add(&tests, "the probe is kept as it was", the_probe_is_kept_as_it_was, NULL);
  TESTS_ADD_ROWS(&tests, words_are, words);
  tests_add(&tests, "numbers of any length are cut", numbers_of_any_length_are_cut, NULL);
  return tests_run(&tests, "plan");
}

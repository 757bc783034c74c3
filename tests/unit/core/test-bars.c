/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of the forecast: what bars a way, and which of the open ones is best. */
#include "tests/unit/core/places.h"

/* Bars */

static const struct Bar {
  const char *name;
  MigWay way;
  Place place;
  const char *goals;
  MigWayBar bar;
  bool not_started_for, refused;
} bars[] = {
    {"what is not permitted: auto-converge", MIG_WAY_AUTO_CONVERGE, {HOPELESS}, "", MIG_WAY_NOT_PERMITTED},
    {"what is not permitted: a pause", MIG_WAY_PAUSE, {HOPELESS}, "", MIG_WAY_NOT_PERMITTED},
    {"what is not permitted: post-copy", MIG_WAY_POST_COPY, {HOPELESS}, "", MIG_WAY_NOT_PERMITTED},
    {"what is not permitted is not refused besides",
     MIG_WAY_POST_COPY,
     {HOPELESS},
     "",
     MIG_WAY_NOT_PERMITTED,
     .refused = true},
    {"auto-converge that was not asked for at the start",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS},
     "allow_auto_converge=yes max_throttle_pct=99",
     MIG_WAY_NOT_STARTED_FOR,
     .not_started_for = true},
    {"post-copy that was not asked for at the start",
     MIG_WAY_POST_COPY,
     {HOPELESS},
     "allow_post_copy=yes",
     MIG_WAY_NOT_STARTED_FOR,
     .not_started_for = true},
    {"a pause needs no asking",
     MIG_WAY_PAUSE,
     {HOPELESS},
     "max_pause_ms=4s",
     MIG_WAY_OPEN,
     .not_started_for = true},
    {"what libvirt refused: a pause",
     MIG_WAY_PAUSE,
     {HOPELESS},
     "max_pause_ms=4s",
     MIG_WAY_REFUSED,
     .refused = true},
    {"what libvirt refused: post-copy",
     MIG_WAY_POST_COPY,
     {HOPELESS},
     "allow_post_copy=yes",
     MIG_WAY_REFUSED,
     .refused = true},
    {"pre-copy whose floor is above the goal", MIG_WAY_PRE_COPY, {HOPELESS}, "", MIG_WAY_NEVER_ENDS},
    {"and one whose floor is within it",
     MIG_WAY_PRE_COPY,
     {HOPELESS},
     "max_downtime_ms=2046", /* 2001 ms beside the switch */
     MIG_WAY_OPEN},
    {"by a millisecond", MIG_WAY_PRE_COPY, {HOPELESS}, "max_downtime_ms=2044", MIG_WAY_NEVER_ENDS},
    {"a goal of a millisecond is met by an idle guest",
     MIG_WAY_PRE_COPY,
     {.memory = 1000, .link = 100, .seen = {{1, 0}}},
     "max_downtime_ms=1",
     MIG_WAY_OPEN},
    {"a throttle that is not enough",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS},
     "allow_auto_converge=yes max_throttle_pct=75", /* as fast as the link, then */
     MIG_WAY_NEVER_ENDS},
    {"a throttle below QEMU's least",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS},
     "allow_auto_converge=yes max_throttle_pct=19",
     MIG_WAY_NEVER_ENDS},
    {"a throttle that is enough and too late",
     MIG_WAY_AUTO_CONVERGE,
     {HOPELESS, .deadline_s = 26},
     "allow_auto_converge=yes max_throttle_pct=99",
     MIG_WAY_TOO_LATE},
    {"a floor above the permitted pause",
     MIG_WAY_PAUSE,
     {HOPELESS},
     "max_pause_ms=1s",
     MIG_WAY_PAUSE_TOO_LONG},
    {"pre-copy after the deadline", MIG_WAY_PRE_COPY, {TAME, .deadline_s = 11.7}, "", MIG_WAY_TOO_LATE},
    {"a pause after the deadline",
     MIG_WAY_PAUSE,
     {HOPELESS, .deadline_s = 22},
     "max_pause_ms=4s",
     MIG_WAY_TOO_LATE},
    {"post-copy after the deadline",
     MIG_WAY_POST_COPY,
     {HOPELESS, .deadline_s = 19},
     "allow_post_copy=yes",
     MIG_WAY_TOO_LATE},
    {"post-copy that only lacks the time for the switch",
     MIG_WAY_POST_COPY,
     {HOPELESS, .deadline_s = 20.02},
     "allow_post_copy=yes",
     MIG_WAY_TOO_LATE},
    {"without a bandwidth nothing is known",
     MIG_WAY_PRE_COPY,
     {.memory = 1000, IN_TURN(50, 100)},
     "",
     MIG_WAY_UNKNOWN},
    {"nor without anything of the guest",
     MIG_WAY_PRE_COPY,
     {.memory = 1000, .link = 100},
     "",
     MIG_WAY_UNKNOWN},
    {"not even of what is not permitted",
     MIG_WAY_POST_COPY,
     {.memory = 1000, .link = 100},
     "",
     MIG_WAY_UNKNOWN},
};

static void bar_is(void **state) {
  const struct Bar *row = *state;
  MigWaysOpen open = {.auto_converge = !row->not_started_for, .post_copy = !row->not_started_for};
  open.refused[row->way] = row->refused;
  MigForecast forecast = forecast_of(&row->place, row->goals, &open);
  assert_string_equal(mig_way_bar_name(forecast.ways[row->way].bar), mig_way_bar_name(row->bar));
  assert_true(forecast.best != row->way || row->bar == MIG_WAY_OPEN);
  if (row->bar == MIG_WAY_UNKNOWN)
    assert_int_equal(forecast.best, NONE);
}

/* The best: time + 20 × pause + lost work; post-copy has its risk on top. */

static const struct Best {
  const char *name;
  Place place;
  const char *goals;
  MigWay best;
  bool refused[MIG_WAY_COUNT];
} bests[] = {
    {"a tame guest needs nothing else, whatever is permitted",
     {TAME},
     "allow_post_copy=yes allow_auto_converge=yes max_pause_ms=10s",
     MIG_WAY_PRE_COPY},
    {"none where nothing is permitted", {HOPELESS}, "", NONE},
    {"a pause where that is all", {HOPELESS}, "max_pause_ms=4s", MIG_WAY_PAUSE}, /* 22 + 20 × 2 + 2 */
    {"post-copy before a long pause", /* 20 + 20 × 0.1 + 12 + risk */
     {HOPELESS},
     "max_pause_ms=4s allow_post_copy=yes",
     MIG_WAY_POST_COPY},
    {"a throttle that ends it soon before post-copy that costs the guest 12 s", /* 27 + 20 × 0.18 + 3 */
     {HOPELESS},
     "max_pause_ms=4s allow_post_copy=yes allow_auto_converge=yes max_throttle_pct=99",
     MIG_WAY_AUTO_CONVERGE},
    {"the next where libvirt refused post-copy",
     {HOPELESS},
     "max_pause_ms=4s allow_post_copy=yes",
     MIG_WAY_PAUSE,
     .refused = {[MIG_WAY_POST_COPY] = true}},
    {"none where it refused both",
     {HOPELESS},
     "max_pause_ms=4s allow_post_copy=yes",
     NONE,
     .refused = {[MIG_WAY_POST_COPY] = true, [MIG_WAY_PAUSE] = true}},
    {"the one that is in time",
     {HOPELESS, .deadline_s = 21},
     "max_pause_ms=4s allow_post_copy=yes allow_auto_converge=yes max_throttle_pct=99",
     MIG_WAY_POST_COPY},
    /* A set of 5 MiB over 10 MiB/s: ½ s, 2 s earlier than… nothing; post-copy waits 100 s for all of the memory. */
    {"a short pause before long post-copy",
     {.memory = 1000, .link = 10, IN_TURN(200, 5)},
     "max_pause_ms=1s allow_post_copy=yes",
     MIG_WAY_PAUSE},
};

static void best_is(void **state) {
  const struct Best *row = *state;
  MigWaysOpen open = {.auto_converge = true, .post_copy = true};
  memcpy(open.refused, row->refused, sizeof(open.refused));
  MigForecast forecast = forecast_of(&row->place, row->goals, &open);
  if (forecast.best != row->best)
    fail_msg("it is %s", forecast.best == NONE ? "none" : mig_way_name(forecast.best));
}

static void a_second_of_silence_is_worth_twenty_of_time_and_of_work(void **state) {
  const MigWayForecast way = {.total_s = 10, .pause_s = 0.5, .lost_s = 2};
  assert_near("the cost", mig_way_cost(&way), 10 + 20 * 0.5 + 2);
}

static void ways_and_bars_have_names(void **state) {
  for (int i = 0; i < MIG_WAY_COUNT; i++)
    assert_non_null(mig_way_name((MigWay)i));
  for (int i = 0; i < MIG_WAY_BAR_COUNT; i++)
    assert_non_null(mig_way_bar_name((MigWayBar)i));
  assert_null(mig_way_name(MIG_WAY_COUNT));
  assert_null(mig_way_bar_name(MIG_WAY_BAR_COUNT));
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, bar_is, bars);
  TESTS_ADD_ROWS(&tests, best_is, bests);
  tests_add(&tests, "a second of silence is worth twenty of time and of work",
            a_second_of_silence_is_worth_twenty_of_time_and_of_work, NULL);
  tests_add(&tests, "ways and bars have names", ways_and_bars_have_names, NULL);
  return tests_run(&tests, "bars");
}

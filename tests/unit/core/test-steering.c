/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a monitor knows of the one before it, and which downtime limit it takes to be in force. */
#include "libmigrate/core/monitor.h"

#include "tests/unit/core/goals.h"

#define MIB   MIG_MIB_BYTES
#define ASKED 4

static uint64_t throttle;

/* One step a second of a guest of 256 MiB, in the middle of its 57th pass. */
static MigAction step_at(MigMonitor *monitor, uint64_t s) {
  const MigSample sample = {.valid = true,
                            .active = true,
                            .now_ms = s * 1000,
                            .elapsed_ms = s * 1000,
                            .memory_total_bytes = 256 * MIB,
                            .memory_processed_bytes = (1000 + s) * MIB,
                            .memory_remaining_bytes = (100 - s) * MIB,
                            .iteration = 57,
                            .throttle_pct = throttle,
                            .bandwidth_bytes_per_s = 50 * MIB};
  MigAction action;
  mig_monitor_step(monitor, &sample, &action);
  return action;
}

static const struct TakenUp {
  const char *name;
  const char *goals;
  MigSteering before;
  uint64_t asked_ms;
} taken_up[] = {
    {"the limit of before is asked for again", "", {.downtime_ms = 120}, 120},
    {"the first one, where no other is known", "", {0}, 20},
    {"none above the goal", "", {.downtime_ms = 2085}, 255},
    {"nor above one that was tightened since", "max_downtime_ms=100", {.downtime_ms = 255}, 55},
    {"that of a pause under way", "max_pause_ms=4s", {.downtime_ms = 2085, .pausing = true}, 2085},
    {"but not of one that is no longer permitted", "", {.downtime_ms = 2085, .pausing = true}, 255},
    {"nor for longer than is permitted now", "max_pause_ms=1s", {.downtime_ms = 2085, .pausing = true}, 955},
    {"a pause that was permitted and not taken gives it no room",
     "max_pause_ms=4s",
     {.downtime_ms = 2085},
     255},
};

static MigMonitor take_up(const char *goals, const MigSteering *before) {
  MigPolicy policy = policy_of(goals);
  MigPlan plan = {.auto_converge = true, .post_copy = true, .downtime_ms = 20};
  MigMonitor monitor;
  mig_monitor_init(&monitor, &policy, 0, 256 * MIB, 0);
  mig_monitor_set_plan(&monitor, &plan);
  mig_monitor_take_up(&monitor, before);
  return monitor;
}

static void limit_is_asked_for_once(void **state) {
  const struct TakenUp *row = *state;
  MigMonitor monitor = take_up(row->goals, &row->before);
  MigAction action = step_at(&monitor, 1);
  assert_int_equal(action.kind, MIG_ACTION_SET_DOWNTIME);
  assert_int_equal(action.downtime_ms, row->asked_ms);
  assert_non_null(
      strstr(action.message, "After a restart of the agent the downtime limit in force is unknown"));
  for (uint64_t s = 2; s < 20; s++)
    assert_int_equal(step_at(&monitor, s).kind, MIG_ACTION_NONE);
}

static void it_is_asked_for_until_it_is_taken(void **state) {
  MigMonitor monitor = take_up("", &(MigSteering){.downtime_ms = 120});
  unsigned asked = 0;
  for (uint64_t s = 1; s < 30; s++) {
    MigAction action = step_at(&monitor, s);
    if (action.kind == MIG_ACTION_NONE)
      continue;
    assert_int_equal(action.downtime_ms, 120);
    if (++asked < ASKED)
      mig_monitor_note_refused(&monitor, action.kind);
  }
  assert_int_equal(asked, ASKED);
}

/* A call that was given up may have been carried out. */
static void a_refused_limit_may_be_in_force(void **state) {
  MigMonitor monitor = take_up("max_downtime_ms=1000", &(MigSteering){.downtime_ms = 800});
  MigPolicy tightened = policy_of("max_downtime_ms=300");
  MigAction action = step_at(&monitor, 1);
  assert_int_equal(action.downtime_ms, 800);
  mig_monitor_note_refused(&monitor, action.kind);
  action = step_at(&monitor, 7);
  assert_int_equal(action.downtime_ms, 800);
  mig_monitor_set_policy(&monitor, &tightened);
  action = step_at(&monitor, 8);
  assert_int_equal(action.downtime_ms, 255);
  mig_monitor_note_refused(&monitor, action.kind);
  action = step_at(&monitor, 14);
  assert_int_equal(action.kind, MIG_ACTION_SET_DOWNTIME);
  assert_int_equal(action.downtime_ms, 255);
  for (uint64_t s = 15; s < 30; s++)
    assert_int_equal(step_at(&monitor, s).kind, MIG_ACTION_NONE);
}

/* It is not slowed down then, whatever QEMU says. */
static void a_guest_that_was_stopped_is_not_judged_by_its_throttle(void **state) {
  for (int stopped = 0; stopped < 2; stopped++) {
    MigMonitor monitor = take_up("allow_auto_converge=yes", &(MigSteering){.downtime_ms = 20});
    step_at(&monitor, 1);
    if (stopped)
      mig_monitor_note_taken(&monitor, MIG_ACTION_PAUSE);
    monitor.last.throttle_pct = throttle = 90;
    MigAction action = step_at(&monitor, 2);
    throttle = 0;
    assert_int_equal(action.kind, stopped ? MIG_ACTION_NONE : MIG_ACTION_ABORT);
  }
}

static void all_of_it_goes_round(void **state) {
  for (unsigned bits = 0; bits < 2u << MIG_WAY_COUNT; bits++) {
    MigSteering before, after;
    memset(&before, 0, sizeof(before));
    before = (MigSteering){.downtime_ms = 1 + bits, .pausing = bits & 1, .refused = bits >> 1};
    MigMonitor monitor = take_up("", &before);
    mig_monitor_get_steering(&monitor, &after);
    assert_int_equal(after.downtime_ms, before.downtime_ms);
    assert_int_equal(after.pausing, before.pausing);
    assert_int_equal(after.refused, before.refused);
  }
}

static void what_is_asked_for_is_what_is_kept(void **state) {
  MigMonitor monitor = take_up("max_pause_ms=4s", &(MigSteering){.downtime_ms = 20});
  MigSteering kept;
  mig_monitor_note_taken(&monitor, MIG_ACTION_PAUSE);
  mig_monitor_get_steering(&monitor, &kept);
  assert_true(kept.pausing);
  mig_monitor_note_refused(&monitor, MIG_ACTION_PAUSE);
  mig_monitor_get_steering(&monitor, &kept);
  assert_false(kept.pausing);
  assert_int_equal(kept.refused, 1u << MIG_WAY_PAUSE);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, limit_is_asked_for_once, taken_up);
  static const struct {
    const char *name;
    CMUnitTestFunction function;
  } singles[] = {
      {"a limit is asked for until it is taken", it_is_asked_for_until_it_is_taken},
      {"a refused limit may be in force", a_refused_limit_may_be_in_force},
      {"a guest that was stopped is not judged by its throttle",
       a_guest_that_was_stopped_is_not_judged_by_its_throttle},
      {"all of it goes round", all_of_it_goes_round},
      {"what is asked for is what is kept", what_is_asked_for_is_what_is_kept},
  };
  for (size_t i = 0; i < LENGTH(singles); i++)
    tests_add(&tests, singles[i].name, singles[i].function, NULL);
  return tests_run(&tests, "steering");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A node that is emptied: who goes next, where to, and what follows when a move is over. */
#include "libmigrate/core/drain.h"

#include "tests/unit/core/goals.h"

#include <assert.h>

/* --- who goes next, and where to --- */

enum { GUESTS = 4, TARGETS = 3 };

#define UNKNOWN UINT64_MAX

typedef struct Guest {
  const char *
      fits; /* y: fits, w: may later, n: will not, ?: not looked at; a letter for each target. NULL: no more guests */
  MigPriority priority;
  uint64_t expected_ms;
  uint64_t memory;
  bool passed_over;
} Guest;

typedef struct Target {
  unsigned places;
  bool held;
  uint64_t free;
  unsigned sent;
} Target;

typedef struct Choice {
  const char *name;
  Guest guests[GUESTS];
  Target targets[TARGETS];
  int guest, target; /* -1: none */
} Choice;

#define DEFAULT MIG_PRIORITY_DEFAULT

static const Choice choices[] = {
    {"nobody is there", {{0}}, {{2, false, UNKNOWN, 0}}, -1, -1},
    {"one guest, one target", {{"y", DEFAULT, 10, 1, false}}, {{2, false, UNKNOWN, 0}}, 0, 0},
    {"priority goes first, whatever it takes",
     {{"y", DEFAULT, 10, 1, false}, {"y", MIG_PRIORITY_CRITICAL, 9000, 9, false}},
     {{2, false, UNKNOWN, 0}},
     1,
     0},
    {"of one priority, what is expected to take less time",
     {{"y", DEFAULT, 30, 1, false}, {"y", DEFAULT, 10, 9, false}, {"y", DEFAULT, 20, 1, false}},
     {{2, false, UNKNOWN, 0}},
     1,
     0},
    {"a move that is not foreseen to end is the last",
     {{"y", DEFAULT, MIG_DRAIN_NEVER_MS, 1, false}, {"y", DEFAULT, 99999, 9, false}},
     {{2, false, UNKNOWN, 0}},
     1,
     0},
    {"of equal times, the smaller",
     {{"y", DEFAULT, 10, 8, false}, {"y", DEFAULT, 10, 4, false}},
     {{1, false, UNKNOWN, 0}},
     1,
     0},
    {"of equals, the one that was given first",
     {{"y", DEFAULT, 10, 8, false}, {"y", DEFAULT, 10, 8, false}},
     {{1, false, UNKNOWN, 0}},
     0,
     0},
    {"what can go now goes before what can not",
     {{"w", DEFAULT, 10, 1, false}, {"y", DEFAULT, 20, 1, false}},
     {{1, false, UNKNOWN, 0}},
     1,
     0},
    {"what can not go now is sent all the same, to wait for it, when nothing better is left",
     {{"w", DEFAULT, 10, 1, false}},
     {{1, false, UNKNOWN, 0}},
     0,
     0},
    {"what is not wanted now is passed over",
     {{"y", DEFAULT, 10, 1, true}, {"y", DEFAULT, 20, 1, false}},
     {{1, false, UNKNOWN, 0}},
     1,
     0},
    {"what does not fit anywhere is passed over",
     {{"n", DEFAULT, 10, 1, false}, {"y", DEFAULT, 20, 1, false}},
     {{1, false, UNKNOWN, 0}},
     1,
     0},
    {"what was not looked at is not sent", {{"?", DEFAULT, 10, 1, false}}, {{1, false, UNKNOWN, 0}}, -1, -1},
    {"no place: nobody", {{"y", DEFAULT, 10, 1, false}}, {{0, false, UNKNOWN, 0}}, -1, -1},
    {"a target that is held: nobody", {{"y", DEFAULT, 10, 1, false}}, {{2, true, UNKNOWN, 0}}, -1, -1},
    {"whose only target has no place stands in nobody's way",
     {{"yn", DEFAULT, 10, 1, false}, {"yy", DEFAULT, 20, 1, false}},
     {{0, false, UNKNOWN, 0}, {1, false, UNKNOWN, 0}},
     1,
     1},
    {"spread: to the target with the most memory left",
     {{"yyy", DEFAULT, 10, 1, false}},
     {{1, false, 5, 0}, {1, false, 9, 7}, {1, false, 7, 0}},
     0,
     1},
    {"spread: where the memory of one is not known, to where the fewest were sent",
     {{"yyy", DEFAULT, 10, 1, false}},
     {{1, false, 5, 2}, {1, false, 9, 1}, {1, false, UNKNOWN, 3}},
     0,
     1},
    {"spread: memory that it could not use does not count",
     {{"yny", DEFAULT, 10, 1, false}},
     {{1, false, 5, 0}, {1, false, UNKNOWN, 0}, {1, false, 7, 9}},
     0,
     2},
    {"spread: of equal memory, to where the fewest were sent",
     {{"yy", DEFAULT, 10, 1, false}},
     {{1, false, 5, 2}, {1, false, 5, 1}},
     0,
     1},
    {"a target that fits goes before an emptier one that may later",
     {{"wy", DEFAULT, 10, 1, false}},
     {{1, false, 9, 0}, {1, false, 5, 4}},
     0,
     1},
    {"one that fits somewhere waits for a place there, and does not go where it may be refused",
     {{"wy", DEFAULT, 10, 1, false}},
     {{1, false, UNKNOWN, 0}, {0, false, UNKNOWN, 0}},
     -1,
     -1},
    {"a target without room for it is left out",
     {{"yy", DEFAULT, 10, 6, false}},
     {{1, false, 5, 0}, {1, false, 6, 8}},
     0,
     1},
    {"a small one goes before a larger one that has no room anywhere",
     {{"y", DEFAULT, 10, 6, false}, {"y", DEFAULT, 20, 5, false}},
     {{1, false, 5, 0}},
     1,
     0},
    {"one without room anywhere is sent at last, for its own check counts",
     {{"yy", DEFAULT, 10, 6, false}},
     {{1, false, 3, 0}, {1, false, 5, 0}},
     0,
     1},
    {"a high priority that has to wait lets a lower one through",
     {{"yn", MIG_PRIORITY_RUNNING, 10, 1, false}, {"ny", DEFAULT, 10, 1, false}},
     {{1, true, UNKNOWN, 0}, {1, false, UNKNOWN, 0}},
     1,
     1},
};

static MigDrainFit fit_of(char letter) {
  static const char letters[] = {
      [MIG_DRAIN_FIT_UNSEEN] = '?',
      [MIG_DRAIN_FIT_YES] = 'y',
      [MIG_DRAIN_FIT_NOT_NOW] = 'w',
      [MIG_DRAIN_FIT_NO] = 'n',
  };
  static_assert(sizeof letters == MIG_DRAIN_FIT_COUNT, "a letter for each");

  for (int i = 0; i < MIG_DRAIN_FIT_COUNT; i++)
    if (letters[i] == letter)
      return (MigDrainFit)i;
  fail_msg("no fit is written %c", letter);
  return MIG_DRAIN_FIT_UNSEEN;
}

static void the_next_one_is(void **state) {
  const Choice *row = *state;
  MigDrainFit fits[GUESTS][TARGETS] = {{MIG_DRAIN_FIT_UNSEEN}};
  MigDrainGuest guests[GUESTS];
  MigDrainTarget targets[TARGETS];
  size_t n_guests = 0, n_targets = 0;
  MigDrainChoice choice = {99, 99};
  bool found;

  while (n_targets < TARGETS && (row->targets[n_targets].places || row->targets[n_targets].free)) {
    const Target *target = &row->targets[n_targets];

    targets[n_targets++] = (MigDrainTarget){target->places, target->held, target->free, target->sent};
  }
  for (; n_guests < GUESTS && row->guests[n_guests].fits; n_guests++) {
    const Guest *guest = &row->guests[n_guests];

    assert_int_equal(strlen(guest->fits), n_targets);
    for (size_t i = 0; i < n_targets; i++)
      fits[n_guests][i] = fit_of(guest->fits[i]);
    guests[n_guests] = (MigDrainGuest){!guest->passed_over, guest->priority, guest->expected_ms,
                                       guest->memory, fits[n_guests]};
  }
  found = mig_drain_choose(guests, n_guests, targets, n_targets, &choice);
  assert_int_equal(found, row->guest >= 0);
  assert_int_equal(choice.guest, found ? row->guest : 99);
  assert_int_equal(choice.target, found ? row->target : 99);
}

/* --- whole drains, at random --- */

enum { MANY_GUESTS = 24, MANY_TARGETS = 4, ROUNDS = 2000 };

static uint64_t seed = 88172645463325252u;

static unsigned chance(unsigned n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)(seed % n);
}

/* Nothing waits but what has to: no place that fits it is open. */
static void assert_rightly_waiting(const MigDrainGuest *guest, const MigDrainTarget *targets) {
  for (size_t i = 0; i < MANY_TARGETS; i++)
    assert_false(guest->fits[i] == MIG_DRAIN_FIT_YES && targets[i].places > 0 && !targets[i].held &&
                 targets[i].free_bytes >= guest->memory_bytes);
}

static void every_guest_is_sent_once_where_it_fits_and_none_waits_without_need(void **state) {
  for (int round = 0; round < ROUNDS; round++) {
    MigDrainFit fits[MANY_GUESTS][MANY_TARGETS];
    MigDrainGuest guests[MANY_GUESTS];
    MigDrainTarget targets[MANY_TARGETS];
    MigDrainChoice choice;

    for (size_t g = 0; g < MANY_GUESTS; g++) {
      for (size_t t = 0; t < MANY_TARGETS; t++)
        fits[g][t] = (MigDrainFit)chance(MIG_DRAIN_FIT_COUNT);
      guests[g] = (MigDrainGuest){chance(4) > 0, (MigPriority)chance(MIG_PRIORITY_COUNT), chance(5),
                                  1 + chance(4), fits[g]};
    }
    for (size_t t = 0; t < MANY_TARGETS; t++)
      targets[t] = (MigDrainTarget){chance(6), chance(5) == 0, chance(3) ? chance(20) : UINT64_MAX, 0};
    while (mig_drain_choose(guests, MANY_GUESTS, targets, MANY_TARGETS, &choice)) {
      MigDrainGuest *guest = &guests[choice.guest];
      MigDrainTarget *target = &targets[choice.target];
      MigDrainFit fit = guest->fits[choice.target];

      assert_true(guest->waits);
      assert_true(target->places > 0 && !target->held);
      assert_true(fit == MIG_DRAIN_FIT_YES || fit == MIG_DRAIN_FIT_NOT_NOW);
      guest->waits = false;
      target->places--;
      target->sent++;
      if (target->free_bytes != UINT64_MAX)
        target->free_bytes -=
            target->free_bytes < guest->memory_bytes ? target->free_bytes : guest->memory_bytes;
    }
    for (size_t g = 0; g < MANY_GUESTS; g++)
      if (guests[g].waits)
        assert_rightly_waiting(&guests[g], targets);
  }
}

static void equal_guests_are_spread_evenly(void **state) {
  const MigDrainFit fits[] = {MIG_DRAIN_FIT_YES, MIG_DRAIN_FIT_YES, MIG_DRAIN_FIT_YES};
  MigDrainTarget targets[3] = {
      {99, false, UINT64_MAX, 0}, {99, false, UINT64_MAX, 0}, {99, false, UINT64_MAX, 0}};
  MigDrainGuest guests[12];
  MigDrainChoice choice;

  for (size_t i = 0; i < LENGTH(guests); i++)
    guests[i] = (MigDrainGuest){true, DEFAULT, 10, 1, fits};
  while (mig_drain_choose(guests, LENGTH(guests), targets, LENGTH(targets), &choice)) {
    guests[choice.guest].waits = false;
    targets[choice.target].sent++;
  }
  for (size_t i = 0; i < LENGTH(targets); i++)
    assert_int_equal(targets[i].sent, 4);
}

/* --- what a check means --- */

static const struct Checked {
  const char *name;
  bool blocks, transient;
  MigDrainFit fit;
} checked[] = {
    {"nothing found: it fits", false, false, MIG_DRAIN_FIT_YES},
    {"a blocker that waiting may cure", true, true, MIG_DRAIN_FIT_NOT_NOW},
    {"a blocker that stays", true, false, MIG_DRAIN_FIT_NO},
};

static void a_check_means(void **state) {
  static MigCheckReport report;
  const struct Checked *row = *state;

  report = (MigCheckReport){.count = 1, .blockers = row->blocks};
  report.findings[0] = (MigFinding){.code = "X", .blocks = row->blocks, .transient = row->transient};
  assert_int_equal(mig_drain_fit(&report), row->fit);
}

static void without_any_target_left_it_is_stuck(void **state) {
  const MigDrainFit none[] = {MIG_DRAIN_FIT_NO, MIG_DRAIN_FIT_NO};
  const MigDrainFit later[] = {MIG_DRAIN_FIT_NO, MIG_DRAIN_FIT_NOT_NOW};
  const MigDrainFit unseen[] = {MIG_DRAIN_FIT_UNSEEN, MIG_DRAIN_FIT_NO};

  assert_true(mig_drain_is_stuck(none, 2));
  assert_false(mig_drain_is_stuck(later, 2));
  assert_false(mig_drain_is_stuck(unseen, 2));
  assert_true(mig_drain_is_stuck(NULL, 0));
}

/* --- how long it is expected to take --- */

static MigProbe probe_of(double bytes_per_s) {
  MigProbe probe = {0};

  mig_dirty_curve_observe(&probe.curve, 1, bytes_per_s);
  return probe;
}

static void an_unmeasured_guest_takes_its_memory_once_over_the_link(void **state) {
  MigPolicy policy = policy_of("");
  MigLinkFacts none = {0, 0}, slow = {50 * MIG_MIB_BYTES, 0};

  assert_int_equal(mig_drain_expected_ms(NULL, MIG_GIB_BYTES, &none, &policy), 10240);
  assert_int_equal(mig_drain_expected_ms(NULL, MIG_GIB_BYTES, &slow, &policy), 20480);
}

static void a_measured_guest_takes_what_is_foreseen(void **state) {
  MigPolicy policy = policy_of("");
  MigLinkFacts link = {100 * MIG_MIB_BYTES, 50};
  MigProbe quiet = probe_of(0), busy = probe_of(50.0 * MIG_MIB_BYTES),
           hopeless = probe_of(900.0 * MIG_MIB_BYTES);
  uint64_t quiet_ms = mig_drain_expected_ms(&quiet, MIG_GIB_BYTES, &link, &policy);
  uint64_t busy_ms = mig_drain_expected_ms(&busy, MIG_GIB_BYTES, &link, &policy);

  assert_in_range(quiet_ms, 9000, 13000);
  assert_true(busy_ms > quiet_ms);
  assert_true(busy_ms < MIG_DRAIN_NEVER_MS);
  assert_true(mig_drain_expected_ms(&hopeless, MIG_GIB_BYTES, &link, &policy) == MIG_DRAIN_NEVER_MS);
}

/* --- when a move is over --- */

static const struct Over {
  const char *name;
  MigPhase phase;
  MigCause cause;
  bool runs_here;
  unsigned tries;
  MigDrainNext next;
} overs[] = {
    {"succeeded", MIG_PHASE_SUCCEEDED, MIG_CAUSE_NONE, false, 1, MIG_DRAIN_NEXT_MOVED},
    {"aborted by somebody: left", MIG_PHASE_ABORTED, MIG_CAUSE_USER_ABORT, true, 1, MIG_DRAIN_NEXT_STAY},
    {"it does not converge: left, for it would not elsewhere", MIG_PHASE_ABORTED, MIG_CAUSE_NOT_CONVERGING,
     true, 1, MIG_DRAIN_NEXT_STAY},
    {"it ended meanwhile", MIG_PHASE_FAILED, MIG_CAUSE_GUEST_STOPPED, false, 1, MIG_DRAIN_NEXT_GONE},
    {"it was not there any more", MIG_PHASE_FAILED, MIG_CAUSE_DOMAIN_NOT_RUNNING, true, 1,
     MIG_DRAIN_NEXT_GONE},
    {"refused there: elsewhere", MIG_PHASE_FAILED, MIG_CAUSE_REFUSED, true, 1, MIG_DRAIN_NEXT_ELSEWHERE},
    {"the link broke: elsewhere", MIG_PHASE_FAILED, MIG_CAUSE_LINK_LOST, true, 1, MIG_DRAIN_NEXT_ELSEWHERE},
    {"this node's libvirtd was away: again", MIG_PHASE_FAILED, MIG_CAUSE_SOURCE_UNREACHABLE, true, 1,
     MIG_DRAIN_NEXT_AGAIN},
    {"again, but not for ever", MIG_PHASE_FAILED, MIG_CAUSE_SOURCE_UNREACHABLE, true, MIG_DRAIN_TRIES_MAX,
     MIG_DRAIN_NEXT_STAY},
    {"nobody knows where it runs: left, whatever the cause", MIG_PHASE_FAILED, MIG_CAUSE_LINK_LOST, false, 1,
     MIG_DRAIN_NEXT_STAY},
    {"a cause that is not known: left", MIG_PHASE_FAILED, MIG_CAUSE_COUNT, true, 1, MIG_DRAIN_NEXT_STAY},
};

static void what_follows_is(void **state) {
  const struct Over *row = *state;

  assert_int_equal(mig_drain_next(row->phase, row->cause, row->runs_here, row->tries), row->next);
}

/* A cause for which another target is tried, or the same again, has to be one after which the guest is where it was. */
static void no_cause_leads_to_a_second_move_of_what_may_have_moved(void **state) {
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++) {
    MigDrainNext next = mig_drain_next(MIG_PHASE_FAILED, (MigCause)cause, false, 1);

    assert_true(next == MIG_DRAIN_NEXT_STAY || next == MIG_DRAIN_NEXT_GONE);
  }
}

static void a_target_is_given_up_only_for_what_others_would_meet_there_too(void **state) {
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++)
    assert_int_equal(mig_drain_gives_up_target((MigCause)cause),
                     cause == MIG_CAUSE_TARGET_UNREACHABLE || cause == MIG_CAUSE_SAME_HOST);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, the_next_one_is, choices);
  tests_add(&tests, "every guest is sent once where it fits, and none waits without need",
            every_guest_is_sent_once_where_it_fits_and_none_waits_without_need, NULL);
  tests_add(&tests, "equal guests are spread evenly", equal_guests_are_spread_evenly, NULL);
  TESTS_ADD_ROWS(&tests, a_check_means, checked);
  tests_add(&tests, "without any target left it is stuck", without_any_target_left_it_is_stuck, NULL);
  tests_add(&tests, "an unmeasured guest takes its memory once over the link",
            an_unmeasured_guest_takes_its_memory_once_over_the_link, NULL);
  tests_add(&tests, "a measured guest takes what is foreseen", a_measured_guest_takes_what_is_foreseen, NULL);
  TESTS_ADD_ROWS(&tests, what_follows_is, overs);
  tests_add(&tests, "no cause leads to a second move of what may have moved",
            no_cause_leads_to_a_second_move_of_what_may_have_moved, NULL);
  tests_add(&tests, "a target is given up only for what others would meet there too",
            a_target_is_given_up_only_for_what_others_would_meet_there_too, NULL);
  return tests_run(&tests, "drain");
}

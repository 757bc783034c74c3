/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One bandwidth for all: how it is divided, in which order that is brought about, and, under random comings and goings with a
 * libvirt that refuses what it likes, that it is never exceeded and always used. */
#include "libmigrate/core/shares.h"

#include "libmigrate/core/types.h"
#include "tests/unit/core/rows.h"

#define MIB         MIG_MIB_BYTES
#define MEMBERS_MAX 8

/* --- the division --- */

/* In MiB/s. */
typedef struct Member {
  unsigned ceiling, need, given, streams;
  bool fixed;
  unsigned wanted;
} Member;

static const struct Division {
  const char *name;
  unsigned cap, at_most, n;
  Member members[MEMBERS_MAX];
} divisions[] = {
    {"one has all of it", 100, 2, 1, {{.wanted = 100}}},
    {"one has no more than its own limit", 100, 2, 1, {{.ceiling = 30, .wanted = 30}}},
    {"two have a half each", 100, 2, 2, {{.wanted = 50}, {.wanted = 50}}},
    {"what is left of a rounding goes to the first ones",
     100,
     3,
     3,
     {{.wanted = 34}, {.wanted = 33}, {.wanted = 33}}},
    {"what one may not have goes to the others",
     100,
     3,
     3,
     {{.wanted = 45}, {.ceiling = 10, .wanted = 10}, {.wanted = 45}}},
    {"limits in steps",
     90,
     3,
     3,
     {{.ceiling = 20, .wanted = 20}, {.ceiling = 30, .wanted = 30}, {.wanted = 40}}},
    {"one that needs more than a half has it", 100, 2, 2, {{.need = 70, .wanted = 70}, {.wanted = 30}}},
    {"as long as the needs of all fit",
     100,
     3,
     3,
     {{.need = 40, .wanted = 40}, {.need = 45, .wanted = 45}, {.wanted = 15}}},
    {"if they do not, those that have begun go first",
     100,
     2,
     2,
     {{.need = 70, .given = 100, .wanted = 70}, {.need = 60, .wanted = 30}}},
    {"if not even these fit, all are equal",
     100,
     2,
     2,
     {{.need = 70, .given = 50, .wanted = 50}, {.need = 60, .given = 50, .wanted = 50}}},
    {"a need beyond its own limit is none",
     100,
     2,
     2,
     {{.need = 70, .ceiling = 20, .wanted = 20}, {.wanted = 80}}},
    {"what cannot be changed later has the part of one place", 100, 4, 1, {{.fixed = true, .wanted = 25}}},
    {"and keeps it", 100, 4, 2, {{.fixed = true, .given = 25, .wanted = 25}, {.wanted = 75}}},
    {"three streams have a third each, rounded down",
     100,
     2,
     2,
     {{.streams = 3, .fixed = true, .wanted = 48}, {.wanted = 52}}},
    {"more streams than MiB in its part have one each",
     10,
     5,
     1,
     {{.streams = 4, .fixed = true, .wanted = 4}}},
    {"less than a MiB/s each is not to be had", 2, 3, 3, {{.wanted = 1}, {.wanted = 1}, {.wanted = 1}}},
};

static void set_up(MigShares *shares, MigShare *store, MigShare **list, const struct Division *row) {
  *shares =
      (MigShares){.cap = row->cap * MIB, .min = MIB, .at_most = row->at_most, .members = list, .n = row->n};
  for (unsigned i = 0; i < row->n; i++) {
    const Member *member = &row->members[i];

    store[i] = (MigShare){.ceiling = member->ceiling * MIB,
                          .need = member->need * MIB,
                          .given = member->given * MIB,
                          .streams = member->streams,
                          .fixed = member->fixed,
                          .steerable = true};
    list[i] = &store[i];
  }
}

static void is_divided_as_it_should_be(void **state) {
  const struct Division *row = *state;
  MigShare store[MEMBERS_MAX], *list[MEMBERS_MAX];
  MigShares shares;

  set_up(&shares, store, list, row);
  mig_shares_divide(&shares);
  for (unsigned i = 0; i < row->n; i++)
    assert_int_equal(store[i].wanted / MIB, row->members[i].wanted);
}

static void a_cap_that_is_no_whole_number_is_rounded_down(void **state) {
  MigShare one = {0}, *list[] = {&one};
  MigShares shares = {.cap = 10 * MIB + MIB / 2, .at_most = 1, .members = list, .n = 1};

  (void)state;
  mig_shares_divide(&shares);
  assert_int_equal(one.wanted, 10 * MIB);
  /* A limit of its own is rounded as libvirt rounds it: up. */
  one.ceiling = 3 * MIB + 1;
  mig_shares_divide(&shares);
  assert_int_equal(one.wanted, 4 * MIB);
}

/* --- the steps --- */

static MigShareStep next_of(MigShares *shares, MigShareStepKind kind, const MigShare *share, unsigned mib) {
  MigShareStep step = mig_shares_next(shares);

  assert_int_equal(step.kind, kind);
  assert_ptr_equal(step.share, share);
  assert_int_equal(step.value, mib * MIB);
  return step;
}

static void nothing_is_next(MigShares *shares) {
  assert_int_equal(mig_shares_next(shares).kind, MIG_SHARE_STEP_NONE);
}

static void a_newcomer_waits_until_room_was_made(void **state) {
  MigShare a = {.steerable = true}, b = {.patient = true, .steerable = true}, *list[] = {&a, &b};
  MigShares shares = {.cap = 100 * MIB, .min = MIB, .at_most = 2, .members = list, .n = 1};

  (void)state;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &a, 100);
  nothing_is_next(&shares);
  shares.n = 2;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 50);
  nothing_is_next(&shares);
  mig_share_done(&a, true);
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &b, 50);
  nothing_is_next(&shares);
  /* And when one goes the other has all of it. */
  shares.n = 1;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 100);
  mig_share_done(&a, true);
  nothing_is_next(&shares);
}

static void what_libvirt_refuses_keeps_its_old_share(void **state) {
  MigShare a = {.steerable = true}, b = {.patient = true, .steerable = true}, *list[] = {&a, &b};
  MigShares shares = {.cap = 100 * MIB, .min = 10 * MIB, .at_most = 2, .members = list, .n = 1};

  (void)state;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &a, 100);
  shares.n = 2;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 50);
  mig_share_done(&a, false);
  assert_int_equal(a.given, 100 * MIB);
  a.steerable = false;
  nothing_is_next(&shares);
  assert_false(mig_shares_have_room(&shares, 0));
  a.steerable = true;
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 50);
  mig_share_done(&a, true);
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &b, 50);
}

static void a_refused_raise_counts_as_if_it_were_had(void **state) {
  MigShare a = {.steerable = true, .given = 50 * MIB}, b = {.steerable = true}, *list[] = {&a, &b};
  MigShares shares = {.cap = 100 * MIB, .min = MIB, .at_most = 2, .members = list, .n = 1};

  (void)state;
  mig_shares_divide(&shares);
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 100);
  mig_share_done(&a, false);
  assert_int_equal(a.given, 100 * MIB);
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 100);
  mig_share_done(&a, true);
  nothing_is_next(&shares);
}

static void one_that_is_tired_of_waiting_begins_with_less(void **state) {
  MigShare a = {.steerable = false, .given = 80 * MIB}, b = {.patient = true}, *list[] = {&a, &b};
  MigShares shares = {.cap = 100 * MIB, .min = 10 * MIB, .at_most = 2, .members = list, .n = 2};

  (void)state;
  mig_shares_divide(&shares);
  nothing_is_next(&shares);
  b.patient = false;
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &b, 20);
  /* But not with what is not worth it. */
  b.given = 0;
  a.given = 95 * MIB;
  nothing_is_next(&shares);
}

static void one_of_before_a_restart_may_be_using_all(void **state) {
  MigShare a = {.steerable = false}, b = {.patient = true}, *list[] = {&a, &b};
  MigShares shares = {.cap = 100 * MIB, .min = MIB, .at_most = 2, .members = list, .n = 1};

  (void)state;
  mig_share_adopt(&shares, &a, 20 * MIB);
  assert_int_equal(a.given, 100 * MIB);
  assert_false(mig_shares_have_room(&shares, 1));
  shares.n = 2;
  mig_shares_divide(&shares);
  nothing_is_next(&shares);
  a.steerable = true;
  next_of(&shares, MIG_SHARE_STEP_SET, &a, 50);
  mig_share_done(&a, true);
  assert_true(mig_shares_have_room(&shares, 0));
  next_of(&shares, MIG_SHARE_STEP_BEGIN, &b, 50);
}

static void one_that_cannot_be_changed_uses_what_it_began_with(void **state) {
  MigShare a = {.fixed = true, .streams = 2}, *list[] = {&a};
  MigShares shares = {.cap = 100 * MIB, .min = MIB, .at_most = 2, .members = list, .n = 1};

  (void)state;
  mig_share_adopt(&shares, &a, 20 * MIB);
  mig_shares_divide(&shares);
  assert_int_equal(a.given, 20 * MIB);
  assert_int_equal(mig_share_per_stream(&a), 10 * MIB);
  nothing_is_next(&shares);
}

static void there_is_room_while_needs_are_met(void **state) {
  MigShare a = {.given = 100 * MIB, .need = 80 * MIB}, *list[] = {&a};
  MigShares shares = {.cap = 100 * MIB, .min = 10 * MIB, .at_most = 4, .members = list, .n = 1};

  (void)state;
  assert_true(mig_shares_have_room(&shares, 2));
  assert_false(mig_shares_have_room(&shares, 3));
  a.need = 95 * MIB;
  assert_false(mig_shares_have_room(&shares, 1));
  shares.n = 0;
  assert_true(mig_shares_have_room(&shares, 4));
}

/* --- at random --- */

#define SEEDS 2000
#define STEPS 300

typedef struct Actor {
  MigShare share;
  uint64_t libvirt; /* what libvirt really has; 0: has not begun */
  bool here;
} Actor;

typedef struct Stage {
  uint64_t random;
  MigShares shares;
  Actor actors[MEMBERS_MAX];
  MigShare *list[MEMBERS_MAX];
} Stage;

static uint64_t draw(Stage *stage, uint64_t below) {
  stage->random ^= stage->random << 13;
  stage->random ^= stage->random >> 7;
  stage->random ^= stage->random << 17;
  return (stage->random >> 11) % below;
}

static void gather(Stage *stage) {
  stage->shares.n = 0;
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if (stage->actors[i].here)
      stage->list[stage->shares.n++] = &stage->actors[i].share;
  mig_shares_divide(&stage->shares);
}

static void check(Stage *stage) {
  uint64_t real = 0, counted = 0;

  for (unsigned i = 0; i < MEMBERS_MAX; i++) {
    const Actor *actor = &stage->actors[i];

    if (!actor->here)
      continue;
    assert_true(actor->libvirt <= actor->share.given);
    assert_int_equal(actor->share.given % (MIB * (actor->share.streams ? actor->share.streams : 1)), 0);
    real += actor->libvirt;
    counted += actor->share.given;
  }
  assert_true(real <= stage->shares.cap);
  assert_true(counted <= stage->shares.cap);
}

static void come_or_go(Stage *stage) {
  Actor *actor = &stage->actors[draw(stage, MEMBERS_MAX)];

  if (actor->here) {
    actor->here = false;
  } else {
    bool fixed = draw(stage, 6) == 0;

    *actor = (Actor){.here = true,
                     .share = {.ceiling = draw(stage, 3) == 0 ? draw(stage, 40 * MIB) : 0,
                               .need = draw(stage, 3) == 0 ? draw(stage, 40 * MIB) : 0,
                               .fixed = fixed,
                               .streams = fixed ? 1 + (unsigned)draw(stage, 3) : 1,
                               .patient = draw(stage, 2) == 0,
                               .steerable = false}};
  }
  gather(stage);
}

/* What was asked of libvirt is answered some time, by it or by nobody; it may have been done all the same. */
static void answer(Stage *stage, bool always_well) {
  Actor *actor = &stage->actors[draw(stage, MEMBERS_MAX)];
  bool ok = always_well || draw(stage, 4) > 0;

  if (!actor->here || actor->share.asked == 0)
    return;
  if (ok || draw(stage, 2))
    actor->libvirt = actor->share.asked;
  mig_share_done(&actor->share, ok);
}

static void take_steps(Stage *stage) {
  for (unsigned n = 0;; n++) {
    MigShareStep step = mig_shares_next(&stage->shares);

    assert_true(n < 4 * MEMBERS_MAX);
    if (step.kind == MIG_SHARE_STEP_NONE)
      return;
    assert_true(step.value > 0);
    if (step.kind == MIG_SHARE_STEP_BEGIN)
      ((Actor *)step.share)->libvirt = step.value;
    check(stage);
  }
}

/* Once libvirt does as it is told, all comes to what is wanted. */
static void assert_comes_to_rest(Stage *stage) {
  uint64_t wanted = 0;

  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    stage->actors[i].share.steerable = true;
  gather(stage);
  for (unsigned round = 0; round < 100 * MEMBERS_MAX; round++) {
    take_steps(stage);
    answer(stage, true);
    gather(stage);
    check(stage);
  }
  for (unsigned i = 0; i < stage->shares.n; i++)
    wanted += stage->list[i]->wanted;
  for (unsigned i = 0; wanted <= stage->shares.cap && i < stage->shares.n; i++) {
    assert_int_equal(stage->list[i]->given, stage->list[i]->wanted);
    assert_false(stage->list[i]->unsure);
  }
}

static void it_is_never_exceeded(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    Stage stage = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};

    stage.shares.members = stage.list;
    stage.shares.cap = (2 + draw(&stage, 100)) * MIB + draw(&stage, MIB);
    stage.shares.min = draw(&stage, 10) * MIB;
    stage.shares.at_most = 1 + (unsigned)draw(&stage, MEMBERS_MAX);
    for (unsigned i = 0; i < STEPS; i++) {
      if (draw(&stage, 4) == 0)
        come_or_go(&stage);
      if (draw(&stage, 3) == 0)
        stage.actors[draw(&stage, MEMBERS_MAX)].share.steerable = draw(&stage, 3) > 0;
      answer(&stage, false);
      take_steps(&stage);
      check(&stage);
    }
    assert_comes_to_rest(&stage);
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, is_divided_as_it_should_be, divisions);
  tests_add(&tests, "a cap that is no whole number is rounded down",
            a_cap_that_is_no_whole_number_is_rounded_down, NULL);
  tests_add(&tests, "a newcomer waits until room was made", a_newcomer_waits_until_room_was_made, NULL);
  tests_add(&tests, "what libvirt refuses keeps its old share", what_libvirt_refuses_keeps_its_old_share,
            NULL);
  tests_add(&tests, "a refused raise counts as if it were had", a_refused_raise_counts_as_if_it_were_had,
            NULL);
  tests_add(&tests, "one that is tired of waiting begins with less",
            one_that_is_tired_of_waiting_begins_with_less, NULL);
  tests_add(&tests, "one of before a restart may be using all", one_of_before_a_restart_may_be_using_all,
            NULL);
  tests_add(&tests, "one that cannot be changed uses what it began with",
            one_that_cannot_be_changed_uses_what_it_began_with, NULL);
  tests_add(&tests, "there is room while needs are met", there_is_room_while_needs_are_met, NULL);
  tests_add(&tests, "it is never exceeded, and comes to rest", it_is_never_exceeded, NULL);
  return tests_run(&tests, "shares");
}

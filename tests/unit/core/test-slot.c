/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place held for a domain that is to come: stories of looks, each with what follows from it. */
#include "libmigrate/core/slot.h"

#include "tests/unit/core/rows.h"

#define E(state)      MIG_END_##state
#define COPY          .state = E(PAUSED_MIGRATION), .job_incoming = true
#define IMAGES        .images = true
#define STEPS_MAX     6
#define EXPIRES_MS    1000
#define AT(ms)        .now_ms = ms
#define THEN(p, s, e) .phase = MIG_PHASE_##p, .stage = MIG_STAGE_##s, .end = MIG_SLOT_##e
#define AWAITS        THEN(PENDING, NONE, OPEN)
#define COMES         THEN(MIGRATING, PRE_COPY, OPEN)

typedef enum Before { NOTHING, RELEASE, RELEASE_REFUSED, EXPIRE } Before;

typedef struct Step {
  Before before;
  MigSlotLook look;
  MigPhase phase;
  MigStage stage;
  MigSlotEnd end;
  bool clear_away;
  bool used;
} Step;

#define STEP(before_, look_, ...)                                                                            \
  { .before = before_, .look = {look_}, .used = true, __VA_ARGS__ }
#define SEEN(...) __VA_ARGS__

static const struct Story {
  const char *name;
  Step steps[STEPS_MAX];
} stories[] = {
    {"it comes and arrives",
     {STEP(NOTHING, SEEN(AT(0), .state = E(ABSENT)), AWAITS), STEP(NOTHING, SEEN(AT(1), COPY), COMES),
      STEP(NOTHING, SEEN(AT(2), .state = E(RUNNING), .migrated = true), THEN(SUCCEEDED, NONE, ARRIVED))}},
    {"it comes by post-copy, is cut, and arrives",
     {STEP(NOTHING, SEEN(AT(0), COPY), COMES),
      STEP(NOTHING, SEEN(AT(1), .state = E(RUNNING_POSTCOPY), .job_incoming = true),
           THEN(MIGRATING, POST_COPY, OPEN)),
      STEP(NOTHING, SEEN(AT(2), .state = E(PAUSED_POSTCOPY_FAILED)), THEN(RECOVERING, POST_COPY, OPEN)),
      STEP(NOTHING, SEEN(AT(3), .state = E(UNKNOWN)), THEN(RECOVERING, POST_COPY, OPEN)),
      STEP(NOTHING, SEEN(AT(4), .state = E(RUNNING)), THEN(SUCCEEDED, NONE, ARRIVED))}},
    {"cancelled at the source: without images one look will do",
     {STEP(NOTHING, SEEN(AT(0), COPY), COMES),
      STEP(NOTHING, SEEN(AT(1), .state = E(ABSENT)), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .clear_away = true)}},
    {"cancelled at the source: images wait for a second look, a second later",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1009), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .clear_away = true)}},
    {"cancelled, and begun again at once: it is followed on, and the looks count anew",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(500), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1500), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(2500), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .clear_away = true)}},
    {"a look that failed in between counts for nothing",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1000), .state = E(UNKNOWN), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(3000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .clear_away = true)}},
    {"given back",
     {STEP(NOTHING, SEEN(AT(0), .state = E(ABSENT)), AWAITS),
      STEP(RELEASE, SEEN(AT(1), .state = E(ABSENT)), THEN(PENDING, NONE, RELEASED), .clear_away = true)}},
    {"given back while an old definition of it is here",
     {STEP(RELEASE, SEEN(AT(1), .state = E(INACTIVE)), THEN(PENDING, NONE, RELEASED), .clear_away = true)}},
    {"given back, and it comes before that is carried out",
     {STEP(RELEASE, SEEN(AT(1), COPY), COMES),
      STEP(RELEASE_REFUSED, SEEN(AT(2), .state = E(RUNNING), .migrated = true),
           THEN(SUCCEEDED, NONE, ARRIVED))}},
    {"given back twice",
     {STEP(RELEASE, SEEN(AT(1), .state = E(UNKNOWN)), AWAITS),
      STEP(RELEASE, SEEN(AT(2), .state = E(ABSENT)), THEN(PENDING, NONE, RELEASED), .clear_away = true)}},
    {"its time is over",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(ABSENT)), THEN(PENDING, NONE, EXPIRED), .clear_away = true)}},
    {"its time is over, and libvirtd does not answer: it is held on",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(UNKNOWN)), AWAITS)}},
    {"its time is over, and it comes all the same",
     {STEP(EXPIRE, SEEN(AT(1), COPY), COMES),
      STEP(NOTHING, SEEN(AT(2), .state = E(ABSENT)), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .clear_away = true)}},
    {"started here by somebody: its images stay",
     {STEP(NOTHING, SEEN(AT(1), .state = E(RUNNING), IMAGES), THEN(FAILED, NONE, TAKEN))}},
    {"it ran here, and stopped: its images stay",
     {STEP(NOTHING, SEEN(AT(0), .state = E(RUNNING_POSTCOPY), .job_incoming = true, IMAGES),
           THEN(MIGRATING, POST_COPY, OPEN)),
      STEP(NOTHING, SEEN(AT(1), .state = E(ABSENT), IMAGES), THEN(FAILED, NONE, STOPPED))}},
    {"it is being started by somebody as its time ends: nothing is cleared away",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(PAUSED_MIGRATION)), AWAITS)}},
};

static void play(void **state) {
  const struct Story *story = *state;
  MigSlot slot = {0};

  for (int i = 0; i < STEPS_MAX && story->steps[i].used; i++) {
    const Step *step = &story->steps[i];
    MigSlotAnswer answer;

    if (step->before == RELEASE || step->before == RELEASE_REFUSED)
      assert_int_equal(mig_slot_release(&slot), step->before == RELEASE);
    if (step->before == EXPIRE) {
      assert_false(mig_slot_expire(&slot, EXPIRES_MS - 1, EXPIRES_MS));
      assert_true(mig_slot_expire(&slot, EXPIRES_MS, EXPIRES_MS));
      assert_false(mig_slot_expire(&slot, EXPIRES_MS, EXPIRES_MS));
    }
    answer = mig_slot_step(&slot, &step->look);
    if (answer.phase != step->phase || answer.stage != step->stage || answer.end != step->end ||
        answer.clear_away != step->clear_away)
      fail_msg("step %d: %s, %s, %s%s", i + 1, mig_phase_name(answer.phase), mig_stage_name(answer.stage),
               mig_slot_end_name(answer.end), answer.clear_away ? ", cleared away" : "");
    if (answer.end == MIG_SLOT_OPEN)
      assert_in_range(answer.again_ms, 1, 60000);
    assert_non_null(answer.why);
  }
}

/* Whatever was known, and whatever is seen. */
static void for_every_look(void (*check)(MigSlot slot, const MigSlotLook *look)) {
  static const MigSlotEnd endings[] = {MIG_SLOT_OPEN, MIG_SLOT_RELEASED, MIG_SLOT_EXPIRED};

  for (int state = 0; state < MIG_END_STATE_COUNT; state++)
    for (unsigned bits = 0; bits < 128; bits++)
      for (size_t i = 0; i < LENGTH(endings); i++)
        check((MigSlot){.came = bits & 1,
                        .ran = bits & 2,
                        .ending = bits & 3 ? MIG_SLOT_OPEN : endings[i],
                        .clear = bits & 64 ? 1 : 0},
              &(MigSlotLook){.now_ms = 5000,
                             .state = (MigEndState)state,
                             .job_incoming = bits & 4,
                             .job_outgoing = bits & 8,
                             .migrated = bits & 16,
                             .images = bits & 32});
}

static void clears_on_evidence_alone(MigSlot slot, const MigSlotLook *look) {
  MigSlot before = slot;
  MigSlotAnswer answer = mig_slot_step(&slot, look);

  if (!answer.clear_away)
    return;
  assert_true(look->state == MIG_END_ABSENT || look->state == MIG_END_INACTIVE);
  assert_false(before.ran);
  assert_true(before.came || before.ending != MIG_SLOT_OPEN);
  assert_true(!look->images || before.clear > 0);
  assert_int_not_equal(answer.end, MIG_SLOT_OPEN);
}

static void nothing_is_cleared_away_on_a_guess(void **state) {
  for_every_look(clears_on_evidence_alone);
}

static void stays_open_unseen(MigSlot slot, const MigSlotLook *look) {
  MigSlot before = slot;

  if (look->state != MIG_END_UNKNOWN)
    return;
  assert_int_equal(mig_slot_step(&slot, look).end, MIG_SLOT_OPEN);
  assert_int_equal(slot.came, before.came);
  assert_int_equal(slot.ran, before.ran);
  assert_int_equal(slot.ending, before.ending);
}

static void what_is_not_seen_ends_nothing(void **state) {
  for_every_look(stays_open_unseen);
}

static void an_end_may_be_a_phase(MigSlot slot, const MigSlotLook *look) {
  bool before = slot.came || slot.ran;
  MigPhase from = before ? MIG_PHASE_MIGRATING : MIG_PHASE_PREPARING;
  MigSlotAnswer answer = mig_slot_step(&slot, look);

  if (answer.end == MIG_SLOT_OPEN && answer.phase != from)
    assert_true(mig_phase_may_follow(from, answer.phase));
  /* It never waits again for what came. */
  if (before)
    assert_int_not_equal(answer.phase, MIG_PHASE_PENDING);
}

static void a_job_can_go_where_it_is_sent(void **state) {
  for_every_look(an_end_may_be_a_phase);
}

static void names_lead_there_and_back(void **state) {
  for (int end = 0; end < MIG_SLOT_END_COUNT; end++)
    assert_int_equal(mig_slot_end_from_name(mig_slot_end_name((MigSlotEnd)end)), end);
  assert_null(mig_slot_end_name(MIG_SLOT_END_COUNT));
  assert_int_equal(mig_slot_end_from_name("X"), -1);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, play, stories);
  tests_add(&tests, "nothing is cleared away on a guess", nothing_is_cleared_away_on_a_guess, NULL);
  tests_add(&tests, "what is not seen ends nothing", what_is_not_seen_ends_nothing, NULL);
  tests_add(&tests, "a job can go where it is sent", a_job_can_go_where_it_is_sent, NULL);
  tests_add(&tests, "names lead there and back", names_lead_there_and_back, NULL);
  return tests_run(&tests, "slot");
}

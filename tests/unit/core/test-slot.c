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

typedef enum Before {
  NOTHING,
  RELEASE,
  RELEASE_REFUSED,
  EXPIRE,
  GAP,
  HEAR_RUNNING,
  HEAR_ARRIVING,
  HEAR_STARTED,
  HEAR_DEFINED,
  HEAR_UNDEFINED,
} Before;

/* What the images come to at the end. */
typedef enum Images { NONE_ENDED, GO, STAY } Images;

typedef struct Step {
  Before before;
  MigSlotLook look;
  MigPhase phase;
  MigStage stage;
  MigSlotEnd end;
  Images images;
  bool used;
} Step;

#define STEP(before_, look_, ...)                                                                            \
  { .before = before_, .look = {look_}, .used = true, __VA_ARGS__ }
#define SEEN(...) __VA_ARGS__

static const struct Story {
  const char *name;
  Step steps[STEPS_MAX];
  bool unwatched; /* from the beginning */
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
    {"cancelled at the source: that takes a second look, a second later, for an event may be behind the "
     "first",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1009), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .images = GO)}},
    {"cancelled, and begun again at once: it is followed on, and the looks count anew",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(500), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1500), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(2500), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .images = GO)}},
    {"it came, ran and was turned off between two looks: the events tell of it",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(HEAR_RUNNING, SEEN(AT(10), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, STOPPED),
           .images = STAY)}},
    {"the event that it runs is behind the look that sees it gone",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(HEAR_RUNNING, SEEN(AT(1010), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, STOPPED),
           .images = STAY)}},
    {"it came, and went in a gap: nobody knows whether it ran",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(GAP, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, GONE),
           .images = STAY)}},
    {"the same, and its definition stays",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(GAP, SEEN(AT(10), .state = E(INACTIVE), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(INACTIVE), IMAGES), THEN(MIGRATING, PRE_COPY, GONE),
           .images = STAY)}},
    {"a gap between the two looks",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(ABSENT), IMAGES), COMES),
      STEP(GAP, SEEN(AT(1010), .state = E(ABSENT), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(2010), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, GONE),
           .images = STAY)}},
    {"cancelled, and a definition of it is here: that it never ran is known, but its disk stays",
     {STEP(NOTHING, SEEN(AT(0), COPY, IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(10), .state = E(INACTIVE), IMAGES), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(INACTIVE), IMAGES), THEN(MIGRATING, PRE_COPY, CANCELLED),
           .images = STAY)}},
    {"a definition was here for a moment",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(HEAR_DEFINED, SEEN(AT(1000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)}},
    {"a definition went: there was one",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(HEAR_UNDEFINED, SEEN(AT(1000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)}},
    {"a look that failed in between is a gap",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1000), .state = E(UNKNOWN), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(3000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)}},
    {"given back",
     {STEP(NOTHING, SEEN(AT(0), .state = E(ABSENT)), AWAITS),
      STEP(RELEASE, SEEN(AT(1), .state = E(ABSENT)), THEN(PENDING, NONE, RELEASED), .images = GO)}},
    {"given back, with images: a second look",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = GO)}},
    {"given back while an old definition of it is here",
     {STEP(RELEASE, SEEN(AT(1), .state = E(INACTIVE)), THEN(PENDING, NONE, RELEASED), .images = STAY)}},
    {"given back after a restart",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)},
     .unwatched = true},
    {"given back, and it comes before that is carried out",
     {STEP(RELEASE, SEEN(AT(1), COPY), COMES),
      STEP(RELEASE_REFUSED, SEEN(AT(2), .state = E(RUNNING), .migrated = true),
           THEN(SUCCEEDED, NONE, ARRIVED))}},
    {"given back twice",
     {STEP(RELEASE, SEEN(AT(1), .state = E(UNKNOWN)), AWAITS),
      STEP(RELEASE, SEEN(AT(2), .state = E(ABSENT)), THEN(PENDING, NONE, RELEASED), .images = STAY)}},
    {"its time is over",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(ABSENT)), AWAITS),
      STEP(NOTHING, SEEN(AT(1001), .state = E(ABSENT)), THEN(PENDING, NONE, EXPIRED), .images = GO)}},
    {"its time is over, and nobody was there",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(ABSENT)), AWAITS),
      STEP(NOTHING, SEEN(AT(1001), .state = E(ABSENT)), THEN(PENDING, NONE, EXPIRED), .images = STAY)},
     .unwatched = true},
    {"its time is over, and libvirtd does not answer: it is held on",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(UNKNOWN)), AWAITS)}},
    {"its time is over, and it comes all the same",
     {STEP(EXPIRE, SEEN(AT(1), COPY), COMES), STEP(NOTHING, SEEN(AT(2), .state = E(ABSENT)), COMES),
      STEP(NOTHING, SEEN(AT(1002), .state = E(ABSENT)), THEN(MIGRATING, PRE_COPY, CANCELLED), .images = GO)}},
    {"started here by somebody: its images stay",
     {STEP(NOTHING, SEEN(AT(1), .state = E(RUNNING), .booted = true, IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1001), .state = E(RUNNING), .booted = true, IMAGES), THEN(PENDING, NONE, TAKEN),
           .images = STAY)}},
    {"started here by somebody, and stopped before it was looked at",
     {STEP(RELEASE, SEEN(AT(0), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(HEAR_STARTED, SEEN(AT(1000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)}},
    {"seen to run for a moment",
     {STEP(RELEASE, SEEN(AT(0), .state = E(RUNNING), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(1000), .state = E(ABSENT), IMAGES), AWAITS),
      STEP(NOTHING, SEEN(AT(2000), .state = E(ABSENT), IMAGES), THEN(PENDING, NONE, RELEASED),
           .images = STAY)}},
    {"cancelled, and started here by its owner: that is not the guest that was to come",
     {STEP(NOTHING, SEEN(AT(0), COPY), COMES), STEP(HEAR_STARTED, SEEN(AT(10), .state = E(PAUSED)), COMES),
      STEP(NOTHING, SEEN(AT(1010), .state = E(PAUSED)), THEN(MIGRATING, PRE_COPY, TAKEN), .images = STAY)}},
    {"started here, stopped, and then it comes",
     {STEP(HEAR_STARTED, SEEN(AT(0), .state = E(INACTIVE)), AWAITS),
      STEP(HEAR_ARRIVING, SEEN(AT(10), COPY), COMES),
      STEP(NOTHING, SEEN(AT(20), .state = E(RUNNING)), THEN(SUCCEEDED, NONE, ARRIVED))}},
    {"it ran here, and stopped: its images stay",
     {STEP(NOTHING, SEEN(AT(0), .state = E(RUNNING_POSTCOPY), .job_incoming = true, IMAGES),
           THEN(MIGRATING, POST_COPY, OPEN)),
      STEP(NOTHING, SEEN(AT(1), .state = E(ABSENT), IMAGES), THEN(MIGRATING, PRE_COPY, STOPPED),
           .images = STAY)}},
    {"it is being started by somebody as its time ends: nothing is removed",
     {STEP(EXPIRE, SEEN(AT(1), .state = E(PAUSED_MIGRATION)), AWAITS)}},
};

static void hear(MigSlot *slot, Before before) {
  static const MigSlotNews news[] = {
      [HEAR_RUNNING] = {.state = E(RUNNING)},
      [HEAR_ARRIVING] = {.state = E(PAUSED_MIGRATION), .arriving = true},
      [HEAR_STARTED] = {.state = E(RUNNING), .started = true},
      [HEAR_DEFINED] = {.definition = true},
      [HEAR_UNDEFINED] = {.state = E(ABSENT)},
  };

  if ((size_t)before < LENGTH(news) && before >= HEAR_RUNNING) {
    assert_true(mig_slot_hear(slot, &news[before]));
    assert_false(mig_slot_hear(slot, &news[before]));
  }
}

static void play(void **state) {
  const struct Story *story = *state;
  MigSlot slot = {0};

  if (!story->unwatched)
    mig_slot_watch(&slot);
  for (int i = 0; i < STEPS_MAX && story->steps[i].used; i++) {
    const Step *step = &story->steps[i];
    MigSlotAnswer answer;
    Images images;

    if (step->before == RELEASE || step->before == RELEASE_REFUSED)
      assert_int_equal(mig_slot_release(&slot), step->before == RELEASE);
    if (step->before == EXPIRE) {
      assert_false(mig_slot_expire(&slot, EXPIRES_MS - 1, EXPIRES_MS));
      assert_true(mig_slot_expire(&slot, EXPIRES_MS, EXPIRES_MS));
      assert_false(mig_slot_expire(&slot, EXPIRES_MS, EXPIRES_MS));
    }
    if (step->before == GAP) {
      assert_true(mig_slot_gap(&slot));
      assert_false(mig_slot_gap(&slot));
    }
    hear(&slot, step->before);
    answer = mig_slot_step(&slot, &step->look);
    images = answer.end == MIG_SLOT_OPEN || answer.end == MIG_SLOT_ARRIVED ? NONE_ENDED
             : answer.nothing && !answer.keep                              ? GO
                                                                           : STAY;
    if (answer.phase != step->phase || answer.stage != step->stage || answer.end != step->end ||
        images != step->images)
      fail_msg("step %d: %s, %s, %s, images: %d", i + 1, mig_phase_name(answer.phase),
               mig_stage_name(answer.stage), mig_slot_end_name(answer.end), images);
    if (answer.end == MIG_SLOT_OPEN)
      assert_in_range(answer.again_ms, 1, 60000);
    assert_non_null(answer.why);
  }
}

/* Whatever was known, and whatever is seen. */
static void for_every_look(void (*check)(MigSlot slot, const MigSlotLook *look)) {
  static const MigSlotEnd endings[] = {MIG_SLOT_OPEN, MIG_SLOT_RELEASED, MIG_SLOT_EXPIRED};

  for (int state = 0; state < MIG_END_STATE_COUNT; state++)
    for (unsigned bits = 0; bits < 1 << 12; bits++)
      for (size_t i = 0; i < LENGTH(endings); i++)
        for (int likely = 0; likely < MIG_SLOT_END_COUNT; likely++)
          check((MigSlot){.came = bits & 1,
                          .ran = bits & 2,
                          .traces = bits & 4,
                          .started = bits & 8,
                          .watched = bits & 16,
                          .ending = bits & 3 ? MIG_SLOT_OPEN : endings[i],
                          .likely = (MigSlotEnd)likely,
                          .agreed = likely > 0},
                &(MigSlotLook){.now_ms = 5000,
                               .state = (MigEndState)state,
                               .job_incoming = bits & 32,
                               .job_outgoing = bits & 64,
                               .migrated = bits & 128,
                               .booted = bits & 256,
                               .persistent = bits & 512,
                               .images = bits & 1024});
}

static void goes_on_evidence_alone(MigSlot slot, const MigSlotLook *look) {
  MigSlot before = slot;
  MigSlotAnswer answer = mig_slot_step(&slot, look);

  if (answer.end == MIG_SLOT_OPEN || !answer.nothing || answer.keep)
    return;
  /* Nothing of it is here, nor was: and it is known. */
  assert_int_equal(look->state, MIG_END_ABSENT);
  assert_false(before.ran || before.traces || before.started);
  assert_true(before.watched);
  assert_true(before.came || before.ending != MIG_SLOT_OPEN);
  assert_true(!look->images || before.agreed > 0);
}

static void no_image_goes_on_a_guess(void **state) {
  for_every_look(goes_on_evidence_alone);
}

static void never_ran_is_known(MigSlot slot, const MigSlotLook *look) {
  MigSlot before = slot;

  if (mig_slot_step(&slot, look).end != MIG_SLOT_CANCELLED)
    return;
  assert_true(before.watched && before.agreed > 0);
  assert_false(before.ran);
}

static void that_it_never_ran_is_said_by_who_watched(void **state) {
  for_every_look(never_ran_is_known);
}

static void stays_open_unseen(MigSlot slot, const MigSlotLook *look) {
  MigSlot before = slot;

  if (look->state != MIG_END_UNKNOWN)
    return;
  assert_int_equal(mig_slot_step(&slot, look).end, MIG_SLOT_OPEN);
  assert_int_equal(slot.came, before.came);
  assert_int_equal(slot.ran, before.ran);
  assert_int_equal(slot.ending, before.ending);
  assert_int_equal(slot.traces, before.traces);
  assert_false(slot.watched);
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
  tests_add(&tests, "no image goes on a guess", no_image_goes_on_a_guess, NULL);
  tests_add(&tests, "that it never ran is said by who watched", that_it_never_ran_is_said_by_who_watched,
            NULL);
  tests_add(&tests, "what is not seen ends nothing", what_is_not_seen_ends_nothing, NULL);
  tests_add(&tests, "a job can go where it is sent", a_job_can_go_where_it_is_sent, NULL);
  tests_add(&tests, "names lead there and back", names_lead_there_and_back, NULL);
  return tests_run(&tests, "slot");
}

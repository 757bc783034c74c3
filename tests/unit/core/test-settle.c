/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done about a move whose outcome is open: each action with all of its evidence, and never without one piece. */
#include "libmigrate/core/settle.h"

#include "tests/unit/core/rows.h"

#define E(state)   MIG_END_##state
#define V(verdict) MIG_VERDICT_##verdict
#define T(touch)   MIG_TOUCH_##touch
#define A(awaits)  MIG_AWAITS_##awaits
#define EV(bit)    MIG_EVIDENCE_##bit
/* The migration began while this process was there; both ends have been watched since before, or not. */
#define BEGAN_MS  1
#define UNWATCHED UINT64_MAX
#define LOOK_MS   30 /* how long asking both ends takes */
#define LONG_MS   (3 * MIG_SETTLE_PATIENCE_MS)

static void watch(MigSettleLook *look) {
  look->source_watched_since_ms = look->source_watched_since_ms ? look->source_watched_since_ms : BEGAN_MS;
  look->target_watched_since_ms = look->target_watched_since_ms ? look->target_watched_since_ms : BEGAN_MS;
}

/* Looks, with the same answers all the time, until there is an action or an end, or for_ms are over. The clock goes as
 * the steps say. */
static MigSettleStep settle_for(MigSettle *settle, MigSettleLook look, uint64_t for_ms, uint64_t *now_ms) {
  uint64_t end_ms = *now_ms + for_ms;
  MigSettleStep step;

  watch(&look);
  do {
    look.began_ms = *now_ms;
    look.ended_ms = *now_ms += LOOK_MS;
    mig_settle_step(settle, &look, &step);
    if (step.next != MIG_SETTLE_LOOK)
      break;
    assert_true(step.wait_ms > 0 && step.wait_ms <= 2000);
    *now_ms += step.wait_ms;
  } while (*now_ms < end_ms);
  return step;
}

/* All that an action needs, as far as the record and the answers say it. */
static const struct Base {
  MigTouch touch;
  MigSettleRecord record;
  MigSettleLook look;
} bases[] = {
    {T(RESUME_POST_COPY),
     {0},
     {.source = E(PAUSED_POSTCOPY_FAILED), .target = E(RUNNING_POSTCOPY), .job_active = true}},
    {T(RESUME_SOURCE),
     {.ran_before = true, .persist_target = true, .target_was_absent = true, .undefine_source = true},
     {.source = E(PAUSED_MIGRATION), .target = E(ABSENT), .source_defined = true}},
    {T(UNDEFINE_TARGET),
     {.ran_before = true, .persist_target = true, .target_was_absent = true, .undefine_source = true},
     {.source = E(RUNNING), .target = E(INACTIVE), .source_defined = true, .target_defined = true}},
    {T(UNDEFINE_SOURCE),
     {.ran_before = true, .persist_target = true, .target_was_absent = true, .undefine_source = true},
     {.source = E(INACTIVE), .target = E(RUNNING), .source_defined = true, .target_defined = true}},
};

static const struct Base *base_of(MigTouch touch) {
  for (size_t i = 0; i < LENGTH(bases); i++)
    if (bases[i].touch == touch)
      return &bases[i];
  fail_msg("no base for %s", mig_touch_name(touch));
  return NULL;
}

static void every_action_is_taken_with_all_of_its_evidence(void **state) {
  for (int touch = T(NONE) + 1; touch < T(COUNT); touch++) {
    const struct Base *base = base_of((MigTouch)touch);
    uint64_t now_ms = 5000, started_ms = now_ms;
    MigSettle settle;
    MigSettleStep step;

    mig_settle_init(&settle, &base->record, BEGAN_MS);
    step = settle_for(&settle, base->look, LONG_MS, &now_ms);
    assert_int_equal(step.next, MIG_SETTLE_TOUCH);
    assert_string_equal(mig_touch_name(step.touch), mig_touch_name((MigTouch)touch));
    assert_int_equal(mig_settle_evidence(&settle) & mig_touch_needs(step.touch), mig_touch_needs(step.touch));
    assert_non_null(step.plan);
    if (mig_touch_needs(step.touch) & EV(SECOND_LOOK))
      assert_true(now_ms - LOOK_MS >= started_ms + LOOK_MS + MIG_SETTLE_SECOND_LOOK_MS);
  }
}

#define LACK(function, change)                                                                               \
  static void function(MigSettleRecord *record, MigSettleLook *look) {                                       \
    (void)record, (void)look;                                                                                \
    change;                                                                                                  \
  }
LACK(job_active, look->job_active = true)
LACK(source_unknown, look->source = E(UNKNOWN))
LACK(source_running, look->source = E(RUNNING))
LACK(source_paused, look->source = E(PAUSED))
LACK(source_absent, look->source = E(ABSENT))
LACK(source_stopped, look->source = E(PAUSED_MIGRATION))
LACK(source_transient, look->source_defined = false)
LACK(target_unknown, look->target = E(UNKNOWN))
LACK(target_incoming, look->target = E(PAUSED_MIGRATION))
LACK(target_running, look->target = E(RUNNING))
LACK(target_absent, look->target = E(ABSENT))
LACK(target_inactive, look->target = E(INACTIVE))
LACK(target_post_copy, look->target = E(RUNNING_POSTCOPY))
LACK(target_unwatched, look->target_watched_since_ms = UNWATCHED)
LACK(source_unwatched, look->source_watched_since_ms = UNWATCHED)
LACK(another_copy, look->source_replaced = true)
LACK(seen_there, record->seen_there = true)
LACK(heard_there, look->target_had_guest = true)
LACK(target_transient, look->target_defined = false)
LACK(completed, look->completed = true)
LACK(paused_before, record->ran_before = false)
LACK(was_not_to_persist, record->persist_target = false)
LACK(target_had_one, record->target_was_absent = false)
LACK(was_not_to_undefine, record->undefine_source = false)
LACK(both_in_post_copy, look->source = E(PAUSED_POSTCOPY))

/* One piece of evidence is not there. */
static const struct Lack {
  const char *name;
  MigTouch touch;
  MigEvidence bit;
  void (*take_away)(MigSettleRecord *record, MigSettleLook *look);
} lacks[] = {
    {"no resume while a migration job is there", T(RESUME_SOURCE), EV(NO_JOB), job_active},
    {"no resume if the source does not answer", T(RESUME_SOURCE), EV(NO_JOB), source_unknown},
    {"no resume of a guest that its owner paused", T(RESUME_SOURCE), EV(SOURCE_STOPPED), source_paused},
    {"no resume if the target does not answer", T(RESUME_SOURCE), EV(TARGET_NOTHING), target_unknown},
    {"no resume while the target waits for memory", T(RESUME_SOURCE), EV(TARGET_NOTHING), target_incoming},
    {"no resume if the target runs it", T(RESUME_SOURCE), EV(TARGET_NOTHING), target_running},
    {"no resume if the target was not to define it", T(RESUME_SOURCE), EV(NEVER_RAN_THERE),
     was_not_to_persist},
    {"no resume if libvirt could not have defined it", T(RESUME_SOURCE), EV(NEVER_RAN_THERE),
     source_transient},
    {"no resume if it is shut off at the target", T(RESUME_SOURCE), EV(NEVER_RAN_THERE), target_inactive},
    {"no resume if the target was not watched all the time", T(RESUME_SOURCE), EV(NEVER_RAN_THERE),
     target_unwatched},
    {"no resume if the source was not watched all the time", T(RESUME_SOURCE), EV(NEVER_RAN_THERE),
     source_unwatched},
    {"no resume once it was seen at the target", T(RESUME_SOURCE), EV(NEVER_RAN_THERE), seen_there},
    {"no resume once it was heard to run at the target", T(RESUME_SOURCE), EV(NEVER_RAN_THERE), heard_there},
    {"no resume of another copy", T(RESUME_SOURCE), EV(SAME_COPY), another_copy},
    {"no resume once it was said to be completed", T(RESUME_SOURCE), EV(NOT_COMPLETED), completed},
    {"no resume of a guest that was paused before the move", T(RESUME_SOURCE), EV(RAN_BEFORE), paused_before},

    {"no undefine at the target while a job is there", T(UNDEFINE_TARGET), EV(NO_JOB), job_active},
    {"no undefine at the target if the source does not answer", T(UNDEFINE_TARGET), EV(NO_JOB),
     source_unknown},
    {"no undefine at the target if the source has no guest", T(UNDEFINE_TARGET), EV(SOURCE_ALIVE),
     source_absent},
    {"no undefine at the target while the source is stopped", T(UNDEFINE_TARGET), EV(SOURCE_ALIVE),
     source_stopped},
    {"no undefine at the target of the only definition", T(UNDEFINE_TARGET), EV(SOURCE_DEFINED),
     source_transient},
    {"no undefine at the target where there is none", T(UNDEFINE_TARGET), EV(TARGET_INACTIVE), target_absent},
    {"no undefine at the target of what runs there", T(UNDEFINE_TARGET), EV(TARGET_INACTIVE), target_running},
    {"no undefine of what the target had before", T(UNDEFINE_TARGET), EV(DEFINED_BY_US), target_had_one},
    {"no undefine of what libvirt was not asked to define", T(UNDEFINE_TARGET), EV(DEFINED_BY_US),
     was_not_to_persist},
    {"no undefine at the target if that was not watched", T(UNDEFINE_TARGET), EV(WATCHED), target_unwatched},
    {"no undefine at the target if the source was not watched", T(UNDEFINE_TARGET), EV(DEFINED_BY_US),
     source_unwatched},
    {"no undefine at the target where the guest has been", T(UNDEFINE_TARGET), EV(DEFINED_BY_US), seen_there},
    {"no undefine at the target if another copy runs here", T(UNDEFINE_TARGET), EV(SAME_COPY), another_copy},
    {"no undefine at the target once it was said to be completed", T(UNDEFINE_TARGET), EV(NOT_COMPLETED),
     completed},

    {"no undefine at the source while a job is there", T(UNDEFINE_SOURCE), EV(NO_JOB), job_active},
    {"no undefine at the source of what runs there", T(UNDEFINE_SOURCE), EV(SOURCE_INACTIVE), source_running},
    {"no undefine at the source of what is stopped there", T(UNDEFINE_SOURCE), EV(SOURCE_INACTIVE),
     source_stopped},
    {"no undefine at the source if the target does not answer", T(UNDEFINE_SOURCE), EV(TARGET_ALIVE),
     target_unknown},
    {"no undefine at the source while the target lacks memory", T(UNDEFINE_SOURCE), EV(TARGET_ALIVE),
     target_post_copy},
    {"no undefine at the source if the target has no guest", T(UNDEFINE_SOURCE), EV(TARGET_ALIVE),
     target_inactive},
    {"no undefine at the source of the only definition", T(UNDEFINE_SOURCE), EV(TARGET_DEFINED),
     target_transient},
    {"no undefine at the source of another copy", T(UNDEFINE_SOURCE), EV(SAME_COPY), another_copy},
    {"no undefine at the source if it was to stay", T(UNDEFINE_SOURCE), EV(TO_BE_UNDEFINED),
     was_not_to_undefine},

    {"no resume of a post-copy that goes on", T(RESUME_POST_COPY), EV(CUT_POST_COPY), both_in_post_copy},
    {"no resume of a post-copy if the target does not answer", T(RESUME_POST_COPY), EV(CUT_POST_COPY),
     target_unknown},
    {"no resume of a post-copy if the source does not answer", T(RESUME_POST_COPY), EV(CUT_POST_COPY),
     source_unknown},
    {"no resume of a post-copy that is not one", T(RESUME_POST_COPY), EV(CUT_POST_COPY), target_running},
};

static void a_missing_piece_prevents_it(void **state) {
  const struct Lack *row = *state;
  const struct Base *base = base_of(row->touch);
  MigSettleRecord record = base->record;
  MigSettleLook look = base->look;
  uint64_t now_ms = 5000;
  MigSettle settle;
  MigSettleStep step;

  row->take_away(&record, &look);
  mig_settle_init(&settle, &record, BEGAN_MS);
  step = settle_for(&settle, look, LONG_MS, &now_ms);
  assert_false(step.next == MIG_SETTLE_TOUCH && step.touch == row->touch);
  assert_int_equal(mig_settle_evidence(&settle) & row->bit, 0);
}

static void every_piece_has_its_row(void **state) {
  for (int touch = T(NONE) + 1; touch < T(COUNT); touch++) {
    unsigned covered = EV(SECOND_LOOK); /* the tests of time below */

    for (size_t i = 0; i < LENGTH(lacks); i++)
      if (lacks[i].touch == (MigTouch)touch) {
        assert_true(mig_touch_needs((MigTouch)touch) & lacks[i].bit);
        covered |= lacks[i].bit;
      }
    assert_int_equal(mig_touch_needs((MigTouch)touch) & ~covered, 0);
  }
}

/* --- time --- */

static MigSettleStep look_at(MigSettle *settle, MigSettleLook look, uint64_t began_ms, uint64_t ended_ms) {
  MigSettleStep step;

  watch(&look);
  look.began_ms = began_ms;
  look.ended_ms = ended_ms;
  mig_settle_step(settle, &look, &step);
  return step;
}

static void a_second_look_counts_from_the_end_of_the_first_to_its_own_beginning(void **state) {
  const struct Base *base = base_of(T(RESUME_SOURCE));
  MigSettle settle;

  mig_settle_init(&settle, &base->record, BEGAN_MS);
  /* The target took 20 s to answer. */
  assert_int_equal(look_at(&settle, base->look, 1000, 21000).next, MIG_SETTLE_LOOK);
  assert_int_equal(look_at(&settle, base->look, 21000 + MIG_SETTLE_SECOND_LOOK_MS - 1, 40000).next,
                   MIG_SETTLE_LOOK);
  assert_int_equal(look_at(&settle, base->look, 21000 + MIG_SETTLE_SECOND_LOOK_MS, 50000).next,
                   MIG_SETTLE_TOUCH);
}

static void whatever_changes_in_between_begins_it_anew(void **state) {
  for (int touch = T(RESUME_SOURCE); touch < T(COUNT); touch++) {
    const struct Base *base = base_of((MigTouch)touch);
    MigSettleLook other = base->look;
    MigSettle settle;

    mig_settle_init(&settle, &base->record, BEGAN_MS);
    look_at(&settle, base->look, 0, 0);
    other.target = E(UNKNOWN);
    assert_int_equal(look_at(&settle, other, 900, 900).next, MIG_SETTLE_LOOK);
    assert_int_equal(look_at(&settle, base->look, 1100, 1100).next, MIG_SETTLE_LOOK);
    assert_int_equal(look_at(&settle, base->look, 2099, 2099).next, MIG_SETTLE_LOOK);
    assert_int_equal(look_at(&settle, base->look, 2100, 2100).next, MIG_SETTLE_TOUCH);
  }
}

static const struct Stands {
  const char *name;
  MigSettleLook look;
  MigVerdict verdict;
  bool at_once;
} stands[] = {
    {"the target runs it, the source let go: one look",
     {.source = E(ABSENT), .target = E(RUNNING)},
     V(SUCCEEDED),
     true},
    {"the target has it paused: two looks", {.source = E(ABSENT), .target = E(PAUSED)}, V(SUCCEEDED), false},
    {"the source holds a stopped copy: two looks",
     {.source = E(PAUSED_MIGRATION), .target = E(RUNNING)},
     V(SUCCEEDED),
     false},
    {"libvirt answered the call and the source runs it: one look",
     {.source = E(RUNNING), .target = E(ABSENT), .call_taken = true},
     V(AT_SOURCE),
     true},
    {"the call broke off: a migration may still begin: two looks",
     {.source = E(RUNNING), .target = E(ABSENT)},
     V(AT_SOURCE),
     false},
    {"nothing at either end: two looks",
     {.source = E(INACTIVE), .target = E(ABSENT), .call_taken = true, .source_ended = true},
     V(GONE),
     false},
    {"nothing at either end, and nobody heard it end: two looks",
     {.source = E(INACTIVE), .target = E(ABSENT), .call_taken = true},
     V(LEFT),
     false},
    {"its old copy ended here, it ran there, and has gone from there: two looks",
     {.source = E(INACTIVE), .target = E(ABSENT), .source_ended = true, .target_had_guest = true},
     V(LEFT),
     false},
    {"it ended there: two looks",
     {.source = E(INACTIVE), .target = E(INACTIVE), .target_ended = true, .target_had_guest = true},
     V(GONE),
     false},
    {"something ended there that was never the guest: two looks",
     {.source = E(INACTIVE), .target = E(INACTIVE), .target_ended = true},
     V(LEFT),
     false},
    {"somebody else moves what runs here: two looks",
     {.source = E(RUNNING), .target = E(ABSENT), .job_active = true, .job_foreign = true},
     V(AT_SOURCE),
     false},
    {"running at both: two looks",
     {.source = E(RUNNING), .target = E(RUNNING), .call_taken = true},
     V(SPLIT),
     false},
};

static void a_verdict_and_its_looks(void **state) {
  const struct Stands *row = *state;
  MigSettleRecord record = {.ran_before = true};
  MigSettle settle;
  MigSettleStep step;

  mig_settle_init(&settle, &record, BEGAN_MS);
  step = look_at(&settle, row->look, 0, 0);
  assert_int_equal(step.next, row->at_once ? MIG_SETTLE_DONE : MIG_SETTLE_LOOK);
  if (!row->at_once) {
    assert_non_null(step.plan);
    assert_int_not_equal(step.awaits, A(NOBODY));
    assert_int_equal(look_at(&settle, row->look, 999, 999).next, MIG_SETTLE_LOOK);
    step = look_at(&settle, row->look, 1000, 1000);
  }
  assert_int_equal(step.next, MIG_SETTLE_DONE);
  assert_string_equal(mig_verdict_name(step.verdict), mig_verdict_name(row->verdict));
  assert_int_equal(step.awaits, A(NOBODY));
  assert_int_equal(step.touch, T(NONE));
}

static void a_migration_that_was_seen_is_not_still_to_begin(void **state) {
  MigSettleLook look = {.source = E(RUNNING), .target = E(PAUSED_MIGRATION), .job_active = true};
  MigSettleStep step;
  MigSettle settle;

  mig_settle_init(&settle, &(MigSettleRecord){.ran_before = true}, BEGAN_MS);
  assert_true(look_at(&settle, look, 0, 0).under_way);
  look.job_active = false;
  look.target = E(ABSENT);
  step = look_at(&settle, look, 10, 10);
  assert_int_equal(step.next, MIG_SETTLE_DONE);
  assert_int_equal(step.verdict, V(AT_SOURCE));
}

static const struct Wait {
  const char *name;
  MigSettleLook look;
  MigAwaits awaits, after; /* at once, and when it lasts */
  bool under_way;
} waits[] = {
    {"the source does not answer", {.target = E(RUNNING)}, A(SOURCE), A(SOURCE), false},
    {"the target does not answer", {.source = E(RUNNING)}, A(TARGET), A(TARGET), false},
    {"under way",
     {.source = E(RUNNING), .target = E(PAUSED_MIGRATION), .job_active = true},
     A(LIBVIRT),
     A(LIBVIRT),
     true},
    {"libvirt leaves a state that it should bring further",
     {.source = E(RUNNING), .target = E(PAUSED_MIGRATION)},
     A(LIBVIRT),
     A(OPERATOR),
     false},
    {"stopped at the source, and it may have run at the target",
     {.source = E(PAUSED_MIGRATION), .target = E(INACTIVE), .source_defined = true, .target_defined = true},
     A(OPERATOR),
     A(OPERATOR),
     false},
    {"stopped at the source, and said to be completed",
     {.source = E(PAUSED_MIGRATION), .target = E(ABSENT), .source_defined = true, .completed = true},
     A(OPERATOR),
     A(OPERATOR),
     false},
};

static void who_is_awaited(void **state) {
  const struct Wait *row = *state;
  MigSettleRecord record = {.ran_before = true, .persist_target = true, .target_was_absent = true};
  uint64_t now_ms = 0;
  MigSettle settle;
  MigSettleStep step;

  mig_settle_init(&settle, &record, BEGAN_MS);
  step = settle_for(&settle, row->look, 1, &now_ms);
  assert_string_equal(mig_awaits_name(step.awaits), mig_awaits_name(row->awaits));
  step = settle_for(&settle, row->look, LONG_MS, &now_ms);
  assert_int_equal(step.next, MIG_SETTLE_LOOK);
  assert_string_equal(mig_awaits_name(step.awaits), mig_awaits_name(row->after));
  assert_int_equal(step.under_way, row->under_way);
  assert_non_null(step.plan);
}

/* --- the story of each action --- */

static void a_guest_that_the_agent_paused_is_stopped_by_the_migration(void **state) {
  MigSettleRecord record = base_of(T(RESUME_SOURCE))->record;
  MigSettleLook look = {.source = E(PAUSED), .target = E(ABSENT), .source_defined = true};
  uint64_t now_ms = 0;
  MigSettle settle;

  record.paused_by_agent = true;
  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));

  /* Its owner had paused it before the move, and let it run since: the agent's pause was the last. */
  record.ran_before = false;
  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));

  /* His own pause is his. */
  record.paused_by_agent = false;
  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).next, MIG_SETTLE_DONE);
  record.paused_by_agent = true;

  /* It ran again since: who paused it now had his own reasons. */
  record.ran_before = true;
  record.pause_answered = true;
  mig_settle_init(&settle, &record, BEGAN_MS);
  look.source = E(RUNNING);
  look.job_active = true;
  settle_for(&settle, look, 2 * MIG_SETTLE_SECOND_LOOK_MS, &now_ms);
  look.source = E(PAUSED);
  look.job_active = false;
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).next, MIG_SETTLE_DONE);

  /* But not if its call was never answered, for it may wait in libvirtd; that has an end, too. */
  record.pause_answered = false;
  for (int late = 0; late < 2; late++) {
    mig_settle_init(&settle, &record, BEGAN_MS);
    look.source = E(RUNNING);
    look.job_active = true;
    settle_for(&settle, look, MIG_SETTLE_LATE_PAUSE_MS + (late ? 5000 : -5000), &now_ms);
    look.source = E(PAUSED);
    look.job_active = false;
    if (late)
      assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).next, MIG_SETTLE_DONE);
    else
      assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));
  }

  /* One look does not tell: the pause may still be on its way. */
  mig_settle_init(&settle, &record, BEGAN_MS);
  look.source = E(RUNNING);
  look.call_taken = true;
  assert_int_equal(settle_for(&settle, look, 1, &now_ms).next, MIG_SETTLE_LOOK);
  look.source = E(PAUSED);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));
}

static void nothing_is_told_while_a_pause_is_not_answered(void **state) {
  MigSettleRecord record = base_of(T(RESUME_SOURCE))->record;
  MigSettleLook look = {
      .source = E(RUNNING), .target = E(ABSENT), .source_defined = true, .call_taken = true};
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &record, BEGAN_MS);
  look.pausing = true;
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).next, MIG_SETTLE_LOOK);
  look.pausing = false;
  look.source = E(PAUSED);
  mig_settle_set_paused(&settle, true, false);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));
}

static void what_the_target_was_seen_to_have_ran_there(void **state) {
  const struct Base *base = base_of(T(RESUME_SOURCE));
  MigSettleLook look = base->look;
  MigSettleStep step;
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &base->record, BEGAN_MS);
  look.target = E(RUNNING_POSTCOPY);
  settle_for(&settle, look, 1, &now_ms);
  look.target = E(ABSENT);
  /* It ran there, and has gone from there: what is stopped here is told, and not touched. */
  step = settle_for(&settle, look, LONG_MS, &now_ms);
  assert_int_equal(step.verdict, V(LEFT));
  assert_non_null(strstr(step.left, "never resume it"));
  /* libvirt, or somebody, lets the older copy run: that is told. */
  look.source = E(RUNNING);
  step = settle_for(&settle, look, LONG_MS, &now_ms);
  assert_int_equal(step.verdict, V(AT_SOURCE));
  assert_non_null(strstr(step.left, "older"));
}

static void what_is_paused_after_libvirt_gave_it_back_is_its_owners(void **state) {
  MigSettleRecord record = {.ran_before = true};
  MigSettleLook look = {.source = E(PAUSED), .target = E(ABSENT), .call_taken = true, .call_failed = true};
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).verdict, V(AT_SOURCE));
  /* A broken connection is no such word. */
  look.call_failed = false;
  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).awaits, A(OPERATOR));
  /* Nor does it make a resume of what the migration stopped. */
  look.call_failed = true;
  look.source = E(PAUSED_MIGRATION);
  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).awaits, A(OPERATOR));
}

static void a_migration_that_failed_before_its_cpus_ran_is_known_by_the_reason(void **state) {
  MigSettleRecord record = {.ran_before = true};
  MigSettleLook look = {.source = E(PAUSED_MIGRATION), .target = E(INACTIVE), .target_start_failed = true};
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &record, BEGAN_MS);
  assert_int_equal(settle_for(&settle, look, LONG_MS, &now_ms).touch, T(RESUME_SOURCE));
}

static void a_refused_resume_is_tried_again_and_an_operator_is_called(void **state) {
  const struct Base *base = base_of(T(RESUME_SOURCE));
  MigSettleStep step = {0};
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &base->record, BEGAN_MS);
  for (int i = 0; i < 20; i++) {
    uint64_t before_ms = now_ms;

    step = settle_for(&settle, base->look, LONG_MS, &now_ms);
    assert_int_equal(step.next, MIG_SETTLE_TOUCH);
    assert_true(now_ms - before_ms >= MIG_SETTLE_SECOND_LOOK_MS);
    assert_int_equal(step.awaits, i < 5 ? A(AGENT) : A(OPERATOR));
    mig_settle_note_touched(&settle, now_ms, step.touch, false);
  }
  /* Once it runs, that is the outcome. */
  MigSettleLook look = base->look;
  look.source = E(RUNNING);
  step = settle_for(&settle, look, LONG_MS, &now_ms);
  assert_int_equal(step.next, MIG_SETTLE_DONE);
  assert_int_equal(step.verdict, V(AT_SOURCE));
}

static void a_definition_that_cannot_be_removed_is_told(void **state) {
  for (int touch = T(UNDEFINE_TARGET); touch <= T(UNDEFINE_SOURCE); touch++) {
    const struct Base *base = base_of((MigTouch)touch);
    MigSettleStep step = {0};
    uint64_t now_ms = 0;
    MigSettle settle;
    int tries = 0;

    mig_settle_init(&settle, &base->record, BEGAN_MS);
    while ((step = settle_for(&settle, base->look, LONG_MS, &now_ms)).next == MIG_SETTLE_TOUCH) {
      mig_settle_note_touched(&settle, now_ms, step.touch, false);
      assert_true(++tries <= 3);
    }
    assert_int_equal(tries, 3);
    assert_int_equal(step.next, MIG_SETTLE_DONE);
    assert_non_null(step.left);
    assert_int_equal(step.verdict, touch == T(UNDEFINE_TARGET) ? V(AT_SOURCE) : V(SUCCEEDED));
  }
}

static void a_definition_that_is_removed_leaves_nothing(void **state) {
  for (int touch = T(UNDEFINE_TARGET); touch <= T(UNDEFINE_SOURCE); touch++) {
    const struct Base *base = base_of((MigTouch)touch);
    MigSettleLook look = base->look;
    MigSettleStep step;
    uint64_t now_ms = 0;
    MigSettle settle;

    mig_settle_init(&settle, &base->record, BEGAN_MS);
    step = settle_for(&settle, look, LONG_MS, &now_ms);
    mig_settle_note_touched(&settle, now_ms, step.touch, true);
    *(touch == T(UNDEFINE_TARGET) ? &look.target : &look.source) = E(ABSENT);
    *(touch == T(UNDEFINE_TARGET) ? &look.target_defined : &look.source_defined) = false;
    step = settle_for(&settle, look, LONG_MS, &now_ms);
    assert_int_equal(step.next, MIG_SETTLE_DONE);
    assert_null(step.left);
  }
}

static void a_cut_post_copy_is_resumed_soon_and_not_all_the_time(void **state) {
  const struct Base *base = base_of(T(RESUME_POST_COPY));
  uint64_t now_ms = 0;
  MigSettle settle;

  mig_settle_init(&settle, &base->record, BEGAN_MS);
  for (int i = 0; i < 10; i++) {
    uint64_t before_ms = now_ms;
    MigSettleStep step = settle_for(&settle, base->look, LONG_MS, &now_ms);

    assert_int_equal(step.next, MIG_SETTLE_TOUCH);
    assert_int_equal(step.touch, T(RESUME_POST_COPY));
    assert_true(i == 0 || now_ms - before_ms >= 500);
    assert_true(now_ms - before_ms <= 2000 + 2 * LOOK_MS);
    mig_settle_note_touched(&settle, now_ms, step.touch, false);
  }
}

static void a_stopped_copy_that_is_left_is_told_and_not_touched(void **state) {
  for (int defined = 0; defined < 2; defined++) {
    MigSettleRecord record = base_of(T(UNDEFINE_SOURCE))->record;
    MigSettleLook look = {.source = E(PAUSED_MIGRATION),
                          .target = E(RUNNING),
                          .source_defined = defined,
                          .target_defined = true};
    uint64_t now_ms = 0;
    MigSettle settle;
    MigSettleStep step;

    mig_settle_init(&settle, &record, BEGAN_MS);
    step = settle_for(&settle, look, LONG_MS, &now_ms);
    assert_int_equal(step.next, MIG_SETTLE_DONE);
    assert_int_equal(step.verdict, V(SUCCEEDED));
    assert_non_null(strstr(step.left, defined ? ": destroy and undefine it there" : ": destroy it there"));
  }
}

/* --- every cell --- */

static bool active(MigEndState end) {
  return end != E(ABSENT) && end != E(INACTIVE) && end != E(UNKNOWN);
}

static MigSettleLook cell_look(int source, int target, unsigned bits) {
  return (MigSettleLook){.source = (MigEndState)source,
                         .target = (MigEndState)target,
                         .job_active = bits & 1,
                         .completed = bits & 2,
                         .source_defined = bits & 4,
                         .target_defined = bits & 8,
                         .target_start_failed = bits & 16,
                         .call_taken = bits & 32,
                         .call_failed = bits & 64};
}

static MigSettleRecord cell_record(unsigned bits) {
  return (MigSettleRecord){.ran_before = bits & 1,
                           .paused_by_agent = bits & 2,
                           .persist_target = bits & 4,
                           .undefine_source = bits & 8,
                           .target_was_absent = bits & 16,
                           .pause_answered = bits & 32};
}

/* What must hold of the first thing that is done or told, in every combination of answers and record. */
static void check_cell(const MigSettleRecord *record, const MigSettleLook *look) {
  uint64_t now_ms = 0;
  MigSettle settle;
  MigSettleStep step;
  bool touches;

  mig_settle_init(&settle, record, BEGAN_MS);
  step = settle_for(&settle, *look, 3 * MIG_SETTLE_SECOND_LOOK_MS, &now_ms);
  touches = step.next == MIG_SETTLE_TOUCH;

  assert_non_null(step.why);
  assert_true((step.next == MIG_SETTLE_DONE) == (step.plan == NULL));
  assert_true(step.next != MIG_SETTLE_LOOK || step.awaits != A(NOBODY));
  if (look->source == E(UNKNOWN) || look->target == E(UNKNOWN))
    assert_int_equal(step.next, MIG_SETTLE_LOOK);
  if (touches) {
    assert_int_equal(mig_touch_needs(step.touch) & ~mig_settle_evidence(&settle), 0);
    assert_true(step.touch == T(RESUME_POST_COPY) ||
                (!look->job_active && now_ms >= MIG_SETTLE_SECOND_LOOK_MS));
  }
  if (touches && step.touch == T(RESUME_SOURCE)) {
    assert_false(active(look->target));
    assert_true(look->source == E(PAUSED_MIGRATION) ||
                (look->source == E(PAUSED) && record->paused_by_agent));
    assert_true((record->ran_before || record->paused_by_agent) && !look->completed);
    assert_true(look->target == E(ABSENT) ? record->persist_target && look->source_defined
                                          : look->target_start_failed);
  }
  if (touches && step.touch == T(UNDEFINE_TARGET))
    assert_true(look->target == E(INACTIVE) && active(look->source) && look->source_defined &&
                record->target_was_absent);
  if (touches && step.touch == T(UNDEFINE_SOURCE))
    assert_true(look->source == E(INACTIVE) && active(look->target) && look->target_defined &&
                record->undefine_source);
  if (step.next == MIG_SETTLE_DONE && step.verdict == V(AT_SOURCE))
    assert_true(active(look->source) && !active(look->target));
  if (step.next == MIG_SETTLE_DONE && step.verdict == V(SUCCEEDED))
    assert_true(active(look->target) && look->source != E(RUNNING));
}

static void every_cell(void **state) {
  for (int source = 0; source < MIG_END_STATE_COUNT; source++)
    for (int target = 0; target < MIG_END_STATE_COUNT; target++)
      for (unsigned answers = 0; answers < 128; answers++)
        for (unsigned records = 0; records < 64; records++) {
          MigSettleLook look = cell_look(source, target, answers);
          MigSettleRecord record = cell_record(records);

          check_cell(&record, &look);
        }
}

static void a_record_that_knows_nothing_touches_no_domain(void **state) {
  for (int source = 0; source < MIG_END_STATE_COUNT; source++)
    for (int target = 0; target < MIG_END_STATE_COUNT; target++)
      for (unsigned answers = 0; answers < 128; answers++) {
        MigSettleLook look = cell_look(source, target, answers);
        uint64_t now_ms = 0;
        MigSettle settle;
        MigSettleStep step;

        mig_settle_init(&settle, &(MigSettleRecord){0}, BEGAN_MS);
        step = settle_for(&settle, look, 3 * MIG_SETTLE_SECOND_LOOK_MS, &now_ms);
        assert_true(step.next != MIG_SETTLE_TOUCH || step.touch == T(RESUME_POST_COPY));
      }
}

static void every_action_and_evidence_has_a_name(void **state) {
  for (int i = 0; i < T(COUNT); i++)
    assert_non_null(mig_touch_name((MigTouch)i));
  for (int i = 0; i < MIG_EVIDENCE_BITS; i++)
    assert_non_null(mig_evidence_name((MigEvidence)(1u << i)));
  assert_null(mig_touch_name(T(COUNT)));
  assert_null(mig_evidence_name((MigEvidence)0));
}

#define TEST(name)                                                                                           \
  { #name, name }
static const struct Plain {
  const char *name;
  CMUnitTestFunction function;
} plain[] = {
    {"every action is taken with all of its evidence", every_action_is_taken_with_all_of_its_evidence},
    {"every piece has its row", every_piece_has_its_row},
    {"a second look counts from the end of the first to its own beginning",
     a_second_look_counts_from_the_end_of_the_first_to_its_own_beginning},
    {"whatever changes in between begins it anew", whatever_changes_in_between_begins_it_anew},
    {"a migration that was seen is not still to begin", a_migration_that_was_seen_is_not_still_to_begin},
    {"a guest that the agent paused is stopped by the migration",
     a_guest_that_the_agent_paused_is_stopped_by_the_migration},
    {"nothing is told while a pause is not answered", nothing_is_told_while_a_pause_is_not_answered},
    {"what the target was seen to have ran there", what_the_target_was_seen_to_have_ran_there},
    {"what is paused after libvirt gave it back is its owner's",
     what_is_paused_after_libvirt_gave_it_back_is_its_owners},
    {"a migration that failed before its cpus ran is known by the reason",
     a_migration_that_failed_before_its_cpus_ran_is_known_by_the_reason},
    {"a refused resume is tried again and an operator is called",
     a_refused_resume_is_tried_again_and_an_operator_is_called},
    {"a definition that cannot be removed is told", a_definition_that_cannot_be_removed_is_told},
    {"a definition that is removed leaves nothing", a_definition_that_is_removed_leaves_nothing},
    {"a cut post copy is resumed soon and not all the time",
     a_cut_post_copy_is_resumed_soon_and_not_all_the_time},
    {"a stopped copy that is left is told and not touched",
     a_stopped_copy_that_is_left_is_told_and_not_touched},
    {"every cell", every_cell},
    {"a record that knows nothing touches no domain", a_record_that_knows_nothing_touches_no_domain},
    {"every action and evidence has a name", every_action_and_evidence_has_a_name},
};

int main(void) {
  Tests tests = {0};

  for (size_t i = 0; i < LENGTH(plain); i++)
    tests_add(&tests, plain[i].name, plain[i].function, NULL);
  TESTS_ADD_ROWS(&tests, a_missing_piece_prevents_it, lacks);
  TESTS_ADD_ROWS(&tests, a_verdict_and_its_looks, stands);
  TESTS_ADD_ROWS(&tests, who_is_awaited, waits);
  return tests_run(&tests, "settle");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a migration into this node: known cells by name, and what must hold in every one. */
#include "libmigrate/core/arrival.h"

#include "tests/unit/core/rows.h"

#define E(state)   MIG_END_##state
#define A(arrival) MIG_ARRIVAL_##arrival

static const struct Cell {
  const char *name;
  MigArrivalInput input; /* state, job in, job out, migrated here, booted here, came, ran; watched is set */
  MigArrival expected;
  bool unwatched;
} known[] = {
    {"reserved, and nothing came", {E(ABSENT)}, A(AWAITED)},
    {"reserved, and an old definition of it is here", {E(INACTIVE)}, A(AWAITED)},
    {"its copy waits for the stream", {E(PAUSED_MIGRATION), true, false, false, false, true}, A(COMING)},
    {"its copy waits, and its coming was missed", {E(PAUSED_MIGRATION), true}, A(COMING)},
    {"between the end of the stream and Finish",
     {E(PAUSED_MIGRATION), false, false, false, false, true},
     A(COMING)},
    {"runs, and libvirt is not done", {E(RUNNING), true, false, true, false, true}, A(COMING)},
    {"came, and runs", {E(RUNNING), false, false, true, false, true}, A(ARRIVED)},
    {"came, and was paused and resumed since", {E(RUNNING), false, false, false, false, true}, A(ARRIVED)},
    {"came paused by its owner", {E(PAUSED), false, false, false, false, true}, A(ARRIVED)},
    {"came while nobody looked", {E(RUNNING), false, false, true}, A(ARRIVED)},
    {"came, and moves on already", {E(RUNNING), false, true, true, false, true}, A(ARRIVED)},
    {"moves on by post-copy", {E(PAUSED_POSTCOPY), false, true, false, false, true, true}, A(ARRIVED)},
    {"cancelled at the source", {E(ABSENT), false, false, false, false, true}, A(ENDED)},
    {"crashed, and nobody watched: whose start it was is not known",
     {E(CRASHED), false, false, false, false, true},
     A(TAKEN),
     true},
    {"gone, and nobody watched", {E(ABSENT), false, false, false, false, true}, A(GONE), true},
    {"gone but for a definition, and nobody watched",
     {E(INACTIVE), false, false, false, false, true},
     A(GONE),
     true},
    {"it ran here before the gap", {E(INACTIVE), false, false, false, false, true, true}, A(STOPPED), true},
    {"reserved, and nobody watched", {E(INACTIVE)}, A(AWAITED), true},
    {"started here by somebody after its copy had gone",
     {E(RUNNING), false, false, false, true, true},
     A(TAKEN)},
    {"the same, and nobody watched", {E(RUNNING), false, false, false, true, true}, A(TAKEN), true},
    {"came, was paused and resumed in a gap",
     {E(RUNNING), false, false, false, false, true},
     A(ARRIVED),
     true},
    {"cancelled, and its definition stayed", {E(INACTIVE), false, false, false, false, true}, A(ENDED)},
    {"in post-copy", {E(RUNNING_POSTCOPY), true, false, false, false, true, true}, A(POST_COPY)},
    {"in post-copy, and its coming was missed", {E(RUNNING_POSTCOPY), true}, A(POST_COPY)},
    {"cut in post-copy", {E(RUNNING_POSTCOPY_FAILED), true, false, false, false, true, true}, A(CUT)},
    {"cut in post-copy, and paused by it",
     {E(PAUSED_POSTCOPY_FAILED), true, false, false, false, true, true},
     A(CUT)},
    {"destroyed in post-copy", {E(ABSENT), false, false, false, false, true, true}, A(STOPPED)},
    {"ran, and was shut down at once", {E(INACTIVE), false, false, false, false, true, true}, A(STOPPED)},
    {"came and crashed", {E(CRASHED), false, false, false, false, true}, A(STOPPED)},
    {"started here by somebody", {E(RUNNING)}, A(TAKEN)},
    {"started here and paused", {E(PAUSED)}, A(TAKEN)},
    {"being started here by somebody", {E(PAUSED_MIGRATION)}, A(AWAITED)},
    {"libvirtd does not answer", {E(UNKNOWN), true, false, false, false, true}, A(UNSEEN)},
};

static void known_cell(void **state) {
  const struct Cell *row = *state;
  MigArrivalInput input = row->input;
  const MigArrivalAnswer *answer;

  input.watched = !row->unwatched;
  answer = mig_arrival_answer(&input);
  if (answer->arrival != row->expected)
    fail_msg("%d instead of %d: %s", (int)answer->arrival, (int)row->expected, answer->why);
}

static void for_every_input(void (*check)(const MigArrivalInput *input)) {
  for (int state = 0; state < MIG_END_STATE_COUNT; state++)
    for (unsigned bits = 0; bits < 256; bits++)
      check(&(MigArrivalInput){.state = (MigEndState)state,
                               .job_incoming = bits & 1,
                               .job_outgoing = bits & 2,
                               .migrated = bits & 4,
                               .came = bits & 8,
                               .ran = bits & 16,
                               .booted = bits & 32,
                               .started = bits & 64,
                               .watched = bits & 128});
}

static void has_rule(const MigArrivalInput *input) {
  const MigArrivalAnswer *answer = mig_arrival_answer(input);

  assert_non_null(answer->why);
  assert_null(strstr(answer->why, "no rule"));
  assert_in_range(answer->arrival, 0, MIG_ARRIVAL_COUNT - 1);
}

static void every_combination_has_a_rule(void **state) {
  for_every_input(has_rule);
}

/* The first cause is kept by whoever looks; here: an end is never declared where the copy may still run. */
static void is_proved(const MigArrivalInput *input) {
  MigArrival arrival = mig_arrival_answer(input)->arrival;
  bool nothing = input->state == MIG_END_ABSENT || input->state == MIG_END_INACTIVE;

  if (input->state == MIG_END_UNKNOWN)
    assert_int_equal(arrival, MIG_ARRIVAL_UNSEEN);
  if (arrival == MIG_ARRIVAL_ENDED) {
    assert_true(nothing && input->came && !input->ran && input->watched);
  }
  if (arrival == MIG_ARRIVAL_GONE)
    assert_true(nothing && input->came && !input->ran && !input->watched);
  if (arrival == MIG_ARRIVAL_STOPPED)
    assert_true((nothing && input->ran) || input->state == MIG_END_CRASHED);
  if (arrival == MIG_ARRIVAL_ARRIVED) {
    assert_true(input->came || input->ran || input->migrated);
    assert_false(input->job_incoming && !input->job_outgoing &&
                 (input->state == MIG_END_RUNNING || input->state == MIG_END_PAUSED));
  }
  if (arrival == MIG_ARRIVAL_TAKEN)
    assert_true((!input->came && !input->ran) || input->booted || input->started ||
                (input->state == MIG_END_CRASHED && !input->ran && !input->watched));
}

static void no_end_is_declared_without_its_evidence(void **state) {
  for_every_input(is_proved);
}

/* No word of it says what nobody has seen. */
static void claims_nothing(const MigArrivalInput *input) {
  const char *why = mig_arrival_answer(input)->why;

  if (!input->watched) {
    assert_null(strstr(why, "never"));
    assert_null(strstr(why, "no migration of it has come"));
    if (!input->booted && !input->started)
      assert_null(strstr(why, "did not come by a migration"));
  }
}

static void after_a_gap_no_word_says_what_nobody_saw(void **state) {
  for_every_input(claims_nothing);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, known_cell, known);
  tests_add(&tests, "every combination has a rule", every_combination_has_a_rule, NULL);
  tests_add(&tests, "no end is declared without its evidence", no_end_is_declared_without_its_evidence, NULL);
  tests_add(&tests, "after a gap no word says what nobody saw", after_a_gap_no_word_says_what_nobody_saw,
            NULL);
  return tests_run(&tests, "arrival");
}

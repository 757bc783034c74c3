/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome: known cells by name, and what must hold in every cell. */
#include "libmigrate/core/verdict.h"

#include "tests/unit/core/rows.h"

#define E(state)   MIG_END_##state
#define V(verdict) MIG_VERDICT_##verdict
#define A(awaits)  MIG_AWAITS_##awaits

static const struct Cell {
  const char *name;
  MigVerdictInput input; /* source, target, job active, completed, never ran there */
  MigVerdict expected;
  MigAwaits awaits;
} known[] = {
    {"moved, and removed from the source", {E(ABSENT), E(RUNNING), false, true}, V(SUCCEEDED)},
    {"moved, and shut off at the source", {E(INACTIVE), E(RUNNING), false, true}, V(SUCCEEDED)},
    {"moved, though nobody saw it complete", {E(INACTIVE), E(RUNNING), false, false}, V(SUCCEEDED)},
    {"moved, paused by its owner as before", {E(INACTIVE), E(PAUSED), false, true}, V(SUCCEEDED)},
    {"failed, and runs on at the source", {E(RUNNING), E(ABSENT), false, false}, V(AT_SOURCE)},
    {"failed, paused at the source, and never ran at the target",
     {E(PAUSED), E(INACTIVE), false, false, true},
     V(AT_SOURCE)},
    {"paused at the source, and it may have run at the target",
     {E(PAUSED), E(INACTIVE), false, false},
     V(WAIT),
     A(OPERATOR)},
    {"said to be completed, but back at the source", {E(RUNNING), E(ABSENT), false, true}, V(AT_SOURCE)},
    {"under way in pre-copy", {E(RUNNING), E(PAUSED_MIGRATION), true, false}, V(WAIT), A(LIBVIRT)},
    {"the target's copy is about to be removed",
     {E(RUNNING), E(PAUSED_MIGRATION), false, false},
     V(WAIT),
     A(LIBVIRT)},
    {"in the switchover", {E(PAUSED_MIGRATION), E(PAUSED_MIGRATION), true, false}, V(WAIT), A(LIBVIRT)},
    {"asked at different moments around the switchover",
     {E(RUNNING), E(RUNNING), true, false},
     V(WAIT),
     A(LIBVIRT)},
    {"running at both ends without a job", {E(RUNNING), E(RUNNING), false, false}, V(SPLIT)},
    {"running at both ends after completion", {E(RUNNING), E(RUNNING), false, true}, V(SPLIT)},
    {"running here, post-copy there", {E(RUNNING), E(RUNNING_POSTCOPY), false, false}, V(SPLIT)},
    {"in post-copy", {E(PAUSED_POSTCOPY), E(RUNNING_POSTCOPY), true, false}, V(WAIT), A(LIBVIRT)},
    {"post-copy cut, seen at both ends",
     {E(PAUSED_POSTCOPY_FAILED), E(RUNNING_POSTCOPY_FAILED), true, false},
     V(RECOVER),
     A(AGENT)},
    {"post-copy cut, not yet seen at the target",
     {E(PAUSED_POSTCOPY_FAILED), E(RUNNING_POSTCOPY), true, false},
     V(RECOVER),
     A(AGENT)},
    {"post-copy cut, not yet seen at the source",
     {E(PAUSED_POSTCOPY), E(PAUSED_POSTCOPY_FAILED), true, false},
     V(RECOVER),
     A(AGENT)},
    {"post-copy cut and the target away",
     {E(PAUSED_POSTCOPY_FAILED), E(UNKNOWN), true, false},
     V(WAIT),
     A(TARGET)},
    {"post-copy went on by itself and ended", {E(INACTIVE), E(RUNNING), false, false}, V(SUCCEEDED)},
    {"post-copy ended, not yet noticed there",
     {E(INACTIVE), E(RUNNING_POSTCOPY_FAILED), false, true},
     V(WAIT),
     A(LIBVIRT)},
    {"guest powered off in post-copy", {E(PAUSED_POSTCOPY_FAILED), E(ABSENT), true, false}, V(GONE)},
    {"target killed in post-copy, not yet noticed here",
     {E(PAUSED_POSTCOPY), E(ABSENT), true, false},
     V(WAIT),
     A(LIBVIRT)},
    {"powered off on the way", {E(INACTIVE), E(ABSENT), .ended = true}, V(GONE)},
    {"gone from both ends, and nobody knows how", {E(INACTIVE), E(ABSENT)}, V(LEFT)},
    {"moved, then shut down", {E(INACTIVE), E(INACTIVE), .completed_event = true, .ended = true}, V(GONE)},
    {"moved, and perhaps moved on", {E(INACTIVE), E(INACTIVE), .completed_event = true}, V(LEFT)},
    {"post-copy, and perhaps moved on since",
     {E(PAUSED_POSTCOPY), E(ABSENT), .completed_event = true},
     V(LEFT)},
    {"stopped at the source, and it ran at the target, as somebody says who knows",
     {E(PAUSED_MIGRATION), E(ABSENT), .told_it_ran = true},
     V(LEFT)},
    {"somebody says that it ran there, and it runs here",
     {E(RUNNING), E(ABSENT), .told_it_ran = true},
     V(AT_SOURCE)},
    {"left stopped at the source by a restart of libvirtd, and never ran at the target",
     {E(PAUSED_MIGRATION), E(ABSENT), false, false, true},
     V(WAIT),
     A(AGENT)},
    {"left stopped at the source, and it may have run at the target",
     {E(PAUSED_MIGRATION), E(ABSENT), false, false},
     V(WAIT),
     A(OPERATOR)},
    {"did run at the target: not to be resumed",
     {E(PAUSED_MIGRATION), E(ABSENT), false, true, true},
     V(WAIT),
     A(OPERATOR)},
    {"a paused copy here, the guest there", {E(PAUSED), E(RUNNING), false, false}, V(WAIT), A(OPERATOR)},
    {"source gone in post-copy, memory missing",
     {E(ABSENT), E(RUNNING_POSTCOPY_FAILED), false, false},
     V(WAIT),
     A(OPERATOR)},
    {"arrived, a stopped copy left behind", {E(PAUSED_MIGRATION), E(RUNNING), false, false}, V(SUCCEEDED)},
    {"libvirtd of the target does not answer", {E(RUNNING), E(UNKNOWN), false, false}, V(WAIT), A(TARGET)},
    {"libvirtd of the source does not answer", {E(UNKNOWN), E(RUNNING), false, true}, V(WAIT), A(SOURCE)},
    {"a state of another version", {(MigEndState)99, E(RUNNING), false, true}, V(WAIT), A(SOURCE)},
};

static void cell(void **state) {
  const struct Cell *row = *state;
  const MigVerdictAnswer *answer = mig_verdict_answer(&row->input);
  const char *why = NULL;

  assert_string_equal(mig_verdict_name(answer->verdict), mig_verdict_name(row->expected));
  assert_string_equal(mig_awaits_name(answer->awaits), mig_awaits_name(row->awaits));
  assert_int_equal(mig_verdict(&row->input, &why), answer->verdict);
  assert_ptr_equal(why, answer->why);
}

static bool final(MigVerdict verdict) {
  return verdict == V(SUCCEEDED) || verdict == V(AT_SOURCE) || verdict == V(GONE) || verdict == V(LEFT) ||
         verdict == V(SPLIT);
}

static bool runs(MigEndState end) {
  return end == E(RUNNING) || end == E(RUNNING_POSTCOPY) || end == E(RUNNING_POSTCOPY_FAILED);
}

static bool has_nothing(MigEndState end) {
  return end == E(ABSENT) || end == E(INACTIVE);
}

static bool in_post_copy(MigEndState end) {
  return end == E(RUNNING_POSTCOPY) || end == E(PAUSED_POSTCOPY) || end == E(RUNNING_POSTCOPY_FAILED) ||
         end == E(PAUSED_POSTCOPY_FAILED);
}

/* What must hold in every cell. `ok` false: the cell breaks the rule. */
typedef bool (*Property)(const MigVerdictInput *in, MigVerdict verdict, const char *why);

static bool answered(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return (unsigned)verdict < MIG_VERDICT_COUNT && why && *why && !strstr(why, "no rule");
}
static bool unknown_is_not_final(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return !(in->source == E(UNKNOWN) || in->target == E(UNKNOWN)) || verdict == V(WAIT);
}
static bool success_has_it_at_the_target(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return verdict != V(SUCCEEDED) || in->target == E(RUNNING) || in->target == E(PAUSED);
}
static bool success_does_not_run_at_the_source(const MigVerdictInput *in, MigVerdict verdict,
                                               const char *why) {
  return verdict != V(SUCCEEDED) || (!runs(in->source) && in->source != E(PAUSED));
}
static bool at_source_has_nothing_at_the_target(const MigVerdictInput *in, MigVerdict verdict,
                                                const char *why) {
  return verdict != V(AT_SOURCE) || has_nothing(in->target);
}
static bool at_source_has_it_there(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return verdict != V(AT_SOURCE) || runs(in->source) || in->source == E(PAUSED) ||
         in->source == E(PAUSED_MIGRATION);
}
static bool a_source_in_post_copy_never_has_it(const MigVerdictInput *in, MigVerdict verdict,
                                               const char *why) {
  return verdict != V(AT_SOURCE) ||
         (in->source != E(PAUSED_POSTCOPY) && in->source != E(PAUSED_POSTCOPY_FAILED));
}
static bool two_runs_without_a_job_are_split(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return in->job_active || !runs(in->source) || !runs(in->target) || verdict == V(SPLIT);
}
static bool split_has_two(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return verdict != V(SPLIT) || (!has_nothing(in->source) && !has_nothing(in->target) && !in->job_active);
}
static bool gone_runs_nowhere(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return verdict != V(GONE) || (!runs(in->source) && !runs(in->target) && in->source != E(PAUSED) &&
                                in->target != E(PAUSED) && !in_post_copy(in->target));
}
static bool a_job_under_way_is_final_only_where_nothing_can_come_back(const MigVerdictInput *in,
                                                                      MigVerdict verdict, const char *why) {
  return !in->job_active || !final(verdict) ||
         (verdict == V(GONE) && in->source == E(PAUSED_POSTCOPY_FAILED) && !runs(in->target));
}
static bool recovery_is_of_post_copy(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return verdict != V(RECOVER) || (in_post_copy(in->source) && in_post_copy(in->target));
}
static bool a_target_in_post_copy_is_never_given_up(const MigVerdictInput *in, MigVerdict verdict,
                                                    const char *why) {
  return !in_post_copy(in->target) || verdict == V(WAIT) || verdict == V(RECOVER) || verdict == V(SPLIT);
}
static bool completion_never_makes_it_a_failure(const MigVerdictInput *in, MigVerdict verdict,
                                                const char *why) {
  MigVerdictInput without = *in;
  without.completed_event = false;
  return !in->completed_event || verdict != V(AT_SOURCE) || mig_verdict(&without, NULL) == V(AT_SOURCE);
}

static bool a_paused_copy_that_may_be_old_is_an_operators(const MigVerdictInput *in, MigVerdict verdict,
                                                          const char *why) {
  bool paused = in->source == E(PAUSED) || in->source == E(PAUSED_MIGRATION);
  bool may_be_old = in->completed_event || !in->never_ran_there;
  return in->job_active || !paused || !has_nothing(in->target) || !may_be_old ||
         (verdict == V(WAIT) && mig_verdict_answer(in)->awaits == A(OPERATOR));
}
static bool the_agent_acts_only_on_what_never_ran_there(const MigVerdictInput *in, MigVerdict verdict,
                                                        const char *why) {
  return mig_verdict_answer(in)->awaits != A(AGENT) || verdict == V(RECOVER) ||
         (in->never_ran_there && !in->completed_event && !in->job_active && has_nothing(in->target) &&
          in->source == E(PAUSED_MIGRATION));
}
static bool a_verdict_awaits_nobody(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  MigAwaits awaits = mig_verdict_answer(in)->awaits;
  return (unsigned)awaits < MIG_AWAITS_COUNT && final(verdict) == (awaits == A(NOBODY));
}
static bool an_unknown_end_is_what_is_awaited(const MigVerdictInput *in, MigVerdict verdict,
                                              const char *why) {
  MigAwaits awaits = mig_verdict_answer(in)->awaits;
  return (in->source == E(UNKNOWN)) == (awaits == A(SOURCE)) &&
         (in->source == E(UNKNOWN) || (in->target == E(UNKNOWN)) == (awaits == A(TARGET)));
}
static bool an_operator_is_told_what_to_do(const MigVerdictInput *in, MigVerdict verdict, const char *why) {
  return mig_verdict_answer(in)->awaits != A(OPERATOR) || strstr(why, "destroy") || strstr(why, "resume it");
}

static const struct Rule {
  const char *name;
  Property holds;
} properties[] = {
    {"every cell is answered, with a reason", answered},
    {"unknown at either end is never final", unknown_is_not_final},
    {"success has the guest at the target", success_has_it_at_the_target},
    {"success does not run at the source", success_does_not_run_at_the_source},
    {"at the source means nothing at the target", at_source_has_nothing_at_the_target},
    {"at the source means it is there", at_source_has_it_there},
    {"a source in post-copy never has the guest", a_source_in_post_copy_never_has_it},
    {"running twice without a job is a split", two_runs_without_a_job_are_split},
    {"a split has a copy at both ends and no job", split_has_two},
    {"gone is alive nowhere", gone_runs_nowhere},
    {"a job under way ends only what cannot come back",
     a_job_under_way_is_final_only_where_nothing_can_come_back},
    {"only post-copy is recovered", recovery_is_of_post_copy},
    {"a target in post-copy is never given up", a_target_in_post_copy_is_never_given_up},
    {"a completed event never turns into a failure by itself", completion_never_makes_it_a_failure},
    {"a paused copy that may be out of date is an operator's affair",
     a_paused_copy_that_may_be_old_is_an_operators},
    {"the agent acts only on what never ran at the target", the_agent_acts_only_on_what_never_ran_there},
    {"a verdict awaits nobody, anything else somebody", a_verdict_awaits_nobody},
    {"an end that does not answer is what is awaited", an_unknown_end_is_what_is_awaited},
    {"an operator is told what to do", an_operator_is_told_what_to_do},
};

static void property(void **state) {
  const struct Rule *row = *state;
  for (int source = 0; source < MIG_END_STATE_COUNT; source++)
    for (int target = 0; target < MIG_END_STATE_COUNT; target++)
      for (int bits = 0; bits < 8; bits++) {
        MigVerdictInput in = {(MigEndState)source, (MigEndState)target, (bits & 1) != 0, (bits & 2) != 0,
                              (bits & 4) != 0};
        const char *why = NULL;
        MigVerdict verdict = mig_verdict(&in, &why);
        if (!row->holds(&in, verdict, why))
          fail_msg("source %s, target %s, job %d, completed %d, never ran there %d: %s, %s",
                   mig_end_state_name(in.source), mig_end_state_name(in.target), in.job_active,
                   in.completed_event, in.never_ran_there, mig_verdict_name(verdict), why);
      }
}

static void every_state_and_verdict_has_a_name(void **state) {
  for (int i = 0; i < MIG_END_STATE_COUNT; i++)
    assert_non_null(mig_end_state_name((MigEndState)i));
  for (int i = 0; i < MIG_VERDICT_COUNT; i++)
    assert_non_null(mig_verdict_name((MigVerdict)i));
  for (int i = 0; i < MIG_AWAITS_COUNT; i++)
    assert_non_null(mig_awaits_name((MigAwaits)i));
  assert_null(mig_awaits_name(MIG_AWAITS_COUNT));
  assert_null(mig_end_state_name(MIG_END_STATE_COUNT));
  assert_null(mig_verdict_name(MIG_VERDICT_COUNT));
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, cell, known);
  TESTS_ADD_ROWS(&tests, property, properties);
  tests_add(&tests, "every state and verdict has a name", every_state_and_verdict_has_a_name, NULL);
  return tests_run(&tests, "verdict");
}

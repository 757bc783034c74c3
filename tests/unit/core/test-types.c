/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of enums, and the ways from phase to phase. */
#include "libmigrate/core/types.h"

#include "tests/unit/core/rows.h"

static const struct Names {
  const char *name;
  int count;
  const char *(*to_name)(int);
  int (*from_name)(const char *);
} names[] = {
    {"every phase has a name of its own", MIG_PHASE_COUNT, (const char *(*)(int))mig_phase_name,
     mig_phase_from_name},
    {"every stage has a name of its own", MIG_STAGE_COUNT, (const char *(*)(int))mig_stage_name,
     mig_stage_from_name},
    {"every direction has a name of its own", MIG_DIRECTION_COUNT, (const char *(*)(int))mig_direction_name,
     mig_direction_from_name},
    {"every cause has a name of its own", MIG_CAUSE_COUNT, (const char *(*)(int))mig_cause_name,
     mig_cause_from_name},
};

static void names_go_there_and_back(void **state) {
  const struct Names *row = *state;
  for (int i = 0; i < row->count; i++) {
    const char *name = row->to_name(i);
    assert_non_null(name);
    assert_true(strlen(name) > 0);
    assert_int_equal(row->from_name(name), i);
  }
  assert_null(row->to_name(row->count));
  assert_null(row->to_name(-1));
  assert_int_equal(row->from_name("no such thing"), MIG_ENUM_UNKNOWN);
  assert_int_equal(row->from_name(""), MIG_ENUM_UNKNOWN);
  assert_int_equal(row->from_name(NULL), MIG_ENUM_UNKNOWN);
}

static void every_cause_is_described_in_a_sentence(void **state) {
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++) {
    const char *text = mig_cause_describe((MigCause)cause);
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '.');
  }
  assert_non_null(mig_cause_describe((MigCause)4711));
}

static void what_happened_while_it_moved_is_no_refusal(void **state) {
  static const MigCause moving[] = {MIG_CAUSE_NONE,           MIG_CAUSE_USER_ABORT, MIG_CAUSE_DEADLINE,
                                    MIG_CAUSE_NO_PROGRESS,    MIG_CAUSE_LINK_LOST,  MIG_CAUSE_LINK_STALLED,
                                    MIG_CAUSE_NOT_CONVERGING, MIG_CAUSE_INTERNAL};
  static const MigCause refused[] = {MIG_CAUSE_SAME_HOST, MIG_CAUSE_REFUSED, MIG_CAUSE_POLICY_CONFLICT,
                                     MIG_CAUSE_DOMAIN_NOT_RUNNING, MIG_CAUSE_TARGET_UNREACHABLE};
  for (size_t i = 0; i < LENGTH(moving); i++)
    assert_false(mig_cause_is_refusal(moving[i]));
  for (size_t i = 0; i < LENGTH(refused); i++)
    assert_true(mig_cause_is_refusal(refused[i]));
  assert_false(mig_cause_is_refusal((MigCause)4711));
}

#define P(phase) MIG_PHASE_##phase
static const struct Way {
  const char *name;
  MigPhase from, to;
  bool legal;
} ways[] = {
    {"a pending job's turn comes", P(PENDING), P(PREPARING), true},
    {"a pending job waits too long", P(PENDING), P(FAILED), true},
    {"a pending job is aborted at once", P(PENDING), P(ABORTED), true},
    {"a pending job does not migrate unprepared", P(PENDING), P(MIGRATING), false},
    {"a pending job has nothing to recover", P(PENDING), P(RECOVERING), false},
    {"a prepared job migrates", P(PREPARING), P(MIGRATING), true},
    {"a full target sends a job back into the queue", P(PREPARING), P(PENDING), true},
    {"a restart finds a migration that preparing did not know of", P(PREPARING), P(RECOVERING), true},
    {"what never migrated cannot succeed", P(PREPARING), P(SUCCEEDED), false},
    {"a migration succeeds", P(MIGRATING), P(SUCCEEDED), true},
    {"a migration is lost from sight", P(MIGRATING), P(RECOVERING), true},
    {"a second try is a new job", P(MIGRATING), P(PENDING), false},
    {"a migration is found again", P(RECOVERING), P(MIGRATING), true},
    {"it is found that it never began", P(RECOVERING), P(PREPARING), true},
    {"a recovered one succeeds", P(RECOVERING), P(SUCCEEDED), true},
    {"success is final", P(SUCCEEDED), P(FAILED), false},
    {"failure is final", P(FAILED), P(MIGRATING), false},
    {"an abort is final", P(ABORTED), P(SUCCEEDED), false},
    {"a phase from nowhere leads nowhere", (MigPhase)77, P(FAILED), false},
    {"a phase to nowhere cannot be", P(PENDING), (MigPhase)77, false},
};

static void way(void **state) {
  const struct Way *row = *state;
  assert_int_equal(mig_phase_may_follow(row->from, row->to), row->legal);
}

static void every_job_can_end_and_ends_once(void **state) {
  for (int from = 0; from < MIG_PHASE_COUNT; from++) {
    bool leaves = false;
    for (int to = 0; to < MIG_PHASE_COUNT; to++) {
      bool legal = mig_phase_may_follow((MigPhase)from, (MigPhase)to);
      leaves |= legal;
      assert_false(legal && from == to);
    }
    assert_int_equal(leaves, !mig_phase_is_final((MigPhase)from));
    if (leaves) {
      assert_true(mig_phase_may_follow((MigPhase)from, MIG_PHASE_FAILED));
      assert_true(mig_phase_may_follow((MigPhase)from, MIG_PHASE_ABORTED));
    }
  }
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, names_go_there_and_back, names);
  tests_add(&tests, "every cause is described in a sentence", every_cause_is_described_in_a_sentence, NULL);
  tests_add(&tests, "what happened while it moved is no refusal", what_happened_while_it_moved_is_no_refusal,
            NULL);
  TESTS_ADD_ROWS(&tests, way, ways);
  tests_add(&tests, "every job can end, and ends once", every_job_can_end_and_ends_once, NULL);
  return tests_run(&tests, "types");
}

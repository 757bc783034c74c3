/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a job's end means as an exit status. */
#include "agent/ctl/exitcode.h"
#include "tests/unit/core/rows.h"

#include <string.h>

static const struct End {
  const char *name;
  MigPhase phase;
  MigCause cause;
  int status;
} ends[] = {
    {"succeeded", MIG_PHASE_SUCCEEDED, MIG_CAUSE_NONE, 0},
    {"succeeded after an abort that came too late", MIG_PHASE_SUCCEEDED, MIG_CAUSE_USER_ABORT, 0},
    {"aborted by a user", MIG_PHASE_ABORTED, MIG_CAUSE_USER_ABORT, 11},
    {"aborted at the deadline", MIG_PHASE_ABORTED, MIG_CAUSE_DEADLINE, 12},
    {"aborted without progress", MIG_PHASE_ABORTED, MIG_CAUSE_NO_PROGRESS, 11},
    {"aborted for the host goes down", MIG_PHASE_ABORTED, MIG_CAUSE_HOST_SHUTDOWN, 11},
    {"aborted for a stalled link", MIG_PHASE_ABORTED, MIG_CAUSE_LINK_STALLED, 11},
    {"aborted because it cannot converge", MIG_PHASE_ABORTED, MIG_CAUSE_NOT_CONVERGING, 11},
    {"waited too long", MIG_PHASE_FAILED, MIG_CAUSE_PENDING_TIMEOUT, 12},
    {"took too long to prepare", MIG_PHASE_FAILED, MIG_CAUSE_PREPARE_TIMEOUT, 12},
    {"refused", MIG_PHASE_FAILED, MIG_CAUSE_REFUSED, 4},
    {"to the same host", MIG_PHASE_FAILED, MIG_CAUSE_SAME_HOST, 4},
    {"link lost", MIG_PHASE_FAILED, MIG_CAUSE_LINK_LOST, 10},
    {"libvirt's error", MIG_PHASE_FAILED, MIG_CAUSE_LIBVIRT_ERROR, 10},
    {"post-copy failed", MIG_PHASE_FAILED, MIG_CAUSE_POST_COPY_FAILED, 10},
    {"a cause of a newer agent", MIG_PHASE_FAILED, MIG_CAUSE_COUNT, 10},
    {"not ended", MIG_PHASE_MIGRATING, MIG_CAUSE_NONE, 1},
};

static void end_has_its_status(void **state) {
  const struct End *row = *state;

  assert_int_equal(exit_status_of_job(row->phase, row->cause), row->status);
}

/* A wait that was too long may count as a refusal in core; to a script it is a time out first. */
static void each_refusal_is_refused_or_timed_out(void **state) {
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++) {
    ExitStatus status = exit_status_of_job(MIG_PHASE_FAILED, (MigCause)cause);

    if (mig_cause_is_refusal((MigCause)cause))
      assert_true(status == EXIT_REFUSED || status == EXIT_TIMED_OUT);
  }
}

static void each_cause_has_a_next_step(void **state) {
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++) {
    const char *text = cause_next_step((MigCause)cause);

    assert_non_null(text);
    assert_true(strlen(text) > 10 && text[strlen(text) - 1] == '.');
  }
  assert_non_null(cause_next_step(MIG_CAUSE_COUNT));
}

static void statuses_rise_and_have_a_text(void **state) {
  const ExitStatusInfo *row = exit_status_table();
  int last = -1;

  for (; row->summary; row++) {
    assert_true((int)row->status > last);
    last = (int)row->status;
  }
  assert_int_equal(last, EXIT_DETACHED);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, end_has_its_status, ends);
  tests_add(&tests, "each refusal is refused or timed out", each_refusal_is_refused_or_timed_out, NULL);
  tests_add(&tests, "each cause has a next step", each_cause_has_a_next_step, NULL);
  tests_add(&tests, "statuses rise and have a text", statuses_rise_and_have_a_text, NULL);
  return tests_run(&tests, "ctl-exitcode");
}

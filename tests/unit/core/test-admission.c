/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose turn it is. */
#include "libmigrate/core/admission.h"

#include "tests/unit/core/rows.h"

static const struct Admit {
  const char *name;
  unsigned running, limit;
  MigAdmission expected;
} admits[] = {
    {"an idle node starts one", 0, 1, MIG_ADMISSION_START},
    {"a limit of two takes a second", 1, 2, MIG_ADMISSION_START},
    {"a limit of two does not take a third", 2, 2, MIG_ADMISSION_OUTGOING_LIMIT},
    {"a limit lowered below what runs starts nothing", 5, 2, MIG_ADMISSION_OUTGOING_LIMIT},
    {"a limit of none is one, not a queue that never moves", 0, 0, MIG_ADMISSION_START},
    {"a limit of none is not more than one", 1, 0, MIG_ADMISSION_OUTGOING_LIMIT},
};

static void admit(void **state) {
  const struct Admit *row = *state;
  assert_int_equal(mig_admit(row->running, row->limit), row->expected);
}

static const struct Order {
  const char *name;
  MigCandidate a, b;
  int expected;
} orders[] = {
    {"the older of equals comes first", {MIG_PRIORITY_USER, 1}, {MIG_PRIORITY_USER, 2}, -1},
    {"priority comes before age", {MIG_PRIORITY_DEFAULT, 1}, {MIG_PRIORITY_CRITICAL, 2}, 1},
    {"running comes before critical", {MIG_PRIORITY_RUNNING, 9}, {MIG_PRIORITY_CRITICAL, 1}, -1},
    {"maintenance comes before default", {MIG_PRIORITY_MAINTENANCE, 9}, {MIG_PRIORITY_DEFAULT, 1}, -1},
    {"one is equal to itself", {MIG_PRIORITY_USER, 7}, {MIG_PRIORITY_USER, 7}, 0},
    {"ages far apart do not wrap", {MIG_PRIORITY_USER, 0}, {MIG_PRIORITY_USER, UINT64_MAX}, -1},
};

static void order(void **state) {
  const struct Order *row = *state;
  assert_int_equal(mig_candidate_compare(&row->a, &row->b), row->expected);
  assert_int_equal(mig_candidate_compare(&row->b, &row->a), -row->expected);
}

static void answers_have_names(void **state) {
  for (int i = 0; i < MIG_ADMISSION_COUNT; i++)
    assert_non_null(mig_admission_name((MigAdmission)i));
  assert_null(mig_admission_name(MIG_ADMISSION_COUNT));
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, admit, admits);
  TESTS_ADD_ROWS(&tests, order, orders);
  tests_add(&tests, "answers have names", answers_have_names, NULL);
  return tests_run(&tests, "admission");
}

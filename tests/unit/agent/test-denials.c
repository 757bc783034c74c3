/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many refusals the journal is told of. */
#include "agent/request/denials.h"

#include "tests/unit/core/rows.h"

static unsigned count_told(Denials *denials, uid_t uid, uint64_t now_ms, unsigned calls,
                           unsigned *ret_untold) {
  unsigned told = 0;

  *ret_untold = 0;
  for (unsigned i = 0; i < calls; i++) {
    unsigned untold;

    told += denials_note(denials, uid, now_ms, &untold);
    *ret_untold += untold;
  }
  return told;
}

static void one_user_is_told_of_some_times(void **state) {
  Denials *denials = denials_new();
  unsigned untold;

  assert_int_equal(count_told(denials, 1000, 100000, 100000, &untold), DENIALS_OF_UID);
  assert_int_equal(untold, 0);
  assert_int_equal(count_told(denials, 1001, 100000, 3, &untold), 3); /* it hides nobody else */
  assert_int_equal(count_told(denials, 1000, 100000 + DENIALS_PERIOD_MS, 1, &untold), 1);
  assert_int_equal(untold, 100000 - DENIALS_OF_UID);
  denials_free(denials);
}

static void many_users_are_bounded_too(void **state) {
  Denials *denials = denials_new();
  unsigned told = 0, untold;

  for (uid_t uid = 0; uid < 100000; uid++)
    told += count_told(denials, uid, 100000, 1, &untold);
  assert_int_equal(told, DENIALS_USERS);
  assert_int_equal(count_told(denials, 7, 100000 + DENIALS_PERIOD_MS, 1, &untold), 1);
  assert_int_equal(untold, 100000 - DENIALS_USERS);
  denials_free(denials);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "one user is told of some times, and then how often not", one_user_is_told_of_some_times,
            NULL);
  tests_add(&tests, "many users are bounded too", many_users_are_bounded_too, NULL);
  return tests_run(&tests, "denials");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain states and lifecycle events as end states. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

#include <string.h>

static void every_row_of_the_state_table_is_reached(void **state) {
  size_t n;
  const MigStateRow *rows = mig_state_rows(&n);

  for (size_t i = 0; i < n; i++)
    assert_int_equal(mig_state_from_libvirt(rows[i].state, rows[i].reason == MIG_ANY ? 99 : rows[i].reason),
                     rows[i].end);
}

static void every_state_of_libvirt_has_a_row_for_any_reason(void **state) {
  for (int each = VIR_DOMAIN_RUNNING; each <= VIR_DOMAIN_PMSUSPENDED; each++)
    for (int reason = 0; reason < 30; reason++)
      assert_int_not_equal(mig_state_from_libvirt(each, reason), MIG_END_UNKNOWN);
}

static void a_state_that_nobody_knows_is_unknown_and_not_stopped(void **state) {
  assert_int_equal(mig_state_from_libvirt(VIR_DOMAIN_NOSTATE, 0), MIG_END_UNKNOWN);
  assert_int_equal(mig_state_from_libvirt(77, 0), MIG_END_UNKNOWN);
}

static void what_a_migration_passes_through_is_told_apart(void **state) {
  static const struct {
    int state, reason;
    MigEndState end;
  } rows[] = {
      {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_MIGRATED, MIG_END_RUNNING},
      {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_MIGRATION_CANCELED, MIG_END_RUNNING},
      {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, MIG_END_PAUSED},
      {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_IOERROR, MIG_END_PAUSED},
      {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, MIG_END_PAUSED_MIGRATION},
      {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, MIG_END_PAUSED_POSTCOPY},
      {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, MIG_END_PAUSED_POSTCOPY_FAILED},
      {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, MIG_END_RUNNING_POSTCOPY},
      {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY_FAILED, MIG_END_RUNNING_POSTCOPY_FAILED},
      {VIR_DOMAIN_SHUTDOWN, VIR_DOMAIN_SHUTDOWN_USER, MIG_END_RUNNING},
      {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_MIGRATED, MIG_END_INACTIVE},
      {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED, MIG_END_INACTIVE},
      {VIR_DOMAIN_CRASHED, VIR_DOMAIN_CRASHED_PANICKED, MIG_END_CRASHED},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    assert_int_equal(mig_state_from_libvirt(rows[i].state, rows[i].reason), rows[i].end);
}

static void every_row_of_the_event_table_is_reached_and_fits_an_event(void **state) {
  size_t n;
  const MigLifecycleRow *rows = mig_lifecycle_rows(&n);

  for (size_t i = 0; i < n; i++) {
    assert_ptr_equal(mig_lifecycle_find(rows[i].event, rows[i].detail == MIG_ANY ? 99 : rows[i].detail),
                     &rows[i]);
    assert_true(strlen(rows[i].name) < sizeof(((MigVirtEvent *)NULL)->detail));
  }
}

static void a_definition_that_changes_is_no_change_of_state(void **state) {
  assert_null(mig_lifecycle_find(VIR_DOMAIN_EVENT_DEFINED, VIR_DOMAIN_EVENT_DEFINED_ADDED));
  assert_null(mig_lifecycle_find(VIR_DOMAIN_EVENT_UNDEFINED, VIR_DOMAIN_EVENT_UNDEFINED_RENAMED));
  assert_null(mig_lifecycle_find(99, 0));
}

static void a_target_that_starts_to_listen_has_no_guest_yet(void **state) {
  assert_int_equal(mig_lifecycle_find(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED)->end,
                   MIG_END_PAUSED_MIGRATION);
  assert_int_equal(mig_lifecycle_find(VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED)->end,
                   MIG_END_RUNNING);
}

/* QEMU announces its end whatever it holds: a copy that a migration stopped as well. */
static void only_a_guest_that_shuts_down_itself_is_known_to_run(void **state) {
  assert_int_equal(mig_lifecycle_find(VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_GUEST)->end,
                   MIG_END_RUNNING);
  assert_int_equal(mig_lifecycle_find(VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_HOST)->end,
                   MIG_END_UNKNOWN);
  assert_int_equal(mig_lifecycle_find(VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_FINISHED)->end,
                   MIG_END_UNKNOWN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_of_the_state_table_is_reached),
      cmocka_unit_test(every_state_of_libvirt_has_a_row_for_any_reason),
      cmocka_unit_test(a_state_that_nobody_knows_is_unknown_and_not_stopped),
      cmocka_unit_test(what_a_migration_passes_through_is_told_apart),
      cmocka_unit_test(every_row_of_the_event_table_is_reached_and_fits_an_event),
      cmocka_unit_test(a_definition_that_changes_is_no_change_of_state),
      cmocka_unit_test(a_target_that_starts_to_listen_has_no_guest_yet),
      cmocka_unit_test(only_a_guest_that_shuts_down_itself_is_known_to_run),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}

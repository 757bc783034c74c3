/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Policy to VIR_MIGRATE_* flags. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

static char *no_disks[] = {NULL};
static char *one_disk[] = {(char *)"vda", NULL};
static const MigStart persistent = {.persistent = true, .local_disks = one_disk};

static MigPolicy goals; /* of the request that nothing() made last */

/* A request in which every key is 0: nothing is asked for. */
static MigMigrateRequest nothing(void) {
  goals = (MigPolicy){0};
  return (MigMigrateRequest){.target_uri = "qemu+tcp://b/system", .policy = &goals};
}

static void every_policy_key_says_how_it_takes_effect(void **state) {
  size_t n_flags, n_params;
  const MigFlagRow *flags = mig_flag_rows(&n_flags);
  const MigParamRow *params = mig_param_rows(&n_params);

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigMapping *mapping = mig_mapping((MigPolicyKey)key);
    bool has_flag = false, has_param = key == MIG_POLICY_COPY_DISKS; /* migrate_disks, by name */

    assert_int_equal(mapping->key, key);
    assert_int_not_equal(mapping->means, 0);
    assert_non_null(mapping->note);
    for (size_t i = 0; i < n_flags; i++)
      has_flag = has_flag || flags[i].key == (MigPolicyKey)key;
    for (size_t i = 0; i < n_params; i++)
      has_param = has_param || params[i].key == (MigPolicyKey)key;
    assert_int_equal(has_flag, (mapping->means & MIG_MEANS_FLAG) != 0);
    assert_int_equal(has_param, (mapping->means & MIG_MEANS_PARAM) != 0);
  }
}

static void each_row_adds_its_own_flags_and_no_others(void **state) {
  size_t n;
  const MigFlagRow *rows = mig_flag_rows(&n);

  for (size_t i = 0; i < n; i++) {
    MigMigrateRequest request = nothing();

    goals.values[rows[i].key] = rows[i].value == MIG_NONZERO ? 1 : rows[i].value;
    assert_int_equal(mig_flags(&request, &persistent), mig_flags_always() | rows[i].flags);
  }
}

static void every_value_of_every_enum_key_with_flags_is_mapped_or_zero(void **state) {
  size_t n;
  const MigFlagRow *rows = mig_flag_rows(&n);

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);

    if (info->type != MIG_POLICY_TYPE_ENUM || !(mig_mapping((MigPolicyKey)key)->means & MIG_MEANS_FLAG))
      continue;
    for (uint64_t value = 1; info->enum_names[value]; value++) {
      bool found = false;

      for (size_t i = 0; i < n; i++)
        found = found || (rows[i].key == (MigPolicyKey)key &&
                          (rows[i].value == value || rows[i].value == MIG_NONZERO));
      assert_true(found);
    }
  }
}

static void without_wishes_it_is_live_peer_to_peer_and_stays_on_a_disk_error(void **state) {
  MigMigrateRequest request = nothing();

  assert_int_equal(mig_flags(&request, &persistent),
                   VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_ABORT_ON_ERROR);
}

static void nothing_ever_asks_for_unsafe_paused_or_offline(void **state) {
  MigMigrateRequest request = nothing();

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++)
    goals.values[key] = 1;
  assert_int_equal(mig_flags(&request, &persistent) & (VIR_MIGRATE_UNSAFE | VIR_MIGRATE_PAUSED |
                                                       VIR_MIGRATE_OFFLINE | VIR_MIGRATE_RDMA_PIN_ALL),
                   0);
}

static void the_default_policy_moves_the_definition_of_a_persistent_domain(void **state) {
  MigMigrateRequest request = nothing();

  mig_policy_init(&goals);
  assert_int_equal(mig_flags(&request, &persistent) &
                       (VIR_MIGRATE_PERSIST_DEST | VIR_MIGRATE_UNDEFINE_SOURCE),
                   VIR_MIGRATE_PERSIST_DEST | VIR_MIGRATE_UNDEFINE_SOURCE);
}

static void a_transient_domain_stays_transient(void **state) {
  MigMigrateRequest request = nothing();
  MigStart transient = {.persistent = false, .local_disks = no_disks};

  goals.values[MIG_POLICY_PERSIST_TARGET] = 1;
  goals.values[MIG_POLICY_UNDEFINE_SOURCE] = 1;
  assert_int_equal(mig_flags(&request, &transient), mig_flags_always());
}

static void without_local_disks_none_are_copied_whatever_the_policy_says(void **state) {
  MigMigrateRequest request = nothing();
  MigStart start = {.persistent = true, .local_disks = no_disks};

  goals.values[MIG_POLICY_COPY_DISKS] = MIG_COPY_DISKS_ALL;
  assert_int_equal(mig_flags(&request, &start), mig_flags_always());
  start.local_disks = NULL;
  assert_int_equal(mig_flags(&request, &start), mig_flags_always());
}

static void resuming_post_copy_repeats_the_flags_of_the_start(void **state) {
  MigMigrateRequest request = nothing();

  mig_policy_init(&goals);
  request.resume_post_copy = true;
  assert_int_equal(mig_flags(&request, &persistent),
                   mig_flags_always() | VIR_MIGRATE_POSTCOPY | VIR_MIGRATE_POSTCOPY_RESUME |
                       VIR_MIGRATE_PERSIST_DEST | VIR_MIGRATE_UNDEFINE_SOURCE |
                       (mig_policy_get(&goals, MIG_POLICY_TLS) ? VIR_MIGRATE_TLS : 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_policy_key_says_how_it_takes_effect),
      cmocka_unit_test(each_row_adds_its_own_flags_and_no_others),
      cmocka_unit_test(every_value_of_every_enum_key_with_flags_is_mapped_or_zero),
      cmocka_unit_test(without_wishes_it_is_live_peer_to_peer_and_stays_on_a_disk_error),
      cmocka_unit_test(nothing_ever_asks_for_unsafe_paused_or_offline),
      cmocka_unit_test(the_default_policy_moves_the_definition_of_a_persistent_domain),
      cmocka_unit_test(a_transient_domain_stays_transient),
      cmocka_unit_test(without_local_disks_none_are_copied_whatever_the_policy_says),
      cmocka_unit_test(resuming_post_copy_repeats_the_flags_of_the_start),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}

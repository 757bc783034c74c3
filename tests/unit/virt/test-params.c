/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Policy to typed parameters, with their units. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

#include <string.h>

#define NO_LIMIT 8796093022207ULL

static char *disks[] = {(char *)"vda", (char *)"vdc", NULL};
static const MigStart start = {.persistent = true, .local_disks = disks};

static MigTypedParams make(const MigMigrateRequest *request) {
  MigTypedParams params = {0};

  assert_true(mig_params(request, &start, mig_flags(request, &start), &params, NULL));
  return params;
}

static unsigned long long ullong(const MigTypedParams *params, const char *name) {
  unsigned long long value = 0;

  assert_int_equal(virTypedParamsGetULLong(params->params, params->n, name, &value), 1);
  return value;
}

static void a_rate_becomes_mib_per_s_rounded_up(void **state) {
  static const struct {
    uint64_t bytes;
    unsigned long long mib;
  } rows[] = {
      {1, 1},
      {MIG_MIB_BYTES - 1, 1},
      {MIG_MIB_BYTES, 1},
      {MIG_MIB_BYTES + 1, 2},
      {100 * MIG_MIB_BYTES, 100},
      {UINT64_MAX, NO_LIMIT},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    assert_int_equal(mig_param_mib_per_s(rows[i].bytes), rows[i].mib);
}

static void no_limit_is_said_so_that_an_older_limit_of_the_domain_does_not_hold(void **state) {
  MigPolicy goals = {0};
  MigMigrateRequest request = {.target_uri = "x", .policy = &goals};
  g_auto(MigTypedParams) params = make(&request);

  assert_int_equal(mig_param_mib_per_s(0), NO_LIMIT);
  assert_int_equal(ullong(&params, VIR_MIGRATE_PARAM_BANDWIDTH), NO_LIMIT);
  assert_int_equal(params.n, 1);
}

/* A row's parameter must be there, in the type that libvirt wants, when its key and flags are. */
static void every_row_of_the_table_makes_its_parameter(void **state) {
  size_t n;
  const MigParamRow *rows = mig_param_rows(&n);

  for (size_t i = 0; i < n; i++) {
    MigPolicy goals = {0};
    MigMigrateRequest request = {.target_uri = "x", .policy = &goals};
    virTypedParameterPtr param;
    MigTypedParams params = {0};

    goals.values[rows[i].key] = 2;
    assert_true(mig_params(&request, &start, rows[i].needs_flags, &params, NULL));
    param = virTypedParamsGet(params.params, params.n, rows[i].param);
    assert_non_null(param);
    switch (rows[i].unit) {
    case MIG_PARAM_INT:
      assert_int_equal(param->type, VIR_TYPED_PARAM_INT);
      assert_int_equal(param->value.i, 2);
      break;
    case MIG_PARAM_MIB_PER_S:
      assert_int_equal(param->type, VIR_TYPED_PARAM_ULLONG);
      assert_int_equal(param->value.ul, 1);
      break;
    case MIG_PARAM_NAME:
      assert_int_equal(param->type, VIR_TYPED_PARAM_STRING);
      assert_string_equal(param->value.s, mig_policy_key_info(rows[i].key)->enum_names[2]);
      break;
    }
    mig_typed_params_clear(&params);

    /* And not without the flags that it needs. */
    if (rows[i].needs_flags) {
      assert_true(mig_params(&request, &start, 0, &params, NULL));
      assert_null(virTypedParamsGet(params.params, params.n, rows[i].param));
      mig_typed_params_clear(&params);
    }
  }
}

static void compression_methods_have_libvirts_names(void **state) {
  static const char *const names[] = {
      [MIG_COMPRESSION_XBZRLE] = "xbzrle", [MIG_COMPRESSION_ZLIB] = "zlib", [MIG_COMPRESSION_ZSTD] = "zstd"};

  for (uint64_t method = 1; method < MIG_COMPRESSION_COUNT; method++) {
    MigPolicy goals = {0};
    MigMigrateRequest request = {.target_uri = "x", .policy = &goals};
    const char *name = NULL;

    goals.values[MIG_POLICY_COMPRESSION] = method;
    {
      g_auto(MigTypedParams) params = make(&request);

      assert_int_equal(virTypedParamsGetString(params.params, params.n, VIR_MIGRATE_PARAM_COMPRESSION, &name),
                       1);
      assert_string_equal(name, names[method]);
    }
  }
}

static void the_first_throttle_step_stays_below_what_is_allowed(void **state) {
  static const struct {
    uint64_t max_throttle;
    unsigned initial, increment;
    int want_initial, want_increment;
  } rows[] = {
      {80, 0, 0, 20, 0}, {15, 0, 0, 15, 0}, {0, 0, 0, 1, 0}, {80, 45, 5, 45, 5}, {80, 200, 0, 99, 0},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    MigPolicy goals = {0};
    MigMigrateRequest request = {.target_uri = "x",
                                 .policy = &goals,
                                 .throttle_initial_pct = rows[i].initial,
                                 .throttle_increment_pct = rows[i].increment};
    int initial = 0, increment = 0;

    goals.values[MIG_POLICY_ALLOW_AUTO_CONVERGE] = 1;
    goals.values[MIG_POLICY_MAX_THROTTLE_PCT] = rows[i].max_throttle;
    {
      g_auto(MigTypedParams) params = make(&request);

      assert_int_equal(
          virTypedParamsGetInt(params.params, params.n, VIR_MIGRATE_PARAM_AUTO_CONVERGE_INITIAL, &initial),
          1);
      virTypedParamsGetInt(params.params, params.n, VIR_MIGRATE_PARAM_AUTO_CONVERGE_INCREMENT, &increment);
    }
    assert_int_equal(initial, rows[i].want_initial);
    assert_int_equal(increment, rows[i].want_increment);
  }
}

static void disks_to_copy_are_named_one_by_one(void **state) {
  MigPolicy goals = {0};
  MigMigrateRequest request = {.target_uri = "x", .policy = &goals};
  int seen = 0;

  goals.values[MIG_POLICY_COPY_DISKS] = MIG_COPY_DISKS_INCREMENTAL;
  {
    g_auto(MigTypedParams) params = make(&request);

    for (int i = 0; i < params.n; i++)
      if (strcmp(params.params[i].field, VIR_MIGRATE_PARAM_MIGRATE_DISKS) == 0)
        assert_string_equal(params.params[i].value.s, disks[seen++]);
  }
  assert_int_equal(seen, 2);
}

static void a_migrate_uri_is_passed_on_but_not_into_a_tunnel(void **state) {
  MigPolicy goals = {0};
  MigMigrateRequest request = {.target_uri = "x", .policy = &goals, .migrate_uri = "tcp://10.0.0.2"};
  g_autoptr(GError) error = NULL;
  MigTypedParams refused = {0};
  const char *uri = NULL;

  {
    g_auto(MigTypedParams) params = make(&request);

    assert_int_equal(virTypedParamsGetString(params.params, params.n, VIR_MIGRATE_PARAM_URI, &uri), 1);
    assert_string_equal(uri, "tcp://10.0.0.2");
  }
  goals.values[MIG_POLICY_TUNNELLED] = 1;
  assert_false(mig_params(&request, &start, mig_flags(&request, &start), &refused, &error));
  assert_int_equal(error->code, MIG_VIRT_ERROR_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_rate_becomes_mib_per_s_rounded_up),
      cmocka_unit_test(no_limit_is_said_so_that_an_older_limit_of_the_domain_does_not_hold),
      cmocka_unit_test(every_row_of_the_table_makes_its_parameter),
      cmocka_unit_test(compression_methods_have_libvirts_names),
      cmocka_unit_test(the_first_throttle_step_stays_below_what_is_allowed),
      cmocka_unit_test(disks_to_copy_are_named_one_by_one),
      cmocka_unit_test(a_migrate_uri_is_passed_on_but_not_into_a_tunnel),
  };

  /* Before any other call of libvirt: its errors are kept by thread. */
  if (virInitialize() < 0)
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}

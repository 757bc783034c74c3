/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Job statistics as samples. */
#include "libmigrate/virt/libvirt.h"
#include "tests/unit/virt/cmocka-all.h"

static void add(MigTypedParams *params, const char *name, unsigned long long value) {
  assert_int_equal(virTypedParamsAddULLong(&params->params, &params->n, &params->allocated, name, value), 0);
}

static void add_int(MigTypedParams *params, const char *name, int value) {
  assert_int_equal(virTypedParamsAddInt(&params->params, &params->n, &params->allocated, name, value), 0);
}

/* As libvirt 9.0 sends them, each with a value of its own. */
static MigTypedParams full(void) {
  MigTypedParams params = {0};

  add_int(&params, VIR_DOMAIN_JOB_OPERATION, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT);
  add(&params, VIR_DOMAIN_JOB_TIME_ELAPSED, 5695);
  add(&params, VIR_DOMAIN_JOB_DOWNTIME, 344);
  add(&params, VIR_DOMAIN_JOB_DOWNTIME_NET, 342);
  add(&params, VIR_DOMAIN_JOB_DATA_PROCESSED, 385754305);
  add(&params, VIR_DOMAIN_JOB_MEMORY_TOTAL, 268967936);
  add(&params, VIR_DOMAIN_JOB_MEMORY_PROCESSED, 260328239);
  add(&params, VIR_DOMAIN_JOB_MEMORY_REMAINING, 75182080);
  add(&params, VIR_DOMAIN_JOB_MEMORY_CONSTANT, 7001);
  add(&params, VIR_DOMAIN_JOB_MEMORY_NORMAL, 63001);
  add(&params, VIR_DOMAIN_JOB_MEMORY_NORMAL_BYTES, 258052096);
  add(&params, VIR_DOMAIN_JOB_MEMORY_BPS, 47399675);
  add(&params, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE, 3107);
  add(&params, VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE, 4096);
  add(&params, VIR_DOMAIN_JOB_MEMORY_ITERATION, 2);
  add(&params, VIR_DOMAIN_JOB_MEMORY_POSTCOPY_REQS, 549);
  add(&params, VIR_DOMAIN_JOB_DISK_TOTAL, 11);
  add(&params, VIR_DOMAIN_JOB_DISK_PROCESSED, 12);
  add(&params, VIR_DOMAIN_JOB_DISK_REMAINING, 13);
  add(&params, VIR_DOMAIN_JOB_DISK_BPS, 14);
  add_int(&params, VIR_DOMAIN_JOB_AUTO_CONVERGE_THROTTLE, 30);
  return params;
}

static void every_field_goes_where_it_belongs(void **state) {
  g_auto(MigTypedParams) params = full();
  MigSample sample = {0};

  mig_stats_sample(params.params, params.n, &sample);
  assert_int_equal(sample.elapsed_ms, 5695);
  assert_int_equal(sample.memory_total_bytes, 268967936);
  assert_int_equal(sample.memory_processed_bytes, 260328239);
  assert_int_equal(sample.memory_remaining_bytes, 75182080);
  assert_int_equal(sample.memory_zero_bytes, 7001 * 4096);
  assert_int_equal(sample.memory_normal_bytes, 258052096);
  assert_int_equal(sample.memory_bps_bytes_per_s, 47399675);
  assert_int_equal(sample.disk_total_bytes, 11);
  assert_int_equal(sample.disk_processed_bytes, 12);
  assert_int_equal(sample.disk_remaining_bytes, 13);
  assert_int_equal(sample.disk_bps_bytes_per_s, 14);
  assert_int_equal(sample.page_size_bytes, 4096);
  assert_int_equal(sample.iteration, 2);
  assert_int_equal(sample.throttle_pct, 30);
  assert_int_equal(sample.expected_downtime_ms, 344);
  assert_int_equal(sample.post_copy_requests, 549);
}

static void the_dirty_rate_is_pages_times_page_size(void **state) {
  g_auto(MigTypedParams) params = full();
  g_auto(MigTypedParams) huge = {0};
  MigSample sample = {0};

  mig_stats_sample(params.params, params.n, &sample);
  assert_int_equal(sample.dirty_rate_bytes_per_s, 3107 * 4096);

  add(&huge, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE, UINT64_MAX);
  add(&huge, VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE, 4096);
  sample = (MigSample){0};
  mig_stats_sample(huge.params, huge.n, &sample);
  assert_int_equal(sample.dirty_rate_bytes_per_s, UINT64_MAX);
}

static void what_is_missing_stays_zero(void **state) {
  g_auto(MigTypedParams) params = {0};
  MigSample sample = {0}, zero = {0};

  mig_stats_sample(params.params, params.n, &sample);
  assert_memory_equal(&sample, &zero, sizeof zero);

  /* A dirty rate in pages of unknown size is no rate. */
  add(&params, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE, 100);
  mig_stats_sample(params.params, params.n, &sample);
  assert_int_equal(sample.dirty_rate_bytes_per_s, 0);
}

static void numbers_of_any_type_are_taken_and_negative_ones_are_none(void **state) {
  g_auto(MigTypedParams) params = {0};
  MigSample sample = {0};

  assert_int_equal(
      virTypedParamsAddUInt(&params.params, &params.n, &params.allocated, VIR_DOMAIN_JOB_MEMORY_ITERATION, 3),
      0);
  assert_int_equal(virTypedParamsAddLLong(&params.params, &params.n, &params.allocated,
                                          VIR_DOMAIN_JOB_MEMORY_REMAINING, -5),
                   0);
  assert_int_equal(
      virTypedParamsAddDouble(&params.params, &params.n, &params.allocated, VIR_DOMAIN_JOB_MEMORY_TOTAL, 7.9),
      0);
  add_int(&params, VIR_DOMAIN_JOB_AUTO_CONVERGE_THROTTLE, -1);
  assert_int_equal(
      virTypedParamsAddString(&params.params, &params.n, &params.allocated, VIR_DOMAIN_JOB_DISK_TOTAL, "9"),
      0);
  mig_stats_sample(params.params, params.n, &sample);
  assert_int_equal(sample.iteration, 3);
  assert_int_equal(sample.memory_remaining_bytes, 0);
  assert_int_equal(sample.memory_total_bytes, 7);
  assert_int_equal(sample.throttle_pct, 0);
  assert_int_equal(sample.disk_total_bytes, 0);
}

static void the_final_count_has_real_downtime_apart_from_the_expected_one(void **state) {
  g_auto(MigTypedParams) params = full();
  MigFinalStats final;

  mig_stats_final(params.params, params.n, &final);
  assert_true(final.have_downtime);
  assert_int_equal(final.downtime_ms, 344);
  assert_int_equal(final.downtime_net_ms, 342);
  assert_int_equal(final.total_time_ms, 5695);
  assert_int_equal(final.transferred_bytes, 385754305);
  assert_int_equal(final.last.iteration, 2);
  assert_int_equal(final.last.expected_downtime_ms, 0);
  assert_true(final.last.valid);
}

static void a_downtime_that_is_not_told_is_not_zero(void **state) {
  MigFinalStats final;

  mig_stats_final(NULL, 0, &final);
  assert_false(final.have_downtime);
}

static void only_migrations_under_way_are_jobs(void **state) {
  static const struct {
    int type, operation;
    bool is;
  } rows[] = {
      {VIR_DOMAIN_JOB_NONE, MIG_ANY, false},
      {VIR_DOMAIN_JOB_BOUNDED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, true},
      {VIR_DOMAIN_JOB_UNBOUNDED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, true},
      {VIR_DOMAIN_JOB_UNBOUNDED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN, true},
      {VIR_DOMAIN_JOB_UNBOUNDED, MIG_ANY, true},
      {VIR_DOMAIN_JOB_UNBOUNDED, VIR_DOMAIN_JOB_OPERATION_SAVE, false},
      {VIR_DOMAIN_JOB_UNBOUNDED, VIR_DOMAIN_JOB_OPERATION_DUMP, false},
      {VIR_DOMAIN_JOB_UNBOUNDED, VIR_DOMAIN_JOB_OPERATION_BACKUP, false},
      {VIR_DOMAIN_JOB_COMPLETED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, false},
      {VIR_DOMAIN_JOB_FAILED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, false},
      {VIR_DOMAIN_JOB_CANCELLED, VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT, false},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    assert_int_equal(mig_stats_job_is_migration(rows[i].type, rows[i].operation), rows[i].is);
}

static void a_completed_job_succeeded_unless_it_says_otherwise(void **state) {
  g_auto(MigTypedParams) failed = {0}, message = {0};

  assert_true(mig_stats_success(NULL, 0));
  assert_int_equal(
      virTypedParamsAddBoolean(&failed.params, &failed.n, &failed.allocated, VIR_DOMAIN_JOB_SUCCESS, 0), 0);
  assert_false(mig_stats_success(failed.params, failed.n));
  assert_int_equal(
      virTypedParamsAddString(&message.params, &message.n, &message.allocated, VIR_DOMAIN_JOB_ERRMSG, "x"),
      0);
  assert_false(mig_stats_success(message.params, message.n));
}

static void the_operation_is_told_if_it_is_named(void **state) {
  g_auto(MigTypedParams) params = full();

  assert_int_equal(mig_stats_operation(params.params, params.n), VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT);
  assert_int_equal(mig_stats_operation(NULL, 0), MIG_ANY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_goes_where_it_belongs),
      cmocka_unit_test(the_dirty_rate_is_pages_times_page_size),
      cmocka_unit_test(what_is_missing_stays_zero),
      cmocka_unit_test(numbers_of_any_type_are_taken_and_negative_ones_are_none),
      cmocka_unit_test(the_final_count_has_real_downtime_apart_from_the_expected_one),
      cmocka_unit_test(a_downtime_that_is_not_told_is_not_zero),
      cmocka_unit_test(only_migrations_under_way_are_jobs),
      cmocka_unit_test(a_completed_job_succeeded_unless_it_says_otherwise),
      cmocka_unit_test(the_operation_is_told_if_it_is_named),
  };

  /* Before any other call of libvirt: its errors are kept by thread. */
  if (virInitialize() < 0)
    return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}

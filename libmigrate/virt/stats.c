/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates libvirt's job statistics to samples, by a table of fields. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

typedef struct StatRow {
  const char *param;
  size_t offset; /* of a uint64_t */
} StatRow;

static const StatRow sample_rows[] = {
    {VIR_DOMAIN_JOB_TIME_ELAPSED, offsetof(MigSample, elapsed_ms)},
    {VIR_DOMAIN_JOB_MEMORY_TOTAL, offsetof(MigSample, memory_total_bytes)},
    {VIR_DOMAIN_JOB_MEMORY_PROCESSED, offsetof(MigSample, memory_processed_bytes)},
    {VIR_DOMAIN_JOB_MEMORY_NORMAL_BYTES, offsetof(MigSample, memory_normal_bytes)},
    {VIR_DOMAIN_JOB_MEMORY_REMAINING, offsetof(MigSample, memory_remaining_bytes)},
    {VIR_DOMAIN_JOB_MEMORY_BPS, offsetof(MigSample, memory_bps_bytes_per_s)},
    {VIR_DOMAIN_JOB_DISK_TOTAL, offsetof(MigSample, disk_total_bytes)},
    {VIR_DOMAIN_JOB_DISK_PROCESSED, offsetof(MigSample, disk_processed_bytes)},
    {VIR_DOMAIN_JOB_DISK_REMAINING, offsetof(MigSample, disk_remaining_bytes)},
    {VIR_DOMAIN_JOB_DISK_BPS, offsetof(MigSample, disk_bps_bytes_per_s)},
    {VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE, offsetof(MigSample, page_size_bytes)},
    {VIR_DOMAIN_JOB_MEMORY_ITERATION, offsetof(MigSample, iteration)},
    {VIR_DOMAIN_JOB_AUTO_CONVERGE_THROTTLE, offsetof(MigSample, throttle_pct)},
    /* The expected downtime while the job is active. In the statistics of a completed job it is the real one. */
    {VIR_DOMAIN_JOB_DOWNTIME, offsetof(MigSample, expected_downtime_ms)},
    {VIR_DOMAIN_JOB_MEMORY_POSTCOPY_REQS, offsetof(MigSample, post_copy_requests)},
};

static const StatRow final_rows[] = {
    {VIR_DOMAIN_JOB_DOWNTIME, offsetof(MigFinalStats, downtime_ms)},
    {VIR_DOMAIN_JOB_DOWNTIME_NET, offsetof(MigFinalStats, downtime_net_ms)},
    {VIR_DOMAIN_JOB_TIME_ELAPSED, offsetof(MigFinalStats, total_time_ms)},
    {VIR_DOMAIN_JOB_DATA_PROCESSED, offsetof(MigFinalStats, transferred_bytes)},
};

/* A newer libvirt may change the type of a field, so any number is accepted. Negative ones make no sense and become 0. */
static bool number(virTypedParameterPtr params, int n, const char *name, uint64_t *ret_value) {
  virTypedParameterPtr param = virTypedParamsGet(params, n, name);

  if (!param)
    return false;
  switch (param->type) {
  case VIR_TYPED_PARAM_INT:
    *ret_value = param->value.i > 0 ? (uint64_t)param->value.i : 0;
    return true;
  case VIR_TYPED_PARAM_UINT:
    *ret_value = param->value.ui;
    return true;
  case VIR_TYPED_PARAM_LLONG:
    *ret_value = param->value.l > 0 ? (uint64_t)param->value.l : 0;
    return true;
  case VIR_TYPED_PARAM_ULLONG:
    *ret_value = param->value.ul;
    return true;
  case VIR_TYPED_PARAM_DOUBLE:
    *ret_value = param->value.d > 0 ? (uint64_t)param->value.d : 0;
    return true;
  case VIR_TYPED_PARAM_BOOLEAN:
    *ret_value = param->value.b ? 1 : 0;
    return true;
  default:
    return false;
  }
}

static void fill(const StatRow *rows, size_t n_rows, virTypedParameterPtr params, int n, void *into) {
  for (size_t i = 0; i < n_rows; i++)
    number(params, n, rows[i].param, (uint64_t *)(void *)((char *)into + rows[i].offset));
}

void mig_stats_sample(virTypedParameterPtr params, int n, MigSample *ret_sample) {
  uint64_t pages_per_s = 0, zero_pages = 0;

  fill(sample_rows, G_N_ELEMENTS(sample_rows), params, n, ret_sample);
  /* libvirt reports pages per second. Without a page size there is no rate in bytes. */
  if (number(params, n, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE, &pages_per_s) &&
      __builtin_mul_overflow(pages_per_s, ret_sample->page_size_bytes, &ret_sample->dirty_rate_bytes_per_s))
    ret_sample->dirty_rate_bytes_per_s = UINT64_MAX;
  /* "Constant" means zero since QEMU 1.5: what holds another byte throughout is a normal page. */
  if (number(params, n, VIR_DOMAIN_JOB_MEMORY_CONSTANT, &zero_pages) &&
      __builtin_mul_overflow(zero_pages, ret_sample->page_size_bytes, &ret_sample->memory_zero_bytes))
    ret_sample->memory_zero_bytes = UINT64_MAX;
}

void mig_stats_final(virTypedParameterPtr params, int n, MigFinalStats *ret_stats) {
  MigFinalStats stats = {0};

  fill(final_rows, G_N_ELEMENTS(final_rows), params, n, &stats);
  mig_stats_sample(params, n, &stats.last);
  stats.last.expected_downtime_ms = 0;
  stats.last.valid = true;
  stats.have_downtime = virTypedParamsGet(params, n, VIR_DOMAIN_JOB_DOWNTIME) != NULL;
  *ret_stats = stats;
}

int mig_stats_operation(virTypedParameterPtr params, int n) {
  uint64_t operation;

  return number(params, n, VIR_DOMAIN_JOB_OPERATION, &operation) ? (int)operation : MIG_ANY;
}

uint64_t mig_stats_elapsed_ms(virTypedParameterPtr params, int n) {
  uint64_t elapsed_ms;

  return number(params, n, VIR_DOMAIN_JOB_TIME_ELAPSED, &elapsed_ms) ? elapsed_ms : 0;
}

bool mig_stats_success(virTypedParameterPtr params, int n) {
  uint64_t success;

  if (number(params, n, VIR_DOMAIN_JOB_SUCCESS, &success))
    return success != 0;
  return virTypedParamsGet(params, n, VIR_DOMAIN_JOB_ERRMSG) == NULL;
}

bool mig_stats_job_is_migration(int type, int operation) {
  /* COMPLETED, FAILED and CANCELLED are jobs that are over but not cleaned up yet. */
  if (type != VIR_DOMAIN_JOB_BOUNDED && type != VIR_DOMAIN_JOB_UNBOUNDED)
    return false;
  return operation == MIG_ANY || operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT ||
         operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates the policy to the typed parameters of virDomainMigrateToURI3(). */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* No limit: libvirt's own default (INT64_MAX bytes/s). */
#define NO_LIMIT_MIB_PER_S ((unsigned long long)(INT64_MAX / (int64_t)MIG_MIB_BYTES))

/* Units are as libvirt-domain.h documents them for each VIR_MIGRATE_PARAM_*: both bandwidths are in MiB/s. */
static const MigParamRow rows[] = {
    {MIG_POLICY_BANDWIDTH_BYTES_PER_S, VIR_MIGRATE_PARAM_BANDWIDTH, MIG_PARAM_MIB_PER_S, .when_zero = true},
    {MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S, VIR_MIGRATE_PARAM_BANDWIDTH_POSTCOPY, MIG_PARAM_MIB_PER_S,
     .needs_flags = VIR_MIGRATE_POSTCOPY},
    {MIG_POLICY_PARALLEL_CONNECTIONS, VIR_MIGRATE_PARAM_PARALLEL_CONNECTIONS, MIG_PARAM_INT,
     .needs_flags = VIR_MIGRATE_PARALLEL, .cap = 255},
    /* The methods have libvirt's names. zlib and zstd came with libvirt 9.1. Whether a server knows them depends on its version
     * at run time, not on the headers of the build. */
    {MIG_POLICY_COMPRESSION, VIR_MIGRATE_PARAM_COMPRESSION, MIG_PARAM_NAME,
     .needs_flags = VIR_MIGRATE_COMPRESSED},
    /* QEMU's first step is 20 % (qapi/migration.json, cpu-throttle-initial), or less if the policy allows less. */
    {MIG_POLICY_MAX_THROTTLE_PCT, VIR_MIGRATE_PARAM_AUTO_CONVERGE_INITIAL, MIG_PARAM_INT, .when_zero = true,
     .needs_flags = VIR_MIGRATE_AUTO_CONVERGE, .cap = 20, .floor = 1},
};

const MigParamRow *mig_param_rows(size_t *ret_n) {
  *ret_n = G_N_ELEMENTS(rows);
  return rows;
}

void mig_typed_params_clear(MigTypedParams *params) {
  virTypedParamsFree(params->params, params->n);
  memset(params, 0, sizeof *params);
}

unsigned long long mig_param_mib_per_s(uint64_t bytes_per_s) {
  uint64_t mib = bytes_per_s / MIG_MIB_BYTES + (bytes_per_s % MIG_MIB_BYTES != 0);

  return mib == 0 ? NO_LIMIT_MIB_PER_S : MIN(mib, NO_LIMIT_MIB_PER_S);
}

static int add(MigTypedParams *params, const MigParamRow *row, uint64_t value) {
  uint64_t number = MAX(row->cap ? MIN(value, row->cap) : value, row->floor);

  switch (row->unit) {
  case MIG_PARAM_INT:
    return virTypedParamsAddInt(&params->params, &params->n, &params->allocated, row->param, (int)number);
  case MIG_PARAM_MIB_PER_S:
    return virTypedParamsAddULLong(&params->params, &params->n, &params->allocated, row->param,
                                   mig_param_mib_per_s(value));
  case MIG_PARAM_NAME:
    return virTypedParamsAddString(&params->params, &params->n, &params->allocated, row->param,
                                   mig_policy_key_info(row->key)->enum_names[value]);
  }
  return -1;
}

bool mig_params(const MigMigrateRequest *request, const MigStart *start, unsigned flags,
                MigTypedParams *ret_params, GError **error) {
  g_auto(MigTypedParams) params = {0};
  int rc = 0;

  if ((flags & VIR_MIGRATE_TUNNELLED) && request->migrate_uri) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID,
                        "a tunnelled migration uses libvirtd's own connection and cannot have a migrate URI");
    return false;
  }

  if (request->migrate_uri)
    rc = virTypedParamsAddString(&params.params, &params.n, &params.allocated, VIR_MIGRATE_PARAM_URI,
                                 request->migrate_uri);

  for (size_t i = 0; rc == 0 && i < G_N_ELEMENTS(rows); i++) {
    uint64_t value = mig_policy_get(request->policy, rows[i].key);

    /* A computed initial throttle is added below. */
    if (strcmp(rows[i].param, VIR_MIGRATE_PARAM_AUTO_CONVERGE_INITIAL) == 0 && request->throttle_initial_pct)
      continue;
    if ((value != 0 || rows[i].when_zero) && (flags & rows[i].needs_flags) == rows[i].needs_flags)
      rc = add(&params, &rows[i], value);
  }

  if (rc == 0 && (flags & VIR_MIGRATE_AUTO_CONVERGE) && request->throttle_initial_pct)
    rc = virTypedParamsAddInt(&params.params, &params.n, &params.allocated,
                              VIR_MIGRATE_PARAM_AUTO_CONVERGE_INITIAL,
                              (int)CLAMP(request->throttle_initial_pct, 1, 99));
  if (rc == 0 && (flags & VIR_MIGRATE_AUTO_CONVERGE) && request->throttle_increment_pct)
    rc = virTypedParamsAddInt(&params.params, &params.n, &params.allocated,
                              VIR_MIGRATE_PARAM_AUTO_CONVERGE_INCREMENT,
                              (int)CLAMP(request->throttle_increment_pct, 1, 99));

  /* Disks are named one by one: libvirt would choose every disk that is not shareable, including network disks and images on a
   * shared file system, and the copy would overwrite these with themselves. */
  if (flags & (VIR_MIGRATE_NON_SHARED_DISK | VIR_MIGRATE_NON_SHARED_INC))
    for (char **disk = start->local_disks; rc == 0 && *disk; disk++)
      rc = virTypedParamsAddString(&params.params, &params.n, &params.allocated,
                                   VIR_MIGRATE_PARAM_MIGRATE_DISKS, *disk);

  if (rc < 0)
    return mig_virt_error_take(error, "cannot set the migration's parameters");

  *ret_params = params;
  memset(&params, 0, sizeof params);
  return true;
}

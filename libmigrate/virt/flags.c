/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates the policy to VIR_MIGRATE_* flags, and lists how each policy key takes effect. */
#include "libmigrate/virt/libvirt.h"

static const MigMapping mappings[] = {
    [MIG_POLICY_MAX_DOWNTIME_MS] =
        {MIG_POLICY_MAX_DOWNTIME_MS, MIG_MEANS_CALL | MIG_MEANS_MONITOR,
         "virDomainMigrateSetMaxDowntime() before the start: there is no parameter for it, "
         "and QEMU's default of 300 ms would apply until the monitor's first step"},
    [MIG_POLICY_MAX_PAUSE_MS] = {MIG_POLICY_MAX_PAUSE_MS, MIG_MEANS_MONITOR,
                                 "virDomainSuspend() at the right time"},
    [MIG_POLICY_ALLOW_POST_COPY] =
        {MIG_POLICY_ALLOW_POST_COPY, MIG_MEANS_FLAG | MIG_MEANS_MONITOR,
         "the flag only makes it possible; virDomainMigrateStartPostCopy() switches"},
    [MIG_POLICY_ALLOW_AUTO_CONVERGE] = {MIG_POLICY_ALLOW_AUTO_CONVERGE, MIG_MEANS_FLAG,
                                        "cannot be switched on later, so it is on whenever it is allowed"},
    [MIG_POLICY_MAX_THROTTLE_PCT] =
        {MIG_POLICY_MAX_THROTTLE_PCT, MIG_MEANS_PARAM | MIG_MEANS_MONITOR,
         "libvirt has no parameter for it (QEMU: max-cpu-throttle), so the steps are chosen to land on it, "
         "and the monitor ends the migration before a step that would exceed it"},
    [MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB] = {MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, MIG_MEANS_MONITOR,
                                                 "the agent's deadline"},
    [MIG_POLICY_DISK_TIMEOUT_S_PER_GIB] = {MIG_POLICY_DISK_TIMEOUT_S_PER_GIB, MIG_MEANS_MONITOR,
                                           "the agent's deadline"},
    [MIG_POLICY_PROGRESS_TIMEOUT_S] = {MIG_POLICY_PROGRESS_TIMEOUT_S, MIG_MEANS_MONITOR, "the agent's guard"},
    [MIG_POLICY_BANDWIDTH_BYTES_PER_S] =
        {MIG_POLICY_BANDWIDTH_BYTES_PER_S, MIG_MEANS_PARAM | MIG_MEANS_CALL,
         "a parameter at the start, virDomainMigrateSetMaxSpeed() afterwards"},
    [MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S] = {MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S,
                                                    MIG_MEANS_PARAM | MIG_MEANS_CALL,
                                                    "the same, with VIR_DOMAIN_MIGRATE_MAX_SPEED_POSTCOPY"},
    [MIG_POLICY_PARALLEL_CONNECTIONS] = {MIG_POLICY_PARALLEL_CONNECTIONS, MIG_MEANS_FLAG | MIG_MEANS_PARAM,
                                         "multifd"},
    [MIG_POLICY_COMPRESSION] = {MIG_POLICY_COMPRESSION, MIG_MEANS_FLAG | MIG_MEANS_PARAM,
                                "the method, by name"},
    [MIG_POLICY_TLS] = {MIG_POLICY_TLS, MIG_MEANS_FLAG | MIG_MEANS_CALL,
                        "the same for yes and require: the caller decides whether to fall back to no TLS"},
    [MIG_POLICY_ZEROCOPY] = {MIG_POLICY_ZEROCOPY, MIG_MEANS_FLAG, "needs multifd"},
    [MIG_POLICY_TUNNELLED] = {MIG_POLICY_TUNNELLED, MIG_MEANS_FLAG, "through libvirtd's own connection"},
    [MIG_POLICY_COPY_DISKS] = {MIG_POLICY_COPY_DISKS, MIG_MEANS_FLAG | MIG_MEANS_PARAM,
                               "the disks are named one by one; see params.c"},
    [MIG_POLICY_PERSIST_TARGET] = {MIG_POLICY_PERSIST_TARGET, MIG_MEANS_FLAG, "only for a persistent domain"},
    [MIG_POLICY_UNDEFINE_SOURCE] = {MIG_POLICY_UNDEFINE_SOURCE, MIG_MEANS_FLAG,
                                    "only for a persistent domain"},
    [MIG_POLICY_PRIORITY] = {MIG_POLICY_PRIORITY, MIG_MEANS_QUEUE, "libvirt knows no priorities"},
};
G_STATIC_ASSERT(G_N_ELEMENTS(mappings) == MIG_POLICY_KEY_COUNT);

const MigMapping *mig_mapping(MigPolicyKey key) {
  return &mappings[key];
}

static const MigFlagRow rows[] = {
    {MIG_POLICY_ALLOW_POST_COPY, 1, VIR_MIGRATE_POSTCOPY},
    {MIG_POLICY_ALLOW_AUTO_CONVERGE, 1, VIR_MIGRATE_AUTO_CONVERGE},
    {MIG_POLICY_PARALLEL_CONNECTIONS, MIG_NONZERO, VIR_MIGRATE_PARALLEL},
    {MIG_POLICY_COMPRESSION, MIG_NONZERO, VIR_MIGRATE_COMPRESSED},
    {MIG_POLICY_TLS, MIG_TLS_YES, VIR_MIGRATE_TLS},
    {MIG_POLICY_TLS, MIG_TLS_REQUIRE, VIR_MIGRATE_TLS},
    {MIG_POLICY_ZEROCOPY, 1, VIR_MIGRATE_ZEROCOPY},
    {MIG_POLICY_TUNNELLED, 1, VIR_MIGRATE_TUNNELLED},
    /* Not without disks to copy: libvirt would then choose some itself, namely network disks, which need no copy. */
    {MIG_POLICY_COPY_DISKS, MIG_COPY_DISKS_ALL, VIR_MIGRATE_NON_SHARED_DISK, .disks_only = true},
    {MIG_POLICY_COPY_DISKS, MIG_COPY_DISKS_INCREMENTAL, VIR_MIGRATE_NON_SHARED_INC, .disks_only = true},
    /* A transient domain stays transient: defining it at the target would change what its owner created. */
    {MIG_POLICY_PERSIST_TARGET, 1, VIR_MIGRATE_PERSIST_DEST, .persistent_only = true},
    {MIG_POLICY_UNDEFINE_SOURCE, 1, VIR_MIGRATE_UNDEFINE_SOURCE, .persistent_only = true},
};

const MigFlagRow *mig_flag_rows(size_t *ret_n) {
  *ret_n = G_N_ELEMENTS(rows);
  return rows;
}

/* Always LIVE and PEER2PEER: the agent is built on migrations that go on without their client. Always ABORT_ON_ERROR: a guest
 * that has just stopped on a disk I/O error stays where the evidence is, instead of being resumed at the target behind its
 * owner's back (libvirt-domain.h: "Cancel migration if a soft error (such as I/O error) happens during migration"). In
 * post-copy the flag has no effect, since the source is not paused for I/O. Never UNSAFE: libvirt refuses unsafe cache modes to
 * protect data. Never PAUSED or OFFLINE: those are other operations. libvirt sets CHANGE_PROTECTION itself if both ends
 * support it, and they do. */
unsigned mig_flags_always(void) {
  return VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_ABORT_ON_ERROR;
}

unsigned mig_flags(const MigMigrateRequest *request, const MigStart *start) {
  unsigned flags = mig_flags_always();
  bool disks = start->local_disks && start->local_disks[0];

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    uint64_t value = mig_policy_get(request->policy, rows[i].key);

    if (rows[i].value == MIG_NONZERO ? value == 0 : value != rows[i].value)
      continue;
    if ((rows[i].persistent_only && !start->persistent) || (rows[i].disks_only && !disks))
      continue;
    flags |= rows[i].flags;
  }

  /* A resume repeats the flags of the start, as libvirt requires: the call that ends the migration passes PERSIST_DEST to
   * Finish and UNDEFINE_SOURCE to Confirm. */
  if (request->resume_post_copy)
    flags |= VIR_MIGRATE_POSTCOPY | VIR_MIGRATE_POSTCOPY_RESUME;
  return flags;
}

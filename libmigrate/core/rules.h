/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the functions behind the table of checks. */
#pragma once

#include "libmigrate/core/migratable.h"
#include "libmigrate/core/text.h"

/* True if there is a finding: `seen` then holds whole sentences about what was seen. `argument` and `lead` come from
 * the table's row; the lead begins a list. Rules with of_target are only called with in->target. */
typedef bool RuleFunc(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen);

/* checks.c */

typedef struct RuleRow {
  MigCheckInfo info;
  RuleFunc *test;
  unsigned argument;
  const char *lead;      /* begins the list of what was seen */
  bool of_target;        /* needs the target's answers */
  bool avoids_post_copy; /* a finding makes post-copy unsafe */
} RuleRow;

const RuleRow *rules_row(MigCheck check);

/* rules-domain.c: the domain itself, and the target as a whole */
RuleFunc rule_target_unreachable, rule_target_refuses, rule_same_host, rule_node_cordoned, rule_domain_busy;
RuleFunc rule_domain_state, rule_domain_exists, rule_name_taken;
RuleFunc rule_io_error, rule_domain_job, rule_block_job, rule_snapshots, rule_domain_paused;
RuleFunc rule_defined_at_target, rule_qemu_older, rule_libvirt_older, rule_tls_certificates, rule_tls_unseen,
    rule_tls_control;
RuleFunc rule_trait;   /* argument: MigTraitKind */
RuleFunc rule_hostdev; /* likewise; a newer QEMU may be able to migrate it */
RuleFunc rule_hostdev_vfio;
RuleFunc rule_need; /* argument: RULE_NEED(kind, sight) */

#define RULE_NEED(kind, sight) ((unsigned)(kind) << 4 | (unsigned)(sight))

/* faults.c */
RuleFunc rule_fault; /* argument: one of these */
enum { RULE_FAULT_RESUME, RULE_FAULT_THREADS, RULE_FAULT_EMULATOR };

/* rules-disks.c */
RuleFunc rule_disk_transient, rule_disk_nvme, rule_disk_local, rule_disk_cache, rule_disk_missing;
RuleFunc rule_disk_too_small, rule_disk_size_differs, rule_pool_space, rule_host_drive, rule_media;
RuleFunc rule_storage_unknown, rule_disk_unseen;

/* rules-host.c */
RuleFunc rule_cpu_invtsc, rule_cpu_incompatible, rule_cpu_other_host, rule_tsc_frequency;
RuleFunc rule_emulator_missing, rule_virt_type, rule_machine_type;
RuleFunc rule_target_too_small, rule_target_memory, rule_hugepages_missing, rule_hugepages_taken;
RuleFunc rule_vcpus_max, rule_pinned_cpus, rule_numa_nodes;
RuleFunc rule_cpu_passthrough, rule_cpu_unchecked, rule_cpu_unseen;
RuleFunc rule_memory_tight, rule_memory_ballooned, rule_vcpus_overcommitted, rule_pinned_cpus_fewer,
    rule_pinned;

/* The lower version of both ends; 0: unknown. */
uint64_t rules_qemu_version(const MigCheckInput *in);
uint64_t rules_libvirt_version(const MigCheckInput *in);

static inline uint64_t rules_policy(const MigCheckInput *in, MigPolicyKey key) {
  return mig_policy_get(in->policy, key);
}

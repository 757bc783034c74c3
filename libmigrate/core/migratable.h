/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Can a domain migrate to a target? Tries every rule; each finding has a stable code. */
#pragma once

#include "libmigrate/core/facts.h"
#include "libmigrate/core/policy.h"

/* In the order in which findings are reported. A blocker keeps the migration from starting; a warning is worth
 * knowing. */
typedef enum MigCheck {
  /* the target, and the domain as a whole */
  MIG_CHECK_TARGET_UNREACHABLE,
  MIG_CHECK_TARGET_REFUSES,
  MIG_CHECK_SAME_HOST,
  MIG_CHECK_NODE_CORDONED,
  MIG_CHECK_DOMAIN_BUSY,
  MIG_CHECK_DOMAIN_STATE,
  MIG_CHECK_DOMAIN_EXISTS,
  MIG_CHECK_NAME_TAKEN,
  MIG_CHECK_IO_ERROR,
  MIG_CHECK_DOMAIN_JOB,
  MIG_CHECK_BLOCK_JOB,
  MIG_CHECK_SNAPSHOTS,
  /* devices that cannot migrate */
  MIG_CHECK_HOSTDEV_PCI,
  MIG_CHECK_HOSTDEV_MDEV,
  MIG_CHECK_HOSTDEV_USB,
  MIG_CHECK_HOSTDEV_SCSI,
  MIG_CHECK_HOSTDEV_OTHER,
  MIG_CHECK_INTERFACE_VDPA,
  MIG_CHECK_VIRTIOFS,
  MIG_CHECK_SHMEM,
  MIG_CHECK_SGX,
  MIG_CHECK_TPM_PASSTHROUGH,
  MIG_CHECK_LAUNCH_SECURITY,
  MIG_CHECK_VIDEO_3D,
  /* disks */
  MIG_CHECK_DISK_TRANSIENT,
  MIG_CHECK_DISK_NVME,
  MIG_CHECK_DISK_LOCAL,
  MIG_CHECK_DISK_CACHE,
  MIG_CHECK_DISK_MISSING,
  MIG_CHECK_DISK_TOO_SMALL,
  MIG_CHECK_DISK_SIZE_DIFFERS,
  MIG_CHECK_POOL_SPACE,
  MIG_CHECK_HOST_DRIVE,
  MIG_CHECK_MEDIA_MISSING,
  /* CPU, machine, devices of the target's QEMU */
  MIG_CHECK_CPU_INVTSC,
  MIG_CHECK_CPU_INCOMPATIBLE,
  MIG_CHECK_CPU_OTHER_HOST,
  MIG_CHECK_TSC_FREQUENCY,
  MIG_CHECK_EMULATOR_MISSING,
  MIG_CHECK_VIRT_TYPE,
  MIG_CHECK_MACHINE_TYPE,
  MIG_CHECK_DEVICE_UNSUPPORTED,
  MIG_CHECK_SECURITY_MODEL,
  MIG_CHECK_TLS_CERTIFICATES,
  /* capacity */
  MIG_CHECK_TARGET_TOO_SMALL,
  MIG_CHECK_TARGET_MEMORY,
  MIG_CHECK_HUGEPAGES_MISSING,
  MIG_CHECK_HUGEPAGES_TAKEN,
  MIG_CHECK_VCPUS_MAX,
  MIG_CHECK_PINNED_CPUS,
  MIG_CHECK_NUMA_NODES,
  /* things found by name */
  MIG_CHECK_NETWORK_MISSING,
  MIG_CHECK_NETWORK_INACTIVE,
  MIG_CHECK_INTERFACE_MISSING,
  MIG_CHECK_FILTER_MISSING,
  MIG_CHECK_SECRET_MISSING,
  MIG_CHECK_FILE_MISSING,
  /* warnings */
  MIG_CHECK_DOMAIN_PAUSED,
  MIG_CHECK_DEFINED_AT_TARGET,
  MIG_CHECK_QEMU_OLDER,
  MIG_CHECK_LIBVIRT_OLDER,
  MIG_CHECK_HOSTDEV_VFIO,
  MIG_CHECK_HOSTDEV_USB_DROPPED,
  MIG_CHECK_HOSTDEV_TEAMING,
  MIG_CHECK_FILESYSTEM_9P,
  MIG_CHECK_HOST_CHARDEV,
  MIG_CHECK_USER_NETWORK,
  MIG_CHECK_GRAPHICS_LISTEN,
  MIG_CHECK_COMMAND_LINE,
  MIG_CHECK_STORAGE_UNKNOWN,
  MIG_CHECK_DISK_UNSEEN,
  MIG_CHECK_MEDIA_UNSEEN,
  MIG_CHECK_CPU_PASSTHROUGH,
  MIG_CHECK_CPU_UNCHECKED,
  MIG_CHECK_CPU_UNSEEN,
  MIG_CHECK_MEMORY_TIGHT,
  MIG_CHECK_MEMORY_BALLOONED,
  MIG_CHECK_VCPUS_OVERCOMMITTED,
  MIG_CHECK_PINNED_CPUS_FEWER,
  MIG_CHECK_PINNED,
  MIG_CHECK_NETWORK_UNSEEN,
  MIG_CHECK_INTERFACE_UNSEEN,
  MIG_CHECK_FILTER_UNSEEN,
  MIG_CHECK_SECRET_UNSEEN,
  MIG_CHECK_FILE_UNSEEN,
  MIG_CHECK_SOCKET_UNSEEN,
  MIG_CHECK_DEVICE_UNSEEN,
  MIG_CHECK_TLS_UNSEEN,
  MIG_CHECK_TLS_CONTROL,
  MIG_CHECK_THREADS_REFUSED,
  MIG_CHECK_POST_COPY_UNRECOVERABLE,
  MIG_CHECK_EMULATOR_FORGETS,
  MIG_CHECK_COUNT
} MigCheck;

typedef struct MigCheckInfo {
  const char *code; /* DISK_LOCAL */
  bool blocks;
  bool transient;     /* waiting can help */
  MigCause cause;     /* of a job that fails because of it; NONE for a warning */
  const char *remedy; /* a sentence or two: what would help */
} MigCheckInfo;

/* Never NULL for a check below MIG_CHECK_COUNT. */
const MigCheckInfo *mig_check_info(MigCheck check);

#define MIG_FINDING_SEEN_SIZE   400
#define MIG_FINDING_REMEDY_SIZE 200

/* Each text is one or more whole sentences, truncated to fit. */
typedef struct MigFinding {
  const char *code; /* static */
  bool blocks;
  bool transient;
  MigCause cause;
  char seen[MIG_FINDING_SEEN_SIZE];
  char remedy[MIG_FINDING_REMEDY_SIZE];
} MigFinding;

/* At most one finding per check (it names all disks or networks concerned) and per policy rule. */
#define MIG_FINDINGS_MAX (MIG_CHECK_COUNT + 16)

typedef struct MigCheckReport {
  MigFinding findings[MIG_FINDINGS_MAX]; /* blockers first */
  size_t count;
  size_t blockers;
  bool avoid_post_copy; /* a known fault would make it unsafe: plan without it, whatever the policy permits */
} MigCheckReport;

typedef struct MigCheckInput {
  const MigDomainFacts *domain;
  const MigHostFacts *source;
  const MigTargetFacts *target; /* NULL: not reachable; only the domain itself is judged */
  const char *target_uri;
  const char *target_error; /* why it is not reachable; if target is NULL too: say nothing about it */
  bool target_away;         /* no answer; false: there was an answer, and it was no */
  const char *cordon;       /* why this node takes no new work; NULL: not cordoned */
  const char *busy_job;     /* the domain's unfinished job; NULL: none */
  const MigPolicy *policy;
} MigCheckInput;

/* Applies all rules. */
void mig_check(const MigCheckInput *input, MigCheckReport *ret_report);

/* What the policy rules need to know about the domain and the hosts. */
void mig_check_policy_facts(const MigCheckInput *input, MigPolicyFacts *ret_facts);

/* True if there are blockers and waiting may clear all of them. */
bool mig_check_may_wait(const MigCheckReport *report);

/* The cause of a job that fails because of these blockers: from the first one that waiting cannot clear, else from
 * the first. NONE without blockers. */
MigCause mig_check_cause(const MigCheckReport *report);

/* "CODE: seen. remedy" of each blocker in one text, truncated to fit. */
void mig_check_describe(const MigCheckReport *report, char *ret_text, size_t size);

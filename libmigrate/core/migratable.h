/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Can a domain move to a target? Every rule at once, as a table; each finding has a code that stays. */
#pragma once

#include "libmigrate/core/facts.h"
#include "libmigrate/core/policy.h"

/* In the order in which findings are told. A blocker keeps the move from beginning; a warning is worth knowing. */
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
  /* devices that cannot be taken along */
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
  /* room */
  MIG_CHECK_TARGET_TOO_SMALL,
  MIG_CHECK_TARGET_MEMORY,
  MIG_CHECK_HUGEPAGES_MISSING,
  MIG_CHECK_HUGEPAGES_TAKEN,
  MIG_CHECK_VCPUS_MAX,
  MIG_CHECK_PINNED_CPUS,
  MIG_CHECK_NUMA_NODES,
  /* things of a name */
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
  MIG_CHECK_COUNT
} MigCheck;

typedef struct MigCheckInfo {
  const char *code; /* DISK_LOCAL */
  bool blocks;
  bool transient;     /* waiting can help */
  MigCause cause;     /* of a job that ends for it; NONE for a warning */
  const char *remedy; /* a sentence or two: what would do */
} MigCheckInfo;

/* Never NULL for a check below MIG_CHECK_COUNT. */
const MigCheckInfo *mig_check_info(MigCheck check);

#define MIG_FINDING_SEEN_SIZE   400
#define MIG_FINDING_REMEDY_SIZE 200

/* Each text is one sentence or more, from a capital to a full stop, cut to size. */
typedef struct MigFinding {
  const char *code; /* static */
  bool blocks;
  bool transient;
  MigCause cause;
  char seen[MIG_FINDING_SEEN_SIZE];
  char remedy[MIG_FINDING_REMEDY_SIZE];
} MigFinding;

/* A finding for each check at most (it names all disks, or networks, that it is about), and for each rule of the policy. */
#define MIG_FINDINGS_MAX (MIG_CHECK_COUNT + 16)

typedef struct MigCheckReport {
  MigFinding findings[MIG_FINDINGS_MAX]; /* blockers first */
  size_t count;
  size_t blockers;
} MigCheckReport;

typedef struct MigCheckInput {
  const MigDomainFacts *domain;
  const MigHostFacts *source;
  const MigTargetFacts
      *target; /* NULL: it cannot be asked, and only what the domain is by itself is judged */
  const char *target_uri;
  const char *target_error; /* why it cannot be asked; with both NULL nothing is said of it */
  bool target_away;         /* nobody answered there; false: what answered said no */
  const char *cordon;       /* why this node takes no new work; NULL: it does */
  const char *busy_job;     /* the unfinished one that the domain has already; NULL: none */
  const MigPolicy *policy;
} MigCheckInput;

/* Judges by all rules. */
void mig_check(const MigCheckInput *input, MigCheckReport *ret_report);

/* What the rules of the policy are to know of the domain and the hosts. */
void mig_check_policy_facts(const MigCheckInput *input, MigPolicyFacts *ret_facts);

/* True if there are blockers, and waiting may take away all of them. */
bool mig_check_may_wait(const MigCheckReport *report);

/* The cause of a job that ends for these blockers: that of the first one that waiting cannot cure, else of the first.
 * NONE: there are none. */
MigCause mig_check_cause(const MigCheckReport *report);

/* "CODE: seen. remedy" of each blocker in one text, cut to size. */
void mig_check_describe(const MigCheckReport *report, char *ret_text, size_t size);

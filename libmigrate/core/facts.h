/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The facts about a domain and a host that matter for a migration. Plain data: virt fills it in, core decides on it. */
#pragma once

#include "libmigrate/core/match.h"
#include "libmigrate/core/profile.h"
#include "libmigrate/core/verdict.h"

#define MIG_UUID_STRING_SIZE 37

/* Owns the strings and arrays of the facts that point to it; see virt/store.c. */
typedef struct MigStore MigStore;

/* Whether the target has a named thing. The source may be unable to see it. */
typedef enum MigSight {
  MIG_SIGHT_UNSEEN, /* the source cannot tell */
  MIG_SIGHT_ABSENT,
  MIG_SIGHT_INACTIVE, /* defined but not started */
  MIG_SIGHT_PRESENT
} MigSight;

/* A set of host CPUs or NUMA nodes, by their numbers. */
#define MIG_SET_MAX 4096
typedef struct MigSet {
  uint64_t words[MIG_SET_MAX / 64];
} MigSet;

void mig_set_add(MigSet *set, unsigned number); /* ignores one that is too large */
bool mig_set_has(const MigSet *set, unsigned number);
unsigned mig_set_count(const MigSet *set);
unsigned mig_set_count_common(const MigSet *a, const MigSet *b);

/* --- of a domain --- */

/* Things that affect a migration whatever the target is. */
typedef enum MigTraitKind {
  MIG_TRAIT_HOSTDEV_PCI,  /* including interfaces */
  MIG_TRAIT_HOSTDEV_MDEV, /* vGPUs and the like */
  MIG_TRAIT_HOSTDEV_USB,
  MIG_TRAIT_HOSTDEV_USB_OPTIONAL, /* libvirt drops it at the target */
  MIG_TRAIT_HOSTDEV_SCSI,         /* scsi and scsi_host */
  MIG_TRAIT_HOSTDEV_OTHER,
  MIG_TRAIT_HOSTDEV_TEAMING, /* unplugged for the migration, while a virtual device carries on */
  MIG_TRAIT_INTERFACE_VDPA,
  MIG_TRAIT_INTERFACE_USER,
  MIG_TRAIT_VIRTIOFS,
  MIG_TRAIT_FILESYSTEM_9P,
  MIG_TRAIT_SHMEM, /* other than role='master' */
  MIG_TRAIT_SGX,
  MIG_TRAIT_TPM_PASSTHROUGH,
  MIG_TRAIT_LAUNCH_SECURITY,
  MIG_TRAIT_VIDEO_3D,
  MIG_TRAIT_HOST_CHARDEV,    /* a serial or parallel port of the host */
  MIG_TRAIT_GRAPHICS_LISTEN, /* on an address of one host */
  MIG_TRAIT_COMMAND_LINE,    /* arguments for QEMU that libvirt does not understand */
  MIG_TRAIT_COUNT
} MigTraitKind;

typedef struct MigTrait {
  MigTraitKind kind;
  const char *text; /* which: "0000:3b:00.0" */
} MigTrait;

/* Things that the target must have under the same name. */
typedef enum MigNeedKind {
  MIG_NEED_NETWORK,        /* libvirt's */
  MIG_NEED_HOST_INTERFACE, /* a bridge, or the device below a macvtap */
  MIG_NEED_FILTER,         /* nwfilter */
  MIG_NEED_SECRET,         /* UUID, or TYPE:USAGE */
  MIG_NEED_FILE,           /* kernel, firmware */
  MIG_NEED_SOCKET,         /* of a vhost-user backend: can never be checked */
  MIG_NEED_DEVICE,         /* a kind of device that QEMU must support */
  MIG_NEED_SECURITY_MODEL, /* apparmor, selinux */
  MIG_NEED_COUNT
} MigNeedKind;

typedef struct MigNeed {
  MigNeedKind kind;
  const char *name;
  const char *user;  /* what needs it: "vnet0", "vda" */
  const char *where; /* DEVICE: its list in the domain capabilities, "video/modelType"; else NULL */
} MigNeed;

typedef enum MigDiskType {
  MIG_DISK_FILE,
  MIG_DISK_BLOCK,
  MIG_DISK_DIR,
  MIG_DISK_VOLUME,
  MIG_DISK_NETWORK,
  MIG_DISK_NVME,
  MIG_DISK_VHOST_USER,
  MIG_DISK_OTHER
} MigDiskType;

typedef enum MigDiskDevice { MIG_DISK_DISK, MIG_DISK_LUN, MIG_DISK_CDROM, MIG_DISK_FLOPPY } MigDiskDevice;

/* Do other hosts see the same data? */
typedef enum MigStorage { MIG_STORAGE_UNKNOWN, MIG_STORAGE_LOCAL, MIG_STORAGE_SHARED } MigStorage;

typedef enum MigCache {
  MIG_CACHE_DEFAULT,
  MIG_CACHE_NONE,
  MIG_CACHE_DIRECTSYNC,
  MIG_CACHE_WRITEBACK,
  MIG_CACHE_WRITETHROUGH,
  MIG_CACHE_UNSAFE
} MigCache;

typedef struct MigDisk {
  const char *target; /* vda */
  const char *source; /* path, device, POOL/VOLUME or PROTOCOL:NAME; NULL: an empty drive */
  const char *pool;   /* of a VOLUME, with its name */
  const char *volume;
  const char *format; /* of its image: "qcow2"; NULL: not given */
  MigDiskType type;
  MigDiskDevice device;
  MigStorage storage;
  MigCache cache;
  bool read_only;
  bool shareable;
  bool transient;
  bool optional;             /* startupPolicy: libvirt drops a missing medium */
  bool raw;                  /* its image is as large as the disk */
  bool job;                  /* a block job runs on it */
  uint64_t capacity_bytes;   /* as the guest sees it; 0: not known */
  uint64_t allocation_bytes; /* allocated size of its image; 0: not known */
} MigDisk;

/* Memory in huge pages. */
typedef struct MigHugepages {
  uint64_t page_bytes; /* 0: the host's default size */
  uint64_t bytes;
} MigHugepages;

typedef struct MigPin {
  const char *who; /* "vCPU 3", "the emulator" */
  MigSet cpus;
} MigPin;

typedef enum MigCpuMode {
  MIG_CPU_NONE, /* QEMU's default */
  MIG_CPU_CUSTOM,
  MIG_CPU_HOST_MODEL,
  MIG_CPU_HOST_PASSTHROUGH,
  MIG_CPU_MAXIMUM
} MigCpuMode;

/* What a host's libvirt says about a CPU. */
typedef enum MigCpuMatch {
  MIG_CPU_MATCH_UNSEEN, /* it cannot tell or was not asked */
  MIG_CPU_MATCH_INCOMPATIBLE,
  MIG_CPU_MATCH_IDENTICAL,
  MIG_CPU_MATCH_SUPERSET /* the host has more */
} MigCpuMatch;

typedef struct MigCpuAnswer {
  MigCpuMatch match;
  const char *text; /* libvirt's text about what does not match; may be NULL */
} MigCpuAnswer;

typedef struct MigDomainFacts {
  char uuid[MIG_UUID_STRING_SIZE];
  const char *name;
  MigEndState state;
  bool persistent;
  uint64_t memory_bytes;     /* the most that the guest may use, which is what the first pass sends */
  uint64_t local_disk_bytes; /* capacity of the writable disks that may have to be copied */
  unsigned local_disks;      /* how many those are; with 0 bytes their size is not known */
  bool passthrough;          /* a host device is assigned */
  const char *emulator;      /* path */
  const char *machine;
  const char *arch;
  const char *virt_type;
  MigDomainTags tags;
  MigProfile profile; /* from its metadata; see write_profile() of driver.h */

  uint64_t current_memory_bytes; /* what the balloon leaves it */
  unsigned vcpus;                /* the maximum, including unplugged ones */
  unsigned threads;              /* of one core; 0: not said, which is 1 */
  MigCpuMode cpu_mode;
  const char *cpu_model; /* of CUSTOM; or NULL */
  const char *cpu_xml;   /* the element; NULL: none */
  bool cpu_unchecked;    /* check='none': QEMU drops features that the host lacks */
  bool cpu_not_migratable;
  bool cpu_invtsc;
  uint64_t tsc_frequency_hz; /* 0: not fixed */
  MigSet numa_nodes;         /* host nodes that memory is bound to */
  MigDisk *disks;
  size_t n_disks;
  MigHugepages *hugepages;
  size_t n_hugepages;
  MigPin *pins;
  size_t n_pins;
  MigTrait *traits;
  size_t n_traits;
  MigNeed *needs;
  size_t n_needs;

  /* Set by a survey only. */
  bool surveyed;
  bool io_error;   /* paused because of one */
  const char *job; /* libvirt's current job on the domain, "backup"; NULL: none */
  unsigned snapshots;
  MigCpuAnswer cpu;      /* for an unchecked CPU: how the source matches it */
  MigSight certificates; /* for QEMU's TLS, on the agent's own node */

  MigStore *store;
} MigDomainFacts;

/* May it have to be copied? A disk of the guest's own that only this host can see. */
bool mig_disk_is_local(const MigDisk *disk);
bool mig_disk_is_writable(const MigDisk *disk);

/* --- of a host --- */

#define MIG_PAGE_SIZES_MAX 8

typedef struct MigPages {
  uint64_t page_bytes;
  uint64_t total; /* pages */
  uint64_t free;  /* only where a survey asked */
} MigPages;

/* The host behind a connection. */
typedef struct MigHostFacts {
  char uuid[MIG_UUID_STRING_SIZE]; /* of the host */
  const char *hostname;
  uint64_t libvirt_version;    /* 9000000 */
  uint64_t hypervisor_version; /* 7002000 */

  const char *cpu_xml;   /* of its CPU; NULL: not known */
  const char *cpu_model; /* "EPYC-Rome": libvirt's closest model */
  bool cpu_invtsc;
  uint64_t tsc_frequency_hz; /* 0: not known */
  bool tsc_scaling;
  MigSet cpus; /* empty: not known */
  MigSet numa_nodes;
  uint64_t memory_bytes;              /* 0: not known */
  MigPages pages[MIG_PAGE_SIZES_MAX]; /* including normal pages */
  size_t n_pages;
  const char *const *security_models; /* NULL-terminated; NULL: not known */

  MigStore *store;
} MigHostFacts;

/* --- of a target --- */

typedef struct MigTargetDisk {
  MigSight sight;
  uint64_t capacity_bytes; /* PRESENT: as the guest would see it */
  bool pool;               /* an active pool covers its directory: libvirt can create it */
  const char *pool_name;
  uint64_t pool_available_bytes;
} MigTargetDisk;

/* A host as the target of one domain. */
typedef struct MigTargetFacts {
  MigHostFacts host;
  MigEndState domain_state; /* of a domain with the same UUID */
  const char *other_uuid;   /* of another domain with the same name, or NULL */

  MigSight emulator; /* each of these three is known only if the previous one is PRESENT */
  MigSight virt_type;
  MigSight machine;
  const char *machines;  /* if the machine is ABSENT: what the target has instead */
  unsigned vcpus_max;    /* of the machine; 0: not known */
  uint64_t free_bytes;   /* free memory, including reclaimable; UINT64_MAX: not known */
  uint64_t cached_bytes; /* how much of that is page cache */
  MigCpuAnswer cpu;      /* the domain's CPU */
  MigCpuAnswer host_cpu; /* the source's */
  MigTargetDisk *disks;  /* as many as the domain has */
  size_t n_disks;
  MigSight *needs; /* likewise */
  size_t n_needs;

  MigStore *store;
} MigTargetFacts;

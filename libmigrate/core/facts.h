/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain and a host are, as far as a move goes. Plain data: virt fills it in, core decides on it. */
#pragma once

#include "libmigrate/core/match.h"
#include "libmigrate/core/verdict.h"

#define MIG_UUID_STRING_SIZE 37

/* Owns the strings and arrays of the facts that name it; of virt/store.c. */
typedef struct MigStore MigStore;

/* How a thing that is named stands at the target. Whether it is there at all may be hidden from here. */
typedef enum MigSight {
  MIG_SIGHT_UNSEEN, /* cannot be told from here */
  MIG_SIGHT_ABSENT,
  MIG_SIGHT_INACTIVE, /* defined, and not started */
  MIG_SIGHT_PRESENT
} MigSight;

/* A set of host CPUs or NUMA nodes, by their numbers. */
#define MIG_SET_MAX 4096
typedef struct MigSet {
  uint64_t words[MIG_SET_MAX / 64];
} MigSet;

void mig_set_add(MigSet *set, unsigned number); /* one that is too large is left out */
bool mig_set_has(const MigSet *set, unsigned number);
unsigned mig_set_count(const MigSet *set);
unsigned mig_set_count_common(const MigSet *a, const MigSet *b);

/* --- of a domain --- */

/* Things that bear on a move by themselves, whatever the target is like. */
typedef enum MigTraitKind {
  MIG_TRAIT_HOSTDEV_PCI,  /* also an interface that is one */
  MIG_TRAIT_HOSTDEV_MDEV, /* vGPUs and the like */
  MIG_TRAIT_HOSTDEV_USB,
  MIG_TRAIT_HOSTDEV_USB_OPTIONAL, /* libvirt leaves it out at the target */
  MIG_TRAIT_HOSTDEV_SCSI,         /* scsi and scsi_host */
  MIG_TRAIT_HOSTDEV_OTHER,
  MIG_TRAIT_HOSTDEV_TEAMING, /* unplugged for the move, while a virtual device carries on */
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
  MIG_TRAIT_GRAPHICS_LISTEN, /* on an address that is one host's */
  MIG_TRAIT_COMMAND_LINE,    /* arguments for QEMU that libvirt does not understand */
  MIG_TRAIT_COUNT
} MigTraitKind;

typedef struct MigTrait {
  MigTraitKind kind;
  const char *text; /* which: "0000:3b:00.0" */
} MigTrait;

/* Things that have to be at the target under the same name. */
typedef enum MigNeedKind {
  MIG_NEED_NETWORK,        /* libvirt's */
  MIG_NEED_HOST_INTERFACE, /* a bridge, or the device below a macvtap */
  MIG_NEED_FILTER,         /* nwfilter */
  MIG_NEED_SECRET,         /* UUID, or TYPE:USAGE */
  MIG_NEED_FILE,           /* kernel, firmware */
  MIG_NEED_SOCKET,         /* of a vhost-user backend: can never be seen */
  MIG_NEED_DEVICE,         /* a kind of device that QEMU must have been built with */
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

/* Does another host see the same bytes? */
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
  const char *source; /* path, device, POOL/VOLUME or PROTOCOL:NAME; NULL: a drive without a medium */
  const char *pool;   /* of a VOLUME, with its name */
  const char *volume;
  const char *format; /* of its image: "qcow2"; NULL: not said */
  MigDiskType type;
  MigDiskDevice device;
  MigStorage storage;
  MigCache cache;
  bool read_only;
  bool shareable;
  bool transient;
  bool optional;             /* startupPolicy: libvirt leaves the medium out where it is not */
  bool raw;                  /* its image is as large as the disk */
  bool job;                  /* a block job runs on it */
  uint64_t capacity_bytes;   /* as the guest sees it; 0: not known */
  uint64_t allocation_bytes; /* what its image takes; 0: not known */
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

/* What a host's libvirt says of a CPU. */
typedef enum MigCpuMatch {
  MIG_CPU_MATCH_UNSEEN, /* it cannot tell, or was not asked */
  MIG_CPU_MATCH_INCOMPATIBLE,
  MIG_CPU_MATCH_IDENTICAL,
  MIG_CPU_MATCH_SUPERSET /* the host has more */
} MigCpuMatch;

typedef struct MigCpuAnswer {
  MigCpuMatch match;
  const char *text; /* libvirt's, of what does not match; may be NULL */
} MigCpuAnswer;

typedef struct MigDomainFacts {
  char uuid[MIG_UUID_STRING_SIZE];
  const char *name;
  MigEndState state;
  bool persistent;
  uint64_t memory_bytes;     /* all that the guest may use, and so what is migrated at first */
  uint64_t local_disk_bytes; /* capacity of the writable disks that the policy may have to copy */
  unsigned local_disks;      /* how many those are; more than 0 with 0 bytes: their size is not known */
  bool passthrough;          /* a host device is assigned */
  const char *emulator;      /* path */
  const char *machine;
  const char *arch;
  const char *virt_type;
  MigDomainTags tags;

  uint64_t current_memory_bytes; /* what the balloon leaves it */
  unsigned vcpus;                /* all that may be plugged in */
  MigCpuMode cpu_mode;
  const char *cpu_model; /* of CUSTOM; or NULL */
  const char *cpu_xml;   /* the element; NULL: none */
  bool cpu_unchecked;    /* check='none': QEMU leaves out what the host lacks */
  bool cpu_not_migratable;
  bool cpu_invtsc;
  uint64_t tsc_frequency_hz; /* 0: not fixed */
  MigSet numa_nodes;         /* of the host, to which memory is bound */
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

  /* Of a survey only. */
  bool surveyed;
  bool io_error;   /* paused for one */
  const char *job; /* what libvirt does to the domain now, "backup"; NULL: nothing */
  unsigned snapshots;
  MigCpuAnswer cpu;      /* of an unchecked CPU: how it suits the source */
  MigSight certificates; /* of QEMU's TLS, at the node whose agent asks */

  MigStore *store;
} MigDomainFacts;

/* May the policy have to copy it? A disk of the guest's own that only this host sees. */
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
  const char *cpu_model; /* "EPYC-Rome"; as near as libvirt's models come */
  bool cpu_invtsc;
  uint64_t tsc_frequency_hz; /* 0: not known */
  bool tsc_scaling;
  MigSet cpus; /* empty: not known */
  MigSet numa_nodes;
  uint64_t memory_bytes;              /* 0: not known */
  MigPages pages[MIG_PAGE_SIZES_MAX]; /* the small ones, too */
  size_t n_pages;
  const char *const *security_models; /* NULL-terminated; NULL: not known */

  MigStore *store;
} MigHostFacts;

/* --- of a target --- */

typedef struct MigTargetDisk {
  MigSight sight;
  uint64_t capacity_bytes; /* PRESENT: as the guest would see it */
  bool pool;               /* a started pool is at its directory: libvirt can make it there */
  const char *pool_name;
  uint64_t pool_available_bytes;
} MigTargetDisk;

/* A host as the target of one domain. */
typedef struct MigTargetFacts {
  MigHostFacts host;
  MigEndState domain_state; /* of a domain with the same UUID */
  const char *other_uuid;   /* of another domain with the same name, or NULL */

  MigSight emulator; /* each of these is known only if the one before is PRESENT */
  MigSight virt_type;
  MigSight machine;
  const char *machines;  /* if it is ABSENT: some that are there */
  unsigned vcpus_max;    /* of the machine; 0: not known */
  uint64_t free_bytes;   /* memory that is free, or would be for the asking; UINT64_MAX: not known */
  uint64_t cached_bytes; /* how much of that is page cache */
  MigCpuAnswer cpu;      /* the domain's CPU */
  MigCpuAnswer host_cpu; /* the source's */
  MigTargetDisk *disks;  /* as many as the domain has */
  size_t n_disks;
  MigSight *needs; /* likewise */
  size_t n_needs;

  MigStore *store;
} MigTargetFacts;

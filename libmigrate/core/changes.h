/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain's next start would change: its running definition compared with the one for the next start. */
#pragma once

#include "libmigrate/core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value of a definition: libvirt's XML, flattened. */
typedef struct MigDefEntry {
  /* Which part: "" is the domain itself, anything else a device: its element, a space, and what identifies it among
   * its kind. "interface 52:54:00:12:34:56", "disk vda", "controller scsi 0", "video 0" */
  const char *item;
  /* Elements below the part's own, separated by '/', with '@' before an attribute: "source@bridge", "vcpu",
   * "driver/host@csum". If there are several of a name, its key or number follows: "cputune/vcpupin[0]@cpuset". */
  const char *path;
  const char *value; /* "": the element is there but empty. Sizes are in bytes */
  bool is_size;
  bool is_secret; /* compared but never shown */
} MigDefEntry;

/* virt's store owns everything in it. */
typedef struct MigDefinition {
  const MigDefEntry *entries; /* sorted by item, then by path (strcmp); no duplicates */
  size_t n;
  struct MigStore *store;
} MigDefinition;

/* What applies a change to the running domain, least disruptive first. */
typedef enum MigRemedy {
  MIG_REMEDY_HOTPLUG,   /* libvirt attaches, detaches or sets it while the guest runs */
  MIG_REMEDY_MIGRATION, /* a migration with the new definition */
  MIG_REMEDY_RESTART,   /* a shutdown and a start */
  MIG_REMEDY_COUNT
} MigRemedy;

const char *mig_remedy_name(MigRemedy remedy); /* NULL for a value out of range */
int mig_remedy_from_name(const char *name);    /* or MIG_ENUM_UNKNOWN */

#define MIG_CHANGE_VALUE_SIZE   240
#define MIG_CHANGE_MESSAGE_SIZE 800

/* One change of one aspect of one part. Texts are truncated to fit, perhaps within a UTF-8 character. */
typedef struct MigChange {
  const char *code;                 /* static: INTERFACE_MOVED */
  const char *item;                 /* as in the entry; borrowed from the definition */
  MigRemedy remedy;                 /* the least disruptive one that works */
  bool by_migration;                /* a migration works, too, or only a migration does */
  char live[MIG_CHANGE_VALUE_SIZE]; /* "source bridge='br0'"; "": not in the running domain */
  char next[MIG_CHANGE_VALUE_SIZE];
  char message[MIG_CHANGE_MESSAGE_SIZE]; /* whole sentences: what was seen, and what would help */
} MigChange;

/* Compares two definitions. What libvirt itself fills in at a start is not a change. Returns the total number of
 * changes, in the order of items, even if not all fit into ret_changes. */
size_t mig_changes(const MigDefinition *live, const MigDefinition *next, MigChange *ret_changes, size_t max);

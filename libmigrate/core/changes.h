/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the next start of a domain would change: its running definition against that of its next start. */
#pragma once

#include "libmigrate/core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value of a definition, as libvirt's XML has it, flattened. */
typedef struct MigDefEntry {
  /* Which part: "" is the domain itself, any other a device: its element, a space, and what tells it from others of its kind.
   * "interface 52:54:00:12:34:56", "disk vda", "controller scsi 0", "video 0" */
  const char *item;
  /* Elements below the part's own with '/' between them, '@' before an attribute: "source@bridge", "vcpu", "driver/host@csum".
   * Of several of a name, their key or number follows: "cputune/vcpupin[0]@cpuset". */
  const char *path;
  const char *value; /* "": the element is there, and is empty. Of a size: in bytes */
  bool is_size;
  bool is_secret; /* compared, and told nobody */
} MigDefEntry;

/* The store, of virt's, owns all that is in it. */
typedef struct MigDefinition {
  const MigDefEntry *entries; /* by item, then by path (strcmp); no two are the same */
  size_t n;
  struct MigStore *store;
} MigDefinition;

/* What brings a change into the running domain, from the one that disturbs least. */
typedef enum MigRemedy {
  MIG_REMEDY_HOTPLUG,   /* libvirt attaches, detaches or sets it while the guest runs */
  MIG_REMEDY_MIGRATION, /* a migration that is given the definition for its target */
  MIG_REMEDY_RESTART,   /* a shutdown and a start */
  MIG_REMEDY_COUNT
} MigRemedy;

const char *mig_remedy_name(MigRemedy remedy); /* NULL for a value out of range */
int mig_remedy_from_name(const char *name);    /* or MIG_ENUM_UNKNOWN */

#define MIG_CHANGE_VALUE_SIZE   240
#define MIG_CHANGE_MESSAGE_SIZE 800

/* One change: of one thing about one part. The texts are cut to size, perhaps within a character of UTF-8. */
typedef struct MigChange {
  const char *code;                 /* static: INTERFACE_MOVED */
  const char *item;                 /* as in the entry; borrowed from the definition */
  MigRemedy remedy;                 /* the least that will do */
  bool by_migration;                /* a migration would do as well, or alone */
  char live[MIG_CHANGE_VALUE_SIZE]; /* "source bridge='br0'"; "": the running domain has it not */
  char next[MIG_CHANGE_VALUE_SIZE];
  char message[MIG_CHANGE_MESSAGE_SIZE]; /* whole sentences: what was seen, and what would do */
} MigChange;

/* Compares. What libvirt itself fills in when it starts a domain is no change. Returns how many changes there are, in the
 * order of items, however many fit into ret_changes. */
size_t mig_changes(const MigDefinition *live, const MigDefinition *next, MigChange *ret_changes, size_t max);

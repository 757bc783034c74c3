/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of disks and media: where they are, which hosts see them, and what the target has of them.
 *
 * Sources: libvirt 9.0 qemuMigrationSrcIsSafe() and qemuMigrationDstPrecreateDisk(); QEMU's mirror job, which needs
 * images of exactly the same size; and QEMU's bdrv_co_flush(), which flushes nothing with cache='unsafe', so that the
 * target may read stale data. */
#include "libmigrate/core/rules.h"

#include <string.h>

/* Since 3.0 QEMU drops the target's page cache of a disk before it uses the disk there. */
#define QEMU_DROPS_CACHE 3000000

/* Starts or continues a list; `detail` may be NULL. */
static void list_disk(Text *seen, const char *lead, const MigDisk *disk, const char *detail) {
  text_lead(seen, lead);
  if (disk->source && detail)
    text_item(seen, "%s (%s: %s)", disk->target, disk->source, detail);
  else
    text_item(seen, "%s (%s)", disk->target, disk->source ? disk->source : detail ? detail : "no medium");
}

static bool is_copied(const MigCheckInput *in, const MigDisk *disk) {
  return rules_policy(in, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE && mig_disk_is_local(disk);
}

/* libvirt itself refuses these. It lets block devices pass, since any of them may be on a SAN. */
static bool is_local_and_left(const MigCheckInput *in, const MigDisk *disk) {
  return mig_disk_is_local(disk) && disk->type != MIG_DISK_BLOCK && !is_copied(in, disk);
}

/* The target's storage would have it under the same name. */
static bool has_a_place(const MigDisk *disk) {
  return disk->source && (disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_BLOCK ||
                          disk->type == MIG_DISK_DIR || disk->type == MIG_DISK_VOLUME);
}

static bool is_host_drive(const MigDisk *disk) {
  return disk->source && disk->type == MIG_DISK_BLOCK &&
         (disk->device == MIG_DISK_CDROM || disk->device == MIG_DISK_FLOPPY);
}

static const MigTargetDisk *at_target(const MigCheckInput *in, size_t i) {
  return i < in->target->n_disks ? &in->target->disks[i] : NULL;
}

/* libvirt creates it at the target, as the source describes it. */
static bool is_made_at_target(const MigCheckInput *in, const MigDisk *disk, const MigTargetDisk *there) {
  return rules_policy(in, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_ALL && is_copied(in, disk) &&
         disk->type != MIG_DISK_BLOCK && there->sight == MIG_SIGHT_ABSENT && there->pool;
}

bool rule_disk_transient(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++)
    if (in->domain->disks[i].transient)
      list_disk(seen, lead, &in->domain->disks[i], NULL);
  return text_end(seen);
}

bool rule_disk_nvme(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++)
    if (in->domain->disks[i].type == MIG_DISK_NVME)
      list_disk(seen, lead, &in->domain->disks[i], NULL);
  return text_end(seen);
}

bool rule_disk_local(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++)
    if (is_local_and_left(in, &in->domain->disks[i]))
      list_disk(seen, lead, &in->domain->disks[i], NULL);
  return text_end(seen);
}

static const char *fault_of_cache(const MigCheckInput *in, const MigDisk *disk) {
  uint64_t qemu = rules_qemu_version(in);
  if (disk->cache == MIG_CACHE_UNSAFE)
    return "unsafe";
  if (disk->cache == MIG_CACHE_NONE || disk->cache == MIG_CACHE_DIRECTSYNC || disk->shareable ||
      disk->type == MIG_DISK_NETWORK || qemu == 0 || qemu >= QEMU_DROPS_CACHE)
    return NULL;
  return disk->cache == MIG_CACHE_WRITETHROUGH ? "writethrough" : "writeback";
}

bool rule_disk_cache(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    const char *fault = fault_of_cache(in, disk);
    if (fault && mig_disk_is_writable(disk) && !disk->transient && !is_copied(in, disk))
      list_disk(seen, lead, disk, fault);
  }
  return text_end(seen);
}

bool rule_disk_missing(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    const MigTargetDisk *there = at_target(in, i);
    if (there && there->sight == MIG_SIGHT_ABSENT && mig_disk_is_writable(disk) && has_a_place(disk) &&
        !is_local_and_left(in, disk) && !is_made_at_target(in, disk, there))
      list_disk(seen, lead, disk, NULL);
  }
  return text_end(seen);
}

static bool list_sizes(const MigCheckInput *in, const char *lead, bool smaller, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    const MigTargetDisk *there = at_target(in, i);
    char detail[2 * TEXT_NUMBER_SIZE + 32];
    Text text = {.text = detail, .size = sizeof detail};
    if (!there || there->sight != MIG_SIGHT_PRESENT || !mig_disk_is_writable(disk) ||
        is_local_and_left(in, disk) || there->capacity_bytes == 0 || disk->capacity_bytes == 0)
      continue;
    if (smaller ? there->capacity_bytes >= disk->capacity_bytes
                : there->capacity_bytes <= disk->capacity_bytes)
      continue;
    /* To the byte: sizes that differ by a sector look the same in GiB. */
    text_add(&text, "%llu bytes at the target, %llu at the source", (unsigned long long)there->capacity_bytes,
             (unsigned long long)disk->capacity_bytes);
    list_disk(seen, lead, disk, detail);
  }
  return text_end(seen);
}

bool rule_disk_too_small(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_sizes(in, lead, true, seen);
}

bool rule_disk_size_differs(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_sizes(in, lead, false, seen);
}

/* How much room the copied image needs. */
static uint64_t room_for(const MigDisk *disk) {
  return !disk->raw && disk->allocation_bytes > 0 ? disk->allocation_bytes : disk->capacity_bytes;
}

static bool is_same_pool(const MigTargetDisk *a, const MigTargetDisk *b) {
  return a->pool_name && b->pool_name && strcmp(a->pool_name, b->pool_name) == 0;
}

bool rule_pool_space(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  for (size_t i = 0; i < domain->n_disks; i++) {
    const MigTargetDisk *there = at_target(in, i);
    char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
    uint64_t needed = 0;
    bool first = true;
    if (!there || !there->pool_name || !is_made_at_target(in, &domain->disks[i], there))
      continue;
    for (size_t other = 0; other < domain->n_disks; other++) {
      const MigTargetDisk *too = at_target(in, other);
      if (!too || !is_same_pool(there, too) || !is_made_at_target(in, &domain->disks[other], too))
        continue;
      first = first && other >= i;
      needed += room_for(&domain->disks[other]);
    }
    if (!first || needed <= there->pool_available_bytes)
      continue;
    text_lead(seen, lead);
    text_item(seen, "%s in pool %s, which has %s free", text_bytes(needed, a), there->pool_name,
              text_bytes(there->pool_available_bytes, b));
  }
  return text_end(seen);
}

bool rule_host_drive(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++)
    if (is_host_drive(&in->domain->disks[i]))
      list_disk(seen, lead, &in->domain->disks[i], NULL);
  return text_end(seen);
}

/* Read-only media are never copied. */
bool rule_media(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    const MigTargetDisk *there = at_target(in, i);
    if (there && there->sight == (MigSight)argument && has_a_place(disk) && !mig_disk_is_writable(disk) &&
        !is_host_drive(disk) && !disk->optional)
      list_disk(seen, lead, disk, NULL);
  }
  return text_end(seen);
}

bool rule_storage_unknown(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    if (disk->storage == MIG_STORAGE_UNKNOWN && has_a_place(disk) && mig_disk_is_writable(disk) &&
        !disk->transient)
      list_disk(seen, lead, disk, NULL);
  }
  return text_end(seen);
}

bool rule_disk_unseen(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    const MigDisk *disk = &in->domain->disks[i];
    const MigTargetDisk *there = at_target(in, i);
    if (there && there->sight == MIG_SIGHT_UNSEEN && mig_disk_is_writable(disk) && has_a_place(disk) &&
        !is_local_and_left(in, disk) && !disk->transient)
      list_disk(seen, lead, disk, NULL);
  }
  return text_end(seen);
}

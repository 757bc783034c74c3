/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small helpers on facts. */
#include "libmigrate/core/facts.h"

#include "libmigrate/core/table.h"

#define WORD_BITS 64

void mig_set_add(MigSet *set, unsigned number) {
  if (number < MIG_SET_MAX)
    set->words[number / WORD_BITS] |= UINT64_C(1) << (number % WORD_BITS);
}

bool mig_set_has(const MigSet *set, unsigned number) {
  return number < MIG_SET_MAX && (set->words[number / WORD_BITS] >> (number % WORD_BITS) & 1) != 0;
}

static unsigned count_bits(uint64_t word) {
  unsigned count = 0;
  for (; word; word &= word - 1)
    count++;
  return count;
}

unsigned mig_set_count(const MigSet *set) {
  return mig_set_count_common(set, set);
}

unsigned mig_set_count_common(const MigSet *a, const MigSet *b) {
  unsigned count = 0;
  for (size_t i = 0; i < TABLE_LENGTH(a->words); i++)
    count += count_bits(a->words[i] & b->words[i]);
  return count;
}

bool mig_disk_is_writable(const MigDisk *disk) {
  return disk->source && !disk->read_only && (disk->device == MIG_DISK_DISK || disk->device == MIG_DISK_LUN);
}

bool mig_disk_is_local(const MigDisk *disk) {
  bool kind = disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_BLOCK || disk->type == MIG_DISK_DIR ||
              disk->type == MIG_DISK_VOLUME;
  return mig_disk_is_writable(disk) && kind && disk->storage == MIG_STORAGE_LOCAL && !disk->shareable &&
         !disk->transient && disk->target;
}

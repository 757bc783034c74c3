/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which of the domain's disks and files the target's storage pools have. */
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

#include <string.h>

static bool note_volume(virStorageVolPtr volume, MigTargetDisk *ret_disk) {
  virStorageVolInfo info;

  if (!volume)
    return false;
  ret_disk->sight = MIG_SIGHT_PRESENT;
  /* This reads the image, so the size is current; the pool may have been refreshed long ago. */
  if (virStorageVolGetInfo(volume, &info) == 0)
    ret_disk->capacity_bytes = info.capacity;
  return true;
}

static void note_pool(virStoragePoolPtr pool, MigStore *store, MigTargetDisk *ret_disk) {
  virStoragePoolInfo info;

  ret_disk->pool = true;
  ret_disk->pool_name = mig_store_string(store, virStoragePoolGetName(pool));
  ret_disk->pool_available_bytes = virStoragePoolGetInfo(pool, &info) == 0 ? info.available : UINT64_MAX;
}

static virStoragePoolPtr pool_at_directory_of(virConnectPtr vir, const char *path) {
  g_autofree char *directory = g_path_get_dirname(path);

  return virStoragePoolLookupByTargetPath(vir, directory);
}

void mig_look_for_path(virConnectPtr vir, const char *path, MigStore *store, MigTargetDisk *ret_disk) {
  g_autoptr(virStorageVol) volume = virStorageVolLookupByPath(vir, path);
  g_autoptr(virStorageVol) again = NULL;
  g_autoptr(virStoragePool) pool = NULL;

  if (note_volume(volume, ret_disk) || virGetLastErrorCode() != VIR_ERR_NO_STORAGE_VOL)
    return;
  pool = pool_at_directory_of(vir, path);
  if (!pool)
    return;
  /* A busy pool cannot be refreshed, so it is not certain that it lacks the file. */
  if (virStoragePoolRefresh(pool, 0) < 0)
    return;
  again = virStorageVolLookupByPath(vir, path);
  if (note_volume(again, ret_disk))
    return;
  ret_disk->sight = MIG_SIGHT_ABSENT;
  note_pool(pool, store, ret_disk);
}

static void look_for_volume(virConnectPtr vir, const MigDisk *disk, MigStore *store,
                            MigTargetDisk *ret_disk) {
  g_autoptr(virStoragePool) pool = virStoragePoolLookupByName(vir, disk->pool);
  g_autoptr(virStorageVol) volume = NULL;
  g_autoptr(virStorageVol) again = NULL;

  if (!pool) {
    ret_disk->sight = virGetLastErrorCode() == VIR_ERR_NO_STORAGE_POOL ? MIG_SIGHT_ABSENT : MIG_SIGHT_UNSEEN;
    return;
  }
  if (virStoragePoolIsActive(pool) != 1) {
    ret_disk->sight = MIG_SIGHT_ABSENT;
    return;
  }
  volume = virStorageVolLookupByName(pool, disk->volume);
  if (note_volume(volume, ret_disk) || virStoragePoolRefresh(pool, 0) < 0)
    return;
  again = virStorageVolLookupByName(pool, disk->volume);
  if (note_volume(again, ret_disk))
    return;
  ret_disk->sight = MIG_SIGHT_ABSENT;
  note_pool(pool, store, ret_disk);
}

void mig_look_for_disk(virConnectPtr vir, const MigDisk *disk, MigStore *store, MigTargetDisk *ret_disk) {
  virResetLastError();
  if (!disk->source)
    return;
  if (disk->type == MIG_DISK_VOLUME && disk->pool && disk->volume)
    look_for_volume(vir, disk, store, ret_disk);
  else if (disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_BLOCK || disk->type == MIG_DISK_DIR)
    mig_look_for_path(vir, disk->source, store, ret_disk);
}

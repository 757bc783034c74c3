/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disk images at a host: made for a domain that is to come, and removed when it does not. libvirt's storage pools do both, so
 * that owner, label and format are what they are for its own volumes. */
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

#include <inttypes.h>
#include <string.h>

static virStoragePoolPtr find_pool(virConnectPtr vir, const MigImage *image) {
  g_autofree char *directory = g_path_get_dirname(image->path);

  return image->pool ? virStoragePoolLookupByName(vir, image->pool)
                     : virStoragePoolLookupByTargetPath(vir, directory);
}

static char *name_of(const MigImage *image) {
  return image->volume ? g_strdup(image->volume) : g_path_get_basename(image->path);
}

/* Sparse: it grows as it is written, as libvirt itself would have made it. */
static char *describe(const char *name, const MigImage *image) {
  return g_markup_printf_escaped(
      "<volume><name>%s</name><capacity unit='bytes'>%" PRIu64 "</capacity>"
      "<allocation unit='bytes'>0</allocation><target><format type='%s'/></target></volume>",
      name, image->capacity_bytes, image->format);
}

bool mig_libvirt_make_image(MigConn *conn, const MigImage *image, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virStoragePool) pool = NULL;
  g_autoptr(virStorageVol) there = NULL;
  g_autoptr(virStorageVol) made = NULL;
  g_autofree char *name = name_of(image);
  g_autofree char *xml = describe(name, image);

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  pool = find_pool(lease.vir, image);
  if (!pool)
    return mig_virt_error_take(error, "no started storage pool covers %s", image->path);
  /* A pool knows what was there when it was read last, and a qcow2 image is made over what is there. */
  if (virStoragePoolRefresh(pool, 0) < 0)
    return mig_virt_error_take(error, "cannot read the storage pool of %s anew", image->path);
  there = virStorageVolLookupByName(pool, name);
  if (there) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_EXISTS, "%s is there already", image->path);
    return false;
  }
  made = virStorageVolCreateXML(pool, xml, 0);
  if (!made)
    return mig_virt_error_take(error, "cannot make the image %s", image->path);
  virResetLastError();
  return true;
}

/* What is there under the name has to be what was made: of that size. */
static bool is_image(virStorageVolPtr volume, const MigImage *image, GError **error) {
  virStorageVolInfo info;

  if (virStorageVolGetInfo(volume, &info) < 0)
    return mig_virt_error_take(error, "cannot read the size of %s", image->path);
  if (info.capacity == image->capacity_bytes)
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID,
              "%s has %llu bytes and not the %" PRIu64 " that it was made with: it is left alone",
              image->path, info.capacity, image->capacity_bytes);
  return false;
}

bool mig_libvirt_remove_image(MigConn *conn, const MigImage *image, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virStoragePool) pool = NULL;
  g_autoptr(virStorageVol) volume = NULL;
  g_autofree char *name = name_of(image);

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  pool = find_pool(lease.vir, image);
  if (!pool || virStoragePoolRefresh(pool, 0) < 0)
    return mig_virt_error_take(error, "cannot read the storage pool of %s", image->path);
  volume = virStorageVolLookupByName(pool, name);
  if (!volume && virGetLastErrorCode() == VIR_ERR_NO_STORAGE_VOL) {
    virResetLastError();
    return true;
  }
  if (!volume)
    return mig_virt_error_take(error, "cannot look up the image %s", image->path);
  if (!is_image(volume, image, error))
    return false;
  if (virStorageVolDelete(volume, 0) < 0)
    return mig_virt_error_take(error, "cannot remove the image %s", image->path);
  return true;
}

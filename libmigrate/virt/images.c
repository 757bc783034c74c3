/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disk images on a host: created for a domain that is expected, and removed if it does not come. libvirt's storage pools do
 * both, so that owner, label and format are as for any of its volumes.
 *
 * A new image gets a stamp: its size on the file system and its last modification, as libvirt reports them, since this process
 * may not be allowed to look. libvirt reads both afresh each time it is asked for a volume's XML. An image that has been written
 * to since, even if only by an unfinished copy of the guest's disk, is removed by nobody but an operator. */
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

/* Sparse, as libvirt itself would create it. */
static char *describe(const char *name, const MigImage *image) {
  return g_markup_printf_escaped(
      "<volume><name>%s</name><capacity unit='bytes'>%" PRIu64 "</capacity>"
      "<allocation unit='bytes'>0</allocation><target><format type='%s'/></target></volume>",
      name, image->capacity_bytes, image->format);
}

void mig_volume_xml_stamp(const char *text, MigImageStamp *ret_stamp) {
  g_auto(MigXml) xml = {0};
  g_autofree char *type = NULL, *mtime = NULL;

  *ret_stamp = (MigImageStamp){0};
  if (!mig_xml_parse(text, "volume", &xml))
    return;
  type = mig_xml_string(&xml, NULL, "/volume/@type");
  mtime = mig_xml_string(&xml, NULL, "/volume/target/timestamps/mtime");
  ret_stamp->allocation_bytes = mig_xml_size(&xml, NULL, "/volume/allocation", "/volume/allocation/@unit");
  ret_stamp->physical_bytes = mig_xml_size(&xml, NULL, "/volume/physical", "/volume/physical/@unit");
  ret_stamp->known = g_strcmp0(type, "file") == 0 && mtime && strlen(mtime) < sizeof ret_stamp->mtime;
  if (ret_stamp->known)
    g_strlcpy(ret_stamp->mtime, mtime, sizeof ret_stamp->mtime);
}

static void read_stamp(virStorageVolPtr volume, MigImageStamp *ret_stamp) {
  char *text = virStorageVolGetXMLDesc(volume, 0);

  *ret_stamp = (MigImageStamp){0};
  if (text)
    mig_volume_xml_stamp(text, ret_stamp);
  virResetLastError();
  free(text);
}

bool mig_libvirt_make_image(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp, GError **error) {
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
    return mig_virt_error_take(error, "no active storage pool covers %s", image->path);
  /* A pool knows only what existed at its last refresh, and creating a qcow2 image overwrites an existing file. */
  if (virStoragePoolRefresh(pool, 0) < 0)
    return mig_virt_error_take(error, "cannot refresh the storage pool of %s", image->path);
  there = virStorageVolLookupByName(pool, name);
  if (there) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_EXISTS, "%s already exists", image->path);
    return false;
  }
  made = virStorageVolCreateXML(pool, xml, 0);
  if (!made)
    return mig_virt_error_take(error, "cannot create the image %s", image->path);
  read_stamp(made, ret_stamp);
  return true;
}

G_GNUC_PRINTF(2, 3)
static bool refuse(GError **error, const char *format, ...) {
  va_list arguments;

  va_start(arguments, format);
  g_propagate_error(error, g_error_new_valist(MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, format, arguments));
  va_end(arguments);
  return false;
}

/* Is the volume the image that was created, and has nobody written to it? */
static bool is_as_made(virStorageVolPtr volume, const MigImage *image, const MigImageStamp *stamp,
                       GError **error) {
  virStorageVolInfo info;
  MigImageStamp now;

  if (virStorageVolGetInfo(volume, &info) < 0)
    return mig_virt_error_take(error, "cannot read the size of %s", image->path);
  if (info.capacity != image->capacity_bytes)
    return refuse(error, "its size is %llu bytes, but it was created with %" PRIu64, info.capacity,
                  image->capacity_bytes);
  read_stamp(volume, &now);
  if (!stamp->known || !now.known)
    return refuse(error, "cannot tell whether anybody has written to it");
  if (strcmp(stamp->mtime, now.mtime) != 0 || stamp->allocation_bytes != now.allocation_bytes ||
      stamp->physical_bytes != now.physical_bytes)
    return refuse(error, "it has been written to since it was created (%" PRIu64 " bytes allocated)",
                  now.allocation_bytes);
  return true;
}

/* The last check before the removal. */
static bool is_absent(const MigLease *lease, const MigImageGuard *guard, GError **error) {
  g_autoptr(virDomain) domain = virDomainLookupByUUIDString(lease->vir, guard->domain_uuid);

  if (domain) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_BUSY, "the domain exists on this host");
    return false;
  }
  if (virGetLastErrorCode() != VIR_ERR_NO_DOMAIN)
    return mig_virt_error_take(error, "cannot look up the domain");
  virResetLastError();
  if (!g_atomic_int_get(guard->called_off) && g_get_monotonic_time() < guard->until_us)
    return true;
  g_set_error(
      error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
      "there was news of the domain meanwhile, or libvirtd took so long that the domain may have arrived");
  return false;
}

bool mig_libvirt_remove_image(MigConn *conn, const MigImage *image, const MigImageGuard *guard,
                              GError **error) {
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
  if (!is_as_made(volume, image, &guard->stamp, error) || !is_absent(&lease, guard, error))
    return false;
  if (virStorageVolDelete(volume, 0) < 0)
    return mig_virt_error_take(error, "cannot remove the image %s", image->path);
  return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Facts of a host and of a domain, as their libvirtd reports them. */
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

#include <string.h>

bool mig_read_host(const MigLease *lease, MigHostFacts *ret_facts, GError **error) {
  const char *uri = lease->conn->uri;
  g_auto(MigHostFacts) facts = {0};
  unsigned long version = 0;
  char *text;
  bool ok;

  text = virConnectGetCapabilities(lease->vir);
  if (!text)
    return mig_virt_error_take(error, "cannot read the host's capabilities (%s)", uri);
  ok = mig_capabilities_parse(text, &facts, error);
  free(text);
  if (!ok)
    return false;

  text = virConnectGetHostname(lease->vir);
  if (!text)
    return mig_virt_error_take(error, "cannot read the host's name (%s)", uri);
  facts.hostname = mig_store_string(facts.store, text);
  free(text);

  if (virConnectGetLibVersion(lease->vir, &version) < 0)
    return mig_virt_error_take(error, "cannot read libvirt's version (%s)", uri);
  facts.libvirt_version = version;

  /* Fails on a host without an emulator, which is still a host. 0 means unknown. */
  if (virConnectGetVersion(lease->vir, &version) == 0)
    facts.hypervisor_version = version;
  virResetLastError();

  *ret_facts = facts;
  memset(&facts, 0, sizeof facts);
  return true;
}

bool mig_libvirt_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error) {
  g_auto(MigLease) lease = {0};

  return mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error) && mig_read_host(&lease, ret_facts, error);
}

GPtrArray *mig_libvirt_list_active(MigConn *conn, GError **error) {
  g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(mig_active_domain_free);
  g_auto(MigLease) lease = {0};
  virDomainPtr *domains = NULL;
  int n;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return NULL;
  n = virConnectListAllDomains(lease.vir, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
  if (n < 0) {
    mig_virt_error_take(error, "cannot list the active domains at %s", lease.conn->uri);
    return NULL;
  }
  for (int i = 0; i < n; i++) {
    MigActiveDomain *domain = g_new0(MigActiveDomain, 1);

    /* Both come from the handle, without a call that could fail. */
    virDomainGetUUIDString(domains[i], domain->uuid);
    domain->name = g_strdup(virDomainGetName(domains[i]));
    g_ptr_array_add(list, domain);
    virDomainFree(domains[i]);
  }
  free(domains);
  return g_steal_pointer(&list);
}

/* A name may look like a UUID. The UUID goes first, since it is unique. */
virDomainPtr mig_find_domain(const MigLease *lease, const char *name_or_uuid, GError **error) {
  virDomainPtr domain = NULL;

  if (g_uuid_string_is_valid(name_or_uuid)) {
    domain = virDomainLookupByUUIDString(lease->vir, name_or_uuid);
    if (!domain && virGetLastErrorCode() != VIR_ERR_NO_DOMAIN) {
      mig_virt_error_take(error, "cannot look up domain %s", name_or_uuid);
      return NULL;
    }
  }
  if (!domain)
    domain = virDomainLookupByName(lease->vir, name_or_uuid);
  if (!domain)
    mig_virt_error_take(error, "cannot look up domain %s", name_or_uuid);
  return domain;
}

static MigStorage look_at_storage(const char *path, gpointer user_data) {
  return mig_storage_look(path);
}

/* Only its pool tells what a block device is: another host may see the same iSCSI or SAN device. */
static MigStorage look_at_device(virStoragePoolPtr pool) {
  char *text = virStoragePoolGetXMLDesc(pool, 0);
  MigStorage storage = text ? mig_pool_xml_storage(text) : MIG_STORAGE_UNKNOWN;

  free(text);
  return storage;
}

/* Only its pool knows the path of a volume. */
static MigStorage look_at_volume(virConnectPtr vir, const MigDisk *disk) {
  g_autoptr(virStoragePool) pool = virStoragePoolLookupByName(vir, disk->pool);
  g_autoptr(virStorageVol) volume = pool ? virStorageVolLookupByName(pool, disk->volume) : NULL;
  char *path = volume ? virStorageVolGetPath(volume) : NULL;
  bool device = path && g_str_has_prefix(path, "/dev/");
  MigStorage storage = device ? look_at_device(pool) : mig_storage_look(path);

  free(path);
  virResetLastError();
  return storage;
}

bool mig_read_domain_xml(virDomainPtr domain, const char *name, MigDomainFacts *ret_facts, GError **error) {
  char *text = virDomainGetXMLDesc(domain, 0);
  bool ok;

  if (!text)
    return mig_virt_error_take(error, "cannot read the XML of domain %s", name);
  ok = mig_domain_xml_parse(text, ret_facts, error);
  if (ok)
    mig_domain_tags_parse(text, &ret_facts->tags);
  free(text);
  if (!ok)
    return false;
  for (size_t i = 0; i < ret_facts->n_disks; i++) {
    MigDisk *disk = &ret_facts->disks[i];

    if (disk->type == MIG_DISK_VOLUME && disk->pool && disk->volume)
      disk->storage = look_at_volume(virDomainGetConnect(domain), disk);
  }
  mig_storage_classify(ret_facts, look_at_storage, NULL);
  return true;
}

virDomainPtr mig_read_domain(const MigLease *lease, const char *name_or_uuid, MigDomainFacts *ret_facts,
                             GError **error) {
  g_autoptr(virDomain) domain = mig_find_domain(lease, name_or_uuid, error);
  g_auto(MigDomainFacts) facts = {0};
  int state, reason, persistent;

  if (!domain || !mig_read_domain_xml(domain, name_or_uuid, &facts, error))
    return NULL;
  if (virDomainGetUUIDString(domain, facts.uuid) < 0 || virDomainGetState(domain, &state, &reason, 0) < 0) {
    mig_virt_error_take(error, "cannot read the state of domain %s", name_or_uuid);
    return NULL;
  }
  persistent = virDomainIsPersistent(domain);
  if (persistent < 0) {
    mig_virt_error_take(error, "cannot read whether domain %s is persistent", name_or_uuid);
    return NULL;
  }
  facts.state = mig_state_from_libvirt(state, reason);
  facts.io_error = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_IOERROR;
  facts.persistent = persistent;
  *ret_facts = facts;
  memset(&facts, 0, sizeof facts);
  return g_steal_pointer(&domain);
}

void mig_read_disk_size(virDomainPtr domain, MigDomainFacts *facts, MigDisk *disk) {
  virDomainBlockInfo info;

  /* A disk whose size cannot be read still counts as a disk. */
  if (!disk->target || virDomainGetBlockInfo(domain, disk->target, &info, 0) < 0)
    return;
  disk->capacity_bytes = info.capacity;
  disk->allocation_bytes = info.allocation;
  if (mig_disk_is_local(disk))
    facts->local_disk_bytes += info.capacity;
}

bool mig_libvirt_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                              GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = NULL;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  domain = mig_read_domain(&lease, name_or_uuid, ret_facts, error);
  if (!domain)
    return false;
  for (size_t i = 0; i < ret_facts->n_disks; i++)
    if (mig_disk_is_local(&ret_facts->disks[i]))
      mig_read_disk_size(domain, ret_facts, &ret_facts->disks[i]);
  virResetLastError();
  return true;
}

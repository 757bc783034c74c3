/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a host and a domain are, from libvirt's XML. */
#include "libmigrate/virt/libvirt.h"

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <string.h>
#include <sys/vfs.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathContext, xmlXPathFreeContext)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathObject, xmlXPathFreeObject)

void mig_host_facts_clear(MigHostFacts *facts) {
  g_free(facts->hostname);
  memset(facts, 0, sizeof *facts);
}

void mig_domain_facts_clear(MigDomainFacts *facts) {
  g_free(facts->name);
  g_free(facts->emulator);
  g_free(facts->machine);
  g_free(facts->arch);
  g_free(facts->virt_type);
  mig_domain_tags_clear(&facts->tags);
  memset(facts, 0, sizeof *facts);
}

void mig_domain_xml_clear(MigDomainXml *xml) {
  g_free(xml->name);
  g_free(xml->emulator);
  g_free(xml->machine);
  g_free(xml->arch);
  g_free(xml->virt_type);
  g_strfreev(xml->local_disks);
  memset(xml, 0, sizeof *xml);
}

static xmlDoc *parse(const char *text) {
  return xmlReadMemory(text, (int)strlen(text), NULL, NULL,
                       XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
}

/* NULL if there is no such node, or an empty one. */
static char *xpath_string(xmlXPathContext *context, const char *path) {
  g_autoptr(xmlXPathObject) found = xmlXPathEvalExpression(BAD_CAST path, context);
  xmlChar *text;
  char *copy;

  if (!found || found->type != XPATH_NODESET || xmlXPathNodeSetIsEmpty(found->nodesetval))
    return NULL;
  text = xmlXPathCastToString(found);
  copy = *text ? g_strdup((const char *)text) : NULL;
  xmlFree(text);
  return copy;
}

static bool xpath_boolean(xmlXPathContext *context, const char *path) {
  g_autoptr(xmlXPathObject) found = xmlXPathEvalExpression(BAD_CAST path, context);

  return found && xmlXPathCastToBoolean(found) == 1;
}

/* The units that libvirt's schema has for sizes. It prints KiB itself; definitions by hand may be seen at a
 * driver that keeps them. */
static uint64_t unit_bytes(const char *unit) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } units[] = {
      {"b", 1},
      {"bytes", 1},
      {"KB", 1000},
      {"k", 1024},
      {"KiB", 1024},
      {"MB", 1000 * 1000},
      {"M", MIG_MIB_BYTES},
      {"MiB", MIG_MIB_BYTES},
      {"GB", UINT64_C(1000) * 1000 * 1000},
      {"G", MIG_GIB_BYTES},
      {"GiB", MIG_GIB_BYTES},
      {"TB", UINT64_C(1000) * 1000 * 1000 * 1000},
      {"T", MIG_GIB_BYTES * 1024},
      {"TiB", MIG_GIB_BYTES * 1024},
  };

  for (size_t i = 0; unit && i < G_N_ELEMENTS(units); i++)
    if (strcmp(unit, units[i].name) == 0)
      return units[i].bytes;

  return 1024;
}

/* File systems that two hosts may have mounted at once. A disk on one is not to be copied: the copy would be
 * written into the very file that it is read from. From libvirt's own list (virFileIsSharedFS). */
static bool on_shared_filesystem(const char *path) {
  static const uint64_t magics[] = {
      0x6969,     /* NFS */
      0x01161970, /* GFS2 */
      0x7461636f, /* OCFS2 */
      0x5346414f, /* AFS */
      0xFF534D42, /* CIFS */
      0xFE534D42, /* SMB2 */
      0x00C36400, /* CephFS */
      0x47504653, /* GPFS */
      0x65735546, /* FUSE: GlusterFS and others; libvirt looks further, we need not: copying is the exception
                   */
      0x7C7C6673, /* parallels */
      0xaad7aaea, /* PanFS */
      0x0BD00BD0, /* Lustre */
      0x19830326, /* BeeGFS */
  };
  struct statfs fs;

  if (!path || statfs(path, &fs) < 0)
    return false;
  for (size_t i = 0; i < G_N_ELEMENTS(magics); i++)
    if ((uint32_t)fs.f_type == magics[i])
      return true;

  return false;
}

/* Files and block devices that the guest may write to and only this host sees. Network disks are reached from
 * the target as well, although libvirt's own default would copy them. */
static char **local_disks(xmlXPathContext *context) {
  g_autoptr(xmlXPathObject) disks = xmlXPathEvalExpression(
      BAD_CAST "/domain/devices/disk[(@type='file' or @type='block' or @type='volume' or @type='dir')"
               " and (not(@device) or @device='disk' or @device='lun')"
               " and not(readonly) and not(shareable) and not(transient) and source and target/@dev]",
      context);
  g_autoptr(GPtrArray) names = g_ptr_array_new();

  for (int i = 0; disks && disks->nodesetval && i < disks->nodesetval->nodeNr; i++) {
    g_autofree char *path = NULL;

    context->node = disks->nodesetval->nodeTab[i];
    path = xpath_string(context, "./source/@file | ./source/@dev | ./source/@dir");
    if (!on_shared_filesystem(path))
      g_ptr_array_add(names, xpath_string(context, "./target/@dev"));
  }
  context->node = NULL;
  g_ptr_array_add(names, NULL);
  return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

bool mig_domain_xml_parse(const char *text, MigDomainXml *ret_xml, GError **error) {
  g_autoptr(xmlDoc) doc = parse(text);
  g_autoptr(xmlXPathContext) context = doc ? xmlXPathNewContext(doc) : NULL;
  g_autofree char *memory = NULL, *unit = NULL;
  uint64_t number = 0;

  if (!context || !xpath_boolean(context, "/domain")) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                        "libvirt's XML of the domain cannot be read");
    return false;
  }

  memory = xpath_string(context, "/domain/memory");
  unit = xpath_string(context, "/domain/memory/@unit");
  if (memory)
    number = g_ascii_strtoull(g_strstrip(memory), NULL, 10);

  *ret_xml = (MigDomainXml){
      .name = xpath_string(context, "/domain/name"),
      .memory_bytes = number * unit_bytes(unit),
      /* libvirt itself lets USB devices pass; for us each is a device of this host that the target has not.
       */
      .passthrough =
          xpath_boolean(context, "/domain/devices/hostdev | /domain/devices/interface[@type='hostdev'"
                                 " or @type='vdpa']"),
      .emulator = xpath_string(context, "/domain/devices/emulator"),
      .machine = xpath_string(context, "/domain/os/type/@machine"),
      .arch = xpath_string(context, "/domain/os/type/@arch"),
      .virt_type = xpath_string(context, "/domain/@type"),
      .local_disks = local_disks(context),
  };
  return true;
}

char *mig_capabilities_host_uuid(const char *text) {
  g_autoptr(xmlDoc) doc = parse(text);
  g_autoptr(xmlXPathContext) context = doc ? xmlXPathNewContext(doc) : NULL;

  return context ? xpath_string(context, "/capabilities/host/uuid") : NULL;
}

bool mig_libvirt_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error) {
  g_auto(MigLease) lease = {0};
  g_auto(MigHostFacts) facts = {0};
  g_autofree char *uuid = NULL;
  unsigned long version = 0;
  char *text;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;

  text = virConnectGetCapabilities(lease.vir);
  if (!text)
    return mig_virt_error_take(error, "cannot read the host's capabilities (%s)", conn->uri);
  uuid = mig_capabilities_host_uuid(text);
  free(text);
  g_strlcpy(facts.uuid, uuid ? uuid : "", sizeof facts.uuid);

  text = virConnectGetHostname(lease.vir);
  if (!text)
    return mig_virt_error_take(error, "cannot read the host's name (%s)", conn->uri);
  facts.hostname = g_strdup(text);
  free(text);

  if (virConnectGetLibVersion(lease.vir, &version) < 0)
    return mig_virt_error_take(error, "cannot read libvirt's version (%s)", conn->uri);
  facts.libvirt_version = version;

  /* Fails on a host without any emulator, which is still a host: 0 says unknown. */
  if (virConnectGetVersion(lease.vir, &version) == 0)
    facts.hypervisor_version = version;
  virResetLastError();

  *ret_facts = facts;
  memset(&facts, 0, sizeof facts);
  return true;
}

/* A name may look like a UUID: the UUID goes first, since it cannot be anybody else's. */
static virDomainPtr lookup(const MigLease *lease, const char *name_or_uuid, GError **error) {
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

bool mig_libvirt_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                              GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = NULL;
  g_auto(MigDomainXml) xml = {0};
  MigDomainFacts facts = {0};
  int state, reason, persistent;
  char *text;
  bool ok;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  domain = lookup(&lease, name_or_uuid, error);
  if (!domain)
    return false;
  if (virDomainGetUUIDString(domain, facts.uuid) < 0 || virDomainGetState(domain, &state, &reason, 0) < 0)
    return mig_virt_error_take(error, "cannot read the state of domain %s", name_or_uuid);
  persistent = virDomainIsPersistent(domain);
  if (persistent < 0)
    return mig_virt_error_take(error, "cannot read whether domain %s is persistent", name_or_uuid);

  text = virDomainGetXMLDesc(domain, 0);
  if (!text)
    return mig_virt_error_take(error, "cannot read the XML of domain %s", name_or_uuid);
  ok = mig_domain_xml_parse(text, &xml, error);
  if (ok)
    mig_domain_tags_parse(text, &facts.tags);
  free(text);
  if (!ok)
    return false;

  for (char **disk = xml.local_disks; *disk; disk++) {
    virDomainBlockInfo info;

    /* A disk whose size cannot be had still counts as one. */
    facts.local_disks++;
    if (virDomainGetBlockInfo(domain, *disk, &info, 0) == 0)
      facts.local_disk_bytes += info.capacity;
  }
  virResetLastError();

  facts.state = mig_state_from_libvirt(state, reason);
  facts.persistent = persistent;
  facts.memory_bytes = xml.memory_bytes;
  facts.passthrough = xml.passthrough;
  facts.name = g_steal_pointer(&xml.name);
  facts.emulator = g_steal_pointer(&xml.emulator);
  facts.machine = g_steal_pointer(&xml.machine);
  facts.arch = g_steal_pointer(&xml.arch);
  facts.virt_type = g_steal_pointer(&xml.virt_type);
  *ret_facts = facts;
  return true;
}

bool mig_libvirt_warm_target(MigConn *target, const MigDomainFacts *facts, GError **error) {
  g_auto(MigLease) lease = {0};
  char *text;

  if (!mig_lease_take(target, MIG_LEASE_SHORT, &lease, error))
    return false;
  text = virConnectGetDomainCapabilities(lease.vir, facts->emulator, facts->arch, facts->machine,
                                         facts->virt_type, 0);
  if (!text)
    return mig_virt_error_take(error, "the target cannot tell what %s can do there (%s)",
                               facts->emulator ? facts->emulator : "the emulator", target->uri);
  free(text);
  return true;
}

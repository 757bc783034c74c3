/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's live definition, and that of its next start. */
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

/* Reads the XML as a migration would carry it. That leaves out what libvirt fills in for this run: names of tap devices,
 * ports, what a network resolves to, what a CPU model expands to. So any difference to the next start's definition is a
 * change that somebody made. The XML includes passwords, which definition-xml.c marks as secret. */
static bool read_xml(virDomainPtr domain, const char *name, unsigned flags, MigDefinition *ret_definition,
                     GError **error) {
  char *text = virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_MIGRATABLE | flags);
  bool ok;

  if (!text)
    return mig_virt_error_take(error, "cannot read the XML of domain %s", name);
  ok = mig_definition_parse(text, ret_definition, error);
  free(text);
  return ok;
}

bool mig_libvirt_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                             GError **error) {
  g_auto(MigDefinitions) found = {0};
  g_autoptr(virDomain) domain = NULL;
  g_auto(MigLease) lease = {0};
  int active, persistent;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  domain = mig_find_domain(&lease, name_or_uuid, error);
  if (!domain)
    return false;
  active = virDomainIsActive(domain);
  persistent = active < 0 ? -1 : virDomainIsPersistent(domain);
  if (persistent < 0 || virDomainGetUUIDString(domain, found.uuid) < 0)
    return mig_virt_error_take(error, "cannot read the state of domain %s", name_or_uuid);
  found.name = g_strdup(virDomainGetName(domain));
  found.running = active == 1;
  found.persistent = persistent == 1;
  if (!read_xml(domain, name_or_uuid, 0, &found.live, error) ||
      !read_xml(domain, name_or_uuid, active && persistent ? VIR_DOMAIN_XML_INACTIVE : 0, &found.next, error))
    return false;
  *ret_definitions = found;
  found = (MigDefinitions){0};
  return true;
}

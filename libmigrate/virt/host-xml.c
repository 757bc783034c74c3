/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A host's XML: its capabilities, and the domain capabilities of its emulator. */
#include "libmigrate/virt/xml.h"

#include <string.h>

#define HOST "/capabilities/host/"

static void read_cpu(const MigXml *xml, MigHostFacts *facts) {
  g_autoptr(GPtrArray) cpu = mig_xml_nodes(xml, NULL, HOST "cpu");
  xmlNode *node = cpu->len > 0 ? cpu->pdata[0] : NULL;

  if (!node)
    return;
  facts->cpu_xml = mig_store_take(facts->store, mig_xml_dump(xml, node));
  facts->cpu_model = mig_store_take(facts->store, mig_xml_string(xml, node, "model"));
  facts->cpu_invtsc = mig_xml_boolean(xml, node, "feature[@name='invtsc']");
  facts->tsc_frequency_hz = mig_xml_number(xml, node, "counter[@name='tsc']/@frequency");
  facts->tsc_scaling = mig_xml_boolean(xml, node, "counter[@name='tsc']/@scaling='yes'");
}

static void add_pages(MigHostFacts *facts, uint64_t page_bytes, uint64_t total) {
  size_t i = 0;

  while (i < facts->n_pages && facts->pages[i].page_bytes != page_bytes)
    i++;
  if (i == MIG_PAGE_SIZES_MAX || page_bytes == 0)
    return;
  facts->pages[i].page_bytes = page_bytes;
  facts->pages[i].total += total;
  facts->n_pages = MAX(facts->n_pages, i + 1);
}

static void read_topology(const MigXml *xml, MigHostFacts *facts) {
  g_autoptr(GPtrArray) cells = mig_xml_nodes(xml, NULL, HOST "topology/cells/cell");
  g_autoptr(GPtrArray) cpus = mig_xml_nodes(xml, NULL, HOST "topology/cells/cell/cpus/cpu");
  g_autoptr(GPtrArray) pages = mig_xml_nodes(xml, NULL, HOST "topology/cells/cell/pages");

  for (guint i = 0; i < cells->len; i++) {
    mig_set_add(&facts->numa_nodes, (unsigned)mig_xml_number(xml, cells->pdata[i], "@id"));
    facts->memory_bytes += mig_xml_size(xml, cells->pdata[i], "memory", "memory/@unit");
  }
  for (guint i = 0; i < cpus->len; i++)
    mig_set_add(&facts->cpus, (unsigned)mig_xml_number(xml, cpus->pdata[i], "@id"));
  for (guint i = 0; i < pages->len; i++)
    add_pages(facts, mig_xml_size(xml, pages->pdata[i], "@size", "@unit"),
              mig_xml_number(xml, pages->pdata[i], "."));
}

static void read_security_models(const MigXml *xml, MigHostFacts *facts) {
  g_autoptr(GPtrArray) nodes = mig_xml_nodes(xml, NULL, HOST "secmodel/model");
  GArray *models = g_array_new(TRUE, TRUE, sizeof(char *));
  size_t n;

  for (guint i = 0; i < nodes->len; i++) {
    char *model = mig_store_take(facts->store, mig_xml_string(xml, nodes->pdata[i], "."));

    if (model)
      g_array_append_val(models, model);
  }
  facts->security_models = mig_store_take_array(facts->store, models, &n);
}

bool mig_capabilities_parse(const char *text, MigHostFacts *ret_facts, GError **error) {
  g_auto(MigXml) xml = {0};
  MigHostFacts facts = {0};
  g_autofree char *uuid = NULL;

  if (!mig_xml_parse(text, "capabilities", &xml)) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                        "cannot parse libvirt's XML of the host's capabilities");
    return false;
  }
  facts.store = mig_store_new();
  uuid = mig_xml_string(&xml, NULL, HOST "uuid");
  g_strlcpy(facts.uuid, uuid ? uuid : "", sizeof facts.uuid);
  read_cpu(&xml, &facts);
  read_topology(&xml, &facts);
  read_security_models(&xml, &facts);
  *ret_facts = facts;
  return true;
}

/* --- machine types --- */

/* "10.0" is newer than "9.2". */
static bool is_newer(const char *version, const char *than) {
  for (;;) {
    char *version_end, *than_end;
    guint64 a = g_ascii_strtoull(version, &version_end, 10), b = g_ascii_strtoull(than, &than_end, 10);

    if (a != b)
      return a > b;
    if (version_end == version || than_end == than || *version_end == '\0' || *than_end == '\0')
      return strcmp(version_end, than_end) > 0;
    version = version_end + 1;
    than = than_end + 1;
  }
}

char *mig_capabilities_describe_machines(const char *text, const char *arch, const char *machine) {
  g_auto(MigXml) xml = {0};
  const char *dash = machine ? strrchr(machine, '-') : NULL;
  g_autofree char *kind = dash ? g_strndup(machine, (gsize)(dash + 1 - machine)) : NULL;
  g_autofree char *newest = NULL;
  g_autoptr(GPtrArray) arches = NULL;

  if (!kind || !mig_xml_parse(text, "capabilities", &xml))
    return NULL;
  arches = mig_xml_nodes(&xml, NULL, "/capabilities/guest/arch[@name]");
  for (guint i = 0; i < arches->len; i++) {
    g_autofree char *name = mig_xml_string(&xml, arches->pdata[i], "@name");
    g_autoptr(GPtrArray) machines = mig_xml_nodes(&xml, arches->pdata[i], "machine");

    if (g_strcmp0(name, arch) != 0)
      continue;
    for (guint m = 0; m < machines->len; m++) {
      g_autofree char *candidate = mig_xml_string(&xml, machines->pdata[m], ".");

      if (!candidate || !g_str_has_prefix(candidate, kind) || !g_ascii_isdigit(candidate[strlen(kind)]))
        continue;
      if (newest && !is_newer(candidate + strlen(kind), newest + strlen(kind)))
        continue;
      g_free(newest);
      newest = g_steal_pointer(&candidate);
    }
  }
  return newest ? g_strdup_printf("%s is the newest of the kind", newest) : NULL;
}

/* --- domain capabilities --- */

#define CAPS "/domainCapabilities/"

/* `where` is DEVICE/ENUM, such as "video/modelType": is there such a list, and is the value in it? */
static MigSight look_up(const MigXml *xml, const char *where, const char *value) {
  g_auto(GStrv) names = g_strsplit(where, "/", 2);
  g_autofree char *device = g_strdup_printf(CAPS "devices/%s", names[0]);
  g_autofree char *refused = g_strdup_printf("%s/@supported='no'", device);
  g_autofree char *list = g_strdup_printf("%s/enum[@name='%s']", device, names[1]);
  g_autofree char *path = g_strdup_printf("%s/value", list);
  g_autoptr(GPtrArray) values = mig_xml_nodes(xml, NULL, path);

  if (mig_xml_boolean(xml, NULL, refused))
    return MIG_SIGHT_ABSENT;
  for (guint i = 0; i < values->len; i++) {
    g_autofree char *known = mig_xml_string(xml, values->pdata[i], ".");

    if (g_strcmp0(known, value) == 0)
      return MIG_SIGHT_PRESENT;
  }
  return mig_xml_boolean(xml, NULL, list) ? MIG_SIGHT_ABSENT : MIG_SIGHT_UNSEEN;
}

static bool has_firmware(const MigXml *xml, const char *path) {
  g_autoptr(GPtrArray) values = mig_xml_nodes(xml, NULL, CAPS "os/loader/value");

  for (guint i = 0; i < values->len; i++) {
    g_autofree char *known = mig_xml_string(xml, values->pdata[i], ".");

    if (g_strcmp0(known, path) == 0)
      return true;
  }
  return false;
}

void mig_domain_capabilities_apply(const char *text, const MigDomainFacts *domain, MigTargetFacts *facts) {
  g_auto(MigXml) xml = {0};

  if (!mig_xml_parse(text, "domainCapabilities", &xml))
    return;
  facts->vcpus_max = (unsigned)MIN(mig_xml_number(&xml, NULL, CAPS "vcpu/@max"), UINT_MAX);
  for (size_t i = 0; i < domain->n_needs && i < facts->n_needs; i++) {
    const MigNeed *need = &domain->needs[i];

    if (need->kind == MIG_NEED_DEVICE)
      facts->needs[i] = look_up(&xml, need->where, need->name);
    else if (need->kind == MIG_NEED_FILE && has_firmware(&xml, need->name))
      facts->needs[i] = MIG_SIGHT_PRESENT;
  }
}

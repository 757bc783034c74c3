/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain's XML: memory, CPU, disks, and what is bound to CPU and node numbers of the host. */
#include "libmigrate/virt/xml.h"

#include <string.h>

typedef struct Name {
  const char *name;
  int value;
} Name;

static int value_of(const Name *names, size_t n, const char *name, int fallback) {
  for (size_t i = 0; name && i < n; i++)
    if (strcmp(names[i].name, name) == 0)
      return names[i].value;
  return fallback;
}

#define VALUE_OF(names, name, fallback) value_of(names, G_N_ELEMENTS(names), name, fallback)

static const char *take_string(const MigXml *xml, MigDomainFacts *facts, const char *path) {
  return mig_store_take(facts->store, mig_xml_string(xml, NULL, path));
}

/* --- CPU --- */

static void read_cpu(const MigXml *xml, MigDomainFacts *facts) {
  static const Name modes[] = {
      {"custom", MIG_CPU_CUSTOM},
      {"host-model", MIG_CPU_HOST_MODEL},
      {"host-passthrough", MIG_CPU_HOST_PASSTHROUGH},
      {"maximum", MIG_CPU_MAXIMUM},
  };
  g_autoptr(GPtrArray) cpu = mig_xml_nodes(xml, NULL, "/domain/cpu");
  g_autofree char *mode = NULL;
  xmlNode *node;

  facts->tsc_frequency_hz = mig_xml_number(xml, NULL, "/domain/clock/timer[@name='tsc']/@frequency");
  if (cpu->len == 0)
    return;
  node = cpu->pdata[0];
  facts->cpu_model = mig_store_take(facts->store, mig_xml_string(xml, node, "normalize-space(model)"));
  mode = mig_xml_string(xml, node, "@mode");
  facts->cpu_mode =
      (MigCpuMode)VALUE_OF(modes, mode, facts->cpu_model ? (int)MIG_CPU_CUSTOM : (int)MIG_CPU_NONE);
  if (facts->cpu_mode == MIG_CPU_NONE)
    return;
  facts->cpu_xml = mig_store_take(facts->store, mig_xml_dump(xml, node));
  facts->cpu_unchecked = mig_xml_boolean(xml, node, "@check='none'");
  facts->cpu_not_migratable = mig_xml_boolean(xml, node, "@migratable='off'");
  facts->cpu_invtsc =
      mig_xml_boolean(xml, node, "feature[@name='invtsc' and (@policy='require' or @policy='force')]");
}

/* --- memory and CPUs by number --- */

static void read_hugepages(const MigXml *xml, MigDomainFacts *facts) {
  g_autoptr(GPtrArray) pages = mig_xml_nodes(xml, NULL, "/domain/memoryBacking/hugepages/page");
  g_autoptr(GPtrArray) cells = mig_xml_nodes(xml, NULL, "/domain/cpu/numa/cell");
  GArray *found = g_array_new(FALSE, TRUE, sizeof(MigHugepages));
  uint64_t rest = facts->memory_bytes;
  MigHugepages others = {0};
  bool have_others = pages->len == 0 && mig_xml_boolean(xml, NULL, "/domain/memoryBacking/hugepages");

  for (guint i = 0; i < pages->len; i++) {
    MigHugepages one = {.page_bytes = mig_xml_size(xml, pages->pdata[i], "@size", "@unit")};
    g_autofree char *nodeset = mig_xml_string(xml, pages->pdata[i], "@nodeset");
    MigSet set = {0};

    /* A size without a nodeset applies to all other nodes. */
    if (!nodeset || cells->len == 0) {
      others = one;
      have_others = true;
      continue;
    }
    mig_xml_add_set(nodeset, &set);
    for (guint cell = 0; cell < cells->len; cell++) {
      g_autofree char *id = mig_xml_string(xml, cells->pdata[cell], "@id");

      if (mig_set_has(&set, id ? (unsigned)g_ascii_strtoull(id, NULL, 10) : cell))
        one.bytes += mig_xml_size(xml, cells->pdata[cell], "@memory", "@unit");
    }
    rest -= MIN(rest, one.bytes);
    g_array_append_val(found, one);
  }
  others.bytes = rest;
  if (have_others && rest > 0)
    g_array_append_val(found, others);
  facts->hugepages = mig_store_take_array(facts->store, found, &facts->n_hugepages);
}

static void add_pin(const MigXml *xml, MigDomainFacts *facts, GArray *pins, xmlNode *node, const char *path,
                    char *who /* taken */) {
  g_autofree char *cpuset = mig_xml_string(xml, node, path);
  MigPin pin = {.who = mig_store_take(facts->store, who)};

  mig_xml_add_set(cpuset, &pin.cpus);
  if (mig_set_count(&pin.cpus) > 0)
    g_array_append_val(pins, pin);
}

static void read_pins(const MigXml *xml, MigDomainFacts *facts) {
  g_autoptr(GPtrArray) nodes =
      mig_xml_nodes(xml, NULL,
                    "/domain/cputune/vcpupin | /domain/cputune/iothreadpin | /domain/cputune/emulatorpin"
                    " | /domain/vcpu[@cpuset and not(@placement='auto')]");
  GArray *pins = g_array_new(FALSE, TRUE, sizeof(MigPin));

  for (guint i = 0; i < nodes->len; i++) {
    xmlNode *node = nodes->pdata[i];
    const char *name = (const char *)node->name;
    char *who;

    if (strcmp(name, "vcpupin") == 0)
      who = g_strdup_printf("vCPU %u", (unsigned)mig_xml_number(xml, node, "@vcpu"));
    else if (strcmp(name, "iothreadpin") == 0)
      who = g_strdup_printf("I/O thread %u", (unsigned)mig_xml_number(xml, node, "@iothread"));
    else
      who = g_strdup(strcmp(name, "vcpu") == 0 ? "all vCPUs" : "the emulator");
    add_pin(xml, facts, pins, node, "@cpuset", who);
  }
  facts->pins = mig_store_take_array(facts->store, pins, &facts->n_pins);
}

static void read_numa(const MigXml *xml, MigDomainFacts *facts) {
  g_autoptr(GPtrArray) nodes =
      mig_xml_nodes(xml, NULL, "/domain/numatune/memory[not(@placement='auto')] | /domain/numatune/memnode");

  for (guint i = 0; i < nodes->len; i++) {
    g_autofree char *nodeset = mig_xml_string(xml, nodes->pdata[i], "@nodeset");

    mig_xml_add_set(nodeset, &facts->numa_nodes);
  }
}

/* --- disks --- */

/* The disk's source in words, by its type. */
static char *source_of_disk(const MigXml *xml, xmlNode *node, MigDiskType type) {
  static const char *const paths[] = {
      [MIG_DISK_FILE] = "source/@file",
      [MIG_DISK_BLOCK] = "source/@dev",
      [MIG_DISK_DIR] = "source/@dir",
      [MIG_DISK_VOLUME] =
          "concat(source[@pool and @volume]/@pool, substring('/', 1 div boolean(source/@volume)), "
          "source/@volume)",
      [MIG_DISK_NETWORK] =
          "concat(source/@protocol, substring(':', 1 div boolean(source/@protocol)), source/@name)",
      [MIG_DISK_NVME] =
          "concat(substring(source/address/@domain, 3), ':', substring(source/address/@bus, 3), ':', "
          "substring(source/address/@slot, 3), '.', substring(source/address/@function, 3))",
      [MIG_DISK_VHOST_USER] = "source/@path",
      [MIG_DISK_OTHER] = "source/@*[1]",
  };

  return mig_xml_string(xml, node, paths[type]);
}

static MigDisk read_disk(const MigXml *xml, MigDomainFacts *facts, xmlNode *node) {
  static const Name types[] = {
      {"file", MIG_DISK_FILE},
      {"block", MIG_DISK_BLOCK},
      {"dir", MIG_DISK_DIR},
      {"volume", MIG_DISK_VOLUME},
      {"network", MIG_DISK_NETWORK},
      {"nvme", MIG_DISK_NVME},
      {"vhostuser", MIG_DISK_VHOST_USER},
  };
  static const Name devices[] = {
      {"disk", MIG_DISK_DISK},
      {"lun", MIG_DISK_LUN},
      {"cdrom", MIG_DISK_CDROM},
      {"floppy", MIG_DISK_FLOPPY},
  };
  static const Name caches[] = {
      {"none", MIG_CACHE_NONE},           {"directsync", MIG_CACHE_DIRECTSYNC},
      {"writeback", MIG_CACHE_WRITEBACK}, {"writethrough", MIG_CACHE_WRITETHROUGH},
      {"unsafe", MIG_CACHE_UNSAFE},
  };
  g_autofree char *type = mig_xml_string(xml, node, "@type");
  g_autofree char *device = mig_xml_string(xml, node, "@device");
  g_autofree char *cache = mig_xml_string(xml, node, "driver/@cache");
  MigDisk disk = {
      .target = mig_store_take(facts->store, mig_xml_string(xml, node, "target/@dev")),
      .type = (MigDiskType)VALUE_OF(types, type, type ? (int)MIG_DISK_OTHER : (int)MIG_DISK_FILE),
      .device = (MigDiskDevice)VALUE_OF(devices, device, MIG_DISK_DISK),
      .cache = (MigCache)VALUE_OF(caches, cache, MIG_CACHE_DEFAULT),
      .storage = MIG_STORAGE_LOCAL,
      .read_only = mig_xml_boolean(xml, node, "readonly"),
      .shareable = mig_xml_boolean(xml, node, "shareable"),
      .transient = mig_xml_boolean(xml, node, "transient"),
      .optional =
          mig_xml_boolean(xml, node, "source[@startupPolicy='optional' or @startupPolicy='requisite']"),
      .raw = mig_xml_boolean(xml, node, "driver/@type='raw'"),
      .job = mig_xml_boolean(xml, node, "mirror"),
  };

  disk.source = mig_store_take(facts->store, source_of_disk(xml, node, disk.type));
  disk.format = mig_store_take(facts->store, mig_xml_string(xml, node, "driver/@type"));
  if (disk.type == MIG_DISK_VOLUME) {
    disk.pool = mig_store_take(facts->store, mig_xml_string(xml, node, "source/@pool"));
    disk.volume = mig_store_take(facts->store, mig_xml_string(xml, node, "source/@volume"));
  }
  if (disk.type == MIG_DISK_NETWORK)
    disk.storage = MIG_STORAGE_SHARED;
  return disk;
}

static void read_disks(const MigXml *xml, MigDomainFacts *facts) {
  g_autoptr(GPtrArray) nodes = mig_xml_nodes(xml, NULL, "/domain/devices/disk[string(target/@dev)]");
  GArray *disks = g_array_new(FALSE, TRUE, sizeof(MigDisk));

  for (guint i = 0; i < nodes->len; i++) {
    MigDisk disk = read_disk(xml, facts, nodes->pdata[i]);

    facts->local_disks += mig_disk_is_local(&disk);
    g_array_append_val(disks, disk);
  }
  facts->disks = mig_store_take_array(facts->store, disks, &facts->n_disks);
}

char **mig_domain_local_disks(const MigDomainFacts *facts) {
  GArray *names = g_array_new(TRUE, TRUE, sizeof(char *));
  size_t n;

  for (size_t i = 0; i < facts->n_disks; i++)
    if (mig_disk_is_local(&facts->disks[i]))
      g_array_append_val(names, facts->disks[i].target);
  return mig_store_take_array(facts->store, names, &n);
}

/* --- metadata --- */

static void read_profile(const MigXml *xml, MigDomainFacts *facts) {
  g_autofree char *text = mig_xml_string(
      xml, NULL,
      "/domain/metadata/*[local-name()='profile' and namespace-uri()='" MIG_PROFILE_NAMESPACE "']");

  if (text)
    mig_profile_parse(text, &facts->profile);
}

/* --- all of it --- */

bool mig_domain_xml_parse(const char *text, MigDomainFacts *ret_facts, GError **error) {
  g_auto(MigXml) xml = {0};
  MigDomainFacts facts = {0};

  if (!mig_xml_parse(text, "domain", &xml)) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                        "cannot parse libvirt's XML of the domain");
    return false;
  }
  facts.store = mig_store_new();
  facts.name = take_string(&xml, &facts, "/domain/name");
  facts.emulator = take_string(&xml, &facts, "/domain/devices/emulator");
  facts.machine = take_string(&xml, &facts, "/domain/os/type/@machine");
  facts.arch = take_string(&xml, &facts, "/domain/os/type/@arch");
  facts.virt_type = take_string(&xml, &facts, "/domain/@type");
  facts.memory_bytes = mig_xml_size(&xml, NULL, "/domain/memory", "/domain/memory/@unit");
  facts.current_memory_bytes =
      mig_xml_size(&xml, NULL, "/domain/currentMemory", "/domain/currentMemory/@unit");
  facts.vcpus = (unsigned)MIN(mig_xml_number(&xml, NULL, "/domain/vcpu"), MIG_SET_MAX);
  facts.threads = (unsigned)MIN(mig_xml_number(&xml, NULL, "/domain/cpu/topology/@threads"), MIG_SET_MAX);
  /* libvirt itself allows USB devices. To us each one is a device of this host that the target does not have. */
  facts.passthrough = mig_xml_boolean(&xml, NULL,
                                      "/domain/devices/hostdev | /domain/devices/interface[@type='hostdev'"
                                      " or @type='vdpa']");
  read_cpu(&xml, &facts);
  read_hugepages(&xml, &facts);
  read_pins(&xml, &facts);
  read_numa(&xml, &facts);
  read_disks(&xml, &facts);
  read_profile(&xml, &facts);
  mig_domain_xml_add_traits(&xml, &facts);
  mig_domain_xml_add_needs(&xml, &facts);
  *ret_facts = facts;
  return true;
}

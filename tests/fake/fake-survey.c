/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a scripted host answers to a survey: by libvirt's own XML where it is given, by lists of names for the rest. */
#include "tests/fake/fake-survey.h"

#include "libmigrate/virt/xml.h"

#include <string.h>

static const char *text_of(json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static uint64_t number_of(json_t *object, const char *key, uint64_t fallback) {
  json_t *value = json_object_get(object, key);

  return json_is_number(value) ? (uint64_t)json_number_value(value) : fallback;
}

static bool has_text(json_t *list, const char *text) {
  json_t *item;
  size_t i;

  json_array_foreach (list, i, item)
    if (g_strcmp0(json_string_value(item), text) == 0)
      return true;
  return false;
}

static char *file_of(json_t *host, const char *key) {
  const char *path = text_of(host, key);
  char *text = NULL;

  if (path)
    g_file_get_contents(path, &text, NULL, NULL);
  return text;
}

/* --- the domain --- */

static bool is_below_one(json_t *prefixes, const char *path) {
  json_t *prefix;
  size_t i;

  json_array_foreach (prefixes, i, prefix)
    if (json_is_string(prefix) && g_str_has_prefix(path, json_string_value(prefix)))
      return true;
  return false;
}

static MigStorage look(const char *path, gpointer user_data) {
  json_t *host = user_data;

  if (is_below_one(json_object_get(host, "shared_storage"), path))
    return MIG_STORAGE_SHARED;
  return is_below_one(json_object_get(host, "unknown_storage"), path) ? MIG_STORAGE_UNKNOWN
                                                                      : MIG_STORAGE_LOCAL;
}

bool fake_survey_parse(json_t *domain, json_t *host, MigDomainFacts *ret_facts, GError **error) {
  const char *xml = text_of(domain, "xml");

  if (!xml || !mig_domain_xml_parse(xml, ret_facts, error))
    return false;
  mig_storage_classify(ret_facts, look, host);
  return true;
}

static MigCpuAnswer compare_cpu(json_t *host, const MigDomainFacts *domain, MigStore *store);

void fake_survey_domain(json_t *domain, json_t *host, MigDomainFacts *facts) {
  json_t *disks = json_object_get(domain, "disks");

  facts->surveyed = true;
  facts->io_error = json_is_true(json_object_get(domain, "io_error"));
  facts->job = mig_store_string(facts->store, text_of(domain, "job"));
  facts->snapshots = (unsigned)number_of(domain, "snapshots", 0);
  if (json_is_boolean(json_object_get(host, "certificates")))
    facts->certificates =
        json_is_true(json_object_get(host, "certificates")) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
  for (size_t i = 0; i < facts->n_disks; i++) {
    MigDisk *disk = &facts->disks[i];
    json_t *script = json_object_get(disks, disk->target);

    disk->capacity_bytes = number_of(script, "capacity_bytes", disk->source ? 10 * MIG_GIB_BYTES : 0);
    disk->allocation_bytes = number_of(script, "allocation_bytes", 0);
    disk->job = disk->job || json_is_true(json_object_get(script, "job"));
    if (mig_disk_is_local(disk))
      facts->local_disk_bytes += disk->capacity_bytes;
  }
  if (facts->cpu_unchecked && facts->cpu_xml)
    facts->cpu = compare_cpu(host, facts, facts->store);
}

/* --- the host --- */

static void read_pages(json_t *host, MigHostFacts *facts) {
  const char *size;
  json_t *counts;

  for (size_t i = 0; i < facts->n_pages; i++)
    facts->pages[i].free = facts->pages[i].total;
  json_object_foreach (json_object_get(host, "pages"), size, counts) {
    uint64_t page_bytes = g_ascii_strtoull(size, NULL, 10);
    size_t i = 0;

    while (i < facts->n_pages && facts->pages[i].page_bytes != page_bytes)
      i++;
    if (i == MIG_PAGE_SIZES_MAX)
      return;
    facts->pages[i] = (MigPages){.page_bytes = page_bytes,
                                 .total = number_of(counts, "total", 0),
                                 .free = number_of(counts, "free", 0)};
    facts->n_pages = MAX(facts->n_pages, i + 1);
  }
}

bool fake_survey_host(json_t *host, MigHostFacts *ret_facts, GError **error) {
  g_autofree char *capabilities = file_of(host, "capabilities");
  MigHostFacts facts = {0};

  if (capabilities && !mig_capabilities_parse(capabilities, &facts, error))
    return false;
  if (!facts.store)
    facts.store = mig_store_new();
  facts.memory_bytes = number_of(host, "memory_bytes", facts.memory_bytes);
  for (uint64_t i = 0; i < number_of(host, "cpus", 0); i++)
    mig_set_add(&facts.cpus, (unsigned)i);
  for (uint64_t i = 0; i < number_of(host, "numa_nodes", 0); i++)
    mig_set_add(&facts.numa_nodes, (unsigned)i);
  read_pages(host, &facts);
  *ret_facts = facts;
  return true;
}

/* --- the target --- */

static MigCpuAnswer scripted_cpu(json_t *host, const char *key, MigStore *store) {
  static const char *const names[] = {
      [MIG_CPU_MATCH_UNSEEN] = "unseen",
      [MIG_CPU_MATCH_INCOMPATIBLE] = "incompatible",
      [MIG_CPU_MATCH_IDENTICAL] = "identical",
      [MIG_CPU_MATCH_SUPERSET] = "superset",
  };
  json_t *script = json_object_get(host, key);
  MigCpuAnswer answer = {.match = MIG_CPU_MATCH_IDENTICAL, .text = NULL};

  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (g_strcmp0(text_of(script, "match"), names[i]) == 0)
      answer.match = (MigCpuMatch)i;
  answer.text = mig_store_string(store, text_of(script, "text"));
  return answer;
}

/* As libvirt would answer from what it says in its domain capabilities; "cpu_lacks" are features. */
static MigCpuAnswer compare_cpu(json_t *host, const MigDomainFacts *domain, MigStore *store) {
  g_autofree char *text = file_of(host, "domain_capabilities");
  g_autofree char *path =
      g_strdup_printf("/domainCapabilities/cpu/mode[@name='custom']/model[.='%s']", domain->cpu_model);
  g_autofree char *usable = g_strdup_printf("%s/@usable='yes'", path);
  MigCpuAnswer answer = {.match = MIG_CPU_MATCH_INCOMPATIBLE};
  g_auto(MigXml) xml = {0};
  json_t *lacks;
  size_t i;

  if (!text || !mig_xml_parse(text, "domainCapabilities", &xml))
    return scripted_cpu(host, "cpu", store);
  json_array_foreach (json_object_get(host, "cpu_lacks"), i, lacks) {
    g_autofree char *feature = g_strdup_printf("policy=\"require\" name=\"%s\"", json_string_value(lacks));

    if (!answer.text && domain->cpu_xml && strstr(domain->cpu_xml, feature))
      answer.text = mig_store_take(store, g_strdup_printf("Host CPU does not provide required features: %s",
                                                          json_string_value(lacks)));
  }
  if (!mig_xml_boolean(&xml, NULL, path))
    answer.text = mig_store_take(store, g_strdup_printf("Unknown CPU model %s", domain->cpu_model));
  else if (!answer.text && !mig_xml_boolean(&xml, NULL, usable))
    answer.text = "Host CPU does not provide required features";
  if (!answer.text)
    answer.match = MIG_CPU_MATCH_SUPERSET;
  return answer;
}

static void survey_machine(json_t *host, const MigDomainFacts *domain, MigTargetFacts *facts) {
  g_autofree char *text = file_of(host, "capabilities");
  g_auto(MigXml) xml = {0};

  facts->emulator = facts->virt_type = facts->machine = MIG_SIGHT_PRESENT;
  if (text && mig_xml_parse(text, "capabilities", &xml)) {
    g_autofree char *arch = g_strdup_printf("/capabilities/guest/arch[@name='%s']", domain->arch);
    g_autofree char *emulator = g_strdup_printf("%s/emulator[.='%s']", arch, domain->emulator);
    g_autofree char *type = g_strdup_printf("%s/domain[@type='%s']", arch, domain->virt_type);
    g_autofree char *machine = g_strdup_printf("%s/machine[.='%s']", arch, domain->machine);

    facts->emulator = mig_xml_boolean(&xml, NULL, emulator) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
    facts->virt_type = mig_xml_boolean(&xml, NULL, type) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
    facts->machine = mig_xml_boolean(&xml, NULL, machine) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
    facts->machines =
        mig_store_take(facts->store, mig_capabilities_describe_machines(text, domain->arch, domain->machine));
  }
  if (json_object_get(host, "machines") && !has_text(json_object_get(host, "machines"), domain->machine))
    facts->machine = MIG_SIGHT_ABSENT;
  if (facts->emulator == MIG_SIGHT_ABSENT)
    facts->virt_type = MIG_SIGHT_UNSEEN;
  if (facts->virt_type != MIG_SIGHT_PRESENT)
    facts->machine = MIG_SIGHT_UNSEEN;
}

/* A kind of names that the script does not mention is all there. */
static MigSight look_for(json_t *host, const MigNeed *need) {
  static const char *const lists[MIG_NEED_COUNT] = {
      [MIG_NEED_NETWORK] = "networks",
      [MIG_NEED_HOST_INTERFACE] = "interfaces",
      [MIG_NEED_FILTER] = "filters",
      [MIG_NEED_SECRET] = "secrets",
      [MIG_NEED_FILE] = "files",
      [MIG_NEED_DEVICE] = "devices",
      [MIG_NEED_SECURITY_MODEL] = "security_models",
  };
  json_t *list = lists[need->kind] ? json_object_get(host, lists[need->kind]) : NULL;

  if (need->kind == MIG_NEED_SOCKET || json_is_null(list))
    return MIG_SIGHT_UNSEEN;
  if (need->kind == MIG_NEED_NETWORK && has_text(json_object_get(host, "inactive_networks"), need->name))
    return MIG_SIGHT_INACTIVE;
  return !list || has_text(list, need->name) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
}

static MigSight look_for_security_model(const MigHostFacts *host, const char *name) {
  return g_strv_contains(host->security_models, name) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
}

static void survey_needs(json_t *host, const MigDomainFacts *domain, MigTargetFacts *facts) {
  g_autofree char *text = file_of(host, "domain_capabilities");

  for (size_t i = 0; i < domain->n_needs; i++) {
    const MigNeed *need = &domain->needs[i];

    if (need->kind == MIG_NEED_SECURITY_MODEL && facts->host.security_models)
      facts->needs[i] = look_for_security_model(&facts->host, need->name);
    else if (need->kind != MIG_NEED_DEVICE || !text)
      facts->needs[i] = look_for(host, need);
  }
  if (text)
    mig_domain_capabilities_apply(text, domain, facts);
}

static void survey_disk(json_t *host, const MigDisk *disk, MigTargetDisk *there) {
  json_t *volumes = json_object_get(host, "volumes");
  g_autofree char *directory = disk->source ? g_path_get_dirname(disk->source) : NULL;
  json_t *pool = json_object_get(json_object_get(host, "pools"), directory ? directory : "");

  if (!disk->source || disk->type == MIG_DISK_NETWORK || disk->type == MIG_DISK_VHOST_USER)
    return;
  if (!volumes && !json_object_get(host, "pools")) {
    there->sight = MIG_SIGHT_PRESENT;
    there->capacity_bytes = disk->capacity_bytes;
  } else if (json_object_get(volumes, disk->source)) {
    there->sight = MIG_SIGHT_PRESENT;
    there->capacity_bytes = number_of(volumes, disk->source, 0);
  } else if (pool) {
    there->sight = MIG_SIGHT_ABSENT;
    there->pool = true;
    there->pool_name = "pool";
    there->pool_available_bytes = (uint64_t)json_number_value(pool);
  }
}

void fake_survey_target(json_t *host, const MigDomainFacts *domain, const MigHostFacts *source,
                        MigTargetFacts *facts) {
  facts->other_uuid = mig_store_string(facts->store, text_of(json_object_get(host, "names"), domain->name));
  survey_machine(host, domain, facts);
  survey_needs(host, domain, facts);
  facts->vcpus_max = (unsigned)number_of(host, "vcpus_max", facts->vcpus_max);
  if (facts->machine != MIG_SIGHT_PRESENT)
    facts->vcpus_max = 0;
  facts->free_bytes = number_of(host, "free_memory_bytes", UINT64_MAX);
  if (domain->cpu_xml && domain->cpu_mode == MIG_CPU_CUSTOM && facts->virt_type == MIG_SIGHT_PRESENT)
    facts->cpu = compare_cpu(host, domain, facts->store);
  facts->host_cpu = scripted_cpu(host, "host_cpu", facts->store);
  for (size_t i = 0; i < domain->n_disks; i++)
    survey_disk(host, &domain->disks[i], &facts->disks[i]);
}

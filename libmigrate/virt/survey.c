/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the checks need to know of the domain, and of the target as a place for it.
 *
 * Theory of Operation. Each end is asked over one connection, with one call per question, most of them answered in less than a
 * millisecond. A target is asked only about what the domain needs. What its libvirt cannot tell (a driver is missing, it is
 * too old, no pool covers a path) is UNSEEN, never an error. Only a lost connection is an error.
 *
 * libvirtd knows files only through its storage pools. A pool knows what existed at its last refresh, so a pool that seems to
 * lack a file is refreshed before that counts. This is the only thing that a survey does to a target. */
#include "libmigrate/virt/certificates.h"
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

#include <string.h>

/* --- the domain --- */

static const char *name_of_operation(int operation) {
  static const char *const names[] = {
      [VIR_DOMAIN_JOB_OPERATION_UNKNOWN] = "a job",
      [VIR_DOMAIN_JOB_OPERATION_START] = "start",
      [VIR_DOMAIN_JOB_OPERATION_SAVE] = "save",
      [VIR_DOMAIN_JOB_OPERATION_RESTORE] = "restore",
      [VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN] = "incoming migration",
      [VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT] = "outgoing migration",
      [VIR_DOMAIN_JOB_OPERATION_SNAPSHOT] = "snapshot",
      [VIR_DOMAIN_JOB_OPERATION_SNAPSHOT_REVERT] = "revert to a snapshot",
      [VIR_DOMAIN_JOB_OPERATION_DUMP] = "memory dump",
      [VIR_DOMAIN_JOB_OPERATION_BACKUP] = "backup",
  };

  return operation >= 0 && (size_t)operation < G_N_ELEMENTS(names) && names[operation] ? names[operation]
                                                                                       : names[0];
}

static void survey_job(virDomainPtr domain, MigDomainFacts *facts) {
  virTypedParameterPtr params = NULL;
  int n = 0, type = VIR_DOMAIN_JOB_NONE;

  if (virDomainGetJobStats(domain, &type, &params, &n, 0) < 0)
    return;
  if (type == VIR_DOMAIN_JOB_BOUNDED || type == VIR_DOMAIN_JOB_UNBOUNDED)
    facts->job = name_of_operation(mig_stats_operation(params, n));
  virTypedParamsFree(params, n);
}

static void survey_disks(virDomainPtr domain, MigDomainFacts *facts) {
  for (size_t i = 0; i < facts->n_disks; i++) {
    MigDisk *disk = &facts->disks[i];
    virDomainBlockJobInfo info;

    if (!disk->source)
      continue;
    if (mig_disk_is_writable(disk))
      mig_read_disk_size(domain, facts, disk);
    if (virDomainGetBlockJobInfo(domain, disk->target, &info, 0) == 1)
      disk->job = true;
  }
}

/* What libvirt says does not match, without its usual prefixes. */
static MigCpuAnswer cpu_answer(int result, MigStore *store) {
  static const struct {
    int result;
    MigCpuMatch match;
  } matches[] = {
      {VIR_CPU_COMPARE_INCOMPATIBLE, MIG_CPU_MATCH_INCOMPATIBLE},
      {VIR_CPU_COMPARE_IDENTICAL, MIG_CPU_MATCH_IDENTICAL},
      {VIR_CPU_COMPARE_SUPERSET, MIG_CPU_MATCH_SUPERSET},
  };
  static const char *const prefixes[] = {"the CPU is incompatible with host CPU: ", "internal error: "};
  virErrorPtr failure = virGetLastError();
  const char *text = failure ? failure->message : NULL;
  MigCpuAnswer answer = {0};

  for (size_t i = 0; i < G_N_ELEMENTS(matches); i++)
    if (result == matches[i].result)
      answer.match = matches[i].match;
  if (result == VIR_CPU_COMPARE_ERROR && failure) {
    /* A model that this libvirt does not know is reported as an internal error of the CPU driver. */
    if (failure->code == VIR_ERR_CPU_INCOMPATIBLE ||
        (failure->domain == VIR_FROM_CPU && failure->code == VIR_ERR_INTERNAL_ERROR))
      answer.match = MIG_CPU_MATCH_INCOMPATIBLE;
    for (size_t i = 0; text && i < G_N_ELEMENTS(prefixes); i++)
      if (g_str_has_prefix(text, prefixes[i]))
        text += strlen(prefixes[i]);
    answer.text = mig_store_string(store, text);
  }
  virResetLastError();
  return answer;
}

static MigCpuAnswer compare_cpu(virConnectPtr vir, const MigDomainFacts *domain, const char *machine,
                                MigStore *store) {
  virResetLastError();
  return cpu_answer(virConnectCompareHypervisorCPU(vir, domain->emulator, domain->arch, machine,
                                                   domain->virt_type, domain->cpu_xml,
                                                   VIR_CONNECT_COMPARE_CPU_FAIL_INCOMPATIBLE),
                    store);
}

static bool has_comparable_cpu(const MigDomainFacts *domain) {
  return domain->cpu_xml && (domain->cpu_mode == MIG_CPU_CUSTOM || domain->cpu_mode == MIG_CPU_HOST_MODEL);
}

bool mig_libvirt_survey_domain(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                               GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = NULL;
  int snapshots;

  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error))
    return false;
  domain = mig_read_domain(&lease, name_or_uuid, ret_facts, error);
  if (!domain)
    return false;
  ret_facts->surveyed = true;
  survey_job(domain, ret_facts);
  survey_disks(domain, ret_facts);
  ret_facts->certificates = mig_certificates_look("/");
  snapshots = virDomainSnapshotNum(domain, 0);
  ret_facts->snapshots = snapshots > 0 ? (unsigned)snapshots : 0;
  if (ret_facts->cpu_unchecked && has_comparable_cpu(ret_facts))
    ret_facts->cpu = compare_cpu(lease.vir, ret_facts, ret_facts->machine, ret_facts->store);
  virResetLastError();
  return true;
}

/* --- the target: the domain's name, emulator, CPU, memory --- */

static bool survey_names(virConnectPtr vir, const MigDomainFacts *domain, MigTargetFacts *facts,
                         GError **error) {
  g_autoptr(virDomain) same = virDomainLookupByUUIDString(vir, domain->uuid);
  g_autoptr(virDomain) namesake = NULL;
  char uuid[VIR_UUID_STRING_BUFLEN];
  int state, reason;

  facts->domain_state = MIG_END_ABSENT;
  if (same && virDomainGetState(same, &state, &reason, 0) == 0)
    facts->domain_state = mig_state_from_libvirt(state, reason);
  else if (virGetLastErrorCode() != VIR_ERR_NO_DOMAIN)
    return mig_virt_error_take(error, "cannot look up domain %s at the target", domain->uuid);
  if (domain->name && (!same || strcmp(virDomainGetName(same), domain->name) != 0))
    namesake = virDomainLookupByName(vir, domain->name);
  if (namesake && virDomainGetUUIDString(namesake, uuid) == 0)
    facts->other_uuid = mig_store_string(facts->store, uuid);
  return true;
}

/* Asks for everything at once. If that fails, asks for less, to find out which part is missing. */
static void survey_machine(virConnectPtr vir, const MigDomainFacts *domain, MigTargetFacts *facts) {
  char *text = virConnectGetDomainCapabilities(vir, domain->emulator, domain->arch, domain->machine,
                                               domain->virt_type, 0);

  if (text) {
    facts->emulator = facts->virt_type = facts->machine = MIG_SIGHT_PRESENT;
    mig_domain_capabilities_apply(text, domain, facts);
    free(text);
    return;
  }
  text = virConnectGetDomainCapabilities(vir, domain->emulator, domain->arch, NULL, NULL, 0);
  facts->emulator = text ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
  free(text);
  if (facts->emulator == MIG_SIGHT_ABSENT)
    return;
  text = virConnectGetDomainCapabilities(vir, domain->emulator, domain->arch, NULL, domain->virt_type, 0);
  facts->virt_type = text ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
  if (text) {
    facts->machine = MIG_SIGHT_ABSENT;
    mig_domain_capabilities_apply(text, domain, facts);
    facts->vcpus_max = 0; /* it is that of another machine type */
    free(text);
    text = virConnectGetCapabilities(vir);
    if (text)
      facts->machines = mig_store_take(
          facts->store, mig_capabilities_describe_machines(text, domain->arch, domain->machine));
    free(text);
  }
}

static void survey_cpu(virConnectPtr vir, const MigDomainFacts *domain, const MigHostFacts *source,
                       MigTargetFacts *facts) {
  /* The CPU is compared even if the machine type is missing. */
  if (has_comparable_cpu(domain) && facts->virt_type == MIG_SIGHT_PRESENT)
    facts->cpu =
        compare_cpu(vir, domain, facts->machine == MIG_SIGHT_PRESENT ? domain->machine : NULL, facts->store);
  if (source->cpu_xml &&
      (domain->cpu_mode == MIG_CPU_HOST_PASSTHROUGH || domain->cpu_mode == MIG_CPU_MAXIMUM)) {
    virResetLastError();
    facts->host_cpu = cpu_answer(
        virConnectCompareCPU(vir, source->cpu_xml, VIR_CONNECT_COMPARE_CPU_FAIL_INCOMPATIBLE), facts->store);
  }
}

static void survey_memory(virConnectPtr vir, MigTargetFacts *facts) {
  static const char *const fields[] = {VIR_NODE_MEMORY_STATS_FREE, VIR_NODE_MEMORY_STATS_BUFFERS,
                                       VIR_NODE_MEMORY_STATS_CACHED};
  virNodeMemoryStats stats[16];
  int n = 0;
  uint64_t bytes = 0;

  facts->free_bytes = UINT64_MAX;
  if (virNodeGetMemoryStats(vir, VIR_NODE_MEMORY_STATS_ALL_CELLS, NULL, &n, 0) < 0 ||
      n > (int)G_N_ELEMENTS(stats) ||
      virNodeGetMemoryStats(vir, VIR_NODE_MEMORY_STATS_ALL_CELLS, stats, &n, 0) < 0)
    return;
  /* The page cache counts as free. libvirt does not say which part of it cannot be reclaimed. */
  for (int i = 0; i < n; i++)
    for (size_t f = 0; f < G_N_ELEMENTS(fields); f++)
      if (strcmp(stats[i].field, fields[f]) == 0)
        bytes += (uint64_t)stats[i].value * 1024;
  facts->free_bytes = bytes;
}

static void survey_pages(virConnectPtr vir, const MigDomainFacts *domain, MigHostFacts *host) {
  unsigned sizes[MIG_PAGE_SIZES_MAX];
  unsigned long long counts[MIG_PAGE_SIZES_MAX] = {0};
  int got;

  if (domain->n_hugepages == 0 || host->n_pages == 0)
    return;
  for (size_t i = 0; i < host->n_pages; i++)
    sizes[i] = (unsigned)(host->pages[i].page_bytes / 1024);
  got = virNodeGetFreePages(vir, (unsigned)host->n_pages, sizes, -1, 1, counts, 0);
  /* Unknown: then all pages count as free, and only their total is checked. */
  for (size_t i = 0; i < host->n_pages; i++)
    host->pages[i].free = got >= (int)host->n_pages ? counts[i] : host->pages[i].total;
}

/* --- the target: things with a name --- */

/* The outcome of a lookup. `none` is libvirt's error for "no such thing". */
static MigSight sight_of(bool found, int none) {
  if (found)
    return MIG_SIGHT_PRESENT;
  return virGetLastErrorCode() == none ? MIG_SIGHT_ABSENT : MIG_SIGHT_UNSEEN;
}

static MigSight look_for_network(virConnectPtr vir, const char *name) {
  g_autoptr(virNetwork) network = virNetworkLookupByName(vir, name);
  MigSight sight = sight_of(network != NULL, VIR_ERR_NO_NETWORK);

  return network && virNetworkIsActive(network) == 0 ? MIG_SIGHT_INACTIVE : sight;
}

static MigSight look_for_filter(virConnectPtr vir, const char *name) {
  virNWFilterPtr filter = virNWFilterLookupByName(vir, name);
  MigSight sight = sight_of(filter != NULL, VIR_ERR_NO_NWFILTER);

  if (filter)
    virNWFilterFree(filter);
  return sight;
}

static MigSight look_for_secret(virConnectPtr vir, const char *name) {
  static const struct {
    const char *prefix;
    int type;
  } types[] = {
      {"volume:", VIR_SECRET_USAGE_TYPE_VOLUME}, {"ceph:", VIR_SECRET_USAGE_TYPE_CEPH},
      {"iscsi:", VIR_SECRET_USAGE_TYPE_ISCSI},   {"tls:", VIR_SECRET_USAGE_TYPE_TLS},
      {"vtpm:", VIR_SECRET_USAGE_TYPE_VTPM},
  };
  virSecretPtr secret = NULL;
  MigSight sight;

  if (g_uuid_string_is_valid(name))
    secret = virSecretLookupByUUIDString(vir, name);
  for (size_t i = 0; !secret && i < G_N_ELEMENTS(types); i++)
    if (g_str_has_prefix(name, types[i].prefix))
      secret = virSecretLookupByUsage(vir, types[i].type, name + strlen(types[i].prefix));
  sight = sight_of(secret != NULL, VIR_ERR_NO_SECRET);
  if (secret)
    virSecretFree(secret);
  return sight;
}

/* The name of a node device contains that of the interface, with '_' for characters it may not have: "net_br0_52_54_00_…". */
static bool is_device_of(const char *device, const char *interface) {
  g_autofree char *prefix = g_strdup_printf("net_%s_", interface);

  for (char *p = prefix; *p; p++)
    if (!g_ascii_isalnum(*p))
      *p = '_';
  return g_str_has_prefix(device, prefix);
}

/* Asks the interface driver first. If it is built on netcf, it knows only what the distribution's files configure, so its "no"
 * proves nothing; the kernel's list, from the node device driver, does. */
static MigSight look_for_interface(virConnectPtr vir, const char *name) {
  virInterfacePtr interface = virInterfaceLookupByName(vir, name);
  virNodeDevicePtr *devices = NULL;
  MigSight sight;
  int n;

  if (interface) {
    virInterfaceFree(interface);
    return MIG_SIGHT_PRESENT;
  }
  n = virConnectListAllNodeDevices(vir, &devices, VIR_CONNECT_LIST_NODE_DEVICES_CAP_NET);
  sight = n > 0 ? MIG_SIGHT_ABSENT : MIG_SIGHT_UNSEEN;
  for (int i = 0; i < n; i++) {
    if (is_device_of(virNodeDeviceGetName(devices[i]), name))
      sight = MIG_SIGHT_PRESENT;
    virNodeDeviceFree(devices[i]);
  }
  free(devices);
  return sight;
}

static MigSight look_for_security_model(const MigHostFacts *host, const char *name) {
  if (!host->security_models)
    return MIG_SIGHT_UNSEEN;
  return g_strv_contains(host->security_models, name) ? MIG_SIGHT_PRESENT : MIG_SIGHT_ABSENT;
}

static MigSight look_for(virConnectPtr vir, const MigNeed *need, const MigTargetFacts *facts) {
  MigTargetDisk file = {0};

  virResetLastError();
  switch (need->kind) {
  case MIG_NEED_NETWORK:
    return look_for_network(vir, need->name);
  case MIG_NEED_HOST_INTERFACE:
    return look_for_interface(vir, need->name);
  case MIG_NEED_FILTER:
    return look_for_filter(vir, need->name);
  case MIG_NEED_SECRET:
    return look_for_secret(vir, need->name);
  case MIG_NEED_FILE:
    mig_look_for_path(vir, need->name, facts->store, &file);
    return file.sight;
  case MIG_NEED_SECURITY_MODEL:
    return look_for_security_model(&facts->host, need->name);
  case MIG_NEED_DEVICE: /* by the domain capabilities */
  case MIG_NEED_SOCKET:
  case MIG_NEED_COUNT:
    break;
  }
  return MIG_SIGHT_UNSEEN;
}

/* Two NICs on the same network need only one lookup. */
static void survey_needs(virConnectPtr vir, const MigDomainFacts *domain, MigTargetFacts *facts) {
  for (size_t i = 0; i < domain->n_needs; i++) {
    const MigNeed *need = &domain->needs[i];
    size_t same = 0;

    while (same < i &&
           (domain->needs[same].kind != need->kind || strcmp(domain->needs[same].name, need->name) != 0))
      same++;
    facts->needs[i] = same < i ? facts->needs[same] : look_for(vir, need, facts);
  }
}

bool mig_libvirt_survey_target(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                               MigTargetFacts *ret_facts, GError **error) {
  g_auto(MigLease) lease = {0};
  g_auto(MigTargetFacts) facts = {0};

  mig_target_facts_init(&facts, domain);
  if (!mig_lease_take(conn, MIG_LEASE_SHORT, &lease, error) || !mig_read_host(&lease, &facts.host, error) ||
      !survey_names(lease.vir, domain, &facts, error))
    return false;
  survey_needs(lease.vir, domain, &facts);
  survey_machine(lease.vir, domain, &facts);
  survey_cpu(lease.vir, domain, source, &facts);
  survey_memory(lease.vir, &facts);
  survey_pages(lease.vir, domain, &facts.host);
  for (size_t i = 0; i < domain->n_disks; i++)
    mig_look_for_disk(lease.vir, &domain->disks[i], facts.store, &facts.disks[i]);
  virResetLastError();
  /* If the connection broke, missing answers do not mean unseen. */
  if (virConnectIsAlive(lease.vir) != 1) {
    virResetLastError();
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "lost the connection to %s", conn->uri);
    return false;
  }
  *ret_facts = facts;
  facts = (MigTargetFacts){0};
  return true;
}

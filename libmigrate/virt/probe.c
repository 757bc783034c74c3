/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The probe: the guest's dirty rate and how busy its CPUs are, before the migration; and the profile that keeps them. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* How much longer than requested the measurement may take, and how often to poll it. */
#define PROBE_GRACE_MS 3000
#define PROBE_POLL_MS  50

/* From the domain's statistics; libvirt returns both groups in one call. */
typedef struct Reading {
  bool measured;
  uint64_t bytes_per_s;
  uint64_t busiest_cpu_ms;
  uint64_t resident_bytes;
} Reading;

static void read_vcpus(virDomainStatsRecordPtr record, MigVcpus *vcpus, Reading *reading) {
  uint64_t cpu_ms[MIG_VCPUS] = {0};
  unsigned n = 0;

  if (virTypedParamsGetUInt(record->params, record->nparams, "vcpu.current", &n) != 1)
    return;
  for (unsigned i = 0; i < MIN(n, MIG_VCPUS); i++) {
    g_autofree char *name = g_strdup_printf("vcpu.%u.time", i);
    unsigned long long ns = 0;

    if (virTypedParamsGetULLong(record->params, record->nparams, name, &ns) == 1)
      cpu_ms[i] = ns / 1000000;
  }
  reading->busiest_cpu_ms = mig_vcpus_update(vcpus, cpu_ms, n);
}

static void read_dirty_rate(virDomainStatsRecordPtr record, Reading *reading) {
  long long mib_per_s = -1;
  int status = 0;

  reading->measured =
      virTypedParamsGetInt(record->params, record->nparams, "dirtyrate.calc_status", &status) == 1 &&
      status == VIR_DOMAIN_DIRTYRATE_MEASURED &&
      virTypedParamsGetLLong(record->params, record->nparams, "dirtyrate.megabytes_per_second", &mib_per_s) ==
          1 &&
      mib_per_s >= 0;
  if (reading->measured)
    reading->bytes_per_s = (uint64_t)mib_per_s * MIG_MIB_BYTES;
}

static void read_resident(virDomainStatsRecordPtr record, Reading *reading) {
  unsigned long long kib = 0;

  if (virTypedParamsGetULLong(record->params, record->nparams, "balloon.rss", &kib) == 1)
    reading->resident_bytes = kib * 1024;
}

static bool read_stats(virDomainPtr domain, MigVcpus *vcpus, Reading *ret_reading, GError **error) {
  virDomainPtr domains[] = {domain, NULL};
  virDomainStatsRecordPtr *records = NULL;
  Reading reading = {0};

  if (virDomainListGetStats(domains,
                            VIR_DOMAIN_STATS_DIRTYRATE | VIR_DOMAIN_STATS_VCPU | VIR_DOMAIN_STATS_BALLOON,
                            &records, 0) < 0)
    return mig_virt_error_take(error, "cannot read the dirty rate");
  if (records[0]) {
    read_vcpus(records[0], vcpus, &reading);
    read_dirty_rate(records[0], &reading);
    read_resident(records[0], &reading);
  }
  virDomainStatsRecordListFree(records);
  *ret_reading = reading;
  return true;
}

/* The kernel does not count huge pages as resident. */
static bool has_hugepages(virDomainPtr domain) {
  char *xml = virDomainGetXMLDesc(domain, 0);
  bool has = !xml || strstr(xml, "<hugepages");

  free(xml);
  return has;
}

bool mig_libvirt_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                                  GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = mig_lease_take_domain(conn, uuid, &lease, error);
  gint64 begin, waited_ms = 0;
  Reading before, after = {0};
  MigVcpus vcpus = {0};

  if (!domain || !read_stats(domain, &vcpus, &before, error))
    return false;
  begin = g_get_monotonic_time();
  if (virDomainStartDirtyRateCalc(domain, (int)seconds, 0) < 0)
    return mig_virt_error_take(error, "cannot measure the dirty rate");
  do {
    g_usleep(PROBE_POLL_MS * 1000);
    waited_ms = (g_get_monotonic_time() - begin) / 1000;
    /* Before that, any result belongs to an earlier measurement. */
    if (waited_ms >= (gint64)seconds * 1000 && !read_stats(domain, &vcpus, &after, error))
      return false;
  } while (!after.measured && waited_ms < (gint64)seconds * 1000 + PROBE_GRACE_MS);
  if (!after.measured) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "QEMU did not measure the dirty rate within %u s", seconds + PROBE_GRACE_MS / 1000);
    return false;
  }
  mig_dirty_curve_observe(&probe->curve, seconds, (double)after.bytes_per_s * seconds);
  probe->cpu_share = MIN((double)(after.busiest_cpu_ms - before.busiest_cpu_ms) / (double)waited_ms, 1.0);
  probe->resident_bytes = has_hugepages(domain) ? 0 : after.resident_bytes;
  return true;
}

bool mig_libvirt_write_profile(MigConn *conn, const char *uuid, const MigProfile *profile, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = mig_lease_take_domain(conn, uuid, &lease, error);
  char text[MIG_PROFILE_TEXT_SIZE];
  g_autofree char *element = NULL;
  MigDomainStatus status;

  if (!domain || !mig_read_status(domain, uuid, &status, error))
    return false;
  /* libvirt would wait for the job's end. */
  if (status.job_active) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_BUSY, "domain %s is being migrated", uuid);
    return false;
  }
  mig_profile_format(profile, text);
  element = g_strdup_printf("<profile>%s</profile>", text);
  if (virDomainSetMetadata(domain, VIR_DOMAIN_METADATA_ELEMENT, element, "handoffd", MIG_PROFILE_NAMESPACE,
                           VIR_DOMAIN_AFFECT_LIVE) < 0)
    return mig_virt_error_take(error, "cannot write the profile of domain %s", uuid);
  return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The status of a domain at one end, and the statistics of its job. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* More vCPUs would tell no more about how busy the guest is. */

/* Reads the domain's job. Returns false with an error only if the server did not answer. */
static bool read_job(virDomainPtr domain, const char *uuid, MigDomainStatus *status, GError **error) {
  virTypedParameterPtr params = NULL;
  int n = 0, type = VIR_DOMAIN_JOB_NONE;
  g_autoptr(GError) failure = NULL;

  if (virDomainGetJobStats(domain, &type, &params, &n, 0) == 0) {
    int operation = mig_stats_operation(params, n);

    status->job_active = mig_stats_job_is_migration(type, operation);
    status->job_outgoing = status->job_active && operation != VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN;
    if (status->job_active)
      status->job_elapsed_ms = mig_stats_elapsed_ms(params, n);
    virTypedParamsFree(params, n);
    return true;
  }

  mig_virt_error_take(&failure, "cannot read the job of domain %s", uuid);
  switch ((MigVirtError)failure->code) {
  case MIG_VIRT_ERROR_NOT_RUNNING: /* an inactive domain has no job */
  case MIG_VIRT_ERROR_NO_DOMAIN:   /* it has just disappeared */
    return true;
  case MIG_VIRT_ERROR_UNSUPPORTED:
    /* "only on the source host" is libvirt's answer at the target: there is a job, but no statistics. Otherwise the hypervisor
     * driver has no jobs. */
    status->job_active = strstr(failure->message, "only on the source host") != NULL;
    return true;
  default:
    break;
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return false;
}

bool mig_read_status(virDomainPtr domain, const char *uuid, MigDomainStatus *ret_status, GError **error) {
  MigDomainStatus status = {.state = MIG_END_ABSENT};
  int state, reason, persistent;
  unsigned id = virDomainGetID(domain); /* as of the lookup */

  /* The job first, the state last: so a job that is over is never paired with an older state. */
  if (!read_job(domain, uuid, &status, error))
    return false;
  persistent = virDomainIsPersistent(domain);
  if (persistent < 0 || virDomainGetState(domain, &state, &reason, 0) < 0)
    return mig_virt_error_take(error, "cannot read the state of domain %s", uuid);
  status.state = mig_state_from_libvirt(state, reason);
  status.persistent = persistent;
  status.id = id == (unsigned)-1 || state == VIR_DOMAIN_SHUTOFF ? 0 : (int)id;
  status.start_failed = state == VIR_DOMAIN_SHUTOFF && reason == VIR_DOMAIN_SHUTOFF_FAILED;
  status.ended = state == VIR_DOMAIN_SHUTOFF &&
                 (reason == VIR_DOMAIN_SHUTOFF_SHUTDOWN || reason == VIR_DOMAIN_SHUTOFF_CRASHED);
  status.migrated = state == VIR_DOMAIN_RUNNING && reason == VIR_DOMAIN_RUNNING_MIGRATED;
  status.booted = state == VIR_DOMAIN_RUNNING &&
                  (reason == VIR_DOMAIN_RUNNING_BOOTED || reason == VIR_DOMAIN_RUNNING_RESTORED ||
                   reason == VIR_DOMAIN_RUNNING_FROM_SNAPSHOT);
  *ret_status = status;
  return true;
}

bool mig_libvirt_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(GError) failure = NULL;
  g_autoptr(virDomain) domain = mig_lease_take_domain(conn, uuid, &lease, &failure);
  MigDomainStatus status;

  if (!domain || !mig_read_status(domain, uuid, &status, &failure)) {
    if (!g_error_matches(failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN)) {
      g_propagate_error(error, g_steal_pointer(&failure));
      return false;
    }
    status = (MigDomainStatus){.state = MIG_END_ABSENT};
  }
  *ret_status = status;
  return true;
}

bool mig_guard_pass(virDomainPtr domain, const char *uuid, const MigGuard *guard, GError **error) {
  MigDomainStatus status;

  if (!guard)
    return true;
  return mig_read_status(domain, uuid, &status, error) && guard->may(&status, guard->user_data, error);
}

/* libvirt reads this from the host's /proc, without QEMU's monitor and without a job. Left out if it fails. */
static void read_guest_cpus(virDomainPtr domain, MigVcpus *vcpus, MigSample *sample) {
  virVcpuInfo cpus[MIG_VCPUS];
  uint64_t cpu_ms[MIG_VCPUS];
  int n = virDomainGetVcpus(domain, cpus, MIG_VCPUS, NULL, 0);

  if (n <= 0)
    return;
  for (int i = 0; i < n; i++)
    cpu_ms[i] = cpus[i].cpuTime / 1000000;
  sample->busiest_cpu_ms = mig_vcpus_update(vcpus, cpu_ms, (unsigned)n);
  sample->guest_cpus = (uint64_t)n;
}

bool mig_libvirt_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample,
                           GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(GError) failure = NULL;
  g_autoptr(virDomain) domain = mig_lease_take_domain(conn, uuid, &lease, &failure);
  MigSample sample = {0};
  virTypedParameterPtr params = NULL;
  int n = 0, type = VIR_DOMAIN_JOB_NONE, state, reason;

  if (domain && virDomainGetJobStats(domain, &type, &params, &n, 0) < 0)
    mig_virt_error_take(&failure, "cannot read the job of domain %s", uuid);

  /* A domain that is gone or stopped has no job. It may go at any moment: that is what a migration is for. */
  if (failure && failure->code != MIG_VIRT_ERROR_NO_DOMAIN && failure->code != MIG_VIRT_ERROR_NOT_RUNNING) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
  }

  if (!failure && mig_stats_job_is_migration(type, mig_stats_operation(params, n))) {
    mig_stats_sample(params, n, &sample);
    sample.active = true;
    if (virDomainGetState(domain, &state, &reason, 0) == 0) {
      MigEndState end = mig_state_from_libvirt(state, reason);

      sample.post_copy = end == MIG_END_PAUSED_POSTCOPY || end == MIG_END_PAUSED_POSTCOPY_FAILED ||
                         end == MIG_END_RUNNING_POSTCOPY || end == MIG_END_RUNNING_POSTCOPY_FAILED;
    }
    if (vcpus && !sample.post_copy)
      read_guest_cpus(domain, vcpus, &sample);
    virResetLastError();
  }
  virTypedParamsFree(params, n);

  sample.valid = true;
  *ret_sample = sample;
  return true;
}

bool mig_libvirt_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = mig_lease_take_domain(conn, uuid, &lease, error);
  virTypedParameterPtr params = NULL;
  int n = 0, type = VIR_DOMAIN_JOB_NONE, operation;

  if (!domain)
    return false;
  /* Others may want to read them too: without KEEP_COMPLETED, reading removes them. */
  if (virDomainGetJobStats(domain, &type, &params, &n,
                           VIR_DOMAIN_JOB_STATS_COMPLETED | VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED) < 0)
    return mig_virt_error_take(error, "cannot read the last job of domain %s", uuid);

  operation = mig_stats_operation(params, n);
  if (type != VIR_DOMAIN_JOB_COMPLETED || (operation != VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN &&
                                           operation != VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT)) {
    virTypedParamsFree(params, n);
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING,
                "libvirt has no statistics of a completed migration of domain %s", uuid);
    return false;
  }
  mig_stats_final(params, n, ret_stats);
  virTypedParamsFree(params, n);
  return true;
}

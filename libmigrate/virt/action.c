/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Actions on a domain: the migration itself, and the calls that steer it. */
#include "libmigrate/virt/certificates.h"
#include "libmigrate/virt/libvirt.h"
#include "libmigrate/virt/xml.h"

/* Reads what flags and parameters depend on. The facts own the names of the disks. */
static bool read_start(virDomainPtr domain, const MigMigrateRequest *request, MigDomainFacts *ret_facts,
                       MigStart *ret_start, GError **error) {
  int persistent = virDomainIsPersistent(domain);

  if (persistent < 0)
    return mig_virt_error_take(error, "cannot read whether domain %s is persistent", request->uuid);
  ret_start->persistent = persistent;

  if (mig_policy_get(request->policy, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_NONE)
    return true;
  if (!mig_read_domain_xml(domain, request->uuid, ret_facts, error))
    return false;
  ret_start->local_disks = mig_domain_local_disks(ret_facts);
  return true;
}

static bool run(virConnectPtr vir, virDomainPtr domain, const MigMigrateRequest *request,
                const MigStart *start, unsigned flags, GError **error) {
  g_auto(MigTypedParams) params = {0};

  if (!mig_params(request, start, flags, &params, error))
    return false;
  if (virDomainMigrateToURI3(domain, request->target_uri, params.params, (unsigned)params.n, flags) == 0)
    return true;

  mig_virt_error_take(error,
                      request->resume_post_copy ? "cannot resume the post-copy migration to %s"
                                                : "the migration to %s failed",
                      request->target_uri);
  /* libvirt's text is the same for both connections: ours, and the source's to the target. */
  if (error && g_error_matches(*error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE)) {
    bool ours = virConnectIsAlive(vir) != 1;

    g_prefix_error(error, "%s: ",
                   ours ? "the connection to the source's libvirtd broke"
                        : "the source's libvirtd could not connect to the target, or lost the connection");
    if (!ours)
      (*error)->code = MIG_VIRT_ERROR_PEER_LOST;
  }
  /* QEMU names the missing file, but not the host. */
  if (error && g_error_matches(*error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_TLS)) {
    MigSight here = mig_certificates_look("/");

    g_prefix_error(error, "%s has no certificates for QEMU's TLS: ",
                   here == MIG_SIGHT_PRESENT  ? "the target"
                   : here == MIG_SIGHT_ABSENT ? "this node"
                                              : "this node or the target");
  }
  virResetLastError();
  return false;
}

bool mig_libvirt_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = NULL;
  uint64_t max_downtime_ms = mig_policy_get(request->policy, MIG_POLICY_MAX_DOWNTIME_MS);
  g_auto(MigDomainFacts) facts = {0};
  MigStart start = {0};
  unsigned flags;

  if (!mig_lease_take(conn, MIG_LEASE_LONG, &lease, error))
    return false;
  domain = mig_lease_domain(&lease, request->uuid, error);
  if (!domain || !read_start(domain, request, &facts, &start, error))
    return false;
  flags = mig_flags(request, &start);

  if (!mig_guard_pass(domain, request->uuid, request->guard, error))
    return false;
  /* Before the start, since the migration of a small guest may finish before the monitor's first step. Not on a resume: then
   * QEMU is in post-copy, and the guest has already switched over. */
  if (!request->resume_post_copy && max_downtime_ms &&
      virDomainMigrateSetMaxDowntime(domain, max_downtime_ms, 0) < 0)
    return mig_virt_error_take(error, "cannot set the downtime limit of domain %s", request->uuid);

  return run(lease.vir, domain, request, &start, flags, error);
}

/* Looks up the domain for a call that acts on it at once. NULL: the lookup failed, or `guard` refused. */
static virDomainPtr take_for_action(MigConn *conn, const char *uuid, const MigGuard *guard,
                                    MigLease *ret_lease, GError **error) {
  virDomainPtr domain = mig_lease_take_domain(conn, uuid, ret_lease, error);

  if (domain && !mig_guard_pass(domain, uuid, guard, error)) {
    virDomainFree(domain);
    return NULL;
  }
  return domain;
}

bool mig_libvirt_abort_job(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);

  if (!domain)
    return false;
  return virDomainAbortJob(domain) == 0 || mig_virt_error_take(error, "cannot abort the migration");
}

bool mig_libvirt_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms,
                                  const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);

  if (!domain)
    return false;
  return virDomainMigrateSetMaxDowntime(domain, downtime_ms, 0) == 0 ||
         mig_virt_error_take(error, "cannot set the downtime limit to %" G_GUINT64_FORMAT " ms", downtime_ms);
}

bool mig_libvirt_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                               const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);
  unsigned flags = post_copy ? VIR_DOMAIN_MIGRATE_MAX_SPEED_POSTCOPY : 0;

  if (!domain)
    return false;
  return virDomainMigrateSetMaxSpeed(domain, mig_param_mib_per_s(bytes_per_s), flags) == 0 ||
         mig_virt_error_take(error, "cannot set the bandwidth limit to %" G_GUINT64_FORMAT " bytes/s",
                             bytes_per_s);
}

bool mig_libvirt_start_post_copy(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);

  if (!domain)
    return false;
  return virDomainMigrateStartPostCopy(domain, 0) == 0 ||
         mig_virt_error_take(error, "cannot switch to post-copy");
}

bool mig_libvirt_suspend(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);

  if (!domain)
    return false;
  return virDomainSuspend(domain) == 0 || mig_virt_error_take(error, "cannot pause the guest");
}

bool mig_libvirt_resume(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);

  if (!domain)
    return false;
  return virDomainResume(domain) == 0 || mig_virt_error_take(error, "cannot resume the guest");
}

bool mig_libvirt_undefine(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  g_auto(MigLease) lease = {0};
  g_autoptr(virDomain) domain = take_for_action(conn, uuid, guard, &lease, error);
  int active;

  if (!domain)
    return false;
  /* libvirt would make an active domain transient. */
  active = virDomainIsActive(domain);
  if (active > 0) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "domain %s is active: not undefining it",
                uuid);
    return false;
  }
  return (active == 0 && virDomainUndefineFlags(domain, VIR_DOMAIN_UNDEFINE_KEEP_NVRAM |
                                                            VIR_DOMAIN_UNDEFINE_KEEP_TPM) == 0) ||
         mig_virt_error_take(error, "cannot undefine the domain");
}

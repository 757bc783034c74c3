/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A worker's checks before its migration: facts of the domain and of both hosts, and what keeps it from moving. */
#include "agent/worker-private.h"

#include <string.h>

#define PROBE_S 1

static MigCause cause_of_preparing(const GError *error) {
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN) ||
      g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING))
    return MIG_CAUSE_DOMAIN_NOT_RUNNING;
  return MIG_CAUSE_SOURCE_UNREACHABLE;
}

/* What nobody answers may be answered later; what is answered with a no is not. */
static MigHold hold_of(MigCause cause, const GError *error) {
  if (!g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) &&
      !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT))
    return MIG_HOLD_NONE;
  return cause == MIG_CAUSE_TARGET_UNREACHABLE   ? MIG_HOLD_TARGET
         : cause == MIG_CAUSE_SOURCE_UNREACHABLE ? MIG_HOLD_NODE
                                                 : MIG_HOLD_NONE;
}

/* Takes `error`. */
static void refuse(Worker *worker, MigCause cause, GError *error) {
  worker_post(
      worker,
      &(WorkerReport){.kind = WORKER_REFUSED, .cause = cause, .hold = hold_of(cause, error), .error = error});
}

static bool domain_can_start(const MigDomainFacts *facts, GError **error) {
  if (facts->state == MIG_END_RUNNING || facts->state == MIG_END_PAUSED)
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING,
              "the domain is %s: only a running or paused one can be moved live",
              mig_end_state_name(facts->state));
  return false;
}

/* The target's half: another host, that has no such domain active. Warms it up. False: refused, and said so. */
static bool prepare_target(Worker *worker, const MigHostFacts *source, const MigDomainFacts *domain,
                           MigPolicyFacts *policy_facts, MigSettleRecord *record) {
  const MigDriverOps *ops = worker->driver->ops;
  g_auto(MigHostFacts) host = {0};
  MigDomainStatus status = {0};
  GError *error = NULL;
  MigConn *conn;
  bool ok = false;

  conn = ops->open(worker->driver, worker->target_uri, worker->connect_timeout_ms, NULL, NULL, &error);
  if (!conn) {
    refuse(worker, MIG_CAUSE_TARGET_UNREACHABLE, error);
    return false;
  }
  if (!ops->host_facts(conn, &host, &error) ||
      !ops->domain_status(conn, worker->domain_uuid, &status, &error)) {
    refuse(worker, MIG_CAUSE_TARGET_UNREACHABLE, error);
  } else if (strcmp(host.uuid, source->uuid) == 0) {
    refuse(worker, MIG_CAUSE_SAME_HOST,
           g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_SAME_HOST,
                       "the target %s is this host itself (host UUID %s): name another one",
                       worker->target_uri, host.uuid));
  } else if (status.state != MIG_END_ABSENT && status.state != MIG_END_INACTIVE) {
    refuse(worker, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET,
           g_error_new(
               MIG_VIRT_ERROR, MIG_VIRT_ERROR_EXISTS,
               "a domain with the same UUID is %s at the target already: find out which copy is the guest "
               "before anything else; nothing was touched",
               mig_end_state_name(status.state)));
  } else {
    record->target_was_absent = status.state == MIG_END_ABSENT;
    policy_facts->qemu_version = MIN(source->hypervisor_version, host.hypervisor_version);
    policy_facts->libvirt_version = MIN(source->libvirt_version, host.libvirt_version);
    /* Only a saving of time: what keeps it from working will be said by the migration, and better. */
    if (!ops->warm_target(conn, domain, &error))
      g_clear_error(&error);
    ok = true;
  }
  ops->close(conn);
  return ok;
}

static bool policy_fits(Worker *worker, const MigPolicyFacts *facts) {
  const MigConflict *conflict = NULL;

  if (mig_policy_conflicts(&worker->policy, facts, &conflict, 1) == 0)
    return true;
  refuse(worker, MIG_CAUSE_POLICY_CONFLICT,
         g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "%s: %s", conflict->code, conflict->message));
  return false;
}

/* A guest that cannot be measured is moved all the same; the monitor learns on the way. */
static void measure(Worker *worker, MigConn *conn, MigProbe *probe) {
  uint64_t bytes_per_s;

  if (worker->driver->ops->probe_dirty_rate(conn, worker->domain_uuid, PROBE_S, &bytes_per_s,
                                            &probe->cpu_share, NULL))
    mig_dirty_curve_observe(&probe->curve, PROBE_S, (double)bytes_per_s * PROBE_S);
}

bool worker_prepare(Worker *worker, MigPolicyFacts *policy_facts) {
  const MigDriverOps *ops = worker->driver->ops;
  g_auto(MigHostFacts) host = {0};
  g_auto(MigDomainFacts) domain = {0};
  MigSettleRecord record;
  MigProbe probe = {0};
  GError *error = NULL;
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);
  bool ok;

  if (!conn) {
    refuse(worker, MIG_CAUSE_SOURCE_UNREACHABLE, error);
    return false;
  }
  ok = ops->host_facts(hypervisor_conn_get(conn), &host, &error) &&
       ops->domain_facts(hypervisor_conn_get(conn), worker->domain_uuid, &domain, &error) &&
       domain_can_start(&domain, &error);
  if (ok && worker->probe)
    measure(worker, hypervisor_conn_get(conn), &probe);
  hypervisor_release(conn, error);
  if (!ok) {
    refuse(worker, cause_of_preparing(error), error);
    return false;
  }
  record = (MigSettleRecord){
      .ran_before = domain.state == MIG_END_RUNNING,
      .persist_target = domain.persistent && mig_policy_get(&worker->policy, MIG_POLICY_PERSIST_TARGET),
      .undefine_source = domain.persistent && mig_policy_get(&worker->policy, MIG_POLICY_UNDEFINE_SOURCE),
  };
  policy_facts->passthrough = domain.passthrough;
  policy_facts->local_disks = domain.local_disk_bytes > 0;
  if (!prepare_target(worker, &host, &domain, policy_facts, &record) || !policy_fits(worker, policy_facts))
    return false;

  worker_set_record(worker, &record);
  worker_post(worker,
              &(WorkerReport){.kind = WORKER_PREPARED, .domain = domain, .probe = probe, .record = record});
  domain = (MigDomainFacts){0};
  if (worker_wait_for_order(worker) == WORKER_ORDER_GO)
    return true;
  worker_post(worker, &(WorkerReport){.kind = WORKER_CANCELLED});
  return false;
}

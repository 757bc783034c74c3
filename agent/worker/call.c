/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The migration's call, and its outcome. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"

static void worker_note_completed(Worker *worker) {
  g_mutex_lock(&worker->mutex);
  worker->completed = worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

/* The guard itself notes when libvirt gets the call. */
static bool call(Worker *worker, MigConn *conn, const MigMigrateRequest *request, GError **error) {
  bool ok;

  if (!request->guard)
    worker_set_in_call(worker, true);
  ok = worker->driver->ops->migrate(conn, request, error);
  worker_set_in_call(worker, false);
  return ok;
}

/* tls=yes means: encrypted if both ends are set up for it. No libvirt API tells whether the other end is, so try. An invalid
 * certificate is no reason to send a guest's memory unencrypted: that fails, as everything does with tls=require. */
bool worker_migrate(Worker *worker, MigConn *conn, const MigMigrateRequest *request, GError **error) {
  g_autoptr(GError) failure = NULL;

  if (call(worker, conn, request, &failure))
    return true;
  if (mig_policy_get(request->policy, MIG_POLICY_TLS) != MIG_TLS_YES ||
      !g_error_matches(failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_TLS)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
  }
  worker_post(worker, &(WorkerReport){.kind = WORKER_IN_CLEAR, .error = g_steal_pointer(&failure)});
  worker->policy.values[MIG_POLICY_TLS] = MIG_TLS_NO; /* the one that the request points to */
  return call(worker, conn, request, error);
}

/* Right before the call: is it still the domain that was checked? Somebody may have migrated it since and left a stopped copy, which
 * libvirt would take for the guest. */
static bool may_migrate(const MigDomainStatus *status, gpointer user_data, GError **error) {
  Worker *worker = user_data;
  bool moves = status->state == MIG_END_RUNNING || status->state == MIG_END_PAUSED;
  bool same = worker->source_id == 0 || status->id == worker->source_id;

  if (moves && same && !status->job_active) {
    g_mutex_lock(&worker->mutex);
    worker->job_began_ms = 0; /* a new one */
    g_mutex_unlock(&worker->mutex);
    /* Not after a refusal: the copy at the source may be outdated. */
    worker->stayed_ms = worker->asked_ms;
    worker_set_in_call(worker, true);
    return true;
  }
  worker->not_begun = moves && same;
  g_set_error(error, MIG_VIRT_ERROR, moves && same ? MIG_VIRT_ERROR_BUSY : MIG_VIRT_ERROR_NOT_RUNNING,
              "the domain changed since it was checked: it is %s%s%s; nothing was started",
              mig_end_state_name(status->state), same ? "" : ", and was restarted",
              status->job_active ? ", and someone else is migrating it" : "");
  return false;
}

void worker_call(Worker *worker, const MigPolicyFacts *facts) {
  const MigGuard guard = {may_migrate, worker};
  MigMigrateRequest request = {
      .guard = &guard,
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = &worker->policy,
      .facts = *facts,
      .throttle_initial_pct = worker->throttle_initial_pct,
      .throttle_increment_pct = worker->throttle_increment_pct,
  };
  GError *error = NULL;
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);

  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  worker->asked_ms = clock_now_ms();
  if (conn) {
    if (worker_migrate(worker, conn->conn, &request, &error))
      worker_note_completed(worker);
    worker->call_taken = mig_virt_error_is_answer(error);
    worker->call_failed = worker->call_taken && error;
    hypervisor_release(conn, error);
  }
  worker_post(worker, &(WorkerReport){.kind = WORKER_RETURNED, .error = error});
}

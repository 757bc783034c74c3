/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A worker's steering thread: carries out what the main thread decided.
 *
 * Each call looks at the domain once more, right before it acts, and does nothing if the job there is not this migration's.
 * Otherwise an abort repeated while the outcome is open would cancel whatever the domain's owner does next. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"
#define ABORT_REPEAT_MS 1000
#define IDLE_MS         60000 /* commands wake it up */

/* The guard of this thread's calls: see MigGuard. */
static bool may_act(const MigDomainStatus *status, gpointer user_data, GError **error) {
  return worker_may_steer(user_data, status, true, error);
}

/* A limit does no harm if there is no job yet. */
static bool may_limit(const MigDomainStatus *status, gpointer user_data, GError **error) {
  return worker_may_steer(user_data, status, false, error);
}

/* If the guest is not running, someone else paused it, and it remains theirs: another pause, or post-copy, after which libvirt no
 * longer tells who paused it, would make it look like ours. A paused guest needs neither to converge. */
static bool may_stop_guest(const MigDomainStatus *status, gpointer user_data, GError **error) {
  if (!worker_may_steer(user_data, status, true, error))
    return false;
  if (status->state == MIG_END_RUNNING)
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING, "the guest is not running: it is %s",
              mig_end_state_name(status->state));
  return false;
}

typedef struct Pause {
  Worker *worker;
  bool sent; /* the request went to libvirt; otherwise there was no pause, whatever failed */
} Pause;

static bool may_pause(const MigDomainStatus *status, gpointer user_data, GError **error) {
  Pause *pause = user_data;

  pause->sent = may_stop_guest(status, pause->worker, error);
  return pause->sent;
}

static bool pause_guest(Worker *worker, MigConn *conn, GError **error) {
  Pause pause = {.worker = worker};
  const MigGuard guard = {may_pause, &pause};
  g_autoptr(GError) failure = NULL;
  bool ok;

  if (!worker_begin_pause(worker)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING, "the migration has ended");
    return false;
  }
  ok = worker->driver->ops->suspend(conn, worker->domain_uuid, &guard, &failure);
  /* Only libvirt's answer tells for certain whether it was paused. */
  worker_end_pause(worker, ok || (pause.sent && !mig_virt_error_is_answer(failure)), ok);
  if (failure)
    g_propagate_error(error, g_steal_pointer(&failure));
  return ok;
}

static bool act(Worker *worker, MigConn *conn, const MigAction *action, GError **error) {
  const MigGuard of_job = {may_act, worker}, of_limit = {may_limit, worker},
                 of_guest = {may_stop_guest, worker};
  const MigDriverOps *ops = worker->driver->ops;

  switch (action->kind) {
  case MIG_ACTION_ABORT:
    return ops->abort_job(conn, worker->domain_uuid, &of_job, error);
  case MIG_ACTION_SET_DOWNTIME:
    return ops->set_max_downtime(conn, worker->domain_uuid, action->downtime_ms, &of_limit, error);
  case MIG_ACTION_START_POST_COPY:
    return ops->start_post_copy(conn, worker->domain_uuid, &of_guest, error);
  case MIG_ACTION_PAUSE:
    if (action->downtime_ms > 0)
      return ops->set_max_downtime(conn, worker->domain_uuid, action->downtime_ms, &of_limit, error);
    return pause_guest(worker, conn, error);
  case MIG_ACTION_NONE:
  case MIG_ACTION_COUNT:
    break;
  }
  return true;
}

static void report_acted(Worker *worker, const MigAction *action, GError *error) {
  worker_post(worker, &(WorkerReport){.kind = WORKER_ACTED, .action = *action, .error = error});
}

/* A repeated abort is reported when it is accepted, or refused for good. */
static void run_command(Worker *worker, MigConn *conn, const Command *command, MigAction *abort) {
  const MigDriverOps *ops = worker->driver->ops;
  GError *error = NULL;

  switch (command->kind) {
  case COMMAND_ACT:
    if (command->action.kind == MIG_ACTION_ABORT) {
      *abort = command->action;
      break;
    }
    act(worker, conn, &command->action, &error);
    report_acted(worker, &command->action, error);
    break;
  case COMMAND_BANDWIDTH: {
    const MigGuard guard = {may_limit, worker};
    MigAction none = {.kind = MIG_ACTION_NONE};

    if (ops->set_bandwidth(conn, worker->domain_uuid, command->bytes_per_s, false, &guard, &error) &&
        command->post_copy)
      ops->set_bandwidth(conn, worker->domain_uuid, command->post_copy_bytes_per_s, true, &guard, &error);
    report_acted(worker, &none, error);
    break;
  }
  case COMMAND_WAKE:
    break;
  }
}

static void try_abort(Worker *worker, MigConn *conn, const MigAction *abort, bool *reported) {
  g_autoptr(GError) refused = NULL;

  if ((act(worker, conn, abort, &refused) ||
       !g_error_matches(refused, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING)) &&
      !*reported) {
    report_acted(worker, abort, g_steal_pointer(&refused));
    *reported = true;
  }
}

void worker_steer(Worker *worker) {
  MigAction abort = {.kind = MIG_ACTION_NONE};
  uint64_t abort_again_ms = 0;
  bool abort_reported = false;

  while (!worker_sees(worker, &worker->over)) {
    uint64_t now = clock_now_ms();
    uint64_t wait_ms = abort.kind != MIG_ACTION_ABORT ? IDLE_MS
                       : abort_again_ms > now         ? abort_again_ms - now
                                                      : 0;
    g_autofree Command *command = g_async_queue_timeout_pop(worker->commands, wait_ms * 1000);
    g_autoptr(GError) error = NULL;
    HypervisorConn *conn;

    if (worker_sees(worker, &worker->over))
      break;
    if (!command && abort.kind != MIG_ACTION_ABORT)
      continue;
    conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);
    if (!conn) {
      if (command)
        g_async_queue_push_front(worker->commands, g_steal_pointer(&command));
      continue;
    }
    if (command)
      run_command(worker, conn->conn, command, &abort);
    if (abort.kind == MIG_ACTION_ABORT && clock_now_ms() >= abort_again_ms) {
      try_abort(worker, conn->conn, &abort, &abort_reported);
      abort_again_ms = clock_now_ms() + ABORT_REPEAT_MS;
    }
    hypervisor_release(conn, NULL);
  }
}

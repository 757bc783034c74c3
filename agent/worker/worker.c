/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads of one migration.
 *
 * Theory of Operation. The *caller* prepares (facts about the domain and both hosts, and what prevents the migration), reports, waits
 * for the main thread's order, blocks in the driver's migrate(), and then, whatever that returned, asks both ends until a
 * verdict stands: a failed call does not mean that the domain did not migrate, and a broken connection means nothing at all. Two
 * more threads live while a migration may be in progress: the *steerer* carries out what the main thread decided, the *counter*
 * polls the progress; they are separate so that an abort does not wait for statistics that hang. Both exist before the migration
 * begins, since none may begin that cannot be steered. If threads cannot be started, the job waits; a migration already in
 * progress gets them as soon as possible (worker_tick()). With `reattach` the caller goes straight to asking both ends, while the
 * other two steer what it finds. This file has the threads and the main thread's side. Of the caller, checks.c has what precedes the
 * migration, call.c the call, settle.c what follows; steer.c is the steerer, counter.c the counter, shared.c their shared state.
 *
 * Each thread holds a reference to the Worker, and so may outlive worker_free(): a thread stuck in a hung libvirtd cannot be
 * ended, only left behind. Its reports are dropped.
 *
 * Locks: `mutex` guards order, over, completed, hurry, pausing, record, recorded, whose job it is, and the bandwidth limits; not
 * held over calls. Reports reach the main context in the order in which a thread posts them. At most one sample is in flight,
 * so a slow main loop is not flooded. */
#include "agent/worker/worker-private.h"

/* Before the migration there is nothing to steer or count. */
static gpointer steerer_thread(gpointer data) {
  Worker *worker = data;

  if (worker_wait_for_order(worker) == WORKER_ORDER_GO)
    worker_steer(worker);
  worker_unref(worker);
  return NULL;
}

static gpointer counter_thread(gpointer data) {
  Worker *worker = data;

  if (worker_wait_for_order(worker) == WORKER_ORDER_GO)
    worker_count(worker);
  worker_unref(worker);
  return NULL;
}

static gpointer caller_thread(gpointer data);

typedef enum Role { ROLE_MOVE, ROLE_STEER, ROLE_COUNT, ROLE_END } Role;

static const struct {
  const char *name;
  GThreadFunc func;
} roles[] = {
    [ROLE_MOVE] = {"move", caller_thread},
    [ROLE_STEER] = {"steer", steerer_thread},
    [ROLE_COUNT] = {"count", counter_thread},
};
G_STATIC_ASSERT(G_N_ELEMENTS(roles) == ROLE_END);

static bool start_thread(Worker *worker, Role role, GError **error) {
  g_autofree char *name = g_strdup_printf("%s-%s", roles[role].name, worker->name);
  GThread *thread = g_thread_try_new(name, roles[role].func, worker_ref(worker), error);

  if (!thread) {
    worker_unref(worker);
    g_prefix_error(error, "this node has no threads left: ");
    return false;
  }
  g_thread_unref(thread);
  return true;
}

bool worker_start_helpers(Worker *worker, GError **error) {
  return start_thread(worker, ROLE_STEER, error) && start_thread(worker, ROLE_COUNT, error);
}

static void end_threads(Worker *worker) {
  g_mutex_lock(&worker->mutex);
  worker->over = true;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
  g_async_queue_push(worker->commands, g_new0(Command, 1));
}

static void give_order(Worker *worker, WorkerOrder order) {
  g_mutex_lock(&worker->mutex);
  if (worker->order == WORKER_ORDER_WAIT)
    worker->order = order;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

/* What becomes of someone else's migration is theirs to follow. */
static void tell_not_begun(Worker *worker) {
  while (!worker_end_steering(worker))
    worker_pause_ms(worker, 100);
  worker_post(worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                      .verdict = MIG_VERDICT_AT_SOURCE,
                                      .evidence = g_strdup(
                                          "the source has the guest, and someone else is migrating it; this "
                                          "migration was not started")});
}

static gpointer caller_thread(gpointer data) {
  Worker *worker = data;
  MigPolicyFacts facts = {0};

  if (worker->reattach)
    worker_watch_ends(worker);
  if (worker->reattach || worker_prepare(worker, &facts)) {
    if (!worker->reattach)
      worker_call(worker, &facts);
    if (worker->not_begun)
      tell_not_begun(worker);
    else
      worker_settle(worker);
    end_threads(worker);
  } else {
    /* One of the other two threads may have been started. */
    give_order(worker, WORKER_ORDER_CANCEL);
  }
  worker_forget_ends(worker);
  worker_unref(worker);
  return NULL;
}

/* --- the main thread's side --- */

/* Nothing was started: the job waits in the queue and tries again. Takes `error`. */
static void refuse_for_threads(Worker *worker, GError *error) {
  worker_post(worker, &(WorkerReport){.kind = WORKER_REFUSED,
                                      .cause = MIG_CAUSE_INTERNAL,
                                      .hold = MIG_HOLD_JOB,
                                      .reason = WORKER_NO_THREADS,
                                      .error = error});
}

Worker *worker_start(Hypervisor *hypervisor, const WorkerRequest *request, GMainContext *context,
                     WorkerReportFunc report, gpointer user_data) {
  Worker *worker = g_new0(Worker, 1);
  GError *error = NULL;

  worker->refs = 1;
  worker->hypervisor = hypervisor_ref(hypervisor);
  worker->driver = hypervisor_get_driver(hypervisor);
  worker->context = g_main_context_ref(context);
  worker->report = report;
  worker->user_data = user_data;
  worker->name = g_strndup(request->name, 8);
  worker->domain_uuid = g_strdup(request->domain_uuid);
  worker->target_uri = g_strdup(request->target_uri);
  worker->migrate_uri = g_strdup(request->migrate_uri);
  worker->policy = *request->policy;
  worker->reattach = request->reattach;
  worker->record = request->record;
  worker->call_taken = request->begun;
  worker->source_id = request->source_id;
  worker->started_ms = request->started_ms;
  worker->job_began_ms = request->job_began_ms;
  worker->recorded = true;
  worker->probe = request->probe;
  worker->connect_timeout_ms = request->connect_timeout_ms;
  worker->poll_interval_ms = request->poll_interval_ms;
  worker->commands = g_async_queue_new_full(g_free);
  g_mutex_init(&worker->mutex);
  g_cond_init(&worker->cond);
  if (request->reattach) {
    worker->order = WORKER_ORDER_GO;
    worker->missing = (1U << ROLE_END) - 1;
    worker_tick(worker);
  } else if (!start_thread(worker, ROLE_MOVE, &error)) {
    refuse_for_threads(worker, error);
  }
  return worker;
}

void worker_tick(Worker *worker) {
  for (Role role = ROLE_MOVE; role < ROLE_END; role++) {
    if (!(worker->missing & (1U << role)))
      continue;
    if (!start_thread(worker, role, NULL))
      return;
    worker->missing &= ~(1U << role);
  }
}

void worker_go(Worker *worker, const MigPolicy *start, unsigned throttle_initial_pct,
               unsigned throttle_increment_pct) {
  g_mutex_lock(&worker->mutex);
  worker->policy = *start;
  worker->throttle_initial_pct = throttle_initial_pct;
  worker->throttle_increment_pct = throttle_increment_pct;
  g_mutex_unlock(&worker->mutex);
  give_order(worker, WORKER_ORDER_GO);
}

void worker_free(Worker *worker) {
  if (!worker)
    return;
  worker->report = NULL;
  give_order(worker, WORKER_ORDER_CANCEL);
  end_threads(worker);
  worker_unref(worker);
}

void worker_act(Worker *worker, const MigAction *action) {
  Command *command = g_new0(Command, 1);

  command->kind = COMMAND_ACT;
  command->action = *action;
  g_async_queue_push(worker->commands, command);
}

void worker_set_bandwidth(Worker *worker, uint64_t bytes_per_s, bool post_copy,
                          uint64_t post_copy_bytes_per_s) {
  Command *command = g_new0(Command, 1);

  command->kind = COMMAND_BANDWIDTH;
  command->bytes_per_s = bytes_per_s;
  command->post_copy = post_copy;
  command->post_copy_bytes_per_s = post_copy_bytes_per_s;
  g_mutex_lock(&worker->mutex);
  worker->limited = true;
  worker->bandwidth_bytes_per_s = bytes_per_s;
  worker->post_copy_bandwidth_bytes_per_s = post_copy_bytes_per_s;
  g_mutex_unlock(&worker->mutex);
  g_async_queue_push(worker->commands, command);
}

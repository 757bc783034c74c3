/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads that do one migration.
 *
 * Theory of Operation. The *caller* prepares (facts of the domain, of both hosts, and what keeps it from moving),
 * reports that, waits for the main thread's word, sits in the driver's migrate(), and then, whatever that returned,
 * asks both ends until a verdict stands: a failed call does not mean that the domain did not move, and a broken
 * connection means nothing at all. Two more live while a migration may be under way: the *steerer*
 * carries out what the main thread decided, the *counter* reads the numbers; two, so that an abort does not wait for
 * numbers that hang. Both are there before it begins, for none may begin that cannot be steered; where threads cannot be had the
 * job waits, and one that is on the move already gets them as soon as they can (worker_tick()). With `reattach` the caller goes straight to asking both ends, while these two steer what it
 * finds. This file has the threads and the main thread's side; what the caller does before
 * the migration is in prepare.c, what it does after it in settle.c, the steerer in steer.c, the counter in numbers.c.
 *
 * Each thread holds a reference of the Worker, and so may outlive worker_free(): a thread that sits in a call of a
 * hung libvirtd cannot be ended, only left behind. What such a thread reports is dropped.
 *
 * Locks: `mutex` guards order, over, completed, hurry, pausing, record, recorded, whose job it is and the limits of the bandwidth; it is not held
 * over calls. Reports go to the main
 * context in the order in which a thread posts them. At most one sample is on its way at a time, so a slow main loop
 * is not flooded. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"
#include "agent/base/post.h"

typedef struct Post {
  Worker *worker;
  WorkerReport report;
} Post;

static Worker *worker_ref(Worker *worker) {
  g_atomic_int_inc(&worker->refs);
  return worker;
}

static void worker_unref(Worker *worker) {
  if (!g_atomic_int_dec_and_test(&worker->refs))
    return;
  hypervisor_unref(worker->hypervisor);
  g_main_context_unref(worker->context);
  g_async_queue_unref(worker->commands);
  g_free(worker->name);
  g_free(worker->domain_uuid);
  g_free(worker->target_uri);
  g_free(worker->migrate_uri);
  g_mutex_clear(&worker->mutex);
  g_cond_clear(&worker->cond);
  g_free(worker);
}

static gboolean deliver(gpointer data) {
  Post *posted = data;
  Worker *worker = posted->worker;

  if (posted->report.kind == WORKER_SAMPLE)
    g_atomic_int_set(&worker->sample_on_its_way, 0);
  if (worker->report)
    worker->report(worker, &posted->report, worker->user_data);
  return G_SOURCE_REMOVE;
}

static void post_free(gpointer data) {
  Post *posted = data;

  g_clear_error(&posted->report.error);
  mig_domain_facts_clear(&posted->report.domain);
  g_free(posted->report.check);
  g_free(posted->report.evidence);
  worker_unref(posted->worker);
  g_free(posted);
}

void worker_post(Worker *worker, const WorkerReport *report) {
  Post *posted = g_new0(Post, 1);

  posted->worker = worker_ref(worker);
  posted->report = *report;
  post_to(worker->context, deliver, posted, post_free);
}

void worker_pause_ms(Worker *worker, unsigned ms) {
  gint64 until = g_get_monotonic_time() + (gint64)ms * 1000;

  g_mutex_lock(&worker->mutex);
  while (!worker->hurry && g_cond_wait_until(&worker->cond, &worker->mutex, until))
    ;
  worker->hurry = false;
  g_mutex_unlock(&worker->mutex);
}

bool worker_is_completed(Worker *worker) {
  bool completed;

  g_mutex_lock(&worker->mutex);
  completed = worker->completed;
  g_mutex_unlock(&worker->mutex);
  return completed;
}

MigSettleRecord worker_get_record(Worker *worker) {
  MigSettleRecord record;

  g_mutex_lock(&worker->mutex);
  record = worker->record;
  g_mutex_unlock(&worker->mutex);
  return record;
}

void worker_set_record(Worker *worker, const MigSettleRecord *record) {
  g_mutex_lock(&worker->mutex);
  worker->record = *record;
  g_mutex_unlock(&worker->mutex);
}

bool worker_begin_pause(Worker *worker) {
  bool may;

  g_mutex_lock(&worker->mutex);
  may = worker->pausing = !worker->over;
  g_mutex_unlock(&worker->mutex);
  return may;
}

void worker_end_pause(Worker *worker, bool paused, bool answered) {
  g_mutex_lock(&worker->mutex);
  worker->pausing = false;
  if (paused) {
    worker->record.paused_by_agent = true;
    worker->record.pause_answered = answered;
    worker->pauses++;
  }
  g_mutex_unlock(&worker->mutex);
}

unsigned worker_count_pauses(Worker *worker) {
  unsigned pauses;

  g_mutex_lock(&worker->mutex);
  pauses = worker->pauses;
  g_mutex_unlock(&worker->mutex);
  return pauses;
}

void worker_forget_pause(Worker *worker, unsigned pauses) {
  g_mutex_lock(&worker->mutex);
  if (!worker->pausing && worker->pauses == pauses)
    worker->record.paused_by_agent = worker->record.pause_answered = false;
  g_mutex_unlock(&worker->mutex);
}

bool worker_end_steering(Worker *worker) {
  bool over;

  g_mutex_lock(&worker->mutex);
  over = worker->over = worker->over || !worker->pausing;
  g_mutex_unlock(&worker->mutex);
  return over;
}

bool worker_is_pausing(Worker *worker) {
  bool pausing;

  g_mutex_lock(&worker->mutex);
  pausing = worker->pausing;
  g_mutex_unlock(&worker->mutex);
  return pausing;
}

MigPolicy worker_get_policy(Worker *worker) {
  MigPolicy policy = worker->policy;

  g_mutex_lock(&worker->mutex);
  if (worker->limited) {
    policy.values[MIG_POLICY_BANDWIDTH_BYTES_PER_S] = worker->bandwidth_bytes_per_s;
    policy.values[MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S] = worker->post_copy_bandwidth_bytes_per_s;
  }
  g_mutex_unlock(&worker->mutex);
  return policy;
}

bool worker_is_over(Worker *worker) {
  bool over;

  g_mutex_lock(&worker->mutex);
  over = worker->over;
  g_mutex_unlock(&worker->mutex);
  return over;
}

/* --- whose job it is --- */

/* Two readings of a job's age, and the time between libvirt's clock and ours. */
#define SAME_JOB_MS 1500
/* What lies between our clock, when we call, and libvirt's, when it begins. */
#define CALL_SLACK_MS 50
/* How long libvirt may let a migration wait for other jobs before it begins. */
#define BEGINS_WITHIN_MS 40000

static bool lies_near(uint64_t a_ms, uint64_t b_ms) {
  return a_ms <= b_ms + SAME_JOB_MS && b_ms <= a_ms + SAME_JOB_MS;
}

bool worker_owns_job(Worker *worker, uint64_t elapsed_ms) {
  uint64_t now_ms = clock_now_ms(), began_ms = now_ms > elapsed_ms ? now_ms - elapsed_ms : 0;
  bool own;

  g_mutex_lock(&worker->mutex);
  if (worker->job_began_ms > 0)
    own = worker->in_call || lies_near(began_ms, worker->job_began_ms);
  else
    own = (worker->in_call && began_ms + CALL_SLACK_MS >= worker->call_began_ms) ||
          (worker->started_ms > 0 && began_ms + SAME_JOB_MS >= worker->started_ms &&
           began_ms <= worker->started_ms + BEGINS_WITHIN_MS);
  if (own && worker->job_began_ms == 0)
    worker->job_began_ms = began_ms;
  worker->own_seen = own;
  g_mutex_unlock(&worker->mutex);
  return own;
}

void worker_note_no_job(Worker *worker) {
  g_mutex_lock(&worker->mutex);
  worker->own_seen = false;
  g_mutex_unlock(&worker->mutex);
}

bool worker_has_ended_here(Worker *worker) {
  bool ended;

  g_mutex_lock(&worker->mutex);
  ended = worker->ended_here;
  g_mutex_unlock(&worker->mutex);
  return ended;
}

uint64_t worker_job_began_ms(Worker *worker) {
  uint64_t began_ms;

  g_mutex_lock(&worker->mutex);
  began_ms = worker->job_began_ms;
  g_mutex_unlock(&worker->mutex);
  return began_ms;
}

/* Libvirt is about to get the call, or has answered it. */
static void set_in_call(Worker *worker, bool in_call) {
  g_mutex_lock(&worker->mutex);
  worker->in_call = in_call;
  if (in_call)
    worker->call_began_ms = clock_now_ms();
  g_mutex_unlock(&worker->mutex);
}

bool worker_may_steer(Worker *worker, const MigDomainStatus *status, bool needs_job, GError **error) {
  if (worker_is_over(worker)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_STALE, "the migration is over");
    return false;
  }
  if (!status->job_outgoing && !needs_job)
    return true;
  if (status->job_outgoing && worker_owns_job(worker, status->job_elapsed_ms))
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING, "%s",
              status->job_outgoing ? "the migration job that libvirt has on the domain is somebody else's"
                                   : "libvirt has no migration job on the domain");
  return false;
}

/* --- what is known of the ends --- */

void worker_watch_ends(Worker *worker) {
  AskAnswer answer = {0};

  worker->source = asker_new(worker->driver, worker->hypervisor, NULL, worker->domain_uuid);
  worker->target = asker_new(worker->driver, worker->hypervisor, worker->target_uri, worker->domain_uuid);
  if (worker->reattach)
    return;
  /* What does not answer now is no hindrance; the migration will say so, or has been watched with a gap. */
  if (asker_status(worker->source, &answer, NULL)) {
    worker->as_state = answer.status.state;
    worker->source_id = answer.status.id;
  }
  asker_status(worker->target, &answer, NULL);
}

/* On the thread that has them: the last reference may be the main thread's, which makes no call to libvirt. */
static void forget_ends(Worker *worker) {
  g_clear_pointer(&worker->source, asker_free);
  g_clear_pointer(&worker->target, asker_free);
}

bool worker_is_recorded(Worker *worker) {
  bool recorded;

  g_mutex_lock(&worker->mutex);
  recorded = worker->recorded;
  g_mutex_unlock(&worker->mutex);
  return recorded;
}

void worker_learn(Worker *worker, bool seen_there, bool completed) {
  WorkerReport report = {.kind = WORKER_LEARNT};
  bool news;

  g_mutex_lock(&worker->mutex);
  news = worker->record.seen_there != seen_there || worker->record.completed != completed;
  worker->record.seen_there = seen_there;
  worker->record.completed = completed;
  if (news)
    worker->recorded = false;
  report.record = worker->record;
  g_mutex_unlock(&worker->mutex);
  if (news)
    worker_post(worker, &report);
}

WorkerOrder worker_wait_for_order(Worker *worker) {
  WorkerOrder order;

  g_mutex_lock(&worker->mutex);
  while (worker->order == WORKER_ORDER_WAIT)
    g_cond_wait(&worker->cond, &worker->mutex);
  order = worker->order;
  g_mutex_unlock(&worker->mutex);
  return order;
}

/* --- the caller: the migration, and what came of it --- */

static void worker_note_completed(Worker *worker) {
  g_mutex_lock(&worker->mutex);
  worker->completed = worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

/* tls=yes means: encrypted wherever both ends are set up for it. No API of libvirt tells whether the other end is, so it is tried.
 * A certificate that is there and does not hold is no reason to send a guest's memory in clear: that fails, as everything does
 * with tls=require. */
bool worker_migrate(Worker *worker, MigConn *conn, MigMigrateRequest *request, GError **error) {
  g_autoptr(GError) failure = NULL;
  bool ok;

  if (!request->guard)
    set_in_call(worker, true);
  ok = worker->driver->ops->migrate(conn, request, &failure);
  set_in_call(worker, false);
  if (ok)
    return true;
  if (mig_policy_get(&request->policy, MIG_POLICY_TLS) != MIG_TLS_YES ||
      !g_error_matches(failure, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_TLS)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
  }
  worker_post(worker, &(WorkerReport){.kind = WORKER_IN_CLEAR, .error = g_steal_pointer(&failure)});
  worker->policy.values[MIG_POLICY_TLS] = request->policy.values[MIG_POLICY_TLS] = MIG_TLS_NO;
  if (!request->guard)
    set_in_call(worker, true);
  ok = worker->driver->ops->migrate(conn, request, error);
  set_in_call(worker, false);
  return ok;
}

/* Right before the call: is it still the domain that was checked? Somebody may have moved it since, and left a stopped copy, which
 * libvirt would take for the guest. */
static bool may_migrate(const MigDomainStatus *status, gpointer user_data, GError **error) {
  Worker *worker = user_data;
  bool moves = status->state == MIG_END_RUNNING || status->state == MIG_END_PAUSED;
  bool same = worker->source_id == 0 || status->id == worker->source_id;

  if (moves && same && !status->job_active) {
    g_mutex_lock(&worker->mutex);
    worker->job_began_ms = 0; /* a new one */
    g_mutex_unlock(&worker->mutex);
    /* After a refusal nothing of the kind is known: what the source has may be an outdated copy. */
    worker->stayed_ms = worker->asked_ms;
    set_in_call(worker, true);
    return true;
  }
  worker->not_begun = moves && same;
  g_set_error(error, MIG_VIRT_ERROR, moves && same ? MIG_VIRT_ERROR_BUSY : MIG_VIRT_ERROR_NOT_RUNNING,
              "the domain changed since it was checked: it is %s%s%s; nothing was begun",
              mig_end_state_name(status->state), same ? "" : ", and was started anew",
              status->job_active ? ", and somebody else migrates it" : "");
  return false;
}

static void migrate(Worker *worker, const MigPolicyFacts *facts) {
  const MigGuard guard = {may_migrate, worker};
  MigMigrateRequest request = {
      .guard = &guard,
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = worker->policy,
      .facts = *facts,
      .throttle_initial_pct = worker->throttle_initial_pct,
      .throttle_increment_pct = worker->throttle_increment_pct,
  };
  GError *error = NULL;
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);

  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  worker->asked_ms = clock_now_ms();
  if (conn) {
    if (worker_migrate(worker, hypervisor_conn_get(conn), &request, &error))
      worker_note_completed(worker);
    worker->call_answered = mig_virt_error_is_answer(error);
    worker->call_taken = mig_virt_error_is_answer(error);
    worker->call_failed = worker->call_taken && error;
    hypervisor_release(conn, error);
  }
  worker_post(worker, &(WorkerReport){.kind = WORKER_RETURNED, .error = error});
}

/* Before the migration there is nothing to steer or to count. */
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

/* What becomes of somebody else's migration is his to follow. */
static void tell_not_begun(Worker *worker) {
  while (!worker_end_steering(worker))
    worker_pause_ms(worker, 100);
  worker_post(worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                      .verdict = MIG_VERDICT_AT_SOURCE,
                                      .evidence = g_strdup(
                                          "the source has the guest, and somebody else's migration of it; "
                                          "this one was not begun")});
}

static gpointer caller_thread(gpointer data) {
  Worker *worker = data;
  MigPolicyFacts facts = {0};

  if (worker->reattach)
    worker_watch_ends(worker);
  if (worker->reattach || worker_prepare(worker, &facts)) {
    if (!worker->reattach)
      migrate(worker, &facts);
    if (worker->not_begun)
      tell_not_begun(worker);
    else
      worker_settle(worker);
    end_threads(worker);
  } else {
    /* One of the helpers may have been started. */
    give_order(worker, WORKER_ORDER_CANCEL);
  }
  forget_ends(worker);
  worker_unref(worker);
  return NULL;
}

/* --- the main thread's side --- */

/* Nothing was begun: it waits in the queue, and tries again. Takes `error`. */
static void refuse_for_threads(Worker *worker, GError *error) {
  worker_post(worker, &(WorkerReport){.kind = WORKER_REFUSED,
                                      .cause = MIG_CAUSE_INTERNAL,
                                      .hold = MIG_HOLD_JOB,
                                      .reason = WORKER_NO_THREADS,
                                      .error = error});
}

Worker *worker_start(Hypervisor *hypervisor, MigDriver *driver, const WorkerRequest *request,
                     GMainContext *context, WorkerReportFunc report, gpointer user_data) {
  Worker *worker = g_new0(Worker, 1);
  GError *error = NULL;

  worker->refs = 1;
  worker->hypervisor = hypervisor_ref(hypervisor);
  worker->driver = driver;
  worker->context = g_main_context_ref(context);
  worker->report = report;
  worker->user_data = user_data;
  worker->name = g_strndup(request->name, 8);
  worker->domain_uuid = g_strdup(request->domain_uuid);
  worker->target_uri = g_strdup(request->target_uri);
  worker->migrate_uri = g_strdup(request->migrate_uri);
  worker->policy = request->policy;
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

void worker_cancel(Worker *worker) {
  give_order(worker, WORKER_ORDER_CANCEL);
}

void worker_free(Worker *worker) {
  if (!worker)
    return;
  worker->report = NULL;
  worker_cancel(worker);
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

void worker_note_ended_here(Worker *worker, bool ended) {
  g_mutex_lock(&worker->mutex);
  worker->ended_here = ended;
  g_mutex_unlock(&worker->mutex);
}

void worker_note_recorded(Worker *worker) {
  g_mutex_lock(&worker->mutex);
  worker->recorded = true;
  g_mutex_unlock(&worker->mutex);
}

void worker_set_word(Worker *worker, bool told_it_stayed, bool told_it_ran) {
  g_mutex_lock(&worker->mutex);
  worker->record.told_it_stayed = told_it_stayed;
  worker->record.told_it_ran = told_it_ran;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

/* The event does not say whose migration it was. */
void worker_note_job_done(Worker *worker, bool completed) {
  g_mutex_lock(&worker->mutex);
  if (completed && (worker->in_call || worker->own_seen))
    worker->completed = true;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

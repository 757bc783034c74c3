/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two threads that do one migration.
 *
 * Theory of Operation. The *caller* prepares (facts of the domain, of both hosts, and what keeps it from moving),
 * reports that, waits for the main thread's word, sits in the driver's migrate(), and then, whatever that returned,
 * asks both ends until a verdict stands: a failed call does not mean that the domain did not move, and a broken
 * connection means nothing at all. The *steerer* lives while a migration may be under way: it reads the numbers
 * and carries out what the main thread decided. With `reattach` the caller goes straight to asking both ends, while
 * the steerer steers what it finds.
 *
 * Each thread holds a reference of the Worker, and so may outlive worker_free(): a thread that sits in a call of a
 * hung libvirtd cannot be ended, only left behind. What such a thread reports is dropped.
 *
 * Locks: `mutex` guards order, over, completed and hurry; it is not held over calls. Reports go to the main
 * context in the order in which a thread posts them. At most one sample is on its way at a time, so a slow main loop
 * is not flooded. */
#include "agent/worker.h"

#include <string.h>

#define VERDICT_PAUSE_MIN_MS 100
#define VERDICT_PAUSE_MAX_MS 2000
#define WATCH_PAUSE_MS       1000
#define RESUME_PAUSE_MIN_MS  500
#define RESUME_PAUSE_MAX_MS  10000
#define ABORT_REPEAT_MS      1000
#define PROBE_S              1

/* What the caller has been told. */
typedef enum WorkerOrder { WORKER_ORDER_WAIT, WORKER_ORDER_GO, WORKER_ORDER_CANCEL } WorkerOrder;

typedef enum CommandKind { COMMAND_ACT, COMMAND_BANDWIDTH, COMMAND_WAKE } CommandKind;

typedef struct Command {
  CommandKind kind;
  MigAction action;
  uint64_t bytes_per_s;
  uint64_t post_copy_bytes_per_s;
} Command;

struct Worker {
  gint refs;
  Hypervisor *hypervisor;
  MigDriver *driver;
  GMainContext *context;
  WorkerReportFunc report; /* main thread only; NULL once freed */
  gpointer user_data;

  char *name;
  char *domain_uuid;
  char *target_uri;
  char *migrate_uri;
  MigPolicy policy;
  bool reattach;
  bool probe;
  unsigned throttle_initial_pct; /* these two, and policy, are set before the order to go, and not after */
  unsigned throttle_increment_pct;
  unsigned connect_timeout_ms;
  unsigned poll_interval_ms;

  GAsyncQueue *commands; /* Command */
  gint sample_on_its_way;

  GMutex mutex;
  GCond cond;
  WorkerOrder order;
  bool over;      /* the steerer is to end */
  bool completed; /* libvirt said that the migration was completed */
  bool hurry;
};

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
  g_free(posted->report.evidence);
  worker_unref(posted->worker);
  g_free(posted);
}

/* Takes what `report` owns. */
static void post(Worker *worker, const WorkerReport *report) {
  Post *posted = g_new0(Post, 1);
  GSource *source = g_idle_source_new();

  posted->worker = worker_ref(worker);
  posted->report = *report;
  g_source_set_priority(source, G_PRIORITY_DEFAULT);
  g_source_set_callback(source, deliver, posted, post_free);
  g_source_attach(source, worker->context);
  g_source_unref(source);
}

static uint64_t now_ms(void) {
  return (uint64_t)g_get_monotonic_time() / 1000;
}

/* Pauses, unless hurried. */
static void pause_ms(Worker *worker, unsigned ms) {
  gint64 until = g_get_monotonic_time() + (gint64)ms * 1000;

  g_mutex_lock(&worker->mutex);
  while (!worker->hurry && g_cond_wait_until(&worker->cond, &worker->mutex, until))
    ;
  worker->hurry = false;
  g_mutex_unlock(&worker->mutex);
}

/* --- the steerer --- */

static bool act(Worker *worker, MigConn *conn, const MigAction *action, GError **error) {
  const MigDriverOps *ops = worker->driver->ops;

  switch (action->kind) {
  case MIG_ACTION_ABORT:
    return ops->abort_job(conn, worker->domain_uuid, error);
  case MIG_ACTION_SET_DOWNTIME:
    return ops->set_max_downtime(conn, worker->domain_uuid, action->downtime_ms, error);
  case MIG_ACTION_START_POST_COPY:
    return ops->start_post_copy(conn, worker->domain_uuid, error);
  case MIG_ACTION_PAUSE:
    if (action->downtime_ms > 0)
      return ops->set_max_downtime(conn, worker->domain_uuid, action->downtime_ms, error);
    return ops->suspend(conn, worker->domain_uuid, error);
  case MIG_ACTION_NONE:
  case MIG_ACTION_COUNT:
    break;
  }
  return true;
}

static void report_acted(Worker *worker, const MigAction *action, GError *error) {
  post(worker, &(WorkerReport){.kind = WORKER_ACTED, .action = *action, .error = error});
}

/* An abort that is to be repeated is reported when it is accepted, or refused for good. */
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
    MigAction none = {.kind = MIG_ACTION_NONE};

    if (ops->set_bandwidth(conn, worker->domain_uuid, command->bytes_per_s, false, &error) &&
        command->post_copy_bytes_per_s > 0)
      ops->set_bandwidth(conn, worker->domain_uuid, command->post_copy_bytes_per_s, true, &error);
    report_acted(worker, &none, error);
    break;
  }
  case COMMAND_WAKE:
    break;
  }
}

static void poll_sample(Worker *worker, MigConn *conn, MigBandwidth *bandwidth, GError **error) {
  WorkerReport report = {.kind = WORKER_SAMPLE};

  if (worker->driver->ops->job_stats(conn, worker->domain_uuid, &report.sample, error)) {
    report.sample.now_ms = now_ms();
    if (report.sample.active)
      report.sample.bandwidth_bytes_per_s =
          mig_bandwidth_update(bandwidth, report.sample.now_ms,
                               report.sample.memory_processed_bytes + report.sample.disk_processed_bytes);
  } else {
    report.sample = (MigSample){.now_ms = now_ms()};
    report.error = *error ? g_error_copy(*error) : NULL;
  }
  if (!g_atomic_int_compare_and_exchange(&worker->sample_on_its_way, 0, 1)) {
    g_clear_error(&report.error);
    return;
  }
  post(worker, &report);
}

static bool is_over(Worker *worker) {
  bool over;

  g_mutex_lock(&worker->mutex);
  over = worker->over;
  g_mutex_unlock(&worker->mutex);
  return over;
}

static gpointer steerer_thread(gpointer data) {
  Worker *worker = data;
  MigAction abort = {.kind = MIG_ACTION_NONE};
  MigBandwidth bandwidth = {0};
  uint64_t abort_again_ms = 0, poll_ms = 0;
  bool abort_reported = false;

  while (!is_over(worker)) {
    uint64_t now = now_ms();
    uint64_t next = abort.kind == MIG_ACTION_ABORT ? MIN(poll_ms, abort_again_ms) : poll_ms;
    g_autofree Command *command =
        g_async_queue_timeout_pop(worker->commands, next > now ? (next - now) * 1000 : 0);
    g_autoptr(GError) error = NULL;
    HypervisorConn *conn;

    if (is_over(worker))
      break;
    conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);
    if (!conn) {
      WorkerReport report = {.kind = WORKER_SAMPLE, .sample.now_ms = now_ms(), .error = g_error_copy(error)};

      if (command)
        g_async_queue_push_front(worker->commands, g_steal_pointer(&command));
      if (g_atomic_int_compare_and_exchange(&worker->sample_on_its_way, 0, 1))
        post(worker, &report);
      else
        g_clear_error(&report.error);
      continue;
    }
    if (command) {
      run_command(worker, hypervisor_conn_get(conn), command, &abort);
      if (abort.kind == MIG_ACTION_ABORT && abort_again_ms == 0)
        abort_again_ms = now_ms();
    }
    if (abort.kind == MIG_ACTION_ABORT && now_ms() >= abort_again_ms) {
      g_autoptr(GError) refused = NULL;

      if ((act(worker, hypervisor_conn_get(conn), &abort, &refused) ||
           !g_error_matches(refused, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING)) &&
          !abort_reported) {
        report_acted(worker, &abort, g_steal_pointer(&refused));
        abort_reported = true;
      }
      abort_again_ms = now_ms() + ABORT_REPEAT_MS;
    }
    if (now_ms() >= poll_ms) {
      poll_sample(worker, hypervisor_conn_get(conn), &bandwidth, &error);
      poll_ms = now_ms() + worker->poll_interval_ms;
    }
    hypervisor_release(conn, error);
  }
  worker_unref(worker);
  return NULL;
}

static void start_thread(Worker *worker, const char *role, GThreadFunc func) {
  g_autofree char *name = g_strdup_printf("%s-%s", role, worker->name);

  g_thread_unref(g_thread_new(name, func, worker_ref(worker)));
}

/* --- the caller: before the migration --- */

static MigCause cause_of_preparing(const GError *error) {
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN) ||
      g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING))
    return MIG_CAUSE_DOMAIN_NOT_RUNNING;
  return MIG_CAUSE_SOURCE_UNREACHABLE;
}

/* Takes `error`. */
static void refuse(Worker *worker, MigCause cause, GError *error) {
  post(worker, &(WorkerReport){.kind = WORKER_REFUSED, .cause = cause, .error = error});
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
                           MigPolicyFacts *policy_facts) {
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

static WorkerOrder wait_for_order(Worker *worker) {
  WorkerOrder order;

  g_mutex_lock(&worker->mutex);
  while (worker->order == WORKER_ORDER_WAIT)
    g_cond_wait(&worker->cond, &worker->mutex);
  order = worker->order;
  g_mutex_unlock(&worker->mutex);
  return order;
}

/* A guest that cannot be measured is moved all the same; the monitor learns on the way. */
static void measure(Worker *worker, MigConn *conn, MigProbe *probe) {
  uint64_t bytes_per_s;

  if (worker->driver->ops->probe_dirty_rate(conn, worker->domain_uuid, PROBE_S, &bytes_per_s,
                                            &probe->cpu_share, NULL))
    mig_dirty_curve_observe(&probe->curve, PROBE_S, (double)bytes_per_s * PROBE_S);
}

/* True: go ahead. False: the last report has been made. */
static bool prepare(Worker *worker, MigPolicyFacts *policy_facts) {
  const MigDriverOps *ops = worker->driver->ops;
  g_auto(MigHostFacts) host = {0};
  g_auto(MigDomainFacts) domain = {0};
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
  policy_facts->passthrough = domain.passthrough;
  policy_facts->local_disks = domain.local_disk_bytes > 0;
  if (!prepare_target(worker, &host, &domain, policy_facts) || !policy_fits(worker, policy_facts))
    return false;

  post(worker, &(WorkerReport){.kind = WORKER_PREPARED, .domain = domain, .probe = probe});
  domain = (MigDomainFacts){0};
  if (wait_for_order(worker) == WORKER_ORDER_GO)
    return true;
  post(worker, &(WorkerReport){.kind = WORKER_CANCELLED});
  return false;
}

/* --- the caller: the migration, and what came of it --- */

static void migrate(Worker *worker, const MigPolicyFacts *facts) {
  MigMigrateRequest request = {
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
  if (conn) {
    if (worker->driver->ops->migrate(hypervisor_conn_get(conn), &request, &error))
      worker_note_job_done(worker, true);
    hypervisor_release(conn, error);
  }
  post(worker, &(WorkerReport){.kind = WORKER_RETURNED, .error = error});
}

/* Both ends, as they answer now. */
typedef struct Ends {
  MigVerdictInput input;
  GError *source_error;
  GError *target_error;
  bool have_final;
  MigFinalStats final;
} Ends;

static void ends_clear(Ends *ends) {
  g_clear_error(&ends->source_error);
  g_clear_error(&ends->target_error);
  *ends = (Ends){0};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ends, ends_clear)

static void ask_source(Worker *worker, Ends *ends) {
  HypervisorConn *conn =
      hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &ends->source_error);
  MigDomainStatus status = {0};

  if (!conn)
    return;
  if (worker->driver->ops->domain_status(hypervisor_conn_get(conn), worker->domain_uuid, &status,
                                         &ends->source_error)) {
    ends->input.source = status.state;
    ends->input.job_active = status.job_active;
  }
  hypervisor_release(conn, ends->source_error);
}

/* Keeps the target's connection in *conn while it works. */
static void ask_target(Worker *worker, MigConn **conn, Ends *ends) {
  const MigDriverOps *ops = worker->driver->ops;
  MigDomainStatus status = {0};

  if (*conn && !ops->is_alive(*conn)) {
    ops->close(*conn);
    *conn = NULL;
  }
  if (!*conn)
    *conn = ops->open(worker->driver, worker->target_uri, worker->connect_timeout_ms, NULL, NULL,
                      &ends->target_error);
  if (!*conn)
    return;
  if (ops->domain_status(*conn, worker->domain_uuid, &status, &ends->target_error)) {
    ends->input.target = status.state;
    if (status.state == MIG_END_RUNNING || status.state == MIG_END_PAUSED)
      ends->have_final = ops->final_stats(*conn, worker->domain_uuid, &ends->final, NULL);
  } else {
    ops->close(*conn);
    *conn = NULL;
  }
}

static char *describe_ends(const Ends *ends, const char *why) {
  return g_strdup_printf(
      "source: %s%s%s%s; target: %s%s%s; %s", mig_end_state_name(ends->input.source),
      ends->input.job_active ? ", migration job active" : "", ends->source_error ? ", " : "",
      ends->source_error ? ends->source_error->message : "", mig_end_state_name(ends->input.target),
      ends->target_error ? ", " : "", ends->target_error ? ends->target_error->message : "", why);
}

/* Tries to let a cut post-copy go on. "Still running" is no failure: QEMU goes on by itself. */
static void resume_post_copy(Worker *worker, const char *evidence, unsigned *pause) {
  MigMigrateRequest request = {
      .target_uri = worker->target_uri,
      .migrate_uri = worker->migrate_uri,
      .policy = worker->policy,
      .resume_post_copy = true,
  };
  GError *error = NULL;
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, &error);

  g_strlcpy(request.uuid, worker->domain_uuid, sizeof request.uuid);
  if (conn) {
    worker->driver->ops->migrate(hypervisor_conn_get(conn), &request, &error);
    hypervisor_release(conn, error);
  }
  *pause = error ? MIN(*pause * 2, RESUME_PAUSE_MAX_MS) : RESUME_PAUSE_MIN_MS;
  post(worker, &(WorkerReport){.kind = WORKER_RESUMING, .evidence = g_strdup(evidence), .error = error});
}

static bool is_completed(Worker *worker) {
  bool completed;

  g_mutex_lock(&worker->mutex);
  completed = worker->completed;
  g_mutex_unlock(&worker->mutex);
  return completed;
}

/* Asks both ends until a verdict stands, for as long as that takes: unknown is not failed. */
static void settle(Worker *worker) {
  unsigned pause = VERDICT_PAUSE_MIN_MS, resume_pause = RESUME_PAUSE_MIN_MS;
  g_autofree char *said = NULL;
  MigConn *target = NULL;
  bool attached = false;

  for (;;) {
    g_auto(Ends) ends = {0};
    const char *why = "";
    MigVerdict verdict;
    char *evidence;

    /* The source first: see mig_verdict(). */
    ends.input.completed_event = is_completed(worker);
    ask_source(worker, &ends);
    ask_target(worker, &target, &ends);
    verdict = mig_verdict(&ends.input, &why);
    evidence = describe_ends(&ends, why);

    if (ends.input.job_active && verdict == MIG_VERDICT_WAIT) {
      /* Under way without a call of ours in it: after a restart, or after a lost connection. Watch it. */
      if (!attached)
        post(worker, &(WorkerReport){.kind = WORKER_ATTACHED, .ends = ends.input, .evidence = evidence});
      else
        g_free(evidence);
      attached = true;
      g_clear_pointer(&said, g_free);
      pause_ms(worker, WATCH_PAUSE_MS);
      pause = VERDICT_PAUSE_MIN_MS;
      continue;
    }
    attached = false;
    if (verdict != MIG_VERDICT_WAIT && verdict != MIG_VERDICT_RECOVER) {
      post(worker, &(WorkerReport){.kind = WORKER_SETTLED,
                                   .verdict = verdict,
                                   .ends = ends.input,
                                   .evidence = evidence,
                                   .have_final = ends.have_final,
                                   .final = ends.final});
      break;
    }
    if (verdict == MIG_VERDICT_RECOVER) {
      resume_post_copy(worker, evidence, &resume_pause);
      g_free(evidence);
      pause_ms(worker, resume_pause);
      continue;
    }
    if (g_strcmp0(said, evidence) != 0) {
      g_free(said);
      said = g_strdup(evidence);
      post(worker, &(WorkerReport){.kind = WORKER_UNSETTLED, .ends = ends.input, .evidence = evidence});
    } else {
      g_free(evidence);
    }
    pause_ms(worker, pause);
    pause = MIN(pause * 2, VERDICT_PAUSE_MAX_MS);
  }
  if (target)
    worker->driver->ops->close(target);
}

static gpointer caller_thread(gpointer data) {
  Worker *worker = data;
  MigPolicyFacts facts = {0};

  if (worker->reattach || prepare(worker, &facts)) {
    start_thread(worker, "steer", steerer_thread);
    if (!worker->reattach)
      migrate(worker, &facts);
    settle(worker);
    g_mutex_lock(&worker->mutex);
    worker->over = true;
    g_mutex_unlock(&worker->mutex);
    g_async_queue_push(worker->commands, g_new0(Command, 1));
  }
  worker_unref(worker);
  return NULL;
}

/* --- the main thread's side --- */

Worker *worker_start(Hypervisor *hypervisor, MigDriver *driver, const WorkerRequest *request,
                     GMainContext *context, WorkerReportFunc report, gpointer user_data) {
  Worker *worker = g_new0(Worker, 1);

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
  worker->probe = request->probe;
  worker->connect_timeout_ms = request->connect_timeout_ms;
  worker->poll_interval_ms = request->poll_interval_ms;
  worker->commands = g_async_queue_new_full(g_free);
  g_mutex_init(&worker->mutex);
  g_cond_init(&worker->cond);
  start_thread(worker, "move", caller_thread);
  return worker;
}

static void give_order(Worker *worker, WorkerOrder order) {
  g_mutex_lock(&worker->mutex);
  if (worker->order == WORKER_ORDER_WAIT)
    worker->order = order;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
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
  worker_unref(worker);
}

void worker_act(Worker *worker, const MigAction *action) {
  Command *command = g_new0(Command, 1);

  command->kind = COMMAND_ACT;
  command->action = *action;
  g_async_queue_push(worker->commands, command);
}

void worker_set_bandwidth(Worker *worker, uint64_t bytes_per_s, uint64_t post_copy_bytes_per_s) {
  Command *command = g_new0(Command, 1);

  command->kind = COMMAND_BANDWIDTH;
  command->bytes_per_s = bytes_per_s;
  command->post_copy_bytes_per_s = post_copy_bytes_per_s;
  g_async_queue_push(worker->commands, command);
}

void worker_note_job_done(Worker *worker, bool completed) {
  g_mutex_lock(&worker->mutex);
  worker->completed = worker->completed || completed;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
  g_mutex_unlock(&worker->mutex);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the threads of a worker share, under its mutex, and how they post reports. */
#include "agent/worker/worker-private.h"

#include "agent/base/clock.h"
#include "agent/base/post.h"

typedef struct Post {
  Worker *worker;
  WorkerReport report;
} Post;

Worker *worker_ref(Worker *worker) {
  g_atomic_int_inc(&worker->refs);
  return worker;
}

void worker_unref(Worker *worker) {
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
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  while (!worker->hurry && g_cond_wait_until(&worker->cond, &worker->mutex, until))
    ;
  worker->hurry = false;
}

bool worker_sees(Worker *worker, const bool *flag) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return *flag;
}

MigSettleRecord worker_get_record(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return worker->record;
}

void worker_set_record(Worker *worker, const MigSettleRecord *record) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->record = *record;
}

bool worker_begin_pause(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return worker->pausing = !worker->over;
}

void worker_end_pause(Worker *worker, bool paused, bool answered) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->pausing = false;
  if (paused) {
    worker->record.paused_by_agent = true;
    worker->record.pause_answered = answered;
    worker->pauses++;
  }
}

unsigned worker_count_pauses(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return worker->pauses;
}

void worker_forget_pause(Worker *worker, unsigned pauses) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  if (!worker->pausing && worker->pauses == pauses)
    worker->record.paused_by_agent = worker->record.pause_answered = false;
}

bool worker_end_steering(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return worker->over = worker->over || !worker->pausing;
}

void worker_take_limits(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  if (!worker->limited)
    return;
  worker->policy.values[MIG_POLICY_BANDWIDTH_BYTES_PER_S] = worker->bandwidth_bytes_per_s;
  worker->policy.values[MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S] = worker->post_copy_bandwidth_bytes_per_s;
}

/* --- whose job is it? --- */

/* Covers two readings of a job's age, and the offset between libvirt's clock and ours. */
#define SAME_JOB_MS 1500
/* Covers the time between our clock at the call and libvirt's at its start. */
#define CALL_SLACK_MS 50
/* How long libvirt may make a migration wait for other jobs. */
#define BEGINS_WITHIN_MS 40000

static bool lies_near(uint64_t a_ms, uint64_t b_ms) {
  return a_ms <= b_ms + SAME_JOB_MS && b_ms <= a_ms + SAME_JOB_MS;
}

bool worker_owns_job(Worker *worker, uint64_t elapsed_ms) {
  uint64_t now_ms = clock_now_ms(), began_ms = now_ms > elapsed_ms ? now_ms - elapsed_ms : 0;
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);
  bool own;

  if (worker->job_began_ms > 0)
    own = worker->in_call || lies_near(began_ms, worker->job_began_ms);
  else
    own = (worker->in_call && began_ms + CALL_SLACK_MS >= worker->call_began_ms) ||
          (worker->started_ms > 0 && began_ms + SAME_JOB_MS >= worker->started_ms &&
           began_ms <= worker->started_ms + BEGINS_WITHIN_MS);
  if (own && worker->job_began_ms == 0)
    worker->job_began_ms = began_ms;
  return worker->own_seen = own;
}

void worker_note_no_job(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->own_seen = false;
}

uint64_t worker_job_began_ms(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  return worker->job_began_ms;
}

/* libvirt is about to get the call, or has answered it. */
void worker_set_in_call(Worker *worker, bool in_call) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->in_call = in_call;
  if (in_call)
    worker->call_began_ms = clock_now_ms();
}

bool worker_may_steer(Worker *worker, const MigDomainStatus *status, bool needs_job, GError **error) {
  if (worker_sees(worker, &worker->over)) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_STALE, "the migration has ended");
    return false;
  }
  if (!status->job_outgoing && !needs_job)
    return true;
  if (status->job_outgoing && worker_owns_job(worker, status->job_elapsed_ms))
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING, "%s",
              status->job_outgoing ? "the domain's migration job is not this migration's"
                                   : "libvirt has no migration job for the domain");
  return false;
}

/* --- the ends --- */

static bool ask(Endpoint *end, EndpointAnswer *ret_answer, uint64_t *took_us, GError **error) {
  if (!endpoint_status(end, ret_answer, error))
    return false;
  *took_us = *took_us > 0 ? MIN(*took_us, ret_answer->took_us) : ret_answer->took_us;
  return true;
}

bool worker_ask_source(Worker *worker, EndpointAnswer *ret_answer, GError **error) {
  return ask(worker->source, ret_answer, &worker->source_took_us, error);
}

bool worker_ask_target(Worker *worker, EndpointAnswer *ret_answer, GError **error) {
  return ask(worker->target, ret_answer, &worker->target_took_us, error);
}

static void hear(const MigVirtEvent *event, gpointer user_data) {
  if (event->state == MIG_END_RUNNING || event->state == MIG_END_RUNNING_POSTCOPY)
    worker_post(user_data,
                &(WorkerReport){.kind = WORKER_RESUMED, .target = event->state, .at_ms = event->at_ms});
}

void worker_watch_ends(Worker *worker) {
  EndpointAnswer answer = {0};

  worker->source = endpoint_new(worker->hypervisor, NULL, worker->domain_uuid);
  worker->target = endpoint_new(worker->hypervisor, worker->target_uri, worker->domain_uuid);
  endpoint_listen(worker->target, hear, worker);
  if (worker->reattach)
    return;
  /* An end that does not answer now is no obstacle: either the migration fails because of it, or the watch has a gap. */
  if (worker_ask_source(worker, &answer, NULL))
    worker->source_id = answer.status.id;
  worker_ask_target(worker, &answer, NULL);
}

/* On the thread that uses them: the last reference may be the main thread's, which must not call libvirt. */
void worker_forget_ends(Worker *worker) {
  g_clear_pointer(&worker->source, endpoint_free);
  g_clear_pointer(&worker->target, endpoint_free);
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
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  while (worker->order == WORKER_ORDER_WAIT)
    g_cond_wait(&worker->cond, &worker->mutex);
  return worker->order;
}

/* --- notes from the main thread --- */

void worker_note_ended_here(Worker *worker, bool ended) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->ended_here = ended;
}

void worker_note_recorded(Worker *worker) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->recorded = true;
}

void worker_set_word(Worker *worker, bool told_it_stayed, bool told_it_ran) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  worker->record.told_it_stayed = told_it_stayed;
  worker->record.told_it_ran = told_it_ran;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
}

/* The event does not tell whose migration it was. */
void worker_note_job_done(Worker *worker, bool completed) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&worker->mutex);

  if (completed && (worker->in_call || worker->own_seen))
    worker->completed = true;
  worker->hurry = true;
  g_cond_broadcast(&worker->cond);
}

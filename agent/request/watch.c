/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients that watch jobs.
 *
 * Theory of Operation. A change of state is sent at once, mere progress at most once per WatchInterval=. Each message is
 * encoded once and shared by all watchers of the job. A watcher whose connection still has output queued is skipped and
 * marked as lagging; once its output has drained it gets the job as it is then. So a slow reader costs one message of
 * memory, sees the newest state, and always the last. */
#include "agent/request/watch.h"

#include "agent/base/clock.h"
#include "agent/request/view.h"

typedef struct Watcher {
  Requests *requests;
  Job *job; /* NULL: all jobs */
  VarlinkCall *call;
  GHashTable *lagging; /* Job: those whose changes this watcher has not been sent yet; or NULL */
} Watcher;

static void watcher_free(gpointer data) {
  Watcher *watcher = data;

  varlink_call_set_hooks(watcher->call, NULL, NULL, NULL);
  varlink_call_unref(watcher->call);
  if (watcher->lagging)
    g_hash_table_unref(watcher->lagging);
  g_free(watcher);
}

static GPtrArray *list_of(Watcher *watcher) {
  return watcher->job ? watcher->job->watch.watchers : watcher->requests->watchers;
}

static bool is_last(const Watcher *watcher, const Job *job) {
  return watcher->job && job_is_final(job);
}

static void on_closed(VarlinkCall *call, gpointer user_data) {
  Watcher *watcher = user_data;

  g_ptr_array_remove_fast(list_of(watcher), watcher);
}

static void set_lagging(Watcher *watcher, Job *job) {
  if (!watcher->lagging)
    watcher->lagging = g_hash_table_new(NULL, NULL);
  g_hash_table_add(watcher->lagging, job);
}

static GBytes *encode(Requests *requests, const Job *job, JobDetail view, bool last) {
  return varlink_encode_reply(view_job_reply(requests, job, view), !last);
}

static void on_drained(VarlinkCall *call, gpointer user_data) {
  Watcher *watcher = user_data;
  g_autoptr(GList) jobs = NULL;
  bool last = false;

  if (!watcher->lagging)
    return;
  jobs = g_hash_table_get_keys(watcher->lagging);
  for (GList *link = jobs; link && varlink_call_get_queued_bytes(call) == 0; link = link->next) {
    Job *job = link->data;
    g_autoptr(GBytes) message = NULL;

    g_hash_table_remove(watcher->lagging, job);
    last = is_last(watcher, job);
    message = encode(watcher->requests, job, JOB_DETAIL_FULL, last);
    varlink_call_reply_encoded(call, message, !last);
  }
  if (last)
    g_ptr_array_remove_fast(list_of(watcher), watcher);
}

/* The last message is sent whatever is queued before it. */
static void send_to_list(GPtrArray *watchers, Job *job, GBytes *message, bool last) {
  if (!watchers)
    return;
  /* Backwards: a client found disconnected removes its watcher from the list. */
  for (guint i = watchers->len; i > 0; i--) {
    Watcher *watcher = watchers->pdata[MIN(i, watchers->len) - 1];

    if (!last && varlink_call_get_queued_bytes(watcher->call) > 0)
      set_lagging(watcher, job);
    else
      varlink_call_reply_encoded(watcher->call, message, !last);
    if (watchers->len == 0)
      break;
  }
  if (last)
    g_ptr_array_set_size(watchers, 0);
}

static void tell(Requests *requests, Job *job) {
  bool final = job_is_final(job);

  job->watch.pending = false;
  job->watch.told_ms = clock_now_ms();
  if (job->watch.watchers && job->watch.watchers->len > 0) {
    g_autoptr(GBytes) message = encode(requests, job, final ? JOB_DETAIL_FULL : JOB_DETAIL_NEWS, final);

    send_to_list(job->watch.watchers, job, message, final);
  }
  if (requests->watchers->len > 0) {
    g_autoptr(GBytes) message = encode(requests, job, JOB_DETAIL_NEWS, false);

    send_to_list(requests->watchers, job, message, false);
  }
}

/* A job that is not durable has not been accepted: no client knows of it. */
static bool is_watched(const Requests *requests, const Job *job) {
  if (!job->durable)
    return false;
  return requests->watchers->len > 0 || (job->watch.watchers && job->watch.watchers->len > 0);
}

static void notify(Requests *requests, Job *job, bool urgent) {
  if (!is_watched(requests, job))
    return;
  if (urgent || clock_now_ms() >= job->watch.told_ms + requests->config->watch_interval_ms)
    tell(requests, job);
  else
    job->watch.pending = true;
}

void watch_flush(Requests *requests) {
  const GPtrArray *all = job_table_all(requests->jobs->table);
  uint64_t now_ms = clock_now_ms();

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (job->watch.pending && now_ms >= job->watch.told_ms + requests->config->watch_interval_ms)
      tell(requests, job);
  }
}

static Watcher *watcher_new(Requests *requests, Job *job, VarlinkCall *call) {
  Watcher *watcher = g_new0(Watcher, 1);

  watcher->requests = requests;
  watcher->job = job;
  watcher->call = varlink_call_ref(call);
  varlink_call_set_hooks(call, on_drained, on_closed, watcher);
  return watcher;
}

GPtrArray *watch_list_new(void) {
  return g_ptr_array_new_with_free_func(watcher_free);
}

static void greet(Requests *requests, const Job *job, VarlinkCall *call, bool last) {
  g_autoptr(GBytes) message = encode(requests, job, JOB_DETAIL_FULL, last);

  varlink_call_reply_encoded(call, message, !last);
}

void watch_add(Requests *requests, Job *job, VarlinkCall *call) {
  const GPtrArray *all = job_table_all(requests->jobs->table);
  Watcher *watcher;

  if (job && job_is_final(job)) {
    greet(requests, job, call, true);
    return;
  }
  if (job) {
    if (!job->watch.watchers)
      job->watch.watchers = watch_list_new();
    g_ptr_array_add(job->watch.watchers, watcher_new(requests, job, call));
    greet(requests, job, call, false);
    return;
  }
  watcher = watcher_new(requests, NULL, call);
  g_ptr_array_add(requests->watchers, watcher);
  for (guint i = 0; i < all->len; i++) {
    if (job_is_final(all->pdata[i]) || !((const Job *)all->pdata[i])->durable)
      continue;
    /* There may be thousands: those that the socket has no room for follow as it drains. */
    if (varlink_call_get_queued_bytes(call) > 0)
      set_lagging(watcher, all->pdata[i]);
    else
      greet(requests, all->pdata[i], call, false);
  }
}

static void forget(Requests *requests, Job *job) {
  for (guint i = requests->watchers->len; i > 0; i--) {
    Watcher *watcher = requests->watchers->pdata[i - 1];

    if (watcher->lagging && g_hash_table_remove(watcher->lagging, job))
      greet(requests, job, watcher->call, false);
  }
  g_clear_pointer(&job->watch.watchers, g_ptr_array_unref);
}

void watch_on_job(Job *job, JobChange change, gpointer requests) {
  if (change == JOB_CHANGE_STATE || change == JOB_CHANGE_NUMBERS)
    notify(requests, job, change == JOB_CHANGE_STATE);
  else if (change == JOB_CHANGE_FORGOTTEN)
    forget(requests, job);
}

void watch_free_all(Requests *requests) {
  const GPtrArray *all = job_table_all(requests->jobs->table);

  g_ptr_array_set_size(requests->watchers, 0);
  for (guint i = 0; i < all->len; i++)
    forget(requests, all->pdata[i]);
}

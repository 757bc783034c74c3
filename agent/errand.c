/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions to this node's libvirtd on a few threads. A request is answered by whichever comes first: its thread or its
 * time limit; a thread that is late, since libvirtd hangs, finds its request answered and drops what it has. */
#include "agent/errand.h"

#define WAITING_MAX 1024

struct Errands {
  MigDriver *driver;
  Hypervisor *hypervisor;
  GMainContext *context;
  unsigned timeout_ms;
  GThreadPool *pool;
  GHashTable *waiting; /* Request: all that have not been answered */
};

typedef struct Request {
  gint refs;
  Errands *errands; /* main thread only; NULL once answered */
  MigDriver *driver;
  Hypervisor *hypervisor;
  GMainContext *context;
  unsigned timeout_ms;
  Errand errand; /* its task and the error are the thread's until it posts */
  GError *error;
  ErrandDoneFunc done;
  gpointer user_data;
  GSource *timer;
} Request;

static void request_unref(gpointer data) {
  Request *request = data;

  if (!g_atomic_int_dec_and_test(&request->refs))
    return;
  if (request->errand.free_task)
    request->errand.free_task(request->errand.task);
  g_clear_error(&request->error);
  hypervisor_unref(request->hypervisor);
  g_main_context_unref(request->context);
  g_free(request);
}

static Request *request_ref(Request *request) {
  g_atomic_int_inc(&request->refs);
  return request;
}

/* Answers once; the request may be gone afterwards. */
static void answer(Request *request, gpointer task, const GError *error) {
  Errands *errands = request->errands;

  if (!errands)
    return;
  request->errands = NULL;
  g_source_destroy(request->timer);
  g_clear_pointer(&request->timer, g_source_unref);
  request->done(task, error, request->user_data);
  g_hash_table_remove(errands->waiting, request);
}

static gboolean deliver(gpointer data) {
  Request *request = data;

  answer(request, request->error ? NULL : request->errand.task, request->error);
  return G_SOURCE_REMOVE;
}

static gboolean time_out(gpointer data) {
  Request *request = data;
  g_autoptr(GError) error = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                                        "this node's libvirtd (%s) did not answer within %u s",
                                        hypervisor_get_uri(request->hypervisor), request->timeout_ms / 1000);

  answer(request, NULL, error);
  return G_SOURCE_REMOVE;
}

static void attach(GSource *source, GSourceFunc func, Request *request) {
  g_source_set_priority(source, G_PRIORITY_DEFAULT);
  g_source_set_callback(source, func, request_ref(request), request_unref);
  g_source_attach(source, request->context);
}

static void run(gpointer data, gpointer user_data) {
  Request *request = data;
  HypervisorConn *conn = hypervisor_acquire(request->hypervisor, request->timeout_ms, &request->error);
  GSource *source;

  if (conn) {
    request->errand.run(request->driver, hypervisor_conn_get(conn), request->errand.task, &request->error);
    hypervisor_release(conn, request->error);
  }
  source = g_idle_source_new();
  attach(source, deliver, request);
  g_source_unref(source);
  request_unref(request);
}

Errands *errands_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned threads,
                     unsigned timeout_ms) {
  Errands *errands = g_new0(Errands, 1);

  errands->driver = driver;
  errands->hypervisor = hypervisor_ref(hypervisor);
  errands->context = g_main_context_ref(context);
  errands->timeout_ms = timeout_ms;
  errands->pool = g_thread_pool_new(run, NULL, (gint)threads, FALSE, NULL);
  errands->waiting = g_hash_table_new_full(NULL, NULL, request_unref, NULL);
  return errands;
}

void errands_free(Errands *errands) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GList) requests = NULL;

  if (!errands)
    return;
  error = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the agent ends");
  requests = g_hash_table_get_keys(errands->waiting);
  for (GList *link = requests; link; link = link->next)
    answer(link->data, NULL, error);
  g_thread_pool_free(errands->pool, FALSE, FALSE);
  g_hash_table_unref(errands->waiting);
  hypervisor_unref(errands->hypervisor);
  g_main_context_unref(errands->context);
  g_free(errands);
}

static void refuse(const Errand *errand, ErrandDoneFunc done, gpointer user_data) {
  g_autoptr(GError) error =
      g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                  "%d requests wait for this node's libvirtd already: it does not answer", WAITING_MAX);

  done(NULL, error, user_data);
  if (errand->free_task)
    errand->free_task(errand->task);
}

void errands_run(Errands *errands, const Errand *errand, ErrandDoneFunc done, gpointer user_data) {
  Request *request;

  if (g_hash_table_size(errands->waiting) >= WAITING_MAX) {
    refuse(errand, done, user_data);
    return;
  }
  request = g_new0(Request, 1);
  request->refs = 1; /* of `waiting` */
  request->errands = errands;
  request->driver = errands->driver;
  request->hypervisor = hypervisor_ref(errands->hypervisor);
  request->context = g_main_context_ref(errands->context);
  request->timeout_ms = errands->timeout_ms + errand->extra_ms;
  request->errand = *errand;
  request->done = done;
  request->user_data = user_data;
  request->timer = g_timeout_source_new(request->timeout_ms);
  attach(request->timer, time_out, request);
  g_hash_table_add(errands->waiting, request);
  g_thread_pool_push(errands->pool, request_ref(request), NULL);
}

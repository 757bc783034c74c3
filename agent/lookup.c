/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domain lookups on a few threads. A request is answered by whichever comes first: its thread or its time limit; a
 * thread that is late, since libvirtd hangs, finds its request answered and drops what it has. */
#include "agent/lookup.h"

#define THREADS     4
#define WAITING_MAX 1024
/* What measuring may take on top. */
#define MEASURE_MS 24000

struct Lookup {
  MigDriver *driver;
  Hypervisor *hypervisor;
  GMainContext *context;
  unsigned timeout_ms;
  GThreadPool *pool;
  GHashTable *waiting; /* Request: all that have not been answered */
};

typedef struct Request {
  gint refs;
  Lookup *lookup; /* main thread only; NULL once answered */
  MigDriver *driver;
  Hypervisor *hypervisor;
  GMainContext *context;
  unsigned timeout_ms;
  char *domain;
  LookupFunc done;
  gpointer user_data;
  GSource *timer;
  bool measure;
  LookupAnswer answer; /* written by the thread before it posts */
  GError *error;
} Request;

static void request_unref(gpointer data) {
  Request *request = data;

  if (!g_atomic_int_dec_and_test(&request->refs))
    return;
  mig_domain_facts_clear(&request->answer.facts);
  g_clear_error(&request->error);
  hypervisor_unref(request->hypervisor);
  g_main_context_unref(request->context);
  g_free(request->domain);
  g_free(request);
}

static Request *request_ref(Request *request) {
  g_atomic_int_inc(&request->refs);
  return request;
}

/* Answers once; the request may be gone afterwards. */
static void answer(Request *request, const LookupAnswer *found, const GError *error) {
  Lookup *lookup = request->lookup;

  if (!lookup)
    return;
  request->lookup = NULL;
  g_source_destroy(request->timer);
  g_clear_pointer(&request->timer, g_source_unref);
  request->done(found, error, request->user_data);
  g_hash_table_remove(lookup->waiting, request);
}

static gboolean deliver(gpointer data) {
  Request *request = data;

  answer(request, request->error ? NULL : &request->answer, request->error);
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

/* QEMU looks at 512 pages of each GiB: of a small guest those are so few that a measurement is 20 % off, and is repeated. */
#define SMALL_GUEST_BYTES (2 * MIG_GIB_BYTES)

/* A short time and a longer one: two points of the curve. One that cannot be measured is left out. */
static void measure(Request *request, MigConn *conn) {
  static const unsigned seconds[] = {1, 3, 1, 3};
  LookupAnswer *answer = &request->answer;
  size_t n =
      answer->facts.memory_bytes < SMALL_GUEST_BYTES ? G_N_ELEMENTS(seconds) : G_N_ELEMENTS(seconds) / 2;
  uint64_t bytes_per_s;

  for (size_t i = 0; i < n; i++)
    if (request->driver->ops->probe_dirty_rate(conn, answer->facts.uuid, seconds[i], &bytes_per_s,
                                               &answer->probe.cpu_share, NULL))
      mig_dirty_curve_observe(&answer->probe.curve, seconds[i], (double)bytes_per_s * seconds[i]);
}

static void run(gpointer data, gpointer user_data) {
  Request *request = data;
  HypervisorConn *conn = hypervisor_acquire(request->hypervisor, request->timeout_ms, &request->error);
  GSource *source;

  if (conn) {
    request->driver->ops->domain_facts(hypervisor_conn_get(conn), request->domain, &request->answer.facts,
                                       &request->error);
    if (!request->error && request->measure)
      measure(request, hypervisor_conn_get(conn));
    hypervisor_release(conn, request->error);
  }
  source = g_idle_source_new();
  attach(source, deliver, request);
  g_source_unref(source);
  request_unref(request);
}

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms) {
  Lookup *lookup = g_new0(Lookup, 1);

  lookup->driver = driver;
  lookup->hypervisor = hypervisor_ref(hypervisor);
  lookup->context = g_main_context_ref(context);
  lookup->timeout_ms = timeout_ms;
  lookup->pool = g_thread_pool_new(run, NULL, THREADS, FALSE, NULL);
  lookup->waiting = g_hash_table_new_full(NULL, NULL, request_unref, NULL);
  return lookup;
}

void lookup_free(Lookup *lookup) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GList) requests = NULL;

  if (!lookup)
    return;
  error = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the agent ends");
  requests = g_hash_table_get_keys(lookup->waiting);
  for (GList *link = requests; link; link = link->next)
    answer(link->data, NULL, error);
  g_thread_pool_free(lookup->pool, FALSE, FALSE);
  g_hash_table_unref(lookup->waiting);
  hypervisor_unref(lookup->hypervisor);
  g_main_context_unref(lookup->context);
  g_free(lookup);
}

void lookup_domain(Lookup *lookup, const char *domain, bool measure_it, LookupFunc done, gpointer user_data) {
  Request *request;

  if (g_hash_table_size(lookup->waiting) >= WAITING_MAX) {
    g_autoptr(GError) error =
        g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                    "%d requests wait for this node's libvirtd already: it does not answer", WAITING_MAX);

    done(NULL, error, user_data);
    return;
  }
  request = g_new0(Request, 1);
  request->refs = 1; /* of `waiting` */
  request->lookup = lookup;
  request->driver = lookup->driver;
  request->hypervisor = hypervisor_ref(lookup->hypervisor);
  request->context = g_main_context_ref(lookup->context);
  request->timeout_ms = lookup->timeout_ms + (measure_it ? MEASURE_MS : 0);
  request->measure = measure_it;
  request->domain = g_strdup(domain);
  request->done = done;
  request->user_data = user_data;
  request->timer = g_timeout_source_new(request->timeout_ms);
  attach(request->timer, time_out, request);
  g_hash_table_add(lookup->waiting, request);
  g_thread_pool_push(lookup->pool, request_ref(request), NULL);
}

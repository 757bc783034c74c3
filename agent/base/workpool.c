/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests on a few threads. Each is answered by whichever comes first, its thread or its time limit; a thread that is late because
 * libvirtd hangs finds its request answered and drops its result. */
#include "agent/base/workpool.h"

#include "agent/base/post.h"
#include "libmigrate/virt/driver.h"

struct WorkPool {
  GMainContext *context;
  unsigned waiting_max;
  GThreadPool *threads;
  GHashTable *waiting; /* Ticket: all unanswered requests */
};

/* Referenced by `waiting`, by its timer, by its thread, and by what the thread posts. */
typedef struct Ticket {
  gint refs;
  WorkPool *pool; /* main thread only; NULL once answered */
  const WorkOps *ops;
  GMainContext *context;
  gpointer work;
  GSource *timer;
  gint answered; /* tells its thread not to start any more */
} Ticket;

static void ticket_unref(gpointer data) {
  Ticket *ticket = data;

  if (!g_atomic_int_dec_and_test(&ticket->refs))
    return;
  if (ticket->work)
    ticket->ops->free(ticket->work);
  g_main_context_unref(ticket->context);
  g_free(ticket);
}

static Ticket *ticket_ref(Ticket *ticket) {
  g_atomic_int_inc(&ticket->refs);
  return ticket;
}

/* Answers once; may free the ticket. */
static void answer(Ticket *ticket, WorkEnd end) {
  WorkPool *pool = ticket->pool;

  if (!pool)
    return;
  ticket->pool = NULL;
  g_atomic_int_set(&ticket->answered, 1);
  g_source_destroy(ticket->timer);
  g_clear_pointer(&ticket->timer, g_source_unref);
  ticket->ops->done(ticket->work, end);
  g_hash_table_remove(pool->waiting, ticket);
}

static gboolean deliver(gpointer data) {
  answer(data, WORK_ANSWERED);
  return G_SOURCE_REMOVE;
}

static gboolean time_out(gpointer data) {
  answer(data, WORK_LATE);
  return G_SOURCE_REMOVE;
}

static void run(gpointer data, gpointer user_data) {
  Ticket *ticket = data;

  if (!g_atomic_int_get(&ticket->answered)) {
    ticket->ops->run(ticket->work);
    post_to(ticket->context, deliver, ticket_ref(ticket), ticket_unref);
  }
  ticket_unref(ticket);
}

WorkPool *work_pool_new(GMainContext *context, unsigned threads, unsigned waiting_max) {
  WorkPool *pool = g_new0(WorkPool, 1);

  pool->context = g_main_context_ref(context);
  pool->waiting_max = waiting_max;
  pool->threads = g_thread_pool_new(run, NULL, (gint)threads, FALSE, NULL);
  pool->waiting = g_hash_table_new_full(NULL, NULL, ticket_unref, NULL);
  return pool;
}

void work_pool_free(WorkPool *pool) {
  g_autoptr(GList) tickets = NULL;

  if (!pool)
    return;
  tickets = g_hash_table_get_keys(pool->waiting);
  for (GList *link = tickets; link; link = link->next)
    answer(link->data, WORK_CANCELLED);
  g_thread_pool_free(pool->threads, FALSE, FALSE);
  g_hash_table_unref(pool->waiting);
  g_main_context_unref(pool->context);
  g_free(pool);
}

/* Withdraws a ticket silently: no thread runs it, and the caller keeps its work. The pool may hold the ticket until it has a thread. */
static void take_back(WorkPool *pool, Ticket *ticket) {
  ticket->pool = NULL;
  ticket->work = NULL;
  g_atomic_int_set(&ticket->answered, 1);
  g_source_destroy(ticket->timer);
  g_clear_pointer(&ticket->timer, g_source_unref);
  g_hash_table_remove(pool->waiting, ticket);
}

bool work_pool_start(WorkPool *pool, const WorkOps *ops, gpointer work, unsigned timeout_ms, GError **error) {
  g_autoptr(GError) failure = NULL;
  Ticket *ticket;

  if (g_hash_table_size(pool->waiting) >= pool->waiting_max) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "%u requests are already waiting: libvirtd does not answer", pool->waiting_max);
    return false;
  }
  ticket = g_new0(Ticket, 1);
  ticket->refs = 1; /* of `waiting` */
  ticket->pool = pool;
  ticket->ops = ops;
  ticket->context = g_main_context_ref(pool->context);
  ticket->work = work;
  ticket->timer = g_timeout_source_new(timeout_ms);
  g_source_set_callback(ticket->timer, time_out, ticket_ref(ticket), ticket_unref);
  g_source_attach(ticket->timer, ticket->context);
  g_hash_table_add(pool->waiting, ticket);
  /* An existing thread will get to it. Without any, it would wait in vain. */
  if (g_thread_pool_push(pool->threads, ticket_ref(ticket), &failure) ||
      g_thread_pool_get_num_threads(pool->threads) > 0)
    return true;
  take_back(pool, ticket);
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "this node has no threads left: %s",
              failure->message);
  return false;
}

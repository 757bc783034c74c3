/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells ThreadSanitizer where GLib passes something from one thread to another: idle sources, queues, thread pools.
 * GLib's own locks in there are futexes, which it does not see. Only in a -Db_sanitize=thread build, beside
 * tests/fake/tsan-glib.c; the linker prefers these to libglib's. */
#include <dlfcn.h>
#include <glib.h>
#include <poll.h>

static char idle, queued, pooled;

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* An idle source may become ready without a poll() in between, so what tsan-glib.c does there comes too late. */
static gboolean idle_prepare(GSource *source, gint *timeout_ms) {
  *timeout_ms = 0;
  return TRUE;
}

static gboolean idle_check(GSource *source) {
  return TRUE;
}

/* This poll() is the one in tsan-glib.c: it acquires what g_source_attach() released. */
static void acquire_idle(GSource *source) {
  poll(NULL, 0, 0);
  __tsan_acquire(&idle);
  __tsan_release(&idle);
}

static gboolean idle_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
  acquire_idle(source);
  return callback(data);
}

GSource *g_idle_source_new(void) {
  static GSourceFuncs funcs = {
      .prepare = idle_prepare, .check = idle_check, .dispatch = idle_dispatch, .finalize = acquire_idle};
  GSource *source = g_source_new(&funcs, sizeof(GSource));

  g_source_set_priority(source, G_PRIORITY_DEFAULT_IDLE);
  return source;
}

void g_source_set_callback(GSource *source, GSourceFunc function, gpointer data, GDestroyNotify notify) {
  acquire_idle(source);
  REAL(g_source_set_callback)(source, function, data, notify);
}

/* Perhaps the thread that made it drops the last reference. Either one changes the loop's own tables. */
void g_source_unref(GSource *source) {
  acquire_idle(source);
  __tsan_release(&idle);
  REAL(g_source_unref)(source);
}

gboolean g_main_context_iteration(GMainContext *context, gboolean may_block) {
  __tsan_release(&idle);
  return REAL(g_main_context_iteration)(context, may_block);
}

void g_source_destroy(GSource *source) {
  acquire_idle(source);
  REAL(g_source_destroy)(source);
}

void g_async_queue_push(GAsyncQueue *queue, gpointer data) {
  __tsan_release(&queued);
  REAL(g_async_queue_push)(queue, data);
}

void g_async_queue_push_front(GAsyncQueue *queue, gpointer data) {
  __tsan_release(&queued);
  REAL(g_async_queue_push_front)(queue, data);
}

gpointer g_async_queue_timeout_pop(GAsyncQueue *queue, guint64 timeout_us) {
  gpointer data = REAL(g_async_queue_timeout_pop)(queue, timeout_us);

  __tsan_acquire(&queued);
  return data;
}

typedef struct Pooled {
  GFunc function;
  gpointer user_data;
} Pooled;

static void run_pooled(gpointer data, gpointer user_data) {
  const Pooled *pool = user_data;

  __tsan_acquire(&pooled);
  pool->function(data, pool->user_data);
}

/* Allocated once per pool, and never freed. */
GThreadPool *g_thread_pool_new(GFunc function, gpointer user_data, gint max_threads, gboolean exclusive,
                               GError **error) {
  Pooled *pool = g_new0(Pooled, 1);

  pool->function = function;
  pool->user_data = user_data;
  return REAL(g_thread_pool_new)(run_pooled, pool, max_threads, exclusive, error);
}

gboolean g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error) {
  __tsan_release(&pooled);
  return REAL(g_thread_pool_push)(pool, data, error);
}

/* GLib's own thread for signals wakes a loop by a descriptor which goes with the loop; what guards that is one of GLib's
 * inner locks. libglib's frames have no names to suppress that by; so there is one of ours, two calls deep, since a
 * caller is noted when an instrumented callee is entered. */
static void __attribute__((noinline)) unref_context(GMainContext *context) {
  REAL(g_main_context_unref)(context);
  __tsan_release(&idle);
}

void g_main_context_unref(GMainContext *context) {
  unref_context(context);
  __tsan_release(&idle); /* no tail call above */
}

const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void) {
  return "race:^g_main_context_unref$\n"
         "race:^g_memdup2$\n"; /* as in tests/fake/tsan.supp */
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GLib's locks made of pthread's, for ThreadSanitizer: GLib's own are futexes which it does not see, so that all that
 * they guard looks like a race. Linked into test programs of a -Db_sanitize=thread build and into nothing else. The
 * linker prefers these to libglib's; GLib's own inner locks are not touched, and need not be. */
#include <dlfcn.h>
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A static GMutex is all zeroes until its first use. */
static void *materialize(gpointer *slot, size_t size, void (*init)(void *), void (*clear)(void *)) {
  void *have = __atomic_load_n(slot, __ATOMIC_ACQUIRE), *made, *expected = NULL;

  if (have)
    return have;
  made = calloc(1, size);
  init(made);
  if (__atomic_compare_exchange_n(slot, &expected, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return made;
  clear(made);
  free(made);
  return expected;
}

static void mutex_init(void *mutex) {
  pthread_mutex_init(mutex, NULL);
}

static void recursive_init(void *mutex) {
  pthread_mutexattr_t attributes;

  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static void mutex_clear(void *mutex) {
  pthread_mutex_destroy(mutex);
}

static void cond_init(void *cond) {
  pthread_condattr_t attributes;

  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
}

static void cond_clear(void *cond) {
  pthread_cond_destroy(cond);
}

static void drop(gpointer *slot, void (*clear)(void *)) {
  if (*slot) {
    clear(*slot);
    free(*slot);
  }
  *slot = NULL;
}

#define MUTEX(mutex) materialize(&(mutex)->p, sizeof(pthread_mutex_t), mutex_init, mutex_clear)
#define REC(mutex)   materialize(&(mutex)->p, sizeof(pthread_mutex_t), recursive_init, mutex_clear)
#define COND(cond)   materialize(&(cond)->p, sizeof(pthread_cond_t), cond_init, cond_clear)

void g_mutex_init(GMutex *mutex) {
  mutex->p = NULL;
}

void g_mutex_clear(GMutex *mutex) {
  drop(&mutex->p, mutex_clear);
}

void g_mutex_lock(GMutex *mutex) {
  pthread_mutex_lock(MUTEX(mutex));
}

gboolean g_mutex_trylock(GMutex *mutex) {
  return pthread_mutex_trylock(MUTEX(mutex)) == 0;
}

void g_mutex_unlock(GMutex *mutex) {
  pthread_mutex_unlock(MUTEX(mutex));
}

void g_rec_mutex_init(GRecMutex *mutex) {
  mutex->p = NULL;
}

void g_rec_mutex_clear(GRecMutex *mutex) {
  drop(&mutex->p, mutex_clear);
}

void g_rec_mutex_lock(GRecMutex *mutex) {
  pthread_mutex_lock(REC(mutex));
}

gboolean g_rec_mutex_trylock(GRecMutex *mutex) {
  return pthread_mutex_trylock(REC(mutex)) == 0;
}

void g_rec_mutex_unlock(GRecMutex *mutex) {
  pthread_mutex_unlock(REC(mutex));
}

void g_cond_init(GCond *cond) {
  cond->p = NULL;
}

void g_cond_clear(GCond *cond) {
  drop(&cond->p, cond_clear);
}

void g_cond_wait(GCond *cond, GMutex *mutex) {
  pthread_cond_wait(COND(cond), MUTEX(mutex));
}

gboolean g_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end_time) {
  struct timespec until = {.tv_sec = end_time / G_USEC_PER_SEC, .tv_nsec = end_time % G_USEC_PER_SEC * 1000};

  return pthread_cond_timedwait(COND(cond), MUTEX(mutex), &until) != ETIMEDOUT;
}

void g_cond_signal(GCond *cond) {
  pthread_cond_signal(COND(cond));
}

void g_cond_broadcast(GCond *cond) {
  pthread_cond_broadcast(COND(cond));
}

/* The main loop's own lock is not seen either. What hands work to a loop releases, and a loop that comes back from
 * poll() acquires, whoever they are: too generous for races between two loops, right for a thread and a loop. */
static char handed_over;

void __tsan_acquire(void *address);
void __tsan_release(void *address);

guint g_source_attach(GSource *source, GMainContext *context) {
  guint (*real)(GSource *, GMainContext *) = dlsym(RTLD_NEXT, "g_source_attach");

  __tsan_release(&handed_over);
  return real(source, context);
}

void g_main_context_invoke_full(GMainContext *context, gint priority, GSourceFunc function, gpointer data,
                                GDestroyNotify notify) {
  void (*real)(GMainContext *, gint, GSourceFunc, gpointer, GDestroyNotify) =
      dlsym(RTLD_NEXT, "g_main_context_invoke_full");

  __tsan_release(&handed_over);
  real(context, priority, function, data, notify);
}

void g_main_context_invoke(GMainContext *context, GSourceFunc function, gpointer data) {
  g_main_context_invoke_full(context, G_PRIORITY_DEFAULT, function, data, NULL);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
  struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
  int rc = (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
  int error = errno;

  __tsan_acquire(&handed_over);
  /* ThreadSanitizer keeps a signal back until the thread next enters a function that it intercepts. A loop with nothing
   * to do enters none, ever. */
  if (read(-1, NULL, 0) < 0)
    errno = error;
  return rc;
}

/* Made and written to under that same lock; made without ThreadSanitizer's knowledge it is not suspected. */
int eventfd(unsigned initial, int flags) {
  return (int)syscall(SYS_eventfd2, initial, flags);
}

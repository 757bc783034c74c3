/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection to this node's libvirtd.
 *
 * Theory of Operation. One thread opens the connection, waits until somebody finds it broken (libvirt's close event, or a call
 * that failed because of it), and opens the next one, with a growing delay as long as that fails. All other threads share the
 * connection: libvirt multiplexes calls. The last user closes a connection, so a thread stuck in a hung libvirtd keeps only
 * the old one alive.
 *
 * Locks: `mutex` guards current, broken, stop and the last error; never held over a driver call. The state that the main
 * thread sees is posted to it and needs no lock. */
#include "agent/libvirtd/hypervisor.h"

#include "agent/base/clock.h"
#include "agent/base/post.h"

#include <string.h>

#define BACKOFF_MIN_MS 200
#define BACKOFF_MAX_MS 2000
#define END_WAIT_USEC  (2 * G_USEC_PER_SEC)

struct Hypervisor {
  gint refs;
  MigDriver *driver;
  char *uri;
  unsigned connect_timeout_ms;
  GMainContext *context;
  HypervisorHooks hooks; /* main thread only; all NULL once freed */
  gpointer user_data;
  HypervisorState state; /* main thread only */
  unsigned serial;       /* its own thread only: connections so far */

  GThread *thread;
  GMutex mutex;
  GCond cond;
  HypervisorConn *current;
  bool broken;
  bool stop;
  bool ended; /* the thread is done */
  char *last_error;
};

typedef struct StatePost {
  Hypervisor *hypervisor;
  HypervisorState state;
} StatePost;

typedef struct EventPost {
  Hypervisor *hypervisor;
  MigVirtEvent event;
} EventPost;

Hypervisor *hypervisor_ref(Hypervisor *hypervisor) {
  g_atomic_int_inc(&hypervisor->refs);
  return hypervisor;
}

void hypervisor_unref(Hypervisor *hypervisor) {
  if (!hypervisor || !g_atomic_int_dec_and_test(&hypervisor->refs))
    return;
  mig_host_facts_clear(&hypervisor->state.facts);
  g_free(hypervisor->state.message);
  g_free(hypervisor->last_error);
  g_free(hypervisor->uri);
  g_mutex_clear(&hypervisor->mutex);
  g_cond_clear(&hypervisor->cond);
  g_main_context_unref(hypervisor->context);
  g_free(hypervisor);
}

static void conn_unref(HypervisorConn *conn) {
  if (!conn || !g_atomic_int_dec_and_test(&conn->refs))
    return;
  conn->hypervisor->driver->ops->close(conn->conn);
  hypervisor_unref(conn->hypervisor);
  g_free(conn);
}

static gboolean deliver_state(gpointer data) {
  StatePost *posted = data;
  Hypervisor *hypervisor = posted->hypervisor;
  HypervisorState *state = &hypervisor->state;

  state->reachable = posted->state.reachable;
  if (posted->state.serial > 0)
    state->serial = posted->state.serial;
  g_free(state->message);
  state->message = g_steal_pointer(&posted->state.message);
  if (posted->state.facts.hostname) {
    mig_host_facts_clear(&state->facts);
    state->facts = posted->state.facts;
    posted->state.facts = (MigHostFacts){0};
  }
  if (hypervisor->hooks.state_changed)
    hypervisor->hooks.state_changed(hypervisor, hypervisor->user_data);
  return G_SOURCE_REMOVE;
}

static void state_post_free(gpointer data) {
  StatePost *posted = data;

  mig_host_facts_clear(&posted->state.facts);
  g_free(posted->state.message);
  hypervisor_unref(posted->hypervisor);
  g_free(posted);
}

/* Takes `facts`. Serial 0: not connected. */
static void post_state(Hypervisor *hypervisor, unsigned serial, MigHostFacts *facts, const char *message) {
  StatePost *posted = g_new0(StatePost, 1);

  posted->hypervisor = hypervisor_ref(hypervisor);
  posted->state.reachable = serial > 0;
  posted->state.serial = serial;
  posted->state.message = g_strdup(message);
  if (facts) {
    posted->state.facts = *facts;
    *facts = (MigHostFacts){0};
  }
  post_to(hypervisor->context, deliver_state, posted, state_post_free);
}

static gboolean deliver_event(gpointer data) {
  EventPost *posted = data;

  if (posted->hypervisor->hooks.event)
    posted->hypervisor->hooks.event(&posted->event, posted->hypervisor->user_data);
  return G_SOURCE_REMOVE;
}

static void event_post_free(gpointer data) {
  EventPost *posted = data;

  hypervisor_unref(posted->hypervisor);
  g_free(posted);
}

static void mark_broken(Hypervisor *hypervisor, MigConn *conn) {
  g_mutex_lock(&hypervisor->mutex);
  if (hypervisor->current && (!conn || hypervisor->current->conn == conn)) {
    hypervisor->broken = true;
    g_cond_broadcast(&hypervisor->cond);
  }
  g_mutex_unlock(&hypervisor->mutex);
}

static void on_event(const MigVirtEvent *event, gpointer user_data) {
  Hypervisor *hypervisor = user_data;
  EventPost *posted;

  if (event->kind == MIG_VIRT_EVENT_CLOSED) {
    mark_broken(hypervisor, NULL);
    return;
  }
  posted = g_new0(EventPost, 1);
  posted->hypervisor = hypervisor_ref(hypervisor);
  posted->event = *event;
  post_to(hypervisor->context, deliver_event, posted, event_post_free);
}

/* Waits for timeout_ms, or until it is time to stop: then true. Call with the lock held. */
static bool wait_locked(Hypervisor *hypervisor, unsigned timeout_ms) {
  gint64 until = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

  while (!hypervisor->stop && g_cond_wait_until(&hypervisor->cond, &hypervisor->mutex, until))
    ;
  return hypervisor->stop;
}

static HypervisorConn *open_conn(Hypervisor *hypervisor, MigHostFacts *ret_facts, GError **error) {
  const MigDriverOps *ops = hypervisor->driver->ops;
  HypervisorConn *conn;
  MigConn *raw;

  raw = ops->open(hypervisor->driver, hypervisor->uri, hypervisor->connect_timeout_ms, on_event, hypervisor,
                  error);
  if (!raw)
    return NULL;
  if (!ops->host_facts(raw, ret_facts, error)) {
    ops->close(raw);
    return NULL;
  }
  conn = g_new0(HypervisorConn, 1);
  conn->hypervisor = hypervisor_ref(hypervisor);
  conn->conn = raw;
  conn->since_ms = clock_now_ms();
  conn->refs = 1;
  conn->serial = ++hypervisor->serial;
  return conn;
}

static gpointer hypervisor_thread(gpointer data) {
  g_autoptr(Hypervisor) hypervisor = data;
  unsigned backoff_ms = BACKOFF_MIN_MS;

  g_mutex_lock(&hypervisor->mutex);
  while (!hypervisor->stop) {
    g_autoptr(GError) error = NULL;
    g_auto(MigHostFacts) facts = {0};
    HypervisorConn *conn;

    g_mutex_unlock(&hypervisor->mutex);
    conn = open_conn(hypervisor, &facts, &error);
    post_state(hypervisor, conn ? conn->serial : 0, &facts, conn ? NULL : error->message);
    g_mutex_lock(&hypervisor->mutex);

    if (!conn) {
      g_free(hypervisor->last_error);
      hypervisor->last_error = g_strdup(error->message);
      if (wait_locked(hypervisor, backoff_ms))
        break;
      backoff_ms = MIN(backoff_ms * 2, BACKOFF_MAX_MS);
      continue;
    }
    backoff_ms = BACKOFF_MIN_MS;
    hypervisor->current = conn;
    hypervisor->broken = false;
    g_cond_broadcast(&hypervisor->cond);
    while (!hypervisor->stop && !hypervisor->broken)
      g_cond_wait(&hypervisor->cond, &hypervisor->mutex);
    hypervisor->current = NULL;
    g_free(hypervisor->last_error);
    hypervisor->last_error = g_strdup("the connection broke");
    g_mutex_unlock(&hypervisor->mutex);
    conn_unref(conn);
    post_state(hypervisor, 0, NULL, "the connection broke");
    g_mutex_lock(&hypervisor->mutex);
  }
  hypervisor->ended = true;
  g_cond_broadcast(&hypervisor->cond);
  g_mutex_unlock(&hypervisor->mutex);
  return NULL;
}

Hypervisor *hypervisor_new(MigDriver *driver, const char *uri, unsigned connect_timeout_ms,
                           GMainContext *context, const HypervisorHooks *hooks, gpointer user_data,
                           GError **error) {
  Hypervisor *hypervisor = g_new0(Hypervisor, 1);

  hypervisor->refs = 1;
  hypervisor->driver = driver;
  hypervisor->uri = g_strdup(uri);
  hypervisor->connect_timeout_ms = connect_timeout_ms;
  hypervisor->context = g_main_context_ref(context);
  hypervisor->hooks = *hooks;
  hypervisor->user_data = user_data;
  hypervisor->last_error = g_strdup("not connected yet");
  g_mutex_init(&hypervisor->mutex);
  g_cond_init(&hypervisor->cond);
  hypervisor->thread = g_thread_try_new("hypervisor", hypervisor_thread, hypervisor_ref(hypervisor), error);
  if (hypervisor->thread)
    return hypervisor;
  g_prefix_error(error, "cannot start the thread that keeps the connection to libvirtd: ");
  hypervisor_unref(hypervisor);
  hypervisor_unref(hypervisor);
  return NULL;
}

bool hypervisor_free(Hypervisor *hypervisor) {
  gint64 until;
  bool ended;

  if (!hypervisor)
    return true;
  hypervisor->hooks = (HypervisorHooks){0};
  until = g_get_monotonic_time() + END_WAIT_USEC;
  g_mutex_lock(&hypervisor->mutex);
  hypervisor->stop = true;
  g_cond_broadcast(&hypervisor->cond);
  while (!hypervisor->ended && g_cond_wait_until(&hypervisor->cond, &hypervisor->mutex, until))
    ;
  ended = hypervisor->ended;
  g_mutex_unlock(&hypervisor->mutex);
  if (ended)
    g_thread_join(hypervisor->thread);
  else
    g_thread_unref(hypervisor->thread);
  /* Only a thread stuck in a call can still hold a reference. */
  ended = ended && g_atomic_int_get(&hypervisor->refs) == 1;
  hypervisor_unref(hypervisor);
  return ended;
}

const HypervisorState *hypervisor_get_state(const Hypervisor *hypervisor) {
  return &hypervisor->state;
}

const char *hypervisor_get_uri(const Hypervisor *hypervisor) {
  return hypervisor->uri;
}

MigDriver *hypervisor_get_driver(const Hypervisor *hypervisor) {
  return hypervisor->driver;
}

HypervisorConn *hypervisor_acquire(Hypervisor *hypervisor, unsigned timeout_ms, GError **error) {
  gint64 until = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&hypervisor->mutex);

  while (!hypervisor->current && !hypervisor->stop &&
         g_cond_wait_until(&hypervisor->cond, &hypervisor->mutex, until))
    ;
  if (hypervisor->current) {
    g_atomic_int_inc(&hypervisor->current->refs);
    return hypervisor->current;
  }
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE,
              "this node's libvirtd (%s) does not answer: %s", hypervisor->uri, hypervisor->last_error);
  return NULL;
}

void hypervisor_release(HypervisorConn *conn, const GError *error) {
  if (!conn)
    return;
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) &&
      !conn->hypervisor->driver->ops->is_alive(conn->conn))
    mark_broken(conn->hypervisor, conn->conn);
  conn_unref(conn);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens and closes connections without ever waiting for a server that does not answer. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* Theory of Operation. virConnectOpen() has no timeout: until keepalive is negotiated, a stopped libvirtd, or a host that
 * drops packets, blocks it for minutes or forever. So each open runs on its own thread, as an *attempt*, and the caller waits
 * for the attempt as long as it likes. An attempt for which nobody waits any more is *abandoned*: when it ends, it closes the
 * connection it got. Since each retry would cost another thread and socket while a server hangs, a later open of the same URI
 * takes over an abandoned attempt instead of starting a new one, and their number is limited. It does not take over an old
 * attempt, unless the limit for its URI is reached: an attempt that began while the link was down retries ever more rarely and
 * would notice late that the link is back.
 *
 * Attempts that hang hold threads and sockets, so their total is limited. Somebody who has the agent connect to addresses where
 * nobody answers could use up that limit, and this must not affect other hosts. So each *standing* has places of its own: this
 * node's libvirtd has no limit except that of its URI; then come the hosts of the configuration, then those that have answered
 * before. The rest are strangers. The network is probed first for a stranger, which takes PROBE_MS instead of TCP's minutes;
 * one host gets only a few of the strangers' places; and an open that finds none free waits for one until its time is up.
 *
 * Closing has the same problem: virConnectClose() waits for the server's answer. So the last reference hands the connection to
 * a thread that ends when the server answers or keepalive gives up. If no thread can be started, the connection waits in a
 * list for the next open, the next close, or the next turn of the event loop.
 *
 * Locks: opener->lock guards the lists and every attempt's fields. It is never held during a libvirt call.
 */

#define ABANDONED_PER_URI_MAX  4
#define ABANDONED_PER_HOST_MAX 8 /* strangers only */
#define ANSWERED_MAX           64
#define FRESH_USEC             (4 * G_USEC_PER_SEC)
#define PROBE_MS               8000 /* time for three SYNs, should the first two be lost */

typedef enum Standing { STANDING_OWN, STANDING_CONFIGURED, STANDING_ANSWERED, STANDING_STRANGER } Standing;

static const struct {
  unsigned abandoned_max;
  const char *whom;
} standings[] = {
    [STANDING_OWN] = {G_MAXUINT, "this node"},
    [STANDING_CONFIGURED] = {128, "configured hosts"},
    [STANDING_ANSWERED] = {64, "hosts that answered before"},
    [STANDING_STRANGER] = {48, "hosts that never answered"},
};

struct MigOpener {
  gint refs; /* of the driver, each connection, and each attempt */
  GMutex lock;
  GCond done;
  GPtrArray *abandoned; /* of Attempt, borrowed: an attempt removes itself before its thread ends */
  GPtrArray *unclosed;  /* of virConnectPtr: no thread could be started to close them */
  char *own_uri;        /* or NULL: unknown */
  GHashTable *configured;
  GPtrArray *answered; /* URIs, the most recent one last */
};

typedef struct Attempt {
  MigOpener *opener;
  char *uri;
  char *host; /* whose places a stranger takes */
  Standing standing;
  gint64 begun_usec;
  bool waited_for; /* false: in the list of abandoned ones, or done */
  bool ended;
  MigEventSink *sink; /* NULL: no events wanted */
  virConnectPtr vir;  /* the result */
  GError *error;
} Attempt;

MigOpener *mig_opener_new(void) {
  MigOpener *opener = g_new0(MigOpener, 1);

  opener->refs = 1;
  g_mutex_init(&opener->lock);
  g_cond_init(&opener->done);
  opener->abandoned = g_ptr_array_new();
  opener->unclosed = g_ptr_array_new();
  opener->configured = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  opener->answered = g_ptr_array_new_with_free_func(g_free);
  return opener;
}

MigOpener *mig_opener_ref(MigOpener *opener) {
  g_atomic_int_inc(&opener->refs);
  return opener;
}

void mig_opener_unref(MigOpener *opener) {
  if (!opener || !g_atomic_int_dec_and_test(&opener->refs))
    return;
  g_ptr_array_unref(opener->abandoned);
  g_ptr_array_unref(opener->unclosed);
  g_ptr_array_unref(opener->answered);
  g_hash_table_unref(opener->configured);
  g_free(opener->own_uri);
  g_cond_clear(&opener->done);
  g_mutex_clear(&opener->lock);
  g_free(opener);
}

void mig_opener_prefer(MigOpener *opener, const char *own_uri, const char *const *uris) {
  g_mutex_lock(&opener->lock);
  g_free(opener->own_uri);
  opener->own_uri = g_strdup(own_uri);
  g_hash_table_remove_all(opener->configured);
  for (; uris && *uris; uris++)
    g_hash_table_add(opener->configured, g_strdup(*uris));
  g_mutex_unlock(&opener->lock);
}

/* --- closing --- */

typedef struct Closing {
  MigOpener *opener;
  virConnectPtr vir;
} Closing;

static gpointer close_thread(gpointer data) {
  g_autofree Closing *closing = data;

  virConnectClose(closing->vir);
  mig_opener_unref(closing->opener);
  return NULL;
}

static virConnectPtr take_unclosed(MigOpener *opener) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&opener->lock);

  return opener->unclosed->len > 0 ? g_ptr_array_remove_index_fast(opener->unclosed, 0) : NULL;
}

static void put_unclosed(MigOpener *opener, virConnectPtr vir) {
  g_mutex_lock(&opener->lock);
  g_ptr_array_add(opener->unclosed, vir);
  g_mutex_unlock(&opener->lock);
}

void mig_opener_close_rest(MigOpener *opener) {
  virConnectPtr vir;

  while ((vir = take_unclosed(opener))) {
    Closing *closing = g_new0(Closing, 1);
    GThread *thread;

    *closing = (Closing){mig_opener_ref(opener), vir};
    thread = g_thread_try_new("libvirt-close", close_thread, closing, NULL);
    if (!thread) {
      put_unclosed(opener, vir);
      g_free(closing);
      mig_opener_unref(opener);
      return;
    }
    g_thread_unref(thread);
  }
}

void mig_close_aside(MigOpener *opener, virConnectPtr vir) {
  if (!vir)
    return;
  put_unclosed(opener, vir);
  mig_opener_close_rest(opener);
}

/* --- an attempt --- */

static void attempt_free(Attempt *attempt) {
  mig_close_aside(attempt->opener, attempt->vir);
  mig_event_sink_unref(attempt->sink);
  g_clear_error(&attempt->error);
  mig_opener_unref(attempt->opener);
  g_free(attempt->uri);
  g_free(attempt->host);
  g_free(attempt);
}

/* Nobody is there to type a password. libvirt looks in auth.conf before it calls this. */
static int no_credentials(virConnectCredentialPtr credentials, unsigned n, void *data) {
  return -1;
}

/* Not over ssh: its own configuration may lead elsewhere. */
static bool may_probe(const Attempt *attempt) {
  size_t scheme = strcspn(attempt->uri, ":");

  return attempt->standing == STANDING_STRANGER && !g_strstr_len(attempt->uri, (gssize)scheme, "ssh");
}

static virConnectPtr connect(const Attempt *attempt, GError **error) {
  const char *uri = attempt->uri;
  int types[] = {VIR_CRED_AUTHNAME, VIR_CRED_PASSPHRASE};
  virConnectAuth auth = {types, G_N_ELEMENTS(types), no_credentials, NULL};
  virConnectPtr vir;

  if (may_probe(attempt) && !mig_libvirt_reachable(NULL, uri, PROBE_MS, error)) {
    g_prefix_error(error, "cannot connect to %s: ", uri);
    return NULL;
  }
  vir = virConnectOpenAuth(uri, &auth, 0);
  if (!vir) {
    mig_virt_error_take(error, "cannot connect to %s", uri);
    return NULL;
  }

  /* NO_SUPPORT: a driver inside this process, with no connection to keep alive. A server without keepalive is too old to use. */
  if (virConnectSetKeepAlive(vir, MIG_KEEPALIVE_INTERVAL_S, MIG_KEEPALIVE_COUNT) != 0) {
    if (virGetLastErrorCode() != VIR_ERR_NO_SUPPORT) {
      mig_virt_error_take(error, "cannot set up keepalive on the connection to %s", uri);
      goto fail;
    }
    virResetLastError();
  }
  if (attempt->sink && !mig_events_register(vir, attempt->sink, error)) {
    g_prefix_error(error, "%s: ", uri);
    goto fail;
  }
  return vir;

fail:
  mig_close_aside(attempt->opener, vir);
  return NULL;
}

/* With the lock held. */
static void note_answered(MigOpener *opener, const char *uri) {
  guint at;

  if (g_ptr_array_find_with_equal_func(opener->answered, uri, g_str_equal, &at))
    g_ptr_array_remove_index(opener->answered, at);
  else if (opener->answered->len >= ANSWERED_MAX)
    g_ptr_array_remove_index(opener->answered, 0);
  g_ptr_array_add(opener->answered, g_strdup(uri));
}

static gpointer attempt_thread(gpointer data) {
  Attempt *attempt = data;
  MigOpener *opener = attempt->opener;
  g_autoptr(GError) error = NULL;
  virConnectPtr vir = connect(attempt, &error);
  bool waited_for;

  g_mutex_lock(&opener->lock);
  attempt->vir = vir;
  attempt->error = g_steal_pointer(&error);
  attempt->ended = true;
  if (vir)
    note_answered(opener, attempt->uri);
  waited_for = attempt->waited_for;
  if (!waited_for)
    g_ptr_array_remove_fast(opener->abandoned, attempt);
  g_cond_broadcast(&opener->done); /* wakes those that wait for this attempt or for a place */
  g_mutex_unlock(&opener->lock);

  if (!waited_for)
    attempt_free(attempt);
  return NULL;
}

/* With the lock held. */
static Attempt *take_over(MigOpener *opener, const char *uri, bool with_events) {
  guint youngest = 0, n = 0;

  for (guint i = 0; i < opener->abandoned->len; i++) {
    const Attempt *attempt = g_ptr_array_index(opener->abandoned, i);
    const Attempt *other = g_ptr_array_index(opener->abandoned, youngest);

    if (strcmp(attempt->uri, uri) != 0 || (attempt->sink != NULL) != with_events)
      continue;
    if (n++ == 0 || attempt->begun_usec > other->begun_usec)
      youngest = i;
  }
  if (n == 0)
    return NULL;
  if (n < ABANDONED_PER_URI_MAX &&
      ((const Attempt *)g_ptr_array_index(opener->abandoned, youngest))->begun_usec + FRESH_USEC <
          g_get_monotonic_time())
    return NULL;
  return g_ptr_array_remove_index_fast(opener->abandoned, youngest);
}

/* With the lock held. */
static Standing standing_of(const MigOpener *opener, const char *uri) {
  if (g_strcmp0(opener->own_uri, uri) == 0)
    return STANDING_OWN;
  if (g_hash_table_contains(opener->configured, uri))
    return STANDING_CONFIGURED;
  return g_ptr_array_find_with_equal_func(opener->answered, uri, g_str_equal, NULL) ? STANDING_ANSWERED
                                                                                    : STANDING_STRANGER;
}

static char *host_of(const char *uri) {
  g_autoptr(GUri) parsed = g_uri_parse(uri, G_URI_FLAGS_NONE, NULL);
  const char *host = parsed ? g_uri_get_host(parsed) : NULL;

  return g_ascii_strdown(host && *host ? host : uri, -1);
}

/* With the lock held. */
static bool has_place(const MigOpener *opener, const Attempt *attempt, GError **error) {
  unsigned same = 0, same_host = 0;

  for (guint i = 0; i < opener->abandoned->len; i++) {
    const Attempt *other = g_ptr_array_index(opener->abandoned, i);

    same += other->standing == attempt->standing;
    same_host += other->standing == STANDING_STRANGER && g_strcmp0(other->host, attempt->host) == 0;
  }
  if (attempt->standing == STANDING_STRANGER && same_host >= ABANDONED_PER_HOST_MAX) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "cannot connect to %s: %u connections to %s are already hanging", attempt->uri, same_host,
                attempt->host);
    return false;
  }
  if (same < standings[attempt->standing].abandoned_max)
    return true;
  g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
              "cannot connect to %s: %u connections to %s are already hanging", attempt->uri, same,
              standings[attempt->standing].whom);
  return false;
}

static Attempt *attempt_new(MigOpener *opener, const char *uri, bool with_events) {
  Attempt *attempt = g_new0(Attempt, 1);

  attempt->opener = mig_opener_ref(opener);
  attempt->uri = g_strdup(uri);
  attempt->host = host_of(uri);
  attempt->sink = with_events ? mig_event_sink_new(NULL, NULL) : NULL;
  return attempt;
}

/* Takes over an abandoned attempt, or waits for a place and makes a new one. NULL: no place became free in time. */
static Attempt *attempt_get(MigOpener *opener, const char *uri, bool with_events, gint64 deadline,
                            bool *ret_is_new, GError **error) {
  Attempt *fresh = attempt_new(opener, uri, with_events), *attempt;
  g_autoptr(GError) full = NULL;

  g_mutex_lock(&opener->lock);
  for (;;) {
    attempt = take_over(opener, uri, with_events);
    fresh->standing = standing_of(opener, uri);
    g_clear_error(&full);
    if (attempt || has_place(opener, fresh, &full) ||
        !g_cond_wait_until(&opener->done, &opener->lock, deadline))
      break;
  }
  *ret_is_new = !attempt && !full;
  if (*ret_is_new) {
    attempt = g_steal_pointer(&fresh);
    attempt->begun_usec = g_get_monotonic_time();
  }
  if (attempt)
    attempt->waited_for = true;
  g_mutex_unlock(&opener->lock);
  if (fresh)
    attempt_free(fresh);
  if (!attempt)
    g_propagate_error(error, g_steal_pointer(&full));
  return attempt;
}

virConnectPtr mig_opener_connect(MigOpener *opener, const char *uri, unsigned timeout_ms,
                                 MigVirtEventFunc events, gpointer user_data, MigEventSink **ret_sink,
                                 GError **error) {
  gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * G_TIME_SPAN_MILLISECOND;
  Attempt *attempt;
  virConnectPtr vir;
  bool is_new = false, ended;

  if (!uri || !*uri) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "no libvirt URI given");
    return NULL;
  }

  mig_opener_close_rest(opener);
  attempt = attempt_get(opener, uri, ret_sink != NULL, deadline, &is_new, error);
  if (!attempt)
    return NULL;

  /* Before the thread runs, so that no event is lost between the subscription and the return. */
  if (attempt->sink)
    mig_event_sink_set(attempt->sink, events, user_data);
  if (is_new) {
    g_autoptr(GError) failure = NULL;
    GThread *thread = g_thread_try_new("libvirt-open", attempt_thread, attempt, &failure);

    if (!thread) {
      attempt_free(attempt);
      g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                  "cannot connect to %s: this node has no threads left: %s", uri, failure->message);
      return NULL;
    }
    g_thread_unref(thread);
  }

  g_mutex_lock(&opener->lock);
  while (!attempt->ended && g_cond_wait_until(&opener->done, &opener->lock, deadline))
    ;
  ended = attempt->ended;
  if (!ended) {
    attempt->waited_for = false;
    g_ptr_array_add(opener->abandoned, attempt);
    /* With the lock held: the attempt may be freed as soon as the lock is released. If an event is just being delivered, this
     * waits for its receiver, which by contract only posts the event elsewhere. */
    if (attempt->sink)
      mig_event_sink_set(attempt->sink, NULL, NULL);
  }
  g_mutex_unlock(&opener->lock);

  if (!ended) {
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "cannot connect to %s: no answer within %u ms",
                uri, timeout_ms);
    return NULL;
  }
  vir = g_steal_pointer(&attempt->vir);
  if (!vir)
    g_propagate_error(error, g_steal_pointer(&attempt->error));
  else if (ret_sink)
    *ret_sink = mig_event_sink_ref(attempt->sink);
  attempt_free(attempt);
  return vir;
}

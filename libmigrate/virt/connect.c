/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening and closing connections without ever waiting for a server that does not answer. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* Theory of operation. virConnectOpen() has no timeout: before keepalive is agreed upon, a libvirtd that is
 * stopped, or a host that drops packets, holds it for minutes or for good. So each open runs on a thread of
 * its own, an *attempt*, and the caller waits for the attempt for as long as it likes. An attempt that nobody
 * waits for any more is *abandoned*: when it ends it closes what it got. Since a hung server would collect a
 * thread and a socket with each new try, a later open of the same URI takes an abandoned attempt over
 * instead of starting another, and their number is limited. It takes none over that is old, unless there are
 * some already: an attempt that was begun while the link was cut asks again ever more seldom, and would notice
 * late that the link is back.
 *
 * Closing is the same backwards: virConnectClose() waits for the server's answer, so the last reference gives
 * the connection to a thread which ends when the server answers or keepalive gives it up.
 *
 * Locks: opener->lock guards the list and every attempt's fields. It is never held while libvirt is called.
 */

#define ABANDONED_MAX         64
#define ABANDONED_PER_URI_MAX 4
#define FRESH_USEC            (4 * G_USEC_PER_SEC)

struct MigOpener {
  gint refs; /* the driver's, each connection's, each attempt's */
  GMutex lock;
  GCond done;
  GPtrArray *abandoned; /* of Attempt, borrowed: an attempt leaves it before its thread ends */
};

typedef struct Attempt {
  MigOpener *opener;
  char *uri;
  gint64 begun_usec;
  bool waited_for; /* else it is in the list, or done */
  bool ended;
  MigEventSink *sink; /* NULL: no events are wanted */
  virConnectPtr vir;  /* the result */
  GError *error;
} Attempt;

MigOpener *mig_opener_new(void) {
  MigOpener *opener = g_new0(MigOpener, 1);

  opener->refs = 1;
  g_mutex_init(&opener->lock);
  g_cond_init(&opener->done);
  opener->abandoned = g_ptr_array_new();
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
  g_cond_clear(&opener->done);
  g_mutex_clear(&opener->lock);
  g_free(opener);
}

static gpointer close_thread(gpointer data) {
  virConnectClose(data);
  return NULL;
}

void mig_close_aside(virConnectPtr vir) {
  if (vir)
    g_thread_unref(g_thread_new("libvirt-close", close_thread, vir));
}

static void attempt_free(Attempt *attempt) {
  mig_close_aside(attempt->vir);
  mig_event_sink_unref(attempt->sink);
  g_clear_error(&attempt->error);
  mig_opener_unref(attempt->opener);
  g_free(attempt->uri);
  g_free(attempt);
}

/* Nobody is there to type a password, but what auth.conf holds is found on the way to asking. */
static int no_credentials(virConnectCredentialPtr credentials, unsigned n, void *data) {
  return -1;
}

static virConnectPtr connect(const char *uri, MigEventSink *sink, GError **error) {
  int types[] = {VIR_CRED_AUTHNAME, VIR_CRED_PASSPHRASE};
  virConnectAuth auth = {types, G_N_ELEMENTS(types), no_credentials, NULL};
  virConnectPtr vir = virConnectOpenAuth(uri, &auth, 0);

  if (!vir) {
    mig_virt_error_take(error, "cannot connect to %s", uri);
    return NULL;
  }

  /* Drivers inside the process have no connection to keep alive; a server without keepalive is too old to
   * use. */
  if (virConnectSetKeepAlive(vir, MIG_KEEPALIVE_INTERVAL_S, MIG_KEEPALIVE_COUNT) != 0) {
    if (virGetLastErrorCode() != VIR_ERR_NO_SUPPORT) {
      mig_virt_error_take(error, "cannot keep the connection to %s alive", uri);
      goto fail;
    }
    virResetLastError();
  }
  if (sink && !mig_events_register(vir, sink, error)) {
    g_prefix_error(error, "%s: ", uri);
    goto fail;
  }
  return vir;

fail:
  mig_close_aside(vir);
  return NULL;
}

static gpointer attempt_thread(gpointer data) {
  Attempt *attempt = data;
  MigOpener *opener = attempt->opener;
  g_autoptr(GError) error = NULL;
  virConnectPtr vir = connect(attempt->uri, attempt->sink, &error);
  bool waited_for;

  g_mutex_lock(&opener->lock);
  attempt->vir = vir;
  attempt->error = g_steal_pointer(&error);
  attempt->ended = true;
  waited_for = attempt->waited_for;
  if (waited_for)
    g_cond_broadcast(&opener->done);
  else
    g_ptr_array_remove_fast(opener->abandoned, attempt);
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

virConnectPtr mig_opener_connect(MigOpener *opener, const char *uri, unsigned timeout_ms,
                                 MigVirtEventFunc events, gpointer user_data, MigEventSink **ret_sink,
                                 GError **error) {
  gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * G_TIME_SPAN_MILLISECOND;
  Attempt *attempt;
  virConnectPtr vir;
  bool is_new = false, ended;

  if (!uri || !*uri) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "a libvirt URI is needed");
    return NULL;
  }

  g_mutex_lock(&opener->lock);
  attempt = take_over(opener, uri, ret_sink != NULL);
  if (!attempt && opener->abandoned->len >= ABANDONED_MAX) {
    g_mutex_unlock(&opener->lock);
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "cannot connect to %s: %d connections to other hosts hang already", uri, ABANDONED_MAX);
    return NULL;
  }
  if (!attempt) {
    is_new = true;
    attempt = g_new0(Attempt, 1);
    attempt->opener = mig_opener_ref(opener);
    attempt->uri = g_strdup(uri);
    attempt->begun_usec = g_get_monotonic_time();
    attempt->sink = ret_sink ? mig_event_sink_new(NULL, NULL) : NULL;
  }
  attempt->waited_for = true;
  g_mutex_unlock(&opener->lock);

  /* Before the thread runs, so that no event is lost between the subscription and the return. */
  if (attempt->sink)
    mig_event_sink_set(attempt->sink, events, user_data);
  if (is_new) {
    GThread *thread = g_thread_try_new("libvirt-open", attempt_thread, attempt, error);

    if (!thread) {
      attempt_free(attempt);
      g_prefix_error(error, "cannot connect to %s: ", uri);
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
    /* With the lock held, for the attempt may be gone as soon as it is let go. Should an event be on its way
     * already, this waits for its receiver, which by contract only posts it elsewhere. */
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

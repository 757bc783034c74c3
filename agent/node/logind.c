/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* logind, where there is one.
 *
 * Theory of Operation. Everything runs on the main thread, and nothing blocks: the connection to the system bus is made in
 * the background, calls are answered by callbacks, and a source of the main context drives sd-bus. The lock is a file
 * descriptor. Whoever holds a "delay" lock on "shutdown" gets the signal PrepareForShutdown, and has until
 * InhibitDelayMaxUSec (five seconds unless logind.conf says otherwise) to close it. The lock is held only while it is wanted,
 * so that a host without migrations shuts down at once. Failures are retried after RETRY_MS. Losing the bus means losing the
 * signal, nothing else. */
#include "agent/node/logind.h"

#include "agent/job/log.h"

#include <errno.h>
#include <fcntl.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define SERVICE   "org.freedesktop.login1"
#define OBJECT    "/org/freedesktop/login1"
#define INTERFACE "org.freedesktop.login1.Manager"

#define RETRY_MS         30000
#define DELAY_DEFAULT_MS 5000

struct Logind {
  GMainContext *context;
  LogindFunc func;
  gpointer user_data;
  sd_bus *bus; /* NULL: not connected */
  GSource *source;
  gpointer tag; /* of the bus's descriptor in `source` */
  sd_bus_slot *asking;
  int lock_fd; /* -1: not held */
  bool wanted;
  bool said; /* the journal has the failure already */
  uint64_t delay_ms;
  gint64 retry_us; /* monotonic: no retry before */
};

typedef struct BusSource {
  GSource source;
  Logind *logind;
} BusSource;

static void give_back(Logind *logind) {
  if (logind->lock_fd >= 0)
    close(logind->lock_fd);
  logind->lock_fd = -1;
}

/* Must not be called from a callback of the bus. */
static void disconnect(Logind *logind) {
  if (logind->source) {
    g_source_destroy(logind->source);
    g_clear_pointer(&logind->source, g_source_unref);
  }
  logind->asking = sd_bus_slot_unref(logind->asking);
  logind->bus = sd_bus_close_unref(logind->bus);
}

/* Logged once per outage, and only as information: a host without logind is fine. */
static void fail(Logind *logind, const char *what, const char *why) {
  if (!logind->said)
    log_message(LOG_INFO, NULL, NULL, 0,
                "a shutdown of this host will not wait for migrations: %s: %s; retrying every %d s", what,
                why, RETRY_MS / 1000);
  logind->said = true;
  logind->retry_us = g_get_monotonic_time() + RETRY_MS * 1000;
}

/* --- replies and the signal --- */

static int on_shutdown(sd_bus_message *message, void *user_data, sd_bus_error *ret_error) {
  Logind *logind = user_data;
  int begins = 0;

  if (sd_bus_message_read(message, "b", &begins) >= 0)
    logind->func(begins, logind->delay_ms, logind->user_data);
  return 0;
}

static int on_delay(sd_bus_message *message, void *user_data, sd_bus_error *ret_error) {
  Logind *logind = user_data;
  uint64_t usec;

  if (!sd_bus_message_is_method_error(message, NULL) &&
      sd_bus_message_enter_container(message, 'v', "t") >= 0 &&
      sd_bus_message_read(message, "t", &usec) >= 0 && usec > 0)
    logind->delay_ms = usec / 1000;
  return 0;
}

static int on_lock(sd_bus_message *message, void *user_data, sd_bus_error *ret_error) {
  const sd_bus_error *error = sd_bus_message_get_error(message);
  Logind *logind = user_data;
  int fd;

  logind->asking = sd_bus_slot_unref(logind->asking);
  if (error) {
    fail(logind, "logind refused an inhibitor lock", error->message ? error->message : error->name);
    return 0;
  }
  /* The message owns its descriptor. */
  if (sd_bus_message_read(message, "h", &fd) < 0)
    return 0;
  give_back(logind);
  logind->lock_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (!logind->wanted)
    give_back(logind);
  logind->said = false;
  return 0;
}

/* --- the source: sd-bus in GLib's loop --- */

static gboolean bus_prepare(GSource *source, gint *ret_timeout_ms) {
  Logind *logind = ((BusSource *)source)->logind;
  int events = sd_bus_get_events(logind->bus);
  uint64_t until_us = UINT64_MAX;
  gint64 left_us;

  *ret_timeout_ms = -1;
  /* On Linux GIOCondition and poll(2) use the same bits. */
  g_source_modify_unix_fd(source, logind->tag, events > 0 ? (GIOCondition)events : 0);
  if (sd_bus_get_timeout(logind->bus, &until_us) <= 0 || until_us == UINT64_MAX)
    return events < 0;
  left_us = (gint64)until_us - g_get_monotonic_time();
  if (left_us <= 0)
    return TRUE;
  *ret_timeout_ms = (gint)MIN(left_us / 1000 + 1, 60000);
  return FALSE;
}

static gboolean bus_check(GSource *source) {
  gint timeout_ms;

  return g_source_query_unix_fd(source, ((BusSource *)source)->logind->tag) != 0 ||
         bus_prepare(source, &timeout_ms);
}

static gboolean bus_dispatch(GSource *source, GSourceFunc callback, gpointer user_data) {
  Logind *logind = ((BusSource *)source)->logind;
  int code;

  while ((code = sd_bus_process(logind->bus, NULL)) > 0)
    ;
  if (code < 0) {
    fail(logind, "no connection to the system bus", g_strerror(-code));
    disconnect(logind);
  }
  return G_SOURCE_CONTINUE;
}

static void attach(Logind *logind) {
  static GSourceFuncs funcs = {.prepare = bus_prepare, .check = bus_check, .dispatch = bus_dispatch};

  logind->source = g_source_new(&funcs, sizeof(BusSource));
  ((BusSource *)logind->source)->logind = logind;
  logind->tag = g_source_add_unix_fd(logind->source, sd_bus_get_fd(logind->bus), G_IO_IN);
  g_source_attach(logind->source, logind->context);
}

/* --- requests --- */

static int connect_to_bus(Logind *logind) {
  int code = sd_bus_open_system_with_description(&logind->bus, "logind");

  if (code < 0)
    return code;
  /* sd-bus queues this until the connection is authenticated. */
  code = sd_bus_match_signal_async(logind->bus, NULL, SERVICE, OBJECT, INTERFACE, "PrepareForShutdown",
                                   on_shutdown, NULL, logind);
  if (code < 0)
    return code;
  return sd_bus_call_method_async(logind->bus, NULL, SERVICE, OBJECT, "org.freedesktop.DBus.Properties",
                                  "Get", on_delay, logind, "ss", INTERFACE, "InhibitDelayMaxUSec");
}

static void ask_for_lock(Logind *logind) {
  int code = sd_bus_call_method_async(logind->bus, &logind->asking, SERVICE, OBJECT, INTERFACE, "Inhibit",
                                      on_lock, logind, "ssss", "shutdown", "handoffd",
                                      "Migrations in progress must finish or be aborted first", "delay");

  if (code < 0)
    fail(logind, "cannot ask logind for an inhibitor lock", g_strerror(-code));
}

Logind *logind_new(GMainContext *context, LogindFunc func, gpointer user_data) {
  Logind *logind = g_new0(Logind, 1);

  logind->context = g_main_context_ref(context);
  logind->func = func;
  logind->user_data = user_data;
  logind->lock_fd = -1;
  logind->delay_ms = DELAY_DEFAULT_MS;
  return logind;
}

void logind_free(Logind *logind) {
  if (!logind)
    return;
  disconnect(logind);
  give_back(logind);
  g_main_context_unref(logind->context);
  g_free(logind);
}

void logind_want_lock(Logind *logind, bool wanted) {
  int code;

  logind->wanted = wanted;
  if (!wanted)
    give_back(logind);
  if (g_get_monotonic_time() < logind->retry_us)
    return;
  if (!logind->bus) {
    code = connect_to_bus(logind);
    if (code < 0) {
      fail(logind, "no connection to the system bus", g_strerror(-code));
      disconnect(logind);
      return;
    }
    attach(logind);
  }
  if (wanted && logind->lock_fd < 0 && !logind->asking)
    ask_for_lock(logind);
}

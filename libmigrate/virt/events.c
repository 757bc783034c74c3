/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates libvirt's events: registered on a connection, delivered to a sink on libvirt's event thread. */
#include "libmigrate/virt/libvirt.h"

#include <string.h>

/* The lock is held while an event is delivered, so that close() can promise that none follows. It is recursive, so that the
 * receiver may close the connection while it handles an event. */
struct MigEventSink {
  gint refs;
  GRecMutex lock;
  MigVirtEventFunc func; /* NULL: closed, or nobody listens */
  gpointer user_data;
};

MigEventSink *mig_event_sink_new(MigVirtEventFunc func, gpointer user_data) {
  MigEventSink *sink = g_new0(MigEventSink, 1);

  sink->refs = 1;
  g_rec_mutex_init(&sink->lock);
  sink->func = func;
  sink->user_data = user_data;
  return sink;
}

MigEventSink *mig_event_sink_ref(MigEventSink *sink) {
  g_atomic_int_inc(&sink->refs);
  return sink;
}

void mig_event_sink_unref(MigEventSink *sink) {
  if (!sink || !g_atomic_int_dec_and_test(&sink->refs))
    return;
  g_rec_mutex_clear(&sink->lock);
  g_free(sink);
}

void mig_event_sink_set(MigEventSink *sink, MigVirtEventFunc func, gpointer user_data) {
  g_rec_mutex_lock(&sink->lock);
  sink->func = func;
  sink->user_data = user_data;
  g_rec_mutex_unlock(&sink->lock);
}

static void deliver(MigEventSink *sink, virDomainPtr domain, MigVirtEvent *event) {
  if (domain && virDomainGetUUIDString(domain, event->uuid) < 0)
    return;
  if (domain)
    g_strlcpy(event->name, virDomainGetName(domain), sizeof event->name);
  event->at_ms = (uint64_t)g_get_monotonic_time() / 1000;

  g_rec_mutex_lock(&sink->lock);
  if (sink->func)
    sink->func(event, sink->user_data);
  g_rec_mutex_unlock(&sink->lock);
}

static void deliver_definition(MigEventSink *sink, virDomainPtr domain, const char *detail) {
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_DEFINITION};

  g_strlcpy(event.detail, detail, sizeof event.detail);
  deliver(sink, domain, &event);
}

static int on_lifecycle(virConnectPtr vir, virDomainPtr domain, int what, int detail, void *opaque) {
  const MigLifecycleRow *row = mig_lifecycle_find(what, detail);
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_STATE};

  if (row) {
    event.state = row->end;
    event.arriving = what == VIR_DOMAIN_EVENT_STARTED && detail == VIR_DOMAIN_EVENT_STARTED_MIGRATED;
    event.ended = what == VIR_DOMAIN_EVENT_CRASHED ||
                  (what == VIR_DOMAIN_EVENT_STOPPED && (detail == VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN ||
                                                        detail == VIR_DOMAIN_EVENT_STOPPED_DESTROYED ||
                                                        detail == VIR_DOMAIN_EVENT_STOPPED_CRASHED));
    event.started = what == VIR_DOMAIN_EVENT_STARTED && detail != VIR_DOMAIN_EVENT_STARTED_MIGRATED;
    g_strlcpy(event.detail, row->name, sizeof event.detail);
    deliver(opaque, domain, &event);
  } else if (what == VIR_DOMAIN_EVENT_DEFINED || what == VIR_DOMAIN_EVENT_UNDEFINED) {
    deliver_definition(opaque, domain, what == VIR_DOMAIN_EVENT_DEFINED ? "defined" : "undefined");
  }
  return 0;
}

static void on_device(virConnectPtr vir, virDomainPtr domain, const char *alias, void *opaque) {
  deliver_definition(opaque, domain, "device added or removed");
}

static void on_tunable(virConnectPtr vir, virDomainPtr domain, virTypedParameterPtr params, int n,
                       void *opaque) {
  deliver_definition(opaque, domain, "tunables changed");
}

static void on_metadata(virConnectPtr vir, virDomainPtr domain, int type, const char *uri, void *opaque) {
  deliver_definition(opaque, domain, "metadata changed");
}

static void on_iteration(virConnectPtr vir, virDomainPtr domain, int iteration, void *opaque) {
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_ITERATION, .iteration = (uint64_t)MAX(iteration, 0)};

  g_snprintf(event.detail, sizeof event.detail, "iteration %d", iteration);
  deliver(opaque, domain, &event);
}

static void on_job_completed(virConnectPtr vir, virDomainPtr domain, virTypedParameterPtr params, int n,
                             void *opaque) {
  int operation = mig_stats_operation(params, n);
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_JOB_DONE, .success = mig_stats_success(params, n)};

  /* Saves, dumps and backups end with the same event. */
  if (operation != MIG_ANY && operation != VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT &&
      operation != VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN)
    return;

  mig_stats_final(params, n, &event.final);
  g_strlcpy(event.detail, event.success ? "job completed" : "job failed", sizeof event.detail);
  deliver(opaque, domain, &event);
}

static void on_close(virConnectPtr vir, int reason, void *opaque) {
  static const char *const reasons[] = {
      [VIR_CONNECT_CLOSE_REASON_ERROR] = "closed: I/O error",
      [VIR_CONNECT_CLOSE_REASON_EOF] = "closed: by the server",
      [VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "closed: no answer to keepalive",
      [VIR_CONNECT_CLOSE_REASON_CLIENT] = "closed: by the client",
  };
  MigVirtEvent event = {.kind = MIG_VIRT_EVENT_CLOSED};

  g_strlcpy(event.detail, (unsigned)reason < G_N_ELEMENTS(reasons) ? reasons[reason] : "closed",
            sizeof event.detail);
  deliver(opaque, NULL, &event);
}

static void on_free(void *opaque) {
  mig_event_sink_unref(opaque);
}

bool mig_events_register(virConnectPtr vir, MigEventSink *sink, GError **error) {
  static const struct {
    int id;
    virConnectDomainEventGenericCallback callback;
    const char *name;
  } rows[] = {
      {VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), "lifecycle"},
      {VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION, VIR_DOMAIN_EVENT_CALLBACK(on_iteration), "iteration"},
      {VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_CALLBACK(on_job_completed), "job completed"},
      {VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device), "device added"},
      {VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device), "device removed"},
      {VIR_DOMAIN_EVENT_ID_TUNABLE, VIR_DOMAIN_EVENT_CALLBACK(on_tunable), "tunable"},
      {VIR_DOMAIN_EVENT_ID_METADATA_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_metadata), "metadata"},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    if (virConnectDomainEventRegisterAny(vir, NULL, rows[i].id, rows[i].callback, mig_event_sink_ref(sink),
                                         on_free) >= 0)
      continue;
    mig_event_sink_unref(sink);
    if (virGetLastErrorCode() != VIR_ERR_NO_SUPPORT)
      return mig_virt_error_take(error, "cannot subscribe to %s events", rows[i].name);
    virResetLastError();
  }

  if (virConnectRegisterCloseCallback(vir, on_close, mig_event_sink_ref(sink), on_free) < 0) {
    mig_event_sink_unref(sink);
    if (virGetLastErrorCode() != VIR_ERR_NO_SUPPORT)
      return mig_virt_error_take(error, "cannot subscribe to the closing of the connection");
    virResetLastError();
  }
  return true;
}

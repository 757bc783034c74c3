/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libvirt driver: its vtable, its event thread, its start and its end. */
#include "libmigrate/virt/libvirt.h"

typedef struct LibvirtDriver {
  MigDriver driver;
  MigOpener *opener;
  GThread *thread;
  gint stop;
} LibvirtDriver;

/* libvirt's default handler prints to stderr. Here every error is returned to the caller; that is enough. */
static void ignore_error(void *data, virErrorPtr error) {
}

static gpointer event_thread(gpointer data) {
  LibvirtDriver *self = data;

  while (!g_atomic_int_get(&self->stop)) {
    if (virEventRunDefaultImpl() < 0)
      virResetLastError();
    mig_opener_close_rest(self->opener);
  }
  return NULL;
}

static MigConn *libvirt_open(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                             gpointer user_data, GError **error) {
  MigOpener *opener = ((LibvirtDriver *)driver)->opener;
  MigEventSink *sink = NULL;
  virConnectPtr vir = mig_opener_connect(opener, uri, timeout_ms, events, user_data, &sink, error);

  return vir ? mig_conn_new(opener, uri, vir, sink) : NULL;
}

static void libvirt_prefer(MigDriver *driver, const char *own_uri, const char *const *uris) {
  mig_opener_prefer(((LibvirtDriver *)driver)->opener, own_uri, uris);
}

static void libvirt_close(MigConn *conn) {
  if (!conn)
    return;
  mig_event_sink_set(conn->sink, NULL, NULL);
  mig_conn_unref(conn);
}

static bool libvirt_is_alive(MigConn *conn) {
  G_GNUC_UNUSED g_autoptr(MigConn) held = mig_conn_ref(conn);
  bool alive = virConnectIsAlive(conn->vir) == 1;

  virResetLastError();
  return alive;
}

/* Stops the event thread. Connections that are still open keep working, but without events. */
static void libvirt_free(MigDriver *driver) {
  LibvirtDriver *self = (LibvirtDriver *)driver;

  g_atomic_int_set(&self->stop, 1);
  g_main_context_wakeup(NULL);
  g_thread_join(self->thread);
  mig_opener_unref(self->opener);
  g_free(self);
}

static const MigDriverOps ops = {
    .name = "libvirt",
    .prefer = libvirt_prefer,
    .open = libvirt_open,
    .close = libvirt_close,
    .is_alive = libvirt_is_alive,
    .reachable = mig_libvirt_reachable,
    .host_facts = mig_libvirt_host_facts,
    .list_active = mig_libvirt_list_active,
    .domain_facts = mig_libvirt_domain_facts,
    .domain_status = mig_libvirt_domain_status,
    .survey_domain = mig_libvirt_survey_domain,
    .survey_target = mig_libvirt_survey_target,
    .definitions = mig_libvirt_definitions,
    .probe_dirty_rate = mig_libvirt_probe_dirty_rate,
    .write_profile = mig_libvirt_write_profile,
    .migrate = mig_libvirt_migrate,
    .job_stats = mig_libvirt_job_stats,
    .final_stats = mig_libvirt_final_stats,
    .abort_job = mig_libvirt_abort_job,
    .set_max_downtime = mig_libvirt_set_max_downtime,
    .set_bandwidth = mig_libvirt_set_bandwidth,
    .start_post_copy = mig_libvirt_start_post_copy,
    .suspend = mig_libvirt_suspend,
    .resume = mig_libvirt_resume,
    .undefine = mig_libvirt_undefine,
    .make_image = mig_libvirt_make_image,
    .remove_image = mig_libvirt_remove_image,
    .free = libvirt_free,
};

/* Once per process: libvirt warns about a second event loop. */
static gpointer initialize(gpointer data) {
  virSetErrorFunc(NULL, ignore_error);
  return GINT_TO_POINTER(virInitialize() == 0 && virEventRegisterDefaultImpl() == 0);
}

MigDriver *mig_driver_libvirt_new(GError **error) {
  static GOnce once = G_ONCE_INIT;
  g_autofree LibvirtDriver *self = NULL;

  if (!g_once(&once, initialize, NULL)) {
    g_set_error_literal(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                        "cannot initialize libvirt's client library");
    return NULL;
  }

  self = g_new0(LibvirtDriver, 1);
  self->driver.ops = &ops;
  self->opener = mig_opener_new();
  self->thread = g_thread_try_new("libvirt-events", event_thread, self, error);
  if (!self->thread) {
    mig_opener_unref(self->opener);
    return NULL;
  }
  return &g_steal_pointer(&self)->driver;
}

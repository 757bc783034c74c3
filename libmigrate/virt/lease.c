/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A MigConn as a set of libvirt connections, of which each call leases one for itself. */
#include "libmigrate/virt/libvirt.h"

/* Connections beyond these are opened when needed and closed after use. */
#define IDLE_MAX        4
#define OPEN_TIMEOUT_MS 10000

MigConn *mig_conn_new(MigOpener *opener, const char *uri, virConnectPtr vir, MigEventSink *sink) {
  MigConn *conn = g_new0(MigConn, 1);

  conn->refs = 1;
  conn->opener = mig_opener_ref(opener);
  conn->uri = g_strdup(uri);
  conn->vir = vir;
  conn->sink = sink;
  g_mutex_init(&conn->lock);
  conn->idle = g_ptr_array_new();
  g_ptr_array_add(conn->idle, vir);
  return conn;
}

MigConn *mig_conn_ref(MigConn *conn) {
  g_atomic_int_inc(&conn->refs);
  return conn;
}

void mig_conn_unref(MigConn *conn) {
  if (!conn || !g_atomic_int_dec_and_test(&conn->refs))
    return;

  /* Nobody holds a lease any more, so all are idle. libvirt frees the event registrations along with the connection. */
  for (guint i = 0; i < conn->idle->len; i++)
    mig_close_aside(conn->opener, g_ptr_array_index(conn->idle, i));
  g_ptr_array_unref(conn->idle);
  g_mutex_clear(&conn->lock);
  mig_event_sink_unref(conn->sink);
  mig_opener_unref(conn->opener);
  g_free(conn->uri);
  g_free(conn);
}

bool mig_lease_take(MigConn *conn, MigLeaseKind kind, MigLease *ret_lease, GError **error) {
  virConnectPtr vir = NULL;

  g_mutex_lock(&conn->lock);
  for (guint i = conn->idle->len; !vir && i-- > 0;)
    if (kind == MIG_LEASE_SHORT || g_ptr_array_index(conn->idle, i) != conn->vir)
      vir = g_ptr_array_remove_index(conn->idle, i);
  g_mutex_unlock(&conn->lock);

  /* The connection with the events stands for all: when it is lost, the owner is told and opens a new one. */
  if (!vir && virConnectIsAlive(conn->vir) != 1) {
    virResetLastError();
    g_set_error(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the connection to %s is broken",
                conn->uri);
    return false;
  }
  if (!vir)
    vir = mig_opener_connect(conn->opener, conn->uri, OPEN_TIMEOUT_MS, NULL, NULL, NULL, error);
  if (!vir)
    return false;

  *ret_lease = (MigLease){.conn = mig_conn_ref(conn), .vir = vir};
  return true;
}

void mig_lease_clear(MigLease *lease) {
  MigConn *conn = lease->conn;
  virConnectPtr vir = lease->vir;
  bool keep;

  if (!conn)
    return;
  keep = vir == conn->vir || virConnectIsAlive(vir) == 1;
  virResetLastError();

  g_mutex_lock(&conn->lock);
  keep = keep && (vir == conn->vir || conn->idle->len < IDLE_MAX);
  if (keep)
    g_ptr_array_add(conn->idle, vir);
  g_mutex_unlock(&conn->lock);
  if (!keep)
    mig_close_aside(conn->opener, vir);

  lease->conn = NULL;
  lease->vir = NULL;
  mig_conn_unref(conn);
}

virDomainPtr mig_lease_domain(const MigLease *lease, const char *uuid, GError **error) {
  virDomainPtr domain = virDomainLookupByUUIDString(lease->vir, uuid);

  if (!domain)
    mig_virt_error_take(error, "cannot look up domain %s", uuid);
  return domain;
}

virDomainPtr mig_lease_take_domain(MigConn *conn, const char *uuid, MigLease *ret_lease, GError **error) {
  return mig_lease_take(conn, MIG_LEASE_SHORT, ret_lease, error) ? mig_lease_domain(ret_lease, uuid, error)
                                                                 : NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection to this node's libvirtd: kept, shared, made again when it breaks. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Hypervisor Hypervisor;

/* One use of the connection, by one thread. */
typedef struct HypervisorConn HypervisorConn;

/* What is known of the libvirtd, for the main thread. */
typedef struct HypervisorState {
  bool reachable;
  unsigned
      serial; /* of the newest connection: 1, 2, … Events come by it, and none is lost while it is the same */
  MigHostFacts facts; /* of the newest connection; hostname NULL before the first */
  char *message;      /* why it is not reachable, or NULL */
} HypervisorState;

typedef struct HypervisorHooks {
  /* All on the main context. `event` is borrowed. */
  void (*state_changed)(Hypervisor *hypervisor, gpointer user_data);
  void (*event)(const MigVirtEvent *event, gpointer user_data);
} HypervisorHooks;

/* Starts to connect, on a thread of its own; NULL: none could be had. `driver` is borrowed. */
Hypervisor *hypervisor_new(MigDriver *driver, const char *uri, unsigned connect_timeout_ms,
                           GMainContext *context, const HypervisorHooks *hooks, gpointer user_data,
                           GError **error);

/* No hook is called any more. Waits a moment for the thread, but not for a libvirtd that hangs. False: a thread is left
 * behind, this one or one of those that still hold it; the connection goes with the last. NULL is fine. */
bool hypervisor_free(Hypervisor *hypervisor);

const HypervisorState *hypervisor_get_state(const Hypervisor *hypervisor);
const char *hypervisor_get_uri(const Hypervisor *hypervisor);

/* For threads: holds the hypervisor beyond hypervisor_free(). */
Hypervisor *hypervisor_ref(Hypervisor *hypervisor);
void hypervisor_unref(Hypervisor *hypervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hypervisor, hypervisor_unref)

/* For threads: the connection, waiting for one for at most timeout_ms. */
HypervisorConn *hypervisor_acquire(Hypervisor *hypervisor, unsigned timeout_ms, GError **error);
MigConn *hypervisor_conn_get(HypervisorConn *conn);
/* Monotonic ms: since when it is there. Another connection has another time. */
uint64_t hypervisor_conn_since_ms(const HypervisorConn *conn);
unsigned hypervisor_conn_serial(const HypervisorConn *conn);

/* NULL is fine. `error` is what the last call on it said, or NULL: a broken connection is replaced. */
void hypervisor_release(HypervisorConn *conn, const GError *error);

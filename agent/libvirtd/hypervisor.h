/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection to this node's libvirtd: kept open, shared, reopened when it breaks. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Hypervisor Hypervisor;

/* The connection, while somebody uses it. */
typedef struct HypervisorConn {
  Hypervisor *hypervisor;
  MigConn *conn;
  unsigned serial;   /* as in HypervisorState */
  uint64_t since_ms; /* monotonic; each connection has its own */
  gint refs;
} HypervisorConn;

/* What is known about libvirtd, for the main thread. */
typedef struct HypervisorState {
  bool reachable;
  unsigned serial;    /* of the newest connection: 1, 2, … While it stays the same, no event is lost */
  MigHostFacts facts; /* from the newest connection; hostname NULL before the first */
  char *message;      /* why it is unreachable, or NULL */
} HypervisorState;

typedef struct HypervisorHooks {
  /* All are called on the main context. `event` is borrowed. */
  void (*state_changed)(Hypervisor *hypervisor, gpointer user_data);
  void (*event)(const MigVirtEvent *event, gpointer user_data);
} HypervisorHooks;

/* Starts connecting, on a thread of its own; NULL: the thread could not be started. `driver` is borrowed. */
Hypervisor *hypervisor_new(MigDriver *driver, const char *uri, unsigned connect_timeout_ms,
                           GMainContext *context, const HypervisorHooks *hooks, gpointer user_data,
                           GError **error);

/* Calls no hook any more. Waits a moment for the thread, but not for a hung libvirtd. False: a thread is left behind, this one or
 * one that still holds a reference; the connection goes with the last. NULL is fine. */
bool hypervisor_free(Hypervisor *hypervisor);

const HypervisorState *hypervisor_get_state(const Hypervisor *hypervisor);
const char *hypervisor_get_uri(const Hypervisor *hypervisor);
MigDriver *hypervisor_get_driver(const Hypervisor *hypervisor);

/* For threads: keeps the hypervisor beyond hypervisor_free(). */
Hypervisor *hypervisor_ref(Hypervisor *hypervisor);
void hypervisor_unref(Hypervisor *hypervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hypervisor, hypervisor_unref)

/* For threads: the connection; waits for one for at most timeout_ms. */
HypervisorConn *hypervisor_acquire(Hypervisor *hypervisor, unsigned timeout_ms, GError **error);

/* NULL is fine. `error` is that of the last call on it, or NULL: a broken connection is replaced. */
void hypervisor_release(HypervisorConn *conn, const GError *error);

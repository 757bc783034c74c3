/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls this node's libvirtd off the main loop, within a time limit. */
#pragma once

#include "agent/base/workpool.h"
#include "agent/libvirtd/hypervisor.h"

typedef struct LocalCalls {
  Hypervisor *hypervisor;
  unsigned timeout_ms;
  WorkPool *pool;
} LocalCalls;

/* On a thread, with the node's connection; nobody else touches `task` meanwhile. On failure sets `error`. */
typedef bool (*LocalCallRunFunc)(MigDriver *driver, MigConn *conn, gpointer task, GError **error);

/* On the main context, exactly once. With `error`, `task` is NULL: a thread may still use it. Otherwise it is borrowed. */
typedef void (*LocalCallDoneFunc)(gpointer task, const GError *error, gpointer user_data);

typedef struct LocalCall {
  LocalCallRunFunc run;
  gpointer task; /* freed by free_task, on whichever thread is last */
  GDestroyNotify free_task;
  unsigned extra_ms; /* allowed in addition to the usual limit */
  unsigned serial;   /* only on this connection, whose events it relies on; 0: on any */
} LocalCall;

/* At most `threads` calls run at a time, and a limited number wait; each has timeout_ms, including its wait. */
LocalCalls *local_calls_new(Hypervisor *hypervisor, GMainContext *context, unsigned threads,
                            unsigned timeout_ms);

/* Fails all waiting calls. NULL is fine. */
void local_calls_free(LocalCalls *local_calls);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LocalCalls, local_calls_free)

/* Takes call->task. Calls `done` at once if too many calls are waiting. */
void local_calls_run(LocalCalls *local_calls, const LocalCall *call, LocalCallDoneFunc done,
                     gpointer user_data);

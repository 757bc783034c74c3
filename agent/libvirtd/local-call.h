/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks something of this node's libvirtd, off the main loop and within a bound. */
#pragma once

#include "agent/libvirtd/hypervisor.h"

typedef struct LocalCalls LocalCalls;

/* On a thread, with the node's connection; nobody else touches `task` meanwhile. False: `error` says why. */
typedef bool (*LocalCallRunFunc)(MigDriver *driver, MigConn *conn, gpointer task, GError **error);

/* On the main context, exactly once. With `error` `task` is NULL: a thread may still be at it. Else it is borrowed. */
typedef void (*LocalCallDoneFunc)(gpointer task, const GError *error, gpointer user_data);

typedef struct LocalCall {
  LocalCallRunFunc run;
  gpointer task; /* freed by free_task, on whichever thread is the last */
  GDestroyNotify free_task;
  unsigned extra_ms; /* what it may take on top of the usual */
  unsigned serial; /* it rests on what was heard by this connection, and is not done by another; 0: by any */
} LocalCall;

/* Of these, `threads` at a time, and a bounded number that waits for them; each has timeout_ms, its waiting included. */
LocalCalls *local_calls_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context,
                            unsigned threads, unsigned timeout_ms);

/* Ends what still waits with an error. NULL is fine. */
void local_calls_free(LocalCalls *local_calls);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LocalCalls, local_calls_free)

/* Takes call->task. `done` may be called at once, where too many wait. */
void local_calls_run(LocalCalls *local_calls, const LocalCall *call, LocalCallDoneFunc done,
                     gpointer user_data);

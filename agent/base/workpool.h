/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests that may hang, run on a few threads and answered on the main loop within a limit. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* A small pool of threads. */
typedef struct WorkPool WorkPool;

typedef enum WorkEnd {
  WORK_ANSWERED, /* run() has returned */
  WORK_LATE,     /* timed out; run() may still be running */
  WORK_CANCELLED /* by work_pool_free(); likewise */
} WorkEnd;

typedef struct WorkOps {
  /* On a thread of the pool. May still be running when done() is called, but does not start after it. */
  void (*run)(gpointer work);
  /* On the main context, exactly once. Unless ANSWERED, it may only touch what it does not share with run(). */
  void (*done)(gpointer work, WorkEnd end);
  /* After both, on either thread. */
  void (*free)(gpointer work);
} WorkOps;

/* At most `threads` requests run at a time; at most `waiting_max` are unanswered. */
WorkPool *work_pool_new(GMainContext *context, unsigned threads, unsigned waiting_max);

/* Cancels all unanswered requests. A thread that is stuck in a call is left behind. NULL is fine. */
void work_pool_free(WorkPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WorkPool, work_pool_free)

/* True: takes `work` and answers it within timeout_ms; `ops` is borrowed. False: too many requests are waiting, or no thread could be started;
 * `work` is not taken, and the error (MIG_VIRT_ERROR_TIMEOUT) says why. */
bool work_pool_start(WorkPool *pool, const WorkOps *ops, gpointer work, unsigned timeout_ms, GError **error);

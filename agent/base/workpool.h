/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions that may hang, asked on a few threads and answered on the main loop within a bound. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* A small pool of threads for one kind of question. */
typedef struct WorkPool WorkPool;

typedef enum WorkEnd {
  WORK_ANSWERED, /* run() is done */
  WORK_LATE,     /* the time is up, and run() may still be at it */
  WORK_CANCELLED /* work_pool_free(); likewise */
} WorkEnd;

typedef struct WorkOps {
  /* On a thread of the pool. It may still be at it after done(); it is not begun any more then. */
  void (*run)(gpointer work);
  /* On the main context, exactly once. But for ANSWERED it may only touch what it does not share with run(). */
  void (*done)(gpointer work, WorkEnd end);
  /* After both, on either thread. */
  void (*free)(gpointer work);
} WorkOps;

/* `ops` is borrowed. At most `threads` run at a time, and `waiting_max` are not answered yet. */
WorkPool *work_pool_new(const WorkOps *ops, GMainContext *context, unsigned threads, unsigned waiting_max);

/* Answers all that wait. A thread that sits in a call is left to itself. NULL is fine. */
void work_pool_free(WorkPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WorkPool, work_pool_free)

/* True: `work` is taken, and will be answered within timeout_ms. False: too many wait already, or no thread can be had, and it was
 * not taken; the error (MIG_VIRT_ERROR_TIMEOUT) says which. */
bool work_pool_start(WorkPool *pool, gpointer work, unsigned timeout_ms, GError **error);

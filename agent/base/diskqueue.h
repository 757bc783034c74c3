/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue of what is to be done on a disk, and the thread that works it off: an fsync can take seconds on a bad day. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Part of its owner's struct; what else that has is guarded by `mutex` where it says so. */
typedef struct DiskQueue {
  GThread *thread;
  GMutex mutex; /* never held over I/O or a callback */
  GCond cond;
  GQueue items; /* in the order in which they were pushed */
  bool busy;
  bool quit;
} DiskQueue;

/* False: no thread could be had, and there is nothing to be closed. */
bool disk_queue_start(DiskQueue *queue, const char *name, GThreadFunc func, gpointer data, GError **error);

/* With the mutex held. */
void disk_queue_push(DiskQueue *queue, gpointer item);

/* The thread's: what it took before is done. Waits until there is more. True: the mutex is held, for the thread to take what it
 * wants; busy from then on. False: nothing more will come. */
bool disk_queue_wait(DiskQueue *queue);

/* Waits until all that was pushed is done, for at most so long, and ends the thread. False: the disk hangs; the thread is left
 * where it is, and with it all that it may still use. */
bool disk_queue_close(DiskQueue *queue, gint64 wait_usec);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue of disk work and the thread that processes it: an fsync can take seconds on a bad day. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Embedded in its owner's struct. `mutex` also guards other fields of the owner where it says so. */
typedef struct DiskQueue {
  GThread *thread;
  GMutex mutex; /* never held over I/O or a callback */
  GCond cond;
  GQueue items; /* in the order in which they were pushed */
  bool busy;
  bool quit;
} DiskQueue;

/* False: the thread could not be started, and there is nothing to close. */
bool disk_queue_start(DiskQueue *queue, const char *name, GThreadFunc func, gpointer data, GError **error);

/* Call with the mutex held. */
void disk_queue_push(DiskQueue *queue, gpointer item);

/* For the thread: marks its previous work as done and waits for more. True: the mutex is held so that the thread can take what it
 * wants, and the queue counts as busy. False: nothing more will come. */
bool disk_queue_wait(DiskQueue *queue);

/* Waits, up to wait_usec, until everything queued is done, and ends the thread. False: the disk hangs. The thread is left behind,
 * and so is everything that it may still use. */
bool disk_queue_close(DiskQueue *queue, gint64 wait_usec);

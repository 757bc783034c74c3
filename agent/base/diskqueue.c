/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue of disk work and the thread that processes it. */
#include "agent/base/diskqueue.h"

bool disk_queue_start(DiskQueue *queue, const char *name, GThreadFunc func, gpointer data, GError **error) {
  g_mutex_init(&queue->mutex);
  g_cond_init(&queue->cond);
  g_queue_init(&queue->items);
  queue->thread = g_thread_try_new(name, func, data, error);
  if (queue->thread)
    return true;
  g_mutex_clear(&queue->mutex);
  g_cond_clear(&queue->cond);
  g_prefix_error(error, "cannot start the thread \"%s\": ", name);
  return false;
}

void disk_queue_push(DiskQueue *queue, gpointer item) {
  g_queue_push_tail(&queue->items, item);
  g_cond_broadcast(&queue->cond);
}

bool disk_queue_wait(DiskQueue *queue) {
  g_mutex_lock(&queue->mutex);
  queue->busy = false;
  g_cond_broadcast(&queue->cond);
  while (g_queue_is_empty(&queue->items) && !queue->quit)
    g_cond_wait(&queue->cond, &queue->mutex);
  queue->busy = !g_queue_is_empty(&queue->items);
  if (!queue->busy)
    g_mutex_unlock(&queue->mutex);
  return queue->busy;
}

static bool is_idle(const DiskQueue *queue) {
  return !queue->busy && g_queue_is_empty((GQueue *)&queue->items);
}

bool disk_queue_close(DiskQueue *queue, gint64 wait_usec) {
  gint64 until = g_get_monotonic_time() + wait_usec;
  bool idle;

  g_mutex_lock(&queue->mutex);
  queue->quit = true;
  g_cond_broadcast(&queue->cond);
  while (!is_idle(queue) && g_cond_wait_until(&queue->cond, &queue->mutex, until))
    ;
  idle = is_idle(queue);
  g_mutex_unlock(&queue->mutex);
  if (!idle)
    return false;
  g_thread_join(queue->thread);
  g_mutex_clear(&queue->mutex);
  g_cond_clear(&queue->cond);
  return true;
}

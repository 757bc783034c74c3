/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histories on disk.
 *
 * Theory of Operation. A history is worth a chart and no more, so nothing waits for it: it has its own directory and thread,
 * and the records' writes and fsyncs never queue behind it. During a migration its file is renamed into place without an
 * fsync: if the agent is killed, nothing written is lost; if the host crashes, the file may be. Only the last write of a job
 * is synced. An unreadable file is set aside, and the job is not affected.
 *
 * The queue holds at most one waiting write per job, and at most HISTORY_READS_MAX reads, in the order of the requests: a read
 * sees every write queued before it.
 *
 * The queue's mutex also guards writes and n_reads. */
#include "agent/job/historystore.h"

#include "agent/base/diskqueue.h"
#include "agent/base/files.h"
#include "agent/base/post.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX          ".json"
#define BAD             ".bad"
#define FILE_BYTES_MAX  (256 * 1024)
#define CLOSE_WAIT_USEC (2 * G_USEC_PER_SEC)

typedef enum TaskKind { TASK_WRITE, TASK_REMOVE, TASK_READ } TaskKind;

typedef struct HistoryTask {
  HistoryStore *store;
  TaskKind kind;
  char *id;
  char *text; /* for a write */
  bool last;
  HistoryReadFunc func; /* for a read */
  gpointer user_data;
  GDestroyNotify free_user_data;
  History *history; /* result of a read */
  GError *error;
} HistoryTask;

struct HistoryStore {
  GMainContext *context;
  uint64_t gap_ms;
  HistoryStoreHooks hooks;
  int directory_fd;
  DiskQueue queue;    /* of HistoryTask */
  GHashTable *writes; /* id → waiting TASK_WRITE; this and n_reads under the queue's mutex */
  unsigned n_reads;
};

static void task_free(HistoryTask *task) {
  g_free(task->id);
  g_free(task->text);
  history_free(task->history);
  if (task->free_user_data)
    task->free_user_data(task->user_data);
  g_clear_error(&task->error);
  g_free(task);
}

/* --- files --- */

static bool write_file(HistoryStore *store, const char *id, const char *text, bool sync, GError **error) {
  g_autofree char *name = g_strconcat(id, SUFFIX, NULL);

  if (!files_replace(store->directory_fd, name, text, sync, error))
    return false;
  if (sync && fsync(store->directory_fd) < 0) {
    files_set_error(error, "sync the directory of", name, errno);
    return false;
  }
  return true;
}

History *history_store_load(HistoryStore *store, const char *id, GError **error) {
  g_autofree char *name = g_strconcat(id, SUFFIX, NULL);
  g_autofree char *bad = g_strconcat(name, BAD, NULL);
  g_autofree char *text = NULL;
  g_autoptr(GError) local = NULL;
  History *history = NULL;
  size_t length = 0;

  if (!store)
    return NULL;
  text = files_read(store->directory_fd, name, FILE_BYTES_MAX, &length, &local);
  if (text) {
    history = history_from_text(text, length, id, store->gap_ms, &local);
    g_prefix_error(&local, "%s: ", name);
  }
  if (g_error_matches(local, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
    return NULL;
  /* A file that cannot be read now may be readable tomorrow: set aside only what is not a history. */
  if (g_error_matches(local, G_IO_ERROR, G_IO_ERROR_INVALID_DATA))
    renameat(store->directory_fd, name, store->directory_fd, bad);
  if (local)
    g_propagate_error(error, g_steal_pointer(&local));
  return history;
}

void history_store_sweep(HistoryStore *store, bool (*wanted)(const char *id, gpointer user_data),
                         gpointer user_data) {
  int fd = store ? openat(store->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;

  if (!directory) {
    if (fd >= 0)
      close(fd);
    return;
  }
  while ((entry = readdir(directory))) {
    const char *dot = strchr(entry->d_name, '.');
    g_autofree char *id = dot ? g_strndup(entry->d_name, (gsize)(dot - entry->d_name)) : NULL;

    if (!id || !*id)
      continue;
    if (!wanted(id, user_data) || g_str_has_suffix(entry->d_name, FILES_TEMPORARY_SUFFIX))
      unlinkat(store->directory_fd, entry->d_name, 0);
  }
  closedir(directory);
}

static void remove_files(HistoryStore *store, const char *id) {
  static const char *const suffixes[] = {SUFFIX, SUFFIX BAD};

  /* The next start sweeps what remains. */
  for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
    g_autofree char *name = g_strconcat(id, suffixes[i], NULL);

    unlinkat(store->directory_fd, name, 0);
  }
}

/* --- the thread --- */

static gboolean deliver(gpointer data) {
  HistoryTask *task = data;

  if (task->kind == TASK_READ)
    task->func(task->id, g_steal_pointer(&task->history), task->error, task->user_data);
  else
    task->store->hooks.written(task->id, task->error, task->store->hooks.user_data);
  return G_SOURCE_REMOVE;
}

static void run_task(HistoryStore *store, HistoryTask *task) {
  switch (task->kind) {
  case TASK_WRITE:
    write_file(store, task->id, task->text, task->last, &task->error);
    break;
  case TASK_REMOVE:
    remove_files(store, task->id);
    task_free(task);
    return;
  case TASK_READ:
    task->history = history_store_load(store, task->id, &task->error);
    break;
  }
  post_to(store->context, deliver, task, (GDestroyNotify)task_free);
}

static gpointer history_thread(gpointer data) {
  HistoryStore *store = data;

  while (disk_queue_wait(&store->queue)) {
    HistoryTask *task = g_queue_pop_head(&store->queue.items);

    if (task->kind == TASK_WRITE)
      g_hash_table_remove(store->writes, task->id);
    store->n_reads -= task->kind == TASK_READ;
    g_mutex_unlock(&store->queue.mutex);
    run_task(store, task);
  }
  return NULL;
}

static HistoryTask *task_new(HistoryStore *store, TaskKind kind, const char *id) {
  HistoryTask *task = g_new0(HistoryTask, 1);

  task->store = store;
  task->kind = kind;
  task->id = g_strdup(id);
  return task;
}

void history_store_write(HistoryStore *store, const char *id, char *text, bool last) {
  HistoryTask *task;

  if (!store) {
    g_free(text);
    return;
  }
  g_mutex_lock(&store->queue.mutex);
  task = g_hash_table_lookup(store->writes, id);
  if (task) {
    g_free(task->text);
    task->text = text;
    task->last = task->last || last;
  } else {
    task = task_new(store, TASK_WRITE, id);
    task->text = text;
    task->last = last;
    g_hash_table_insert(store->writes, task->id, task);
    disk_queue_push(&store->queue, task);
  }
  g_mutex_unlock(&store->queue.mutex);
}

void history_store_remove(HistoryStore *store, const char *id) {
  HistoryTask *waiting;

  if (!store)
    return;
  g_mutex_lock(&store->queue.mutex);
  /* A waiting write would be in vain; one queued later follows the removal. */
  waiting = g_hash_table_lookup(store->writes, id);
  if (waiting) {
    g_hash_table_remove(store->writes, id);
    g_queue_remove(&store->queue.items, waiting);
    task_free(waiting);
  }
  disk_queue_push(&store->queue, task_new(store, TASK_REMOVE, id));
  g_mutex_unlock(&store->queue.mutex);
}

bool history_store_read(HistoryStore *store, const char *id, HistoryReadFunc func, gpointer user_data,
                        GDestroyNotify free_user_data) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&store->queue.mutex);
  HistoryTask *task;

  if (store->n_reads >= HISTORY_READS_MAX)
    return false;
  store->n_reads++;
  task = task_new(store, TASK_READ, id);
  task->func = func;
  task->user_data = user_data;
  task->free_user_data = free_user_data;
  disk_queue_push(&store->queue, task);
  return true;
}

/* --- open and close --- */

static void store_free(HistoryStore *store) {
  close(store->directory_fd);
  g_hash_table_unref(store->writes);
  g_main_context_unref(store->context);
  g_free(store);
}

HistoryStore *history_store_open(const char *directory, GMainContext *context, uint64_t gap_ms,
                                 const HistoryStoreHooks *hooks, GError **error) {
  g_autofree char *path = g_build_filename(directory, "history", NULL);
  HistoryStore *store;
  int directory_fd;

  if (g_mkdir_with_parents(path, 0700) < 0 ||
      (directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
    files_set_error(error, "open", path, errno);
    return NULL;
  }
  store = g_new0(HistoryStore, 1);
  store->context = g_main_context_ref(context);
  store->gap_ms = gap_ms;
  store->hooks = *hooks;
  store->directory_fd = directory_fd;
  store->writes = g_hash_table_new(g_str_hash, g_str_equal);
  if (disk_queue_start(&store->queue, "history", history_thread, store, error))
    return store;
  store_free(store);
  return NULL;
}

void history_store_close(HistoryStore *store) {
  if (store && disk_queue_close(&store->queue, CLOSE_WAIT_USEC))
    store_free(store);
}

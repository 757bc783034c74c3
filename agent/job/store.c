/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Job records on stable storage.
 *
 * Theory of Operation. Each job is one file, jobs/ID.json. A record is written to a temporary file, fsynced and renamed over the
 * old one, and the directory is fsynced: at every moment the name refers to a complete record, old or new. A thread does this,
 * since an fsync can take seconds on a bad day and the main loop serves clients. The thread takes everything queued at
 * once (a batch), so that any number of jobs share one fsync of the directory; each outcome is posted to the main
 * context in the order of the queue.
 *
 * The queue holds at most one waiting write per id: a newer record replaces a waiting older one and takes over its callbacks,
 * since the newer record includes what they wait for. So the number of jobs bounds the queue.
 *
 * The queue's mutex also guards by_id. */
#include "agent/job/store.h"

#include "agent/base/diskqueue.h"
#include "agent/base/files.h"
#include "agent/base/post.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define RECORD_SUFFIX   ".json"
#define CLOSE_WAIT_USEC (10 * G_USEC_PER_SEC)

typedef struct StoreCallback {
  StoreDoneFunc func;
  gpointer user_data;
} StoreCallback;

typedef struct StoreItem {
  Store *store;
  char *id;
  json_t *record;    /* NULL: remove */
  GArray *callbacks; /* StoreCallback */
  GError *error;
} StoreItem;

struct Store {
  GMainContext *context;
  char *directory;  /* jobs/, for messages */
  int directory_fd; /* of jobs/ */
  int lock_fd;
  DiskQueue queue;   /* of StoreItem */
  GHashTable *by_id; /* id → waiting StoreItem; under the queue's mutex */
};

static void store_item_free(StoreItem *item) {
  g_free(item->id);
  if (item->record)
    json_decref(item->record);
  g_array_unref(item->callbacks);
  g_clear_error(&item->error);
  g_free(item);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreItem, store_item_free)

/* The directory's own fsync follows at the end of the batch. */
static bool write_record(Store *store, const char *id, json_t *record, GError **error) {
  g_autofree char *name = g_strconcat(id, RECORD_SUFFIX, NULL);
  char *text = json_dumps(record, JSON_COMPACT);
  bool ok = text && strlen(text) <= STORE_RECORD_BYTES_MAX;

  if (!ok) {
    if (text)
      g_set_error(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE,
                  "the record of job %s would take %zu KiB; the limit is %d KiB", id, strlen(text) / 1024,
                  STORE_RECORD_BYTES_MAX / 1024);
    else
      g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "cannot encode the record of job %s", id);
    free(text);
    return false;
  }
  ok = files_replace(store->directory_fd, name, text, true, error);
  free(text);
  return ok;
}

static bool remove_record(Store *store, const char *id, GError **error) {
  g_autofree char *name = g_strconcat(id, RECORD_SUFFIX, NULL);

  if (unlinkat(store->directory_fd, name, 0) < 0 && errno != ENOENT) {
    files_set_error(error, "remove", name, errno);
    return false;
  }
  return true;
}

static gboolean deliver(gpointer data) {
  StoreItem *item = data;

  for (guint i = 0; i < item->callbacks->len; i++) {
    StoreCallback *callback = &g_array_index(item->callbacks, StoreCallback, i);

    callback->func(item->id, item->error, callback->user_data);
  }
  return G_SOURCE_REMOVE;
}

static void answer(StoreItem *item) {
  if (item->callbacks->len == 0)
    store_item_free(item);
  else
    post_to(item->store->context, deliver, item, (GDestroyNotify)store_item_free);
}

static void run_batch(Store *store, GQueue *batch) {
  StoreItem *item;
  int code = 0;

  for (GList *link = batch->head; link; link = link->next) {
    item = link->data;
    if (item->record)
      write_record(store, item->id, item->record, &item->error);
    else
      remove_record(store, item->id, &item->error);
  }
  if (fsync(store->directory_fd) < 0)
    code = errno;
  while ((item = g_queue_pop_head(batch))) {
    if (code && !item->error)
      files_set_error(&item->error, "sync the directory of", item->id, code);
    answer(item);
  }
}

static gpointer store_thread(gpointer data) {
  Store *store = data;

  while (disk_queue_wait(&store->queue)) {
    GQueue batch = store->queue.items;

    g_queue_init(&store->queue.items);
    g_hash_table_remove_all(store->by_id);
    g_mutex_unlock(&store->queue.mutex);
    run_batch(store, &batch);
  }
  return NULL;
}

static void enqueue(Store *store, const char *id, json_t *record, StoreDoneFunc done, gpointer user_data) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&store->queue.mutex);
  StoreItem *item = g_hash_table_lookup(store->by_id, id);

  if (!item) {
    item = g_new0(StoreItem, 1);
    item->store = store;
    item->id = g_strdup(id);
    item->callbacks = g_array_new(FALSE, FALSE, sizeof(StoreCallback));
    g_hash_table_insert(store->by_id, item->id, item);
    disk_queue_push(&store->queue, item);
  }
  if (item->record)
    json_decref(item->record);
  item->record = record;
  if (done) {
    StoreCallback callback = {done, user_data};

    g_array_append_val(item->callbacks, callback);
  }
}

void store_write(Store *store, const char *id, json_t *record, StoreDoneFunc done, gpointer user_data) {
  enqueue(store, id, record, done, user_data);
}

void store_remove(Store *store, const char *id) {
  enqueue(store, id, NULL, NULL, NULL);
}

static void store_free(Store *store) {
  close(store->directory_fd);
  close(store->lock_fd);
  g_hash_table_unref(store->by_id);
  g_main_context_unref(store->context);
  g_free(store->directory);
  g_free(store);
}

Store *store_open(const char *directory, GMainContext *context, GError **error) {
  g_autofree char *jobs = g_build_filename(directory, "jobs", NULL);
  g_autofree char *lock = g_build_filename(directory, "lock", NULL);
  int directory_fd, lock_fd;
  Store *store;

  if (g_mkdir_with_parents(jobs, 0700) < 0) {
    files_set_error(error, "create the state directory", jobs, errno);
    return NULL;
  }
  /* Opened for reading, so that the file system can be remounted read-only. */
  lock_fd = open(lock, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) < 0) {
    int code = errno;

    if (lock_fd >= 0)
      close(lock_fd);
    if (code == EWOULDBLOCK)
      g_set_error(
          error, G_IO_ERROR, G_IO_ERROR_BUSY,
          "another handoffd uses the state directory %s: stop it, or give this one another with --state-dir",
          directory);
    else
      files_set_error(error, "lock", lock, code);
    return NULL;
  }
  directory_fd = open(jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) {
    files_set_error(error, "open", jobs, errno);
    close(lock_fd);
    return NULL;
  }

  store = g_new0(Store, 1);
  store->context = g_main_context_ref(context);
  store->directory = g_steal_pointer(&jobs);
  store->directory_fd = directory_fd;
  store->lock_fd = lock_fd;
  store->by_id = g_hash_table_new(g_str_hash, g_str_equal);
  if (disk_queue_start(&store->queue, "store", store_thread, store, error))
    return store;
  store_free(store);
  return NULL;
}

void store_close(Store *store) {
  if (store && disk_queue_close(&store->queue, CLOSE_WAIT_USEC))
    store_free(store);
}

static bool exists(const Store *store, const char *name) {
  return faccessat(store->directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Its file name in the directory, or NULL. */
static char *find_name(const Store *store, const char *id) {
  static const char *const suffixes[] = {RECORD_SUFFIX, RECORD_SUFFIX STORE_BAD_SUFFIX};

  for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
    char *name = g_strconcat(id, suffixes[i], NULL);

    if (exists(store, name))
      return name;
    g_free(name);
  }
  return NULL;
}

char *store_find_file(const Store *store, const char *id) {
  g_autofree char *name = find_name(store, id);

  return name ? g_build_filename(store->directory, name, NULL) : NULL;
}

char *store_read_text(const Store *store, const char *id, size_t *ret_size) {
  g_autofree char *name = find_name(store, id);

  return name ? files_read(store->directory_fd, name, STORE_READ_BYTES_MAX, ret_size, NULL) : NULL;
}

static json_t *read_record(int directory_fd, const char *name, GError **error) {
  g_autofree char *text = NULL;
  json_error_t json_error;
  json_t *record;
  size_t size;

  text = files_read(directory_fd, name, STORE_READ_BYTES_MAX, &size, error);
  if (!text)
    return NULL;
  record = json_loadb(text, size, JSON_REJECT_DUPLICATES, &json_error);
  if (!record)
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s is not a valid record: %s at byte %d", name,
                json_error.text, json_error.position);
  return record;
}

/* A file that cannot be read now may be readable tomorrow: set aside only what was read and is not a record. */
static void load_record(Store *store, const char *name, StoreLoadFunc func, gpointer user_data) {
  g_autofree char *id = g_strndup(name, strlen(name) - strlen(RECORD_SUFFIX));
  g_autoptr(GError) error = NULL;
  json_t *record = read_record(store->directory_fd, name, &error);

  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA)) {
    g_autofree char *bad = g_strconcat(name, STORE_BAD_SUFFIX, NULL);

    renameat(store->directory_fd, name, store->directory_fd, bad);
  }
  func(id, record, error, user_data);
  if (record)
    json_decref(record);
}

/* Set aside at an earlier start. If a record exists again, that one counts. */
static void load_bad(Store *store, const char *name, StoreLoadFunc func, gpointer user_data) {
  g_autofree char *id = g_strndup(name, strlen(name) - strlen(RECORD_SUFFIX STORE_BAD_SUFFIX));
  g_autofree char *good = g_strconcat(id, RECORD_SUFFIX, NULL);
  g_autoptr(GError) error = NULL;

  if (exists(store, good))
    return;
  g_set_error(&error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s was set aside earlier and is still there",
              name);
  func(id, NULL, error, user_data);
}

bool store_load(Store *store, StoreLoadFunc func, gpointer user_data, GError **error) {
  int fd = openat(store->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;

  if (!directory) {
    files_set_error(error, "read", "the state directory", errno);
    if (fd >= 0)
      close(fd);
    return false;
  }
  /* Collect all names first, so as not to meet again what is set aside meanwhile. */
  errno = 0;
  while ((entry = readdir(directory)))
    g_ptr_array_add(names, g_strdup(entry->d_name));
  if (errno != 0) {
    files_set_error(error, "read", "the state directory", errno);
    closedir(directory);
    return false;
  }
  closedir(directory);
  for (guint i = 0; i < names->len; i++) {
    const char *name = names->pdata[i];

    /* An interrupted write: its job has the previous record, or was never acknowledged. */
    if (g_str_has_suffix(name, FILES_TEMPORARY_SUFFIX))
      unlinkat(store->directory_fd, name, 0);
    else if (g_str_has_suffix(name, RECORD_SUFFIX))
      load_record(store, name, func, user_data);
    else if (g_str_has_suffix(name, RECORD_SUFFIX STORE_BAD_SUFFIX))
      load_bad(store, name, func, user_data);
  }
  return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Job records on stable storage: one JSON file a job, written by a thread of the store's own. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* What is written can be read: a record that is larger is not written (G_IO_ERROR_NO_SPACE), and by far larger ones are read, so
 * that no agent that writes a little more, or less, than another makes a record unreadable. The largest job that is accepted needs
 * less: job_check_limits(). */
#define STORE_RECORD_BYTES_MAX (16 * 1024 * 1024)
#define STORE_READ_BYTES_MAX   (4 * STORE_RECORD_BYTES_MAX)

typedef struct Store Store;

/* Called on the store's context once the record is on stable storage, or, with `error`, is not: the record that
 * was there before is then still there, whole. */
typedef void (*StoreDoneFunc)(const char *id, const GError *error, gpointer user_data);

/* What is no record is set aside under its name with this behind, and told at each start until somebody moves it away. */
#define STORE_BAD_SUFFIX ".bad"

/* Called for each record at load, or, with `error`, for one that cannot be read, or is no record: that one has
 * been set aside. `record` is borrowed. */
typedef void (*StoreLoadFunc)(const char *id, json_t *record, const GError *error, gpointer user_data);

/* Opens (and makes, mode 0700) the directory, and locks it: two agents on one state directory is an error.
 * Results are delivered on `context`. */
Store *store_open(const char *directory, GMainContext *context, GError **error);

/* Waits until all that was queued is written, for at most some seconds. NULL is fine. */
void store_close(Store *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Store, store_close)

/* Reads all records. To be called once, before the first write. */
bool store_load(Store *store, StoreLoadFunc func, gpointer user_data, GError **error);

/* The path of the record's file, or of what was set aside of it; NULL: there is neither. */
char *store_find_file(const Store *store, const char *id);

/* What is in that file, as it is; NULL: it cannot be read. */
char *store_read_text(const Store *store, const char *id, size_t *ret_size);

/* Queues a record. Takes `record`. Records of one id are written in order; one that is overtaken by a newer
 * before its turn came is not written, and its `done` is called with the newer's outcome. `done` may be NULL. */
void store_write(Store *store, const char *id, json_t *record, StoreDoneFunc done, gpointer user_data);

/* Queues a removal. A removal that fails is tried again at the next load only. */
void store_remove(Store *store, const char *id);

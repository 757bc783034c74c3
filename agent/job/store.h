/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Job records on stable storage: one JSON file per job, written by the store's own thread. */
#pragma once

#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>

/* Whatever is written can be read: larger records are not written (G_IO_ERROR_NO_SPACE), but far larger ones are read, so that
 * an agent that writes slightly more or less than another makes no record unreadable. The largest job that is accepted needs
 * less: job_check_limits(). */
#define STORE_RECORD_BYTES_MAX (16 * 1024 * 1024)
#define STORE_READ_BYTES_MAX   (4 * STORE_RECORD_BYTES_MAX)

typedef struct Store Store;

/* Called on the store's context when the record is on stable storage, or, with `error`, when it is not: then the previous
 * record is still there, complete. */
typedef void (*StoreDoneFunc)(const char *id, const GError *error, gpointer user_data);

/* Appended to the name of a file that is not a record. It is reported at each start until somebody moves it away. */
#define STORE_BAD_SUFFIX ".bad"

/* Called for each record when loading; with `error` if it cannot be read, or is not a record and has been set aside. `record` is
 * borrowed. */
typedef void (*StoreLoadFunc)(const char *id, json_t *record, const GError *error, gpointer user_data);

/* Opens the directory, creating it with mode 0700, and locks it: a second agent on the same state directory fails. Delivers
 * results on `context`. */
Store *store_open(const char *directory, GMainContext *context, GError **error);

/* Waits for all queued writes, a few seconds at most. NULL is fine. */
void store_close(Store *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Store, store_close)

/* Reads all records. Call once, before the first write. */
bool store_load(Store *store, StoreLoadFunc func, gpointer user_data, GError **error);

/* The path of the record's file, or of the file set aside; NULL: neither exists. */
char *store_find_file(const Store *store, const char *id);

/* The raw content of that file; NULL: it cannot be read. */
char *store_read_text(const Store *store, const char *id, size_t *ret_size);

/* Queues a record, and takes it. Records with the same id are written in order; if a newer one replaces it before its turn, it
 * is not written, and its `done` gets the newer one's outcome. `done` may be NULL. */
void store_write(Store *store, const char *id, json_t *record, StoreDoneFunc done, gpointer user_data);

/* Queues a removal. A failed removal is retried only at the next load. */
void store_remove(Store *store, const char *id);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histories on the disk: one file a job, written and read by a thread of their own, beside the records. */
#pragma once

#include "agent/job/history.h"

#include <glib.h>
#include <stdbool.h>

/* How many reads may wait. */
#define HISTORY_READS_MAX 1024

typedef struct HistoryStore HistoryStore;

/* Called on the store's context: NULL without an error means that there is none. `history` is taken. A file that is no
 * history (G_IO_ERROR_INVALID_DATA) has been set aside under its name with ".bad" behind. */
typedef void (*HistoryReadFunc)(const char *id, History *history, const GError *error, gpointer user_data);

/* Called on the store's context after each write: `error` NULL means that it worked. */
typedef void (*HistoryWrittenFunc)(const char *id, const GError *error, gpointer user_data);

typedef struct HistoryStoreHooks {
  HistoryWrittenFunc written;
  gpointer user_data;
} HistoryStoreHooks;

/* Opens (and makes, mode 0700) the directory, which no other process is in: the record store's lock sees to that. Histories
 * are read with this gap_ms. */
HistoryStore *history_store_open(const char *directory, GMainContext *context, uint64_t gap_ms,
                                 const HistoryStoreHooks *hooks, GError **error);

/* Waits until all that was queued is written, for at most some seconds. What has not been delivered by then is dropped.
 * NULL is fine. */
void history_store_close(HistoryStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HistoryStore, history_store_close)

/* Removes the files of all jobs but those that `wanted` knows. To be called once, before the first write. */
void history_store_sweep(HistoryStore *store, bool (*wanted)(const char *id, gpointer user_data),
                         gpointer user_data);

/* Reads one at once, for the start of the agent. NULL without an error: there is none. */
History *history_store_load(HistoryStore *store, const char *id, GError **error);

/* Queues a history's text, and takes it. One that a newer of the same job overtakes is not written. `last` (nothing will
 * follow): it is on stable storage before `written` is called. */
void history_store_write(HistoryStore *store, const char *id, char *text, bool last);

void history_store_remove(HistoryStore *store, const char *id);

/* Queues a reading, behind what was queued before. user_data is freed after `func` was called, or without that when it is
 * dropped. False: too many wait, and nothing of this was done. */
bool history_store_read(HistoryStore *store, const char *id, HistoryReadFunc func, gpointer user_data,
                        GDestroyNotify free_user_data);

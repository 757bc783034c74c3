/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histories on disk: one file per job, next to the records, written and read by a thread of its own. */
#pragma once

#include "agent/job/history.h"

#include <glib.h>
#include <stdbool.h>

/* How many reads may wait. */
#define HISTORY_READS_MAX 1024

typedef struct HistoryStore HistoryStore;

/* Called on the store's context; NULL without an error: there is none. Takes `history`. A file that is not a history
 * (G_IO_ERROR_INVALID_DATA) has been set aside, with ".bad" appended to its name. */
typedef void (*HistoryReadFunc)(const char *id, History *history, const GError *error, gpointer user_data);

/* Called on the store's context after each write; `error` NULL: it succeeded. */
typedef void (*HistoryWrittenFunc)(const char *id, const GError *error, gpointer user_data);

typedef struct HistoryStoreHooks {
  HistoryWrittenFunc written;
  gpointer user_data;
} HistoryStoreHooks;

/* Opens the directory, creating it with mode 0700. The record store's lock keeps other processes out. Histories are read with
 * this gap_ms. */
HistoryStore *history_store_open(const char *directory, GMainContext *context, uint64_t gap_ms,
                                 const HistoryStoreHooks *hooks, GError **error);

/* Waits for all queued writes, a few seconds at most. Undelivered results are dropped. NULL is fine. */
void history_store_close(HistoryStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HistoryStore, history_store_close)

/* Removes the files of all jobs that `wanted` does not know. Call once, before the first write. */
void history_store_sweep(HistoryStore *store, bool (*wanted)(const char *id, gpointer user_data),
                         gpointer user_data);

/* Reads one synchronously, when the agent starts. NULL without an error: there is none. */
History *history_store_load(HistoryStore *store, const char *id, GError **error);

/* Queues a history's text, and takes it. A newer text of the same job replaces it. `last`: nothing follows, so sync it before
 * calling `written`. */
void history_store_write(HistoryStore *store, const char *id, char *text, bool last);

void history_store_remove(HistoryStore *store, const char *id);

/* Queues a read, behind everything queued before. user_data is freed after `func`, or without calling it if the read is dropped.
 * False: too many reads are waiting; nothing was done. */
bool history_store_read(HistoryStore *store, const char *id, HistoryReadFunc func, gpointer user_data,
                        GDestroyNotify free_user_data);

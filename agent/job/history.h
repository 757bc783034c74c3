/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a migration's readings were, for a report: a bounded series of points, however long it takes. */
#pragma once

#include "libmigrate/core/types.h"

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define HISTORY_POINTS_MAX 256

/* One reading, or several that were merged. What is said of its span is (elapsed_ms - span_ms, elapsed_ms]. */
typedef struct HistoryPoint {
  uint64_t elapsed_ms; /* since the start of the migration, of the last reading */
  uint64_t span_ms;    /* between its beginning and the end of the point before nobody looked */
  uint64_t memory_processed_bytes;
  uint64_t memory_remaining_bytes;     /* at its end */
  uint64_t memory_remaining_max_bytes; /* the most in it */
  uint64_t disk_remaining_bytes;       /* at its end */
  uint64_t bandwidth_bytes_per_s;      /* mean */
  uint64_t dirty_rate_bytes_per_s;     /* mean */
  uint64_t expected_downtime_ms;       /* at its end */
  uint32_t iteration;                  /* at its end */
  uint8_t throttle_pct;                /* the highest in it */
  uint8_t stage;                       /* MigStage, at its end */
} HistoryPoint;

typedef struct History History;

/* After a silence of more than gap_ms a new point does not reach back to the one before. */
History *history_new(uint64_t gap_ms);
void history_free(History *history);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(History, history_free)

/* Takes a reading, `elapsed_ms` after the start of the migration. One that is not later than the last is ignored. */
void history_add(History *history, const MigSample *sample, uint64_t elapsed_ms, MigStage stage);

/* Oldest first, at most HISTORY_POINTS_MAX. Borrowed until the next call. */
const HistoryPoint *history_points(const History *history, size_t *ret_n);

/* The interface's []HistoryPoint. NULL: no points. */
json_t *history_to_json(const History *history);

/* As its file has it: a line of JSON. */
char *history_to_text(const History *history, const char *job_id);

/* Reads that. What is not of that job, or not in order, is no history: G_IO_ERROR_INVALID_DATA; a newer format is
 * G_IO_ERROR_NOT_SUPPORTED. */
History *history_from_text(const char *text, size_t length, const char *job_id, uint64_t gap_ms,
                           GError **error);

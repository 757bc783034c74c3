/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The readings of a migration, for a report: a bounded series of points, however long it takes. */
#pragma once

#include "libmigrate/core/types.h"
#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>

#define HISTORY_POINTS_MAX 256

/* One reading, or several merged. It describes the span (elapsed_ms - span_ms, elapsed_ms]. */
typedef struct HistoryPoint {
  uint64_t elapsed_ms; /* of the last reading, since the start of the migration */
  uint64_t span_ms;    /* any time between two spans is a gap in the readings */
  uint64_t memory_processed_bytes;
  uint64_t memory_remaining_bytes;     /* at its end */
  uint64_t memory_remaining_max_bytes; /* maximum within it */
  uint64_t disk_remaining_bytes;       /* at its end */
  uint64_t bandwidth_bytes_per_s;      /* mean */
  uint64_t dirty_rate_bytes_per_s;     /* mean */
  uint64_t expected_downtime_ms;       /* at its end */
  uint32_t iteration;                  /* at its end */
  uint8_t throttle_pct;                /* maximum within it */
  uint8_t stage;                       /* MigStage, at its end */
} HistoryPoint;

typedef struct History History;

/* After a gap of more than gap_ms, a new point does not reach back to the previous one. */
History *history_new(uint64_t gap_ms);
void history_free(History *history);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(History, history_free)

/* Adds a reading, taken `elapsed_ms` after the start of the migration. Ignored if not later than the last one. */
void history_add(History *history, const MigSample *sample, uint64_t elapsed_ms, MigStage stage);

/* Oldest first, at most HISTORY_POINTS_MAX. Borrowed until the next call. */
const HistoryPoint *history_points(const History *history, size_t *ret_n);

/* The interface's []HistoryPoint. NULL: no points. */
json_t *history_to_json(const History *history);

/* The content of its file: one line of JSON. */
char *history_to_text(const History *history, const char *job_id);

/* Parses that. G_IO_ERROR_INVALID_DATA: another job's, out of order, or malformed; G_IO_ERROR_NOT_SUPPORTED: a newer format. */
History *history_from_text(const char *text, size_t length, const char *job_id, uint64_t gap_ms,
                           GError **error);

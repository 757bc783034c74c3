/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bounded series of readings.
 *
 * Theory of Operation. Each reading becomes a point. At HISTORY_POINTS_MAX points, neighbours are merged until about half are
 * left; from then on a reading within `step_ms` of the newest point is merged into it. So the points stay about evenly spaced
 * however long a migration takes, and their distance doubles with each halving.
 *
 * A merged point describes its whole span: the mean of a rate, weighted by time (so that bandwidth times span remains the bytes
 * transferred), the highest throttle, the memory remaining at its end, and the maximum that remained within it. Memory
 * remaining is a sawtooth with one tooth per pass. So points of different passes or stages are merged only if halving finds
 * no other way; memory_remaining_max_bytes then shows the tooth. A point never spans a gap in the readings, unless there are
 * more gaps than points. */
#include "agent/job/history.h"

#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

/* Raised when an agent that does not know of a change could misread a file. */
#define FORMAT 1

/* Halving stops once this few are left. */
#define POINTS_HALVED (HISTORY_POINTS_MAX * 3 / 4)

struct History {
  GArray *points;   /* HistoryPoint */
  uint64_t step_ms; /* the longest span of a merged point; 0: nothing is merged */
  uint64_t gap_ms;
};

History *history_new(uint64_t gap_ms) {
  History *history = g_new0(History, 1);

  history->points = g_array_new(FALSE, FALSE, sizeof(HistoryPoint));
  history->gap_ms = gap_ms;
  return history;
}

void history_free(History *history) {
  if (!history)
    return;
  g_array_unref(history->points);
  g_free(history);
}

const HistoryPoint *history_points(const History *history, size_t *ret_n) {
  *ret_n = history->points->len;
  return (const HistoryPoint *)(const void *)history->points->data;
}

/* --- merging --- */

/* How far merging may go to make room. */
typedef enum MergeReach {
  MERGE_WITHIN_PASS,
  MERGE_WITHIN_STAGE,
  MERGE_ANY, /* whatever their spans */
  MERGE_REACH_COUNT
} MergeReach;

static bool may_merge(const HistoryPoint *a, const HistoryPoint *b, uint64_t step_ms, MergeReach reach) {
  if (reach == MERGE_ANY)
    return true;
  return a->elapsed_ms + b->span_ms == b->elapsed_ms && a->span_ms + b->span_ms <= step_ms &&
         a->stage == b->stage && (reach == MERGE_WITHIN_STAGE || a->iteration == b->iteration);
}

static uint64_t mean(uint64_t a, uint64_t a_ms, uint64_t b, uint64_t b_ms) {
  double weight = (double)a_ms + (double)b_ms;

  if (weight <= 0)
    return a / 2 + b / 2;
  return (uint64_t)(((double)a * (double)a_ms + (double)b * (double)b_ms) / weight);
}

/* Merges `b` into the earlier `a`. */
static void merge(HistoryPoint *a, const HistoryPoint *b) {
  HistoryPoint merged = *b;

  merged.span_ms = a->span_ms + (b->elapsed_ms - a->elapsed_ms);
  merged.memory_remaining_max_bytes = MAX(a->memory_remaining_max_bytes, b->memory_remaining_max_bytes);
  merged.bandwidth_bytes_per_s =
      mean(a->bandwidth_bytes_per_s, a->span_ms, b->bandwidth_bytes_per_s, b->span_ms);
  merged.dirty_rate_bytes_per_s =
      mean(a->dirty_rate_bytes_per_s, a->span_ms, b->dirty_rate_bytes_per_s, b->span_ms);
  merged.throttle_pct = MAX(a->throttle_pct, b->throttle_pct);
  *a = merged;
}

static void merge_neighbours(History *history, MergeReach reach) {
  HistoryPoint *points = (HistoryPoint *)(void *)history->points->data;
  guint kept = 0;
  bool paired = false; /* with MERGE_ANY, merge pairs only */

  for (guint i = 1; i < history->points->len; i++) {
    if (!paired && may_merge(&points[kept], &points[i], history->step_ms, reach)) {
      merge(&points[kept], &points[i]);
      paired = reach == MERGE_ANY;
    } else {
      points[++kept] = points[i];
      paired = false;
    }
  }
  g_array_set_size(history->points, kept + 1);
}

static void halve(History *history) {
  const HistoryPoint *points = (const HistoryPoint *)(const void *)history->points->data;
  uint64_t covered_ms = 0;

  for (guint i = 0; i < history->points->len; i++)
    covered_ms += points[i].span_ms;
  /* Two points of median span fit, even if readings come a little late. */
  history->step_ms = MAX(history->step_ms, covered_ms / history->points->len * 5 / 2);
  for (int reach = 0; reach < MERGE_REACH_COUNT && history->points->len > POINTS_HALVED; reach++)
    merge_neighbours(history, (MergeReach)reach);
}

void history_add(History *history, const MigSample *sample, uint64_t elapsed_ms, MigStage stage) {
  HistoryPoint *last = history->points->len == 0
                           ? NULL
                           : &g_array_index(history->points, HistoryPoint, history->points->len - 1);
  uint64_t before_ms = last ? last->elapsed_ms : 0;
  uint64_t processed = last ? last->memory_processed_bytes : 0;
  HistoryPoint point = {
      .elapsed_ms = elapsed_ms,
      .memory_processed_bytes = sample->memory_processed_bytes,
      .memory_remaining_bytes = sample->memory_remaining_bytes,
      .memory_remaining_max_bytes = sample->memory_remaining_bytes,
      .disk_remaining_bytes = sample->disk_remaining_bytes,
      .bandwidth_bytes_per_s = sample->bandwidth_bytes_per_s,
      .dirty_rate_bytes_per_s = sample->dirty_rate_bytes_per_s,
      .expected_downtime_ms = sample->expected_downtime_ms,
      .iteration = (uint32_t)MIN(sample->iteration, UINT32_MAX),
      .throttle_pct = (uint8_t)MIN(sample->throttle_pct, 100),
      .stage = (uint8_t)stage,
  };

  if (last && elapsed_ms <= before_ms)
    return;
  if (elapsed_ms - before_ms <= history->gap_ms)
    point.span_ms = elapsed_ms - before_ms;
  /* A reader that has just started has no rate yet: use what was transferred since the last reading, even over a gap. */
  if (point.bandwidth_bytes_per_s == 0 && elapsed_ms > before_ms && point.memory_processed_bytes > processed)
    point.bandwidth_bytes_per_s = (uint64_t)((double)(point.memory_processed_bytes - processed) * 1000 /
                                             (double)(elapsed_ms - before_ms));
  if (last && may_merge(last, &point, history->step_ms, MERGE_WITHIN_PASS)) {
    merge(last, &point);
    return;
  }
  if (history->points->len == HISTORY_POINTS_MAX)
    halve(history);
  g_array_append_val(history->points, point);
}

/* --- JSON --- */

/* The fields of a point, in the order of a row of the file. Add new ones at the end. */
typedef struct PointField {
  const char *name; /* in the interface */
  uint64_t (*get)(const HistoryPoint *point);
  void (*set)(HistoryPoint *point, uint64_t value);
} PointField;

#define FIELD_FUNCTIONS(member, type)                                                                        \
  static uint64_t get_##member(const HistoryPoint *point) {                                                  \
    return point->member;                                                                                    \
  }                                                                                                          \
  static void set_##member(HistoryPoint *point, uint64_t value) {                                            \
    point->member = (type)value;                                                                             \
  }

FIELD_FUNCTIONS(elapsed_ms, uint64_t)
FIELD_FUNCTIONS(span_ms, uint64_t)
FIELD_FUNCTIONS(iteration, uint32_t)
FIELD_FUNCTIONS(memory_processed_bytes, uint64_t)
FIELD_FUNCTIONS(memory_remaining_bytes, uint64_t)
FIELD_FUNCTIONS(memory_remaining_max_bytes, uint64_t)
FIELD_FUNCTIONS(disk_remaining_bytes, uint64_t)
FIELD_FUNCTIONS(bandwidth_bytes_per_s, uint64_t)
FIELD_FUNCTIONS(dirty_rate_bytes_per_s, uint64_t)
FIELD_FUNCTIONS(throttle_pct, uint8_t)
FIELD_FUNCTIONS(expected_downtime_ms, uint64_t)

#define FIELD(member)                                                                                        \
  { #member, get_##member, set_##member }

static const PointField fields[] = {
    FIELD(elapsed_ms),
    FIELD(span_ms),
    FIELD(iteration),
    FIELD(memory_processed_bytes),
    FIELD(memory_remaining_bytes),
    FIELD(memory_remaining_max_bytes),
    FIELD(disk_remaining_bytes),
    FIELD(bandwidth_bytes_per_s),
    FIELD(dirty_rate_bytes_per_s),
    FIELD(throttle_pct),
    FIELD(expected_downtime_ms),
};

json_t *history_to_json(const History *history) {
  json_t *array = json_array();

  for (guint i = 0; history && i < history->points->len; i++) {
    const HistoryPoint *point = &g_array_index(history->points, HistoryPoint, i);
    json_t *object = json_object();

    json_object_set_new_nocheck(object, "stage", json_string(mig_stage_name((MigStage)point->stage)));
    for (size_t field = 0; field < G_N_ELEMENTS(fields); field++)
      json_object_set_new_nocheck(
          object, fields[field].name,
          json_integer((json_int_t)MIN(fields[field].get(point), (uint64_t)INT64_MAX)));
    json_array_append_new(array, object);
  }
  return array;
}

/* Written by hand: as a JSON tree it would briefly take a tenth of a MiB for each running migration. */
char *history_to_text(const History *history, const char *job_id) {
  GString *text = g_string_new(NULL);

  g_string_append_printf(text, "{\"format\":%d,\"job\":\"%s\",\"step_ms\":%" PRIu64 ",\"points\":[", FORMAT,
                         job_id, history->step_ms);
  for (guint i = 0; i < history->points->len; i++) {
    const HistoryPoint *point = &g_array_index(history->points, HistoryPoint, i);

    g_string_append_printf(text, "%s[\"%s\"", i > 0 ? "," : "", mig_stage_name((MigStage)point->stage));
    for (size_t field = 0; field < G_N_ELEMENTS(fields); field++)
      g_string_append_printf(text, ",%" PRIu64, MIN(fields[field].get(point), (uint64_t)INT64_MAX));
    g_string_append_c(text, ']');
  }
  g_string_append(text, "]}\n");
  return g_string_free(text, FALSE);
}

/* False: not a valid row. Fields beyond those known here come from a newer agent, and are ignored. */
static bool read_point(json_t *row, HistoryPoint *ret_point) {
  const char *name = json_string_value(json_array_get(row, 0));
  int stage = name ? mig_stage_from_name(name) : MIG_ENUM_UNKNOWN;
  HistoryPoint point = {0};

  if (stage == MIG_ENUM_UNKNOWN)
    return false;
  point.stage = (uint8_t)stage;
  for (size_t field = 0; field < G_N_ELEMENTS(fields); field++) {
    json_t *value = json_array_get(row, field + 1);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
      return false;
    fields[field].set(&point, (uint64_t)json_integer_value(value));
  }
  *ret_point = point;
  return point.span_ms <= point.elapsed_ms;
}

static History *read_history(json_t *root, const char *job_id, uint64_t gap_ms, GError **error) {
  json_t *rows = json_object_get(root, "points"), *step = json_object_get(root, "step_ms"), *row;
  json_int_t format = json_integer_value(json_object_get(root, "format"));
  g_autoptr(History) history = history_new(gap_ms);
  uint64_t before_ms = 0;
  size_t i;

  if (format > FORMAT) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                "format %lld is newer than this agent knows (%d): written by a newer handoffd",
                (long long)format, FORMAT);
    return NULL;
  }
  if (format < 1 || g_strcmp0(json_string_of(root, "job"), job_id) != 0 || !json_is_array(rows) ||
      json_array_size(rows) > HISTORY_POINTS_MAX || json_integer_value(step) < 0) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "not the history of job %s", job_id);
    return NULL;
  }
  history->step_ms = (uint64_t)json_integer_value(step);
  json_array_foreach (rows, i, row) {
    HistoryPoint point;

    if (!read_point(row, &point) || (i > 0 && point.elapsed_ms - point.span_ms < before_ms)) {
      g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "point %zu is malformed", i + 1);
      return NULL;
    }
    before_ms = point.elapsed_ms;
    g_array_append_val(history->points, point);
  }
  return g_steal_pointer(&history);
}

History *history_from_text(const char *text, size_t length, const char *job_id, uint64_t gap_ms,
                           GError **error) {
  json_error_t json_error;
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
  History *history;

  if (!root) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s at byte %d", json_error.text,
                json_error.position);
    return NULL;
  }
  history = read_history(root, job_id, gap_ms, error);
  json_decref(root);
  return history;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report's points as lines over time, and as columns: common to all kinds of charts. */
#include "agent/ctl/chart-series.h"

#include <assert.h>
#include <math.h>

static void add(GArray *vertices, double at_s, double value, bool begins) {
  SeriesVertex vertex = {at_s, value, begins};

  g_array_append_val(vertices, vertex);
}

static void add_remaining(const Report *report, GArray *vertices) {
  for (guint i = 0; i < report->points->len; i++) {
    const ReportPoint *point = report_point(report, i);
    bool follows = report_follows_on(report, i);

    if (i == 0 && follows)
      add(vertices, 0, report->remaining_first, true);
    else if (!follows)
      add(vertices, point->begin_s, point->remaining_max, true);
    else if (point->iteration != report_point(report, i - 1)->iteration)
      add(vertices, point->begin_s, point->remaining_max, false);
    add(vertices, point->end_s, point->remaining, false);
  }
}

static void add_bandwidth(const Report *report, GArray *vertices) {
  for (guint i = 0; i < report->points->len; i++) {
    const ReportPoint *point = report_point(report, i);
    bool last = i + 1 == report->points->len || !report_follows_on(report, i + 1);

    if (i == 0 || !report_follows_on(report, i))
      add(vertices, point->begin_s, point->bandwidth, true);
    add(vertices, (point->begin_s + point->end_s) / 2, point->bandwidth, false);
    if (last)
      add(vertices, point->end_s, point->bandwidth, false);
  }
}

static void add_dirty_rate(const Report *report, GArray *vertices) {
  bool before = false;

  for (guint i = 0; i < report->points->len; i++) {
    const ReportPoint *point = report_point(report, i);
    /* QEMU reports it from the end of the first pass on. */
    bool have = point->stage != MIG_STAGE_POST_COPY && (point->iteration > 1 || point->dirty_rate > 0);

    if (have) {
      add(vertices, point->begin_s, point->dirty_rate, !before || !report_follows_on(report, i));
      add(vertices, point->end_s, point->dirty_rate, false);
    }
    before = have;
  }
}

static void add_throttle(const Report *report, GArray *vertices) {
  for (guint i = 0; i < report->points->len; i++) {
    const ReportPoint *point = report_point(report, i);

    add(vertices, point->begin_s, point->throttle_pct, i == 0 || !report_follows_on(report, i));
    add(vertices, point->end_s, point->throttle_pct, false);
  }
}

static const struct {
  const char *name;
  void (*add_lines)(const Report *report, GArray *vertices);
  bool mean; /* a column shows the mean; otherwise the maximum */
} rows[] = {
    [SERIES_REMAINING] = {"remaining", add_remaining, false},
    [SERIES_BANDWIDTH] = {"bandwidth", add_bandwidth, true},
    [SERIES_DIRTY_RATE] = {"dirty rate", add_dirty_rate, true},
    [SERIES_THROTTLE] = {"throttle", add_throttle, false},
};
static_assert(G_N_ELEMENTS(rows) == SERIES_COUNT, "a row for each series");

const char *series_name(Series series) {
  return rows[series].name;
}

GArray *series_vertices(const Report *report, Series series) {
  GArray *vertices = g_array_new(FALSE, FALSE, sizeof(SeriesVertex));

  rows[series].add_lines(report, vertices);
  return vertices;
}

/* --- columns --- */

static double along(const SeriesVertex *a, const SeriesVertex *b, double at_s) {
  double length_s = b->at_s - a->at_s;

  return length_s > 0 ? a->value + (b->value - a->value) * (at_s - a->at_s) / length_s : b->value;
}

/* Adds one segment of a line to the columns that it crosses. */
static void fill(double *columns, double *weights, size_t n, double width_s, const SeriesVertex *a,
                 const SeriesVertex *b, bool mean) {
  size_t first = (size_t)(a->at_s / width_s), last = (size_t)(b->at_s / width_s);

  for (size_t i = MIN(first, n - 1); i <= MIN(last, n - 1); i++) {
    double begin_s = MAX(a->at_s, (double)i * width_s), end_s = MIN(b->at_s, (double)(i + 1) * width_s);
    double from, to;

    /* A segment that only touches the edge of a column belongs to its neighbour. */
    if (end_s <= begin_s && (mean || b->at_s > a->at_s || begin_s > end_s))
      continue;
    from = along(a, b, begin_s);
    to = along(a, b, end_s);
    if (mean) {
      columns[i] = (isnan(columns[i]) ? 0 : columns[i]) + (from + to) / 2 * (end_s - begin_s);
      weights[i] += end_s - begin_s;
    } else if (isnan(columns[i])) {
      columns[i] = MAX(from, to);
    } else {
      columns[i] = MAX(columns[i], MAX(from, to));
    }
  }
}

void series_columns(const Report *report, Series series, double *ret_columns, size_t n) {
  g_autoptr(GArray) vertices = series_vertices(report, series);
  g_autofree double *weights = g_new0(double, n);
  double width_s = report->end_s / (double)n;

  for (size_t i = 0; i < n; i++)
    ret_columns[i] = NAN;
  for (guint i = 1; i < vertices->len; i++) {
    const SeriesVertex *a = &g_array_index(vertices, SeriesVertex, i - 1), *b = a + 1;

    if (!b->begins)
      fill(ret_columns, weights, n, width_s, a, b, rows[series].mean);
  }
  for (size_t i = 0; rows[series].mean && i < n; i++)
    if (weights[i] > 0)
      ret_columns[i] /= weights[i];
}

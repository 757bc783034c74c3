/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as a text chart.
 *
 *     256 MiB ┤▇▅▂              each panel: label of its top, name, 0; a column is a period of time
 *   remaining │███▆▃▁
 *           0 ┤██████▇▄▂▁ */
#include "agent/ctl/chart-text.h"
#include "agent/ctl/chart-scale.h"
#include "agent/ctl/chart-series.h"
#include "agent/ctl/progress.h"

#include <math.h>
#include <string.h>

#define GUTTER     10 /* width of the labels left of the axis */
#define TEXT_LEFT  12 /* position of the first column */
#define LABEL_STEP 9  /* columns per time label */
#define MARK_LINES 3

typedef struct Canvas {
  GString *out;
  const Report *report;
  unsigned columns;
  bool utf8;
} Canvas;

static unsigned column_of(const Canvas *canvas, double at_s) {
  double column = at_s / canvas->report->end_s * canvas->columns;

  return (unsigned)CLAMP(column, 0, canvas->columns - 1);
}

/* The left part of a line, up to the first column. */
static void begin_line(const Canvas *canvas, const char *label, const char *axis) {
  g_string_append_printf(canvas->out, "%*s%s %s", MAX(GUTTER - (int)format_width(label), 0), "", label, axis);
}

static void end_text_line(GString *out) {
  while (out->len > 0 && out->str[out->len - 1] == ' ')
    g_string_truncate(out, out->len - 1);
  g_string_append_c(out, '\n');
}

static void end_line(const Canvas *canvas) {
  end_text_line(canvas->out);
}

/* --- panels --- */

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[] = {" ", ".", ":", "#"};

/* The cell for `value` in the given row, counted from the bottom. */
static const char *cell_of(const Canvas *canvas, double value, double max, unsigned rows, unsigned row) {
  unsigned levels = canvas->utf8 ? G_N_ELEMENTS(blocks) - 1 : G_N_ELEMENTS(letters) - 1;
  double height = value / max * rows * levels;
  int level;

  /* A small value must still be visible. */
  if (value > 0)
    height = MAX(height, 1);
  level = (int)lround(CLAMP(height - (double)row * levels, 0, (double)levels));
  return canvas->utf8 ? blocks[level] : letters[level];
}

static void append_cells(const Canvas *canvas, const double *values, double max, unsigned rows,
                         unsigned row) {
  unsigned first = 0, last = canvas->columns;

  while (first < last && isnan(values[first]))
    first++;
  while (last > first && isnan(values[last - 1]))
    last--;
  for (unsigned i = 0; i < last; i++) {
    if (!isnan(values[i]))
      g_string_append(canvas->out, cell_of(canvas, values[i], max, rows, row));
    else
      g_string_append(canvas->out, row > 0 || i < first ? " " : canvas->utf8 ? "·" : "-");
  }
}

static void draw_panel(const Canvas *canvas, Series series, const Scale *scale, unsigned rows) {
  g_autofree double *values = g_new(double, canvas->columns);
  FormatText top = scale_label_unit(scale, scale->max);

  series_columns(canvas->report, series, values, canvas->columns);
  for (unsigned row = rows; row-- > 0;) {
    bool tick = row == 0 || row == rows - 1;
    const char *label = row == rows - 1 ? top.text : row == 0 ? "0" : "";

    if (row == rows / 2)
      label = series_name(series);
    begin_line(canvas, label, !canvas->utf8 ? "|" : tick ? "┤" : "│");
    append_cells(canvas, values, scale->max, rows, row);
    end_line(canvas);
  }
  g_string_append_c(canvas->out, '\n');
}

/* --- lines with labels --- */

/* One line of ASCII labels, from left to right. */
typedef struct LabelLine {
  char *cells;
  unsigned n, free_from;
} LabelLine;

static LabelLine label_line_new(const Canvas *canvas) {
  return (LabelLine){.cells = g_strnfill(canvas->columns, ' '), .n = canvas->columns};
}

/* False: the place is taken. */
static bool label_line_put(LabelLine *line, unsigned column, const char *text) {
  unsigned length = (unsigned)strlen(text);

  if (column + length > line->n)
    column = line->n - MIN(length, line->n);
  if (column < line->free_from || column + length > line->n)
    return false;
  memcpy(line->cells + column, text, length);
  line->free_from = column + length + 1;
  return true;
}

static void label_line_end(const Canvas *canvas, LabelLine *line, const char *label) {
  begin_line(canvas, label, " ");
  g_string_append(canvas->out, line->cells);
  end_line(canvas);
  g_free(line->cells);
}

/* Puts each mark into the first line with room at its position. If there is none, it is only in the list below. */
static void draw_marks(const Canvas *canvas) {
  LabelLine lines[MARK_LINES];

  for (unsigned n = 0; n < MARK_LINES; n++)
    lines[n] = label_line_new(canvas);
  for (guint i = 0; i < canvas->report->marks->len; i++) {
    unsigned column = column_of(canvas, report_mark(canvas->report, i)->at_s);
    g_autofree char *number = g_strdup_printf("%u", i + 1);

    for (unsigned n = 0; n < MARK_LINES && !label_line_put(&lines[n], column, number); n++)
      ;
  }
  for (unsigned n = 0; n < MARK_LINES; n++)
    if (lines[n].free_from > 0)
      label_line_end(canvas, &lines[n], n == 0 ? "decisions" : "");
    else
      g_free(lines[n].cells);
}

static void draw_passes(const Canvas *canvas) {
  LabelLine line = label_line_new(canvas);
  int64_t before = -1;

  for (guint i = 0; i < canvas->report->points->len; i++) {
    const ReportPoint *point = report_point(canvas->report, i);
    g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, point->iteration);

    if (point->iteration != before && point->iteration > 0)
      label_line_put(&line, column_of(canvas, point->begin_s), number);
    before = point->iteration;
  }
  label_line_end(canvas, &line, "passes");
}

static void draw_time(const Canvas *canvas) {
  Scale scale = scale_time(canvas->report->end_s, MAX(canvas->columns / LABEL_STEP, 1));
  g_autofree char *title = g_strdup_printf("time %s", scale.unit_name);
  LabelLine line = label_line_new(canvas);
  unsigned tick = 0, n_ticks = scale_count(&scale);

  begin_line(canvas, "", canvas->utf8 ? "└" : "+");
  for (unsigned i = 0; i < canvas->columns; i++) {
    bool here = tick < n_ticks && column_of(canvas, tick * scale.step) == i;

    g_string_append(canvas->out, here ? (canvas->utf8 ? "┴" : "+") : canvas->utf8 ? "─" : "-");
    tick += here;
  }
  end_line(canvas);
  for (unsigned i = 0; i < n_ticks; i++)
    label_line_put(&line, column_of(canvas, i * scale.step), scale_label(&scale, i * scale.step).text);
  label_line_end(canvas, &line, title);
}

static void draw_stages(const Canvas *canvas) {
  const Report *report = canvas->report;

  begin_line(canvas, "stages", " ");
  for (guint i = 0; i < report->bands->len; i++) {
    const ReportBand *band = report_band(report, i);
    bool last = i + 1 == report->bands->len;
    unsigned begin = column_of(canvas, band->begin_s);
    unsigned end = last ? canvas->columns : column_of(canvas, band->end_s);
    const char *words = progress_stage_words(band->stage);
    unsigned length = (unsigned)strlen(words);

    if (begin >= end)
      continue;
    g_string_append(canvas->out, canvas->utf8 ? "├" : "|");
    /* Omit names that do not fit: the list below has them. */
    if (length + 1 > end - begin)
      length = 0;
    g_string_append_len(canvas->out, words, length);
    for (unsigned column = begin + 1 + length; column < end; column++)
      g_string_append(canvas->out, canvas->utf8 ? "─" : "-");
  }
  end_line(canvas);
}

static bool has_gap(const Report *report) {
  for (guint i = 0; i < report->points->len; i++)
    if (!report_follows_on(report, i))
      return true;
  return false;
}

char *chart_text(const Report *report, unsigned width, bool utf8) {
  Canvas canvas = {g_string_new(NULL), report, CLAMP(width, CHART_TEXT_WIDTH_MIN, CHART_TEXT_WIDTH_MAX),
                   utf8};
  /* Fine steps, so that the top is close to the maximum. */
  Scale remaining = scale_bytes(report->remaining_max, 16);
  Scale rate = scale_rate(MAX(report->bandwidth_max, report->dirty_rate_max), 5);
  Scale percent = scale_percent(1);

  canvas.columns -= TEXT_LEFT;
  if (report->marks->len > 0)
    draw_marks(&canvas);
  draw_panel(&canvas, SERIES_REMAINING, &remaining, 6);
  /* On the same scale: what matters is which of them is higher. */
  draw_panel(&canvas, SERIES_BANDWIDTH, &rate, 3);
  draw_panel(&canvas, SERIES_DIRTY_RATE, &rate, 3);
  if (report->throttle_max > 0)
    draw_panel(&canvas, SERIES_THROTTLE, &percent, 3);
  g_string_truncate(canvas.out, canvas.out->len - 1);
  draw_time(&canvas);
  draw_passes(&canvas);
  draw_stages(&canvas);
  if (has_gap(report)) {
    begin_line(&canvas, utf8 ? "·" : "-", " no data for this time");
    end_line(&canvas);
  }
  return g_string_free(canvas.out, FALSE);
}

/* --- the list --- */

/* Wraps at spaces and indents continuation lines. Words longer than a line are not broken. */
static void append_wrapped(GString *out, const char *text, unsigned indent, unsigned width) {
  g_auto(GStrv) words = g_strsplit(text, " ", -1);
  unsigned column = indent;

  for (unsigned i = 0; words[i]; i++) {
    unsigned length = format_width(words[i]);

    if (length == 0)
      continue;
    if (column > indent && column + 1 + length > width) {
      g_string_append_printf(out, "\n%*s", (int)indent, "");
      column = indent;
    } else if (column > indent) {
      g_string_append_c(out, ' ');
      column++;
    }
    g_string_append(out, words[i]);
    column += length;
  }
  end_text_line(out);
}

char *chart_text_marks(const Report *report, unsigned width) {
  GString *out = g_string_new(NULL);

  width = CLAMP(width, CHART_TEXT_WIDTH_MIN, CHART_TEXT_WIDTH_MAX);
  for (guint i = 0; i < report->marks->len; i++) {
    const ReportMark *mark = report_mark(report, i);

    g_string_append_printf(out, "%3u %11s  ", i + 1, report_format_time(mark->at_s).text);
    append_wrapped(out, mark->text, 17, width);
  }
  return g_string_free(out, FALSE);
}

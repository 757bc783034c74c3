/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layout of the chart of a report.
 *
 *     title and subtitle                     strips and panels share one time axis, from LEFT to LEFT + PLOT
 *     decisions   1      2                   numbered discs, in as many rows as needed to avoid overlaps
 *     stages      [pre-copy   ][post-copy ]
 *     passes      1     2     3
 *     remaining   one line with a filled area
 *     rates       bandwidth and dirty rate on the same scale
 *     throttle    if the guest was throttled
 *     time axis, legend of the stages, list of decisions, outcome */
#include "agent/ctl/chart-layout.h"
#include "agent/ctl/chart-page.h"
#include "agent/ctl/chart-scale.h"
#include "agent/ctl/chart-series.h"
#include "agent/ctl/progress.h"

#include <assert.h>

#define WIDTH       960.0
#define LEFT        84.0
#define RIGHT       28.0
#define PLOT        (WIDTH - LEFT - RIGHT)
#define MARGIN      24.0
#define GUTTER      8.0 /* between an axis and its labels */
#define DISC        8.5
#define TICK_WIDTH  70.0 /* per time label */
#define LIST_INDENT 112.0

typedef struct Chart {
  Page page;
  const Report *report;
  Scale time;
  GArray *marks;  /* ChartPlace: positions of the discs */
  double disc_to; /* y where the strips begin */
} Chart;

static double x_of(const Chart *chart, double at_s) {
  return LEFT + CLAMP(at_s / chart->report->end_s, 0, 1) * PLOT;
}

static void add_margin_label(Chart *chart, double y, const char *text) {
  page_text(&chart->page, LEFT - GUTTER, y, ALIGN_RIGHT, CHART_SMALL, CHART_MUTED, text);
}

/* --- strips --- */

static ChartColor color_of_stage(MigStage stage) {
  static const ChartColor colors[] = {
      [MIG_STAGE_NONE] = CHART_GRID,
      [MIG_STAGE_PRE_COPY] = CHART_PRE_COPY,
      [MIG_STAGE_AUTO_CONVERGE] = CHART_AUTO_CONVERGE,
      [MIG_STAGE_STOP_AND_COPY] = CHART_STOP_AND_COPY,
      [MIG_STAGE_POST_COPY] = CHART_POST_COPY,
  };

  G_STATIC_ASSERT(G_N_ELEMENTS(colors) == MIG_STAGE_COUNT);
  return colors[stage];
}

/* Puts each disc into the first row where it overlaps none. */
static void place_marks(Chart *chart) {
  const double spacing = 2 * DISC + 3, row_height = 2 * DISC + 4;
  g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(double)); /* x of the last disc in each row */
  const Report *report = chart->report;

  for (guint i = 0; i < report->marks->len; i++) {
    ChartPlace place = {.x = x_of(chart, report_mark(report, i)->at_s)};
    guint row = 0;

    while (row < rows->len && place.x - g_array_index(rows, double, row) < spacing)
      row++;
    if (row == rows->len)
      g_array_append_val(rows, place.x);
    g_array_index(rows, double, row) = place.x;
    place.y = chart->page.y + row_height * (row + 0.5);
    g_array_append_val(chart->marks, place);
  }
  if (rows->len > 0)
    page_text(&chart->page, LEFT - DISC - GUTTER, chart->page.y + row_height / 2 + 4, ALIGN_RIGHT,
              CHART_SMALL, CHART_MUTED, "decisions");
  chart->page.y += row_height * rows->len + (rows->len > 0 ? 4 : 0);
  chart->disc_to = chart->page.y;
}

/* Draws the vertical lines of the marks from `from` to `to`. Text between strips and panels stays free of them. */
static void add_mark_lines(Chart *chart, double from, double to) {
  for (guint i = 0; i < chart->marks->len; i++) {
    const ChartPlace *place = &g_array_index(chart->marks, ChartPlace, i);

    page_line(&chart->page, place->x, MAX(from, place->y), place->x, to, CHART_MARK, 0.8)->dashed = true;
  }
}

static void add_discs(Chart *chart) {
  add_mark_lines(chart, 0, chart->disc_to);
  for (guint i = 0; i < chart->marks->len; i++) {
    const ChartPlace *place = &g_array_index(chart->marks, ChartPlace, i);

    page_disc(&chart->page, place->x, place->y, DISC, i + 1);
  }
}

static void add_stages(Chart *chart) {
  const double height = 20;
  Page *page = &chart->page;

  for (guint i = 0; i < chart->report->bands->len; i++) {
    const ReportBand *band = report_band(chart->report, i);
    double x = x_of(chart, band->begin_s), width = x_of(chart, band->end_s) - x;
    const char *words = progress_stage_words(band->stage);

    page_rectangle(page, x, page->y, width, height, color_of_stage(band->stage));
    if (page_measure(page, words, CHART_SMALL) + 10 <= width)
      page_text(page, x + 5, page->y + 14, ALIGN_LEFT, CHART_SMALL, CHART_INK, words);
  }
  add_margin_label(chart, page->y + 14, "stages");
  page->y += height;
}

static bool begins_pass(const Report *report, guint i) {
  int64_t iteration = report_point(report, i)->iteration;

  return iteration > 0 && (i == 0 || iteration != report_point(report, i - 1)->iteration);
}

static void add_passes(Chart *chart) {
  Page *page = &chart->page;
  double free_from = 0;

  for (guint i = 0; i < chart->report->points->len; i++) {
    const ReportPoint *point = report_point(chart->report, i);
    g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, point->iteration);
    double x = x_of(chart, point->begin_s), width = page_measure(page, number, CHART_SMALL);

    if (!begins_pass(chart->report, i))
      continue;
    page_line(page, x, page->y, x, page->y + 3, CHART_MUTED, 1);
    if (x + 3 < free_from || x + 3 + width > LEFT + PLOT)
      continue;
    page_line(page, x, page->y, x, page->y + 14, CHART_MUTED, 1);
    page_text(page, x + 3, page->y + 12, ALIGN_LEFT, CHART_SMALL, CHART_MUTED, number);
    free_from = x + 3 + width + 4;
  }
  add_margin_label(chart, page->y + 12, "passes");
  page->y += 16;
}

/* --- panels --- */

typedef struct Curve {
  Series series;
  ChartColor color;
  ChartColor area; /* COUNT: none */
} Curve;

static double y_of(double top, double height, const Scale *scale, double value) {
  return top + height - CLAMP(value / scale->max, 0, 1) * height;
}

static void add_grid(Chart *chart, double top, double height, const Scale *scale) {
  Page *page = &chart->page;

  for (unsigned i = 0; i < scale_count(&chart->time); i++) {
    double x = x_of(chart, i * chart->time.step);

    page_line(page, x, top, x, top + height, CHART_GRID, 1);
  }
  for (unsigned i = 0; i < scale_count(scale); i++) {
    double y = y_of(top, height, scale, i * scale->step);

    page_line(page, LEFT, y, LEFT + PLOT, y, i == 0 ? CHART_MUTED : CHART_GRID, 1);
    page_text(page, LEFT - GUTTER, y + 4, ALIGN_RIGHT, CHART_SMALL, CHART_MUTED,
              scale_label(scale, i * scale->step).text);
  }
}

/* Shades gaps in the data, between the first and the last sample. */
static void add_gaps(Chart *chart, double top, double height) {
  Page *page = &chart->page;
  double before_s = 0;

  for (guint i = 0; i < chart->report->points->len; i++) {
    const ReportPoint *point = report_point(chart->report, i);
    double x = x_of(chart, before_s), width = x_of(chart, point->begin_s) - x;

    if (!report_follows_on(chart->report, i)) {
      page_rectangle(page, x, top, width, height, CHART_GAP);
      if (page_measure(page, "no data", CHART_SMALL) + 8 <= width)
        page_text(page, x + width / 2, top + height / 2, ALIGN_CENTRE, CHART_SMALL, CHART_MUTED, "no data");
    }
    before_s = point->end_s;
  }
}

static void close_area(ChartItem *area, double base) {
  double first_x, last_x;

  if (!area)
    return;
  first_x = g_array_index(area->path, ChartPlace, 0).x;
  last_x = g_array_index(area->path, ChartPlace, area->path->len - 1).x;
  page_path_add(area, last_x, base);
  page_path_add(area, first_x, base);
}

static void add_curve(Chart *chart, const Curve *curve, double top, double height, const Scale *scale) {
  g_autoptr(GArray) vertices = series_vertices(chart->report, curve->series);
  ChartItem *line = NULL, *area = NULL;

  for (guint i = 0; i < vertices->len; i++) {
    const SeriesVertex *vertex = &g_array_index(vertices, SeriesVertex, i);
    double x = x_of(chart, vertex->at_s), y = y_of(top, height, scale, vertex->value);

    if (vertex->begins) {
      close_area(area, top + height);
      area = curve->area == CHART_COLOR_COUNT ? NULL : page_path(&chart->page, CHART_AREA, curve->area, 0);
      line = page_path(&chart->page, CHART_LINE, curve->color, 1.8);
    }
    page_path_add(line, x, y);
    if (area)
      page_path_add(area, x, y);
  }
  close_area(area, top + height);
}

static void add_legend(Chart *chart, double y, const Curve *curves, unsigned n) {
  double x = LEFT + PLOT;

  for (unsigned i = n; i-- > 0;) {
    ChartItem *text =
        page_text(&chart->page, x, y, ALIGN_RIGHT, CHART_SMALL, CHART_INK, series_name(curves[i].series));

    page_line(&chart->page, text->x - 22, y - 4, text->x - 6, y - 4, curves[i].color, 2.5);
    x = text->x - 38;
  }
}

static void add_panel(Chart *chart, const char *title, double height, const Scale *scale, const Curve *curves,
                      unsigned n) {
  g_autofree char *heading = g_strdup_printf("%s, %s", title, scale->unit_name);
  Page *page = &chart->page;
  double top;

  page->y += 26;
  page_text(page, LEFT, page->y, ALIGN_LEFT, CHART_HEADING, CHART_INK, heading);
  if (n > 1)
    add_legend(chart, page->y, curves, n);
  top = page->y + 10;
  add_gaps(chart, top, height);
  add_grid(chart, top, height, scale);
  for (unsigned i = 0; i < n; i++)
    add_curve(chart, &curves[i], top, height, scale);
  add_mark_lines(chart, top, top + height);
  page->y = top + height;
}

static void add_panels(Chart *chart) {
  static const Curve remaining = {SERIES_REMAINING, CHART_REMAINING, CHART_REMAINING_AREA};
  static const Curve throttle = {SERIES_THROTTLE, CHART_THROTTLE, CHART_THROTTLE_AREA};
  static const Curve rates[] = {{SERIES_BANDWIDTH, CHART_BANDWIDTH, CHART_COLOR_COUNT},
                                {SERIES_DIRTY_RATE, CHART_DIRTY_RATE, CHART_COLOR_COUNT}};
  const Report *report = chart->report;
  Scale bytes = scale_bytes(report->remaining_max, 6);
  Scale rate = scale_rate(MAX(report->bandwidth_max, report->dirty_rate_max), 5);
  Scale percent = scale_percent(2);

  add_panel(chart, report->has_disks ? "Remaining memory and disks" : "Remaining memory", 200, &bytes,
            &remaining, 1);
  add_panel(chart, "Bandwidth and dirty rate", 150, &rate, rates, G_N_ELEMENTS(rates));
  if (report->throttle_max > 0)
    add_panel(chart, "Guest CPU throttling", 70, &percent, &throttle, 1);
}

static void add_time_axis(Chart *chart) {
  g_autofree char *title =
      g_strdup_printf("time since the start of the migration, %s", chart->time.unit_name);
  Page *page = &chart->page;

  for (unsigned i = 0; i < scale_count(&chart->time); i++) {
    double x = x_of(chart, i * chart->time.step);

    page_line(page, x, page->y, x, page->y + 4, CHART_MUTED, 1);
    page_text(page, x, page->y + 17, ALIGN_CENTRE, CHART_SMALL, CHART_MUTED,
              scale_label(&chart->time, i * chart->time.step).text);
  }
  page_text(page, LEFT + PLOT / 2, page->y + 34, ALIGN_CENTRE, CHART_SMALL, CHART_MUTED, title);
  page->y += 38;
}

/* --- below the panels --- */

/* A swatch and the duration of each stage that occurred. */
static void add_stage_legend(Chart *chart) {
  Page *page = &chart->page;
  double x = LEFT;

  page->y += 20;
  for (int stage = 0; stage < MIG_STAGE_COUNT; stage++) {
    g_autofree char *text = NULL;
    double lasted_s = 0;

    for (guint i = 0; i < chart->report->bands->len; i++)
      if (report_band(chart->report, i)->stage == (MigStage)stage)
        lasted_s += report_band(chart->report, i)->end_s - report_band(chart->report, i)->begin_s;
    if (lasted_s <= 0)
      continue;
    text = g_strdup_printf("%s %s", progress_stage_words((MigStage)stage), report_format_time(lasted_s).text);
    page_rectangle(page, x, page->y - 10, 12, 12, color_of_stage((MigStage)stage));
    x = page_text(page, x + 18, page->y, ALIGN_LEFT, CHART_SMALL, CHART_INK, text)->width + x + 40;
  }
}

static void add_heading(Chart *chart, const char *text) {
  chart->page.y += 34;
  page_text(&chart->page, MARGIN, chart->page.y, ALIGN_LEFT, CHART_HEADING, CHART_INK, text);
  chart->page.y += 4;
}

static void add_mark_list(Chart *chart) {
  const double text_width = WIDTH - RIGHT - LIST_INDENT - MARGIN;
  Page *page = &chart->page;

  if (chart->report->marks->len > 0)
    add_heading(chart, "Decisions and incidents");
  for (guint i = 0; i < chart->report->marks->len; i++) {
    const ReportMark *mark = report_mark(chart->report, i);
    double baseline = page->y + 5 + 17.5;

    page_disc(page, MARGIN + DISC, baseline - 4, DISC, i + 1);
    page_text(page, MARGIN + LIST_INDENT - 12, baseline, ALIGN_RIGHT, CHART_BODY, CHART_MUTED,
              report_format_time(mark->at_s).text);
    page->y += 5;
    page_text_wrapped(page, MARGIN + LIST_INDENT, text_width, CHART_BODY, CHART_INK, mark->text);
    page->y = MAX(page->y, baseline);
  }
}

static void add_closing(Chart *chart, const char *closing) {
  g_auto(GStrv) lines = g_strsplit(closing, "\n", -1);

  if (!*closing)
    return;
  add_heading(chart, mig_phase_is_final(chart->report->job.phase) ? "Outcome" : "So far");
  for (unsigned i = 0; lines[i]; i++) {
    chart->page.y += *lines[i] ? 3 : 0;
    page_text_wrapped(&chart->page, MARGIN, WIDTH - RIGHT - MARGIN, CHART_BODY, CHART_INK,
                      g_strchug(lines[i]));
  }
}

/* --- the whole --- */

static void chart_item_free(gpointer data) {
  ChartItem *item = data;

  g_clear_pointer(&item->path, g_array_unref);
  g_free(item->text);
  g_free(item);
}

static void add_head(Chart *chart) {
  g_autofree char *title = report_title(chart->report);
  g_autofree char *subtitle = report_subtitle(chart->report);
  Page *page = &chart->page;

  page->y = 10;
  page_text_wrapped(page, MARGIN, WIDTH - MARGIN - RIGHT, CHART_TITLE, CHART_INK, title);
  page->y += 5;
  page_text_wrapped(page, MARGIN, WIDTH - MARGIN - RIGHT, CHART_BODY, CHART_MUTED, subtitle);
  page->y += 16;
}

ChartLayout *chart_layout_new(const Report *report, const char *closing, ChartMeasureFunc measure,
                              gpointer user_data) {
  ChartLayout *layout = g_new0(ChartLayout, 1);
  Chart chart = {
      .page = {.layout = layout, .measure = measure, .user_data = user_data},
      .report = report,
      .time = scale_time(report->end_s, (unsigned)(PLOT / TICK_WIDTH)),
      .marks = g_array_new(FALSE, FALSE, sizeof(ChartPlace)),
  };
  ChartItem *paper;

  layout->width = WIDTH;
  layout->items = g_ptr_array_new_with_free_func(chart_item_free);
  paper = page_rectangle(&chart.page, 0, 0, WIDTH, 0, CHART_PAPER);
  add_head(&chart);
  place_marks(&chart);
  add_discs(&chart);
  if (report->bands->len > 0)
    add_stages(&chart);
  if (report->points->len > 0) {
    add_passes(&chart);
    add_panels(&chart);
  } else {
    chart.page.y += 12;
    page_text_wrapped(&chart.page, LEFT, PLOT, CHART_BODY, CHART_MUTED, REPORT_NO_READINGS);
    chart.page.y += 24;
  }
  add_time_axis(&chart);
  add_stage_legend(&chart);
  add_mark_list(&chart);
  add_closing(&chart, closing);
  layout->height = paper->height = chart.page.y + MARGIN;
  g_array_unref(chart.marks);
  return layout;
}

void chart_layout_free(ChartLayout *layout) {
  if (!layout)
    return;
  g_ptr_array_unref(layout->items);
  g_free(layout);
}

char *chart_layout_describe(const ChartLayout *layout) {
  GString *text = g_string_new(NULL);

  for (guint i = 0; i < layout->items->len; i++) {
    const ChartItem *item = layout->items->pdata[i];

    if (item->kind == CHART_TEXT)
      g_string_append_printf(text, "%s\n", item->text);
  }
  return g_string_free(text, FALSE);
}

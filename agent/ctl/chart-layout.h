/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layout of the chart of a report, independent of the drawing library. Pure, except that a callback measures texts. */
#pragma once

#include "agent/ctl/report.h"

typedef enum ChartFont { CHART_TITLE, CHART_HEADING, CHART_BODY, CHART_SMALL, CHART_FONT_COUNT } ChartFont;

typedef enum ChartColor {
  CHART_PAPER,
  CHART_INK,
  CHART_MUTED,
  CHART_GRID,
  CHART_GAP,
  CHART_REMAINING,
  CHART_REMAINING_AREA,
  CHART_BANDWIDTH,
  CHART_DIRTY_RATE,
  CHART_THROTTLE,
  CHART_THROTTLE_AREA,
  CHART_MARK,
  CHART_PRE_COPY,
  CHART_AUTO_CONVERGE,
  CHART_STOP_AND_COPY,
  CHART_POST_COPY,
  CHART_COLOR_COUNT
} ChartColor;

typedef enum ChartKind { CHART_TEXT, CHART_LINE, CHART_AREA, CHART_RECTANGLE, CHART_DISC } ChartKind;

/* In pixels from the top left. */
typedef struct ChartPlace {
  double x, y;
} ChartPlace;

typedef struct ChartItem {
  ChartKind kind;
  ChartColor color;
  double x, y;          /* text: start of its baseline; disc: centre; rectangle: top left */
  double width, height; /* text: measured width and font size; disc: diameter */
  GArray *path;         /* ChartPlace: points of a line or an area */
  double line_width;
  bool dashed;
  char *text; /* made safe for display */
  ChartFont font;
} ChartItem;

typedef struct ChartLayout {
  double width, height;
  GPtrArray *items; /* ChartItem, in drawing order */
} ChartLayout;

/* Returns the width of a text in pixels. */
typedef double (*ChartMeasureFunc)(const char *text, ChartFont font, gpointer user_data);

/* For a report that has started. `closing` describes the outcome, one line per statement. */
ChartLayout *chart_layout_new(const Report *report, const char *closing, ChartMeasureFunc measure,
                              gpointer user_data);
void chart_layout_free(ChartLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChartLayout, chart_layout_free)

/* Pixels. */
double chart_font_size(ChartFont font);

/* All texts of the chart in order, one per line, as an accessible description; to be freed. */
char *chart_layout_describe(const ChartLayout *layout);

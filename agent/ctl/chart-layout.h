/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as a drawing: what is where, before anything draws it. Pure, but for the widths of texts, which are asked for. */
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

/* In pixels, from the top left. */
typedef struct ChartPlace {
  double x, y;
} ChartPlace;

typedef struct ChartItem {
  ChartKind kind;
  ChartColor color;
  double x, y; /* of a text: where its baseline begins; of a disc: its centre; of a rectangle: its top left */
  double width, height; /* of a text: measured, and its font's size; of a disc: its diameter */
  GArray *path;         /* ChartPlace, of a line or an area */
  double line_width;
  bool dashed;
  char *text; /* safe to show */
  ChartFont font;
} ChartItem;

typedef struct ChartLayout {
  double width, height;
  GPtrArray *items; /* ChartItem, in the order in which they are drawn */
} ChartLayout;

/* How wide a text is, in pixels. */
typedef double (*ChartMeasureFunc)(const char *text, ChartFont font, gpointer user_data);

/* Of a report that has started. `closing` is what is said of the end, a line each. */
ChartLayout *chart_layout_new(const Report *report, const char *closing, ChartMeasureFunc measure,
                              gpointer user_data);
void chart_layout_free(ChartLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChartLayout, chart_layout_free)

/* Pixels. */
double chart_font_size(ChartFont font);

/* Every text of the drawing, a line each, in their order: for those who cannot see it. To be freed. */
char *chart_layout_describe(const ChartLayout *layout);

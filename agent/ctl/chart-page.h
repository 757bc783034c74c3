/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A page that is filled from the top with text (measured and wrapped), lines and discs. For chart-layout.c. */
#pragma once

#include "agent/ctl/chart-layout.h"

typedef struct Page {
  ChartLayout *layout;
  ChartMeasureFunc measure;
  gpointer user_data;
  double y; /* everything above is taken */
} Page;

typedef enum Align { ALIGN_LEFT, ALIGN_CENTRE, ALIGN_RIGHT } Align;

double page_measure(const Page *page, const char *text, ChartFont font);

/* At the given baseline. */
ChartItem *page_text(Page *page, double x, double y, Align align, ChartFont font, ChartColor color,
                     const char *text);

/* From page->y on, in lines of at most `width`; advances page->y. */
void page_text_wrapped(Page *page, double x, double width, ChartFont font, ChartColor color,
                       const char *text);

ChartItem *page_rectangle(Page *page, double x, double y, double width, double height, ChartColor color);
ChartItem *page_line(Page *page, double x1, double y1, double x2, double y2, ChartColor color,
                     double line_width);

/* An empty path, to be filled by page_path_add(). */
ChartItem *page_path(Page *page, ChartKind kind, ChartColor color, double line_width);
void page_path_add(ChartItem *item, double x, double y);

/* A disc containing a number. */
void page_disc(Page *page, double x, double y, double radius, unsigned number);

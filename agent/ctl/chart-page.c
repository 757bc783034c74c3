/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A page that is filled from the top. */
#include "agent/ctl/chart-page.h"
#include "agent/ctl/format.h"

#include <assert.h>
#include <string.h>

#define LINE_HEIGHT 1.4 /* relative to the font size */

static const double font_sizes[] = {
    [CHART_TITLE] = 19,
    [CHART_HEADING] = 13,
    [CHART_BODY] = 12.5,
    [CHART_SMALL] = 11,
};
static_assert(G_N_ELEMENTS(font_sizes) == CHART_FONT_COUNT, "a size for each font");

double chart_font_size(ChartFont font) {
  return font_sizes[font];
}

static ChartItem *add(Page *page, ChartKind kind, ChartColor color) {
  ChartItem *item = g_new0(ChartItem, 1);

  item->kind = kind;
  item->color = color;
  g_ptr_array_add(page->layout->items, item);
  return item;
}

/* --- texts --- */

double page_measure(const Page *page, const char *text, ChartFont font) {
  return page->measure(text, font, page->user_data);
}

ChartItem *page_text(Page *page, double x, double y, Align align, ChartFont font, ChartColor color,
                     const char *text) {
  ChartItem *item = add(page, CHART_TEXT, color);

  item->text = format_safe(text, true);
  g_strdelimit(item->text, "\n", ' ');
  item->font = font;
  item->width = page_measure(page, item->text, font);
  item->height = font_sizes[font];
  item->x = align == ALIGN_LEFT ? x : align == ALIGN_RIGHT ? x - item->width : x - item->width / 2;
  item->y = y;
  return item;
}

/* How many bytes of a safe text fit; at least one character, so that wrapping always makes progress. */
static size_t fitting(const Page *page, const char *text, ChartFont font, double width) {
  size_t fits = (size_t)(g_utf8_next_char(text) - text), length = strlen(text);

  if (page_measure(page, text, font) <= width)
    return length;
  while (fits < length) {
    size_t next = (size_t)(g_utf8_next_char(text + fits) - text);
    g_autofree char *head = g_strndup(text, next);

    if (page_measure(page, head, font) > width)
      break;
    fits = next;
  }
  return fits;
}

static void add_wrapped_line(Page *page, double x, ChartFont font, ChartColor color, const char *line) {
  page->y += font_sizes[font] * LINE_HEIGHT;
  page_text(page, x, page->y, ALIGN_LEFT, font, color, line);
}

void page_text_wrapped(Page *page, double x, double width, ChartFont font, ChartColor color,
                       const char *text) {
  g_autofree char *safe = format_safe(text, true);
  g_auto(GStrv) words = g_strsplit_set(safe, " \n", -1);
  g_autoptr(GString) line = g_string_new(NULL);

  for (unsigned i = 0; words[i]; i++) {
    const char *word = words[i];
    g_autofree char *tried = g_strdup_printf("%s%s%s", line->str, line->len > 0 ? " " : "", word);

    if (!*word)
      continue;
    if (page_measure(page, tried, font) <= width) {
      g_string_assign(line, tried);
      continue;
    }
    if (line->len > 0)
      add_wrapped_line(page, x, font, color, line->str);
    /* Break words that are wider than a line. */
    while (page_measure(page, word, font) > width) {
      size_t fits = fitting(page, word, font, width);
      g_autofree char *head = g_strndup(word, fits);

      add_wrapped_line(page, x, font, color, head);
      word += fits;
    }
    g_string_assign(line, word);
  }
  if (line->len > 0)
    add_wrapped_line(page, x, font, color, line->str);
}

/* --- shapes --- */

ChartItem *page_rectangle(Page *page, double x, double y, double width, double height, ChartColor color) {
  ChartItem *item = add(page, CHART_RECTANGLE, color);

  item->x = x;
  item->y = y;
  item->width = width;
  item->height = height;
  return item;
}

ChartItem *page_path(Page *page, ChartKind kind, ChartColor color, double line_width) {
  ChartItem *item = add(page, kind, color);

  item->path = g_array_new(FALSE, FALSE, sizeof(ChartPlace));
  item->line_width = line_width;
  return item;
}

void page_path_add(ChartItem *item, double x, double y) {
  ChartPlace place = {x, y};

  g_array_append_val(item->path, place);
}

ChartItem *page_line(Page *page, double x1, double y1, double x2, double y2, ChartColor color,
                     double line_width) {
  ChartItem *item = page_path(page, CHART_LINE, color, line_width);

  page_path_add(item, x1, y1);
  page_path_add(item, x2, y2);
  return item;
}

void page_disc(Page *page, double x, double y, double radius, unsigned number) {
  ChartItem *item = add(page, CHART_DISC, CHART_MARK);
  g_autofree char *text = g_strdup_printf("%u", number);

  item->x = x;
  item->y = y;
  item->width = item->height = 2 * radius;
  page_text(page, x, y + font_sizes[CHART_SMALL] * 0.36, ALIGN_CENTRE, CHART_SMALL, CHART_PAPER, text);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as an SVG file, drawn by cairo. Text is drawn as outlines, so that the file looks the same everywhere; the
 * description element contains it as plain text, for search and accessibility. */
#include "agent/ctl/chart-svg.h"
#include "agent/ctl/chart-layout.h"

#include <assert.h>
#include <cairo-svg.h>
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/stat.h>

#define FAMILY "sans-serif"

typedef struct Rgba {
  double red, green, blue, alpha;
} Rgba;

#define RGB(hex)                                                                                             \
  { ((hex) >> 16 & 255) / 255.0, ((hex) >> 8 & 255) / 255.0, ((hex)&255) / 255.0, 1 }
#define RGBA(hex, alpha)                                                                                     \
  { ((hex) >> 16 & 255) / 255.0, ((hex) >> 8 & 255) / 255.0, ((hex)&255) / 255.0, alpha }

/* Lines differ in lightness as well as in hue, for colour-blind readers. */
static const Rgba colors[] = {
    [CHART_PAPER] = RGB(0xffffff),
    [CHART_INK] = RGB(0x1f2328),
    [CHART_MUTED] = RGB(0x66707a),
    [CHART_GRID] = RGB(0xe4e7ea),
    [CHART_GAP] = RGB(0xf3f4f6),
    [CHART_REMAINING] = RGB(0x1f5fa8),
    [CHART_REMAINING_AREA] = RGBA(0x1f5fa8, 0.14),
    [CHART_BANDWIDTH] = RGB(0x0b5c4a),
    [CHART_DIRTY_RATE] = RGB(0xd9631e),
    [CHART_THROTTLE] = RGB(0x7a3fa0),
    [CHART_THROTTLE_AREA] = RGBA(0x7a3fa0, 0.14),
    [CHART_MARK] = RGB(0x3d444d),
    [CHART_PRE_COPY] = RGB(0xc9dcf2),
    [CHART_AUTO_CONVERGE] = RGB(0xe2d0ef),
    [CHART_STOP_AND_COPY] = RGB(0xf7d3bd),
    [CHART_POST_COPY] = RGB(0xc4e6d3),
};
static_assert(G_N_ELEMENTS(colors) == CHART_COLOR_COUNT, "a value for each colour");

/* --- drawing --- */

static void set_font(cairo_t *cairo, ChartFont font) {
  bool bold = font == CHART_TITLE || font == CHART_HEADING;

  cairo_select_font_face(cairo, FAMILY, CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo, chart_font_size(font));
}

static double measure(const char *text, ChartFont font, gpointer user_data) {
  cairo_text_extents_t extents;

  set_font(user_data, font);
  cairo_text_extents(user_data, text, &extents);
  return extents.x_advance;
}

static void trace(cairo_t *cairo, const GArray *path) {
  for (guint i = 0; i < path->len; i++)
    cairo_line_to(cairo, g_array_index(path, ChartPlace, i).x, g_array_index(path, ChartPlace, i).y);
}

static void draw(cairo_t *cairo, const ChartItem *item) {
  static const double dashes[] = {3, 3};
  const Rgba *color = &colors[item->color];

  cairo_new_path(cairo);
  cairo_set_source_rgba(cairo, color->red, color->green, color->blue, color->alpha);
  switch (item->kind) {
  case CHART_TEXT:
    set_font(cairo, item->font);
    cairo_move_to(cairo, item->x, item->y);
    cairo_show_text(cairo, item->text);
    break;
  case CHART_LINE:
    cairo_set_line_width(cairo, item->line_width);
    cairo_set_dash(cairo, dashes, item->dashed ? G_N_ELEMENTS(dashes) : 0, 0);
    trace(cairo, item->path);
    cairo_stroke(cairo);
    break;
  case CHART_AREA:
    trace(cairo, item->path);
    cairo_close_path(cairo);
    cairo_fill(cairo);
    break;
  case CHART_RECTANGLE:
    cairo_rectangle(cairo, item->x, item->y, item->width, item->height);
    cairo_fill(cairo);
    break;
  case CHART_DISC:
    cairo_arc(cairo, item->x, item->y, item->width / 2, 0, 2 * G_PI);
    cairo_fill(cairo);
    break;
  }
}

static cairo_status_t take_bytes(void *closure, const unsigned char *data, unsigned length) {
  g_byte_array_append(closure, data, length);
  return CAIRO_STATUS_SUCCESS;
}

/* Measures on the same kind of surface that is drawn on later, where nothing is rounded to pixels. */
static ChartLayout *lay_out(const Report *report, const char *closing) {
  cairo_surface_t *surface = cairo_svg_surface_create_for_stream(NULL, NULL, 1, 1);
  cairo_t *cairo = cairo_create(surface);
  ChartLayout *layout = chart_layout_new(report, closing, measure, cairo);

  cairo_destroy(cairo);
  cairo_surface_destroy(surface);
  return layout;
}

static cairo_status_t render(const ChartLayout *layout, GByteArray *bytes) {
  cairo_surface_t *surface =
      cairo_svg_surface_create_for_stream(take_bytes, bytes, layout->width, layout->height);
  cairo_t *cairo = cairo_create(surface);
  cairo_status_t status;

  cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
  cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
  for (guint i = 0; i < layout->items->len; i++)
    draw(cairo, layout->items->pdata[i]);
  status = cairo_status(cairo);
  cairo_destroy(cairo);
  cairo_surface_finish(surface);
  if (status == CAIRO_STATUS_SUCCESS)
    status = cairo_surface_status(surface);
  cairo_surface_destroy(surface);
  return status;
}

/* --- the file --- */

/* Inserts title and description after the root's start tag, where SVG expects them. */
static GBytes *describe(GByteArray *bytes, const char *title, const char *description) {
  const char *text = (const char *)bytes->data, *root = g_strstr_len(text, bytes->len, "<svg");
  const char *end = root ? memchr(root, '>', bytes->len - (size_t)(root - text)) : NULL;
  g_autofree char *elements =
      g_markup_printf_escaped("\n<title>%s</title>\n<desc>%s</desc>", title, description);
  GByteArray *out = g_byte_array_new();
  size_t head = end ? (size_t)(end + 1 - text) : bytes->len;

  g_byte_array_append(out, bytes->data, (guint)head);
  if (end)
    g_byte_array_append(out, (const guint8 *)elements, (guint)strlen(elements));
  g_byte_array_append(out, bytes->data + head, (guint)(bytes->len - head));
  return g_byte_array_free_to_bytes(out);
}

GBytes *chart_svg(const Report *report, const char *closing, GError **error) {
  g_autoptr(ChartLayout) layout = lay_out(report, closing);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autofree char *title = report_title(report);
  g_autofree char *safe_title = format_safe(title, true);
  g_autofree char *description = chart_layout_describe(layout);
  cairo_status_t status = render(layout, bytes);

  if (status != CAIRO_STATUS_SUCCESS) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot draw the chart: %s",
                cairo_status_to_string(status));
    return NULL;
  }
  return describe(bytes, safe_title, description);
}

bool chart_svg_write(const char *path, GBytes *svg, GError **error) {
  struct stat st;
  gsize size;
  const char *data = g_bytes_get_data(svg, &size);

  /* The file is renamed into place, which would replace a device by a regular file. */
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_REGULAR_FILE, "%s exists and is not a regular file", path);
    return false;
  }
  return g_file_set_contents_full(path, data, (gssize)size, G_FILE_SET_CONTENTS_CONSISTENT, 0666, error);
}

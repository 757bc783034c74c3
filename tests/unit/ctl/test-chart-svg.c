/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports as drawings: nothing is written over anything else, all is on the sheet, and the file is SVG. */
#include "agent/ctl/chart-layout.h"
#include "agent/ctl/chart-svg.h"

#include "tests/unit/ctl/reports.h"

#include <cairo.h>
#include <glib/gstdio.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <math.h>
#include <sys/stat.h>

/* About what letters take. */
static double measure_roughly(const char *text, ChartFont font, gpointer user_data) {
  return (double)g_utf8_strlen(text, -1) * chart_font_size(font) * 0.58;
}

static const ChartItem *item_at(const ChartLayout *layout, guint i) {
  return layout->items->pdata[i];
}

typedef struct Box {
  double left, top, right, bottom;
} Box;

/* Of capitals and digits: what goes below the baseline may come near to the next line. */
static Box box_of(const ChartItem *text) {
  return (Box){text->x, text->y - 0.75 * text->height, text->x + text->width, text->y};
}

static bool overlap(const Box *a, const Box *b) {
  return a->left < b->right - 0.5 && b->left < a->right - 0.5 && a->top < b->bottom - 0.5 &&
         b->top < a->bottom - 0.5;
}

static void assert_no_text_over_another(const ChartLayout *layout) {
  for (guint i = 0; i < layout->items->len; i++) {
    Box a = box_of(item_at(layout, i));

    if (item_at(layout, i)->kind != CHART_TEXT)
      continue;
    for (guint k = i + 1; k < layout->items->len; k++) {
      Box b = box_of(item_at(layout, k));

      if (item_at(layout, k)->kind == CHART_TEXT && overlap(&a, &b))
        fail_msg("\"%s\" is over \"%s\"", item_at(layout, k)->text, item_at(layout, i)->text);
    }
  }
}

static void assert_discs_apart(const ChartLayout *layout) {
  for (guint i = 0; i < layout->items->len; i++)
    for (guint k = i + 1; k < layout->items->len; k++) {
      const ChartItem *a = item_at(layout, i), *b = item_at(layout, k);

      if (a->kind == CHART_DISC && b->kind == CHART_DISC)
        assert_true(hypot(a->x - b->x, a->y - b->y) >= a->width);
    }
}

/* Dashed lines of marks go up to texts, and not through them. */
static void assert_no_mark_line_through_text(const ChartLayout *layout) {
  for (guint i = 0; i < layout->items->len; i++) {
    const ChartItem *line = item_at(layout, i);
    const ChartPlace *ends = line->kind == CHART_LINE && line->dashed ? (const void *)line->path->data : NULL;

    for (guint k = 0; ends && k < layout->items->len; k++) {
      const ChartItem *text = item_at(layout, k);
      Box box = box_of(text), thin = {ends[0].x - 0.4, ends[0].y, ends[0].x + 1, ends[1].y};

      /* The numbers on the discs are over them. */
      if (text->kind == CHART_TEXT && text->color != CHART_PAPER && overlap(&thin, &box) &&
          strcmp(text->text, "no data") != 0)
        fail_msg("a line at %g goes through \"%s\"", ends[0].x, text->text);
    }
  }
}

static void assert_on_the_sheet(const ChartLayout *layout) {
  for (guint i = 0; i < layout->items->len; i++) {
    const ChartItem *item = item_at(layout, i);

    if (item->kind == CHART_TEXT)
      assert_true(item->x >= 0 && item->x + item->width <= layout->width + 0.5);
    assert_true(item->y >= 0 && item->y <= layout->height);
    for (guint p = 0; item->path && p < item->path->len; p++) {
      const ChartPlace *place = &g_array_index(item->path, ChartPlace, p);

      if (!(place->x >= 0 && place->x <= layout->width && place->y >= 0 && place->y <= layout->height))
        fail_msg("a place at %g, %g of %g, %g", place->x, place->y, layout->width, layout->height);
    }
  }
}

static unsigned count(const ChartLayout *layout, ChartKind kind, ChartColor color) {
  unsigned n = 0;

  for (guint i = 0; i < layout->items->len; i++)
    n += item_at(layout, i)->kind == kind && item_at(layout, i)->color == color;
  return n;
}

static void assert_sound(const ChartLayout *layout, const Report *report) {
  assert_no_text_over_another(layout);
  assert_discs_apart(layout);
  assert_no_mark_line_through_text(layout);
  assert_on_the_sheet(layout);
  /* Once where it happened, once in the list. */
  assert_int_equal(count(layout, CHART_DISC, CHART_MARK), 2 * report->marks->len);
}

/* --- the layout --- */

static const struct Sheet {
  const char *name; /* of the report */
  unsigned marks;
  const char *labels[12]; /* texts that are there */
  bool throttle;
} sheets[] = {
    {"post-copy",
     2,
     {"web1 to node-b: migrated in 7.3 s, downtime 5 ms", "Remaining memory, MiB", "256",
      "Bandwidth and dirty rate, MiB/s", "bandwidth", "dirty rate",
      "time since the start of the migration, s", "pre-copy", "post-copy 5.9 s", "1.6 s", "Outcome",
      "the end, told"},
     false},
    {"auto-converge",
     2,
     {"web1 to node-b: aborted after 19.8 s (NOT_CONVERGING)", "Guest CPU throttling, %", "100",
      "auto-converge", "auto-converge 10.0 s", "13", "19.0 s"},
     true},
    {"running", 0, {"web1 to node-b: pre-copy, 4.0 s so far", "So far", "pre-copy 4.0 s"}, false},
    {"gap", 4, {"no data", "asking both ends for the outcome", "4.4 s"}, false},
};

static void sheet_has_its_labels(void **state) {
  const struct Sheet *row = *state;
  json_t *reply = reply_load(row->name);
  g_auto(Report) report = {0};

  assert_true(report_read(reply, &report));

  g_autoptr(ChartLayout) layout =
      chart_layout_new(&report, "the end, told\n  twice\n", measure_roughly, NULL);
  g_autofree char *description = chart_layout_describe(layout);

  assert_int_equal(report.marks->len, row->marks);
  assert_sound(layout, &report);
  for (size_t i = 0; i < LENGTH(row->labels) && row->labels[i]; i++) {
    g_autofree char *line = g_strdup_printf("%s\n", row->labels[i]);

    if (!strstr(description, line))
      fail_msg("there is no \"%s\" in:\n%s", row->labels[i], description);
  }
  assert_int_equal(count(layout, CHART_LINE, CHART_THROTTLE), row->throttle);
  assert_true(count(layout, CHART_LINE, CHART_REMAINING) >= 1);
  assert_true(count(layout, CHART_LINE, CHART_BANDWIDTH) >= 1);
  json_decref(reply);
}

static void any_sheet_is_sound(void **state) {
  GRand *rand = g_rand_new_with_seed(13);

  for (int round = 0; round < 200; round++) {
    json_t *reply = reply_random(rand);
    g_auto(Report) report = {0};

    assert_true(report_read(reply, &report));

    g_autoptr(ChartLayout) layout = chart_layout_new(&report, "", measure_roughly, NULL);

    assert_sound(layout, &report);
    json_decref(reply);
  }
  g_rand_free(rand);
}

/* --- the file --- */

static const xmlNode *child_of(const xmlNode *node, const char *name) {
  for (const xmlNode *child = node->children; child; child = child->next)
    if (child->type == XML_ELEMENT_NODE && strcmp((const char *)child->name, name) == 0)
      return child;
  fail_msg("%s has no %s", (const char *)node->name, name);
  return NULL;
}

static unsigned count_elements(const xmlNode *node, const char *name) {
  unsigned n = 0;

  for (; node; node = node->next)
    n += (node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0) +
         count_elements(node->children, name);
  return n;
}

static GBytes *draw(json_t *reply) {
  g_auto(Report) report = {0};
  g_autoptr(GError) error = NULL;
  GBytes *svg;

  assert_true(report_read(reply, &report));
  svg = chart_svg(&report, "It ended.\n", &error);
  if (!svg)
    fail_msg("%s", error->message);
  return svg;
}

static xmlDoc *parse(GBytes *svg) {
  gsize size;
  const char *data = g_bytes_get_data(svg, &size);
  xmlDoc *document = xmlReadMemory(data, (int)size, "chart.svg", NULL, XML_PARSE_NONET);

  assert_non_null(document);
  return document;
}

static void the_file_is_svg_that_says_what_it_shows(void **state) {
  const struct Sheet *row = *state;
  json_t *reply = reply_load(row->name);
  g_autoptr(GBytes) svg = draw(reply);
  xmlDoc *document = parse(svg);
  const xmlNode *root = xmlDocGetRootElement(document);
  xmlChar *title = xmlNodeGetContent(child_of(root, "title"));
  xmlChar *description = xmlNodeGetContent(child_of(root, "desc"));

  assert_string_equal((const char *)root->name, "svg");
  assert_string_equal((const char *)root->ns->href, "http://www.w3.org/2000/svg");
  assert_string_equal((const char *)title, row->labels[0] && row->name[0] != 'g'
                                               ? row->labels[0]
                                               : "web1 to node-b: migrated in 7.3 s, downtime 5 ms");
  assert_non_null(strstr((const char *)description, "Bandwidth and dirty rate, MiB/s\n"));
  assert_non_null(strstr((const char *)description, "It ended.\n"));
  /* Letters are drawn by reference to their outlines; lines and areas are paths. */
  assert_true(count_elements(root, "use") > strlen((const char *)description) / 2);
  assert_true(count_elements(root, "path") > 40);
  xmlFree(title);
  xmlFree(description);
  xmlFreeDoc(document);
  json_decref(reply);
}

/* A domain's name comes from elsewhere. */
static void what_xml_cannot_hold_does_not_get_into_it(void **state) {
  json_t *reply = reply_load("post-copy");
  json_t *job = json_object_get(reply, "job");

  json_object_set_new(job, "domain", json_pack("{ss}", "name", "a<b>&\"'\x01\x1b[31m\xef\xbf\xbe\xc3\xa4"));

  g_autoptr(GBytes) svg = draw(reply);
  xmlDoc *document = parse(svg);
  xmlChar *title = xmlNodeGetContent(child_of(xmlDocGetRootElement(document), "title"));

  assert_true(g_str_has_prefix((const char *)title, "a<b>&\"'??[31m?\xc3\xa4 to node-b: "));
  xmlFree(title);
  xmlFreeDoc(document);
  json_decref(reply);
}

typedef struct Place {
  char *directory;
  GBytes *svg;
} Place;

static int make_place(void **state) {
  Place *place = g_new0(Place, 1);

  place->directory = g_dir_make_tmp("chart-XXXXXX", NULL);
  place->svg = g_bytes_new_static("<svg/>", 6);
  *state = place;
  return 0;
}

static int remove_place(void **state) {
  Place *place = *state;
  GDir *directory = g_dir_open(place->directory, 0, NULL);

  for (const char *name; (name = g_dir_read_name(directory));) {
    g_autofree char *path = g_build_filename(place->directory, name, NULL);

    g_remove(path);
  }
  g_dir_close(directory);
  g_rmdir(place->directory);
  g_bytes_unref(place->svg);
  g_free(place->directory);
  g_free(place);
  return 0;
}

static unsigned count_files(const Place *place) {
  g_autoptr(GDir) directory = g_dir_open(place->directory, 0, NULL);
  unsigned n = 0;

  while (g_dir_read_name(directory))
    n++;
  return n;
}

static void a_file_is_written_and_replaced_whole(void **state) {
  Place *place = *state;
  g_autofree char *path = g_build_filename(place->directory, "web1.svg", NULL);
  g_autofree char *text = NULL;
  mode_t mask = umask(022);
  struct stat st;

  assert_true(chart_svg_write(path, place->svg, NULL));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  assert_true(g_file_set_contents(path, "an older one, which is longer", -1, NULL));
  assert_true(chart_svg_write(path, place->svg, NULL));
  assert_true(g_file_get_contents(path, &text, NULL, NULL));
  assert_string_equal(text, "<svg/>");
  assert_int_equal(count_files(place), 1);
  umask(mask);
}

static void where_none_can_be_written_that_is_said(void **state) {
  Place *place = *state;
  g_autofree char *nowhere = g_build_filename(place->directory, "none", "web1.svg", NULL);
  g_autoptr(GError) error = NULL;

  assert_false(chart_svg_write(nowhere, place->svg, &error));
  assert_non_null(strstr(error->message, nowhere));
  assert_int_equal(count_files(place), 0);
}

/* Renaming over it would make it a file. */
static void what_is_no_file_is_not_replaced(void **state) {
  Place *place = *state;
  g_autofree char *pipe = g_build_filename(place->directory, "pipe", NULL);
  g_autoptr(GError) error = NULL;
  struct stat st;

  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_false(chart_svg_write(pipe, place->svg, &error));
  assert_non_null(strstr(error->message, "is not a regular file"));
  assert_int_equal(lstat(pipe, &st), 0);
  assert_true(S_ISFIFO(st.st_mode));
  g_clear_error(&error);
  assert_false(chart_svg_write(place->directory, place->svg, &error));
}

int main(void) {
  Tests tests = {0};
  size_t files;
  int failed;

  TESTS_ADD_ROWS(&tests, sheet_has_its_labels, sheets);
  tests_add(&tests, "any sheet is sound", any_sheet_is_sound, NULL);
  TESTS_ADD_ROWS(&tests, the_file_is_svg_that_says_what_it_shows, sheets);
  tests_add(&tests, "what XML cannot hold does not get into it", what_xml_cannot_hold_does_not_get_into_it,
            NULL);
  files = tests.count;
  tests_add(&tests, "a file is written, and replaced whole", a_file_is_written_and_replaced_whole, NULL);
  tests_add(&tests, "where none can be written, that is said", where_none_can_be_written_that_is_said, NULL);
  tests_add(&tests, "what is no file is not replaced", what_is_no_file_is_not_replaced, NULL);
  for (size_t i = files; i < tests.count; i++) {
    tests.list[i].setup_func = make_place;
    tests.list[i].teardown_func = remove_place;
  }
  failed = tests_run(&tests, "ctl-chart-svg");
  xmlCleanupParser();
  cairo_debug_reset_static_data();
  return failed;
}

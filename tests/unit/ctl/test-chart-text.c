/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports as text. With REGEN=1 the golden files are written anew: read the difference. */
#include "agent/ctl/chart-text.h"

#include "tests/unit/ctl/reports.h"

static const struct Drawing {
  const char *name; /* of the golden file */
  const char *report;
  unsigned width;
  bool utf8;
} drawings[] = {
    {"post-copy-80", "post-copy", 80, true},
    {"post-copy-80-ascii", "post-copy", 80, false},
    {"post-copy-50", "post-copy", 50, true},
    {"auto-converge-80", "auto-converge", 80, true},
    {"auto-converge-140", "auto-converge", 140, true},
    {"auto-converge-80-ascii", "auto-converge", 80, false},
    {"gap-80", "gap", 80, true},
    {"gap-80-ascii", "gap", 80, false},
    {"running-80", "running", 80, true},
};

static void drawing_is_as_the_golden_one(void **state) {
  const struct Drawing *row = *state;
  g_autofree char *path = g_strdup_printf("%s/%s.txt", g_getenv("GOLDEN"), row->name);
  json_t *reply = reply_load(row->report);
  g_autofree char *golden = NULL;
  g_auto(Report) report = {0};

  assert_true(report_read(reply, &report));

  g_autofree char *chart = chart_text(&report, row->width, row->utf8);
  g_autofree char *marks = chart_text_marks(&report, row->width);
  g_autofree char *text = g_strconcat(chart, "\n", marks, NULL);

  if (g_getenv("REGEN"))
    assert_true(g_file_set_contents(path, text, -1, NULL));
  assert_true(g_file_get_contents(path, &golden, NULL, NULL));
  assert_string_equal(text, golden);
  json_decref(reply);
}

/* No line is wider than the terminal, but for one word that is. */
static void assert_fits(const char *text, unsigned width, bool utf8) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

  for (unsigned i = 0; lines[i]; i++) {
    const char *word = strrchr(lines[i], ' ');
    size_t length = strlen(lines[i]);

    if (format_width(lines[i]) > width && (!word || format_width(word + 1) < width / 2))
      fail_msg("%u columns of %u: %s", format_width(lines[i]), width, lines[i]);
    assert_true(length == 0 || lines[i][length - 1] != ' ');
    assert_true(utf8 || g_str_is_ascii(lines[i]));
  }
  assert_true(g_str_has_suffix(text, "\n"));
}

static void any_chart_fits(void **state) {
  GRand *rand = g_rand_new_with_seed(11);

  for (int round = 0; round < 300; round++) {
    json_t *reply = reply_random(rand);
    unsigned width = (unsigned)g_rand_int_range(rand, 1, 300);
    unsigned taken = CLAMP(width, CHART_TEXT_WIDTH_MIN, CHART_TEXT_WIDTH_MAX);
    bool utf8 = g_rand_boolean(rand);
    g_auto(Report) report = {0};

    assert_true(report_read(reply, &report));

    g_autofree char *chart = chart_text(&report, width, utf8);
    g_autofree char *marks = chart_text_marks(&report, width);

    assert_fits(chart, taken, utf8);
    if (report.marks->len > 0)
      assert_fits(marks, taken, true);
    else
      assert_string_equal(marks, "");
    json_decref(reply);
  }
  g_rand_free(rand);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, drawing_is_as_the_golden_one, drawings);
  tests_add(&tests, "any chart fits", any_chart_fits, NULL);
  return tests_run(&tests, "ctl-chart-text");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prometheus's text format, to the byte. */
#include "agent/base/promtext.h"

#include "tests/unit/core/rows.h"

#include <math.h>

static const struct Value {
  const char *name;
  double value;
  const char *text;
} values[] = {
    {"nothing", 0, "m 0\n"},
    {"a whole number", 42, "m 42\n"},
    {"a large whole number stays readable", 68719476736.0, "m 68719476736\n"},
    {"a fraction", 0.25, "m 0.25\n"},
    {"one that binary does not hold", 0.1, "m 0.1\n"},
    {"below nothing", -3.5, "m -3.5\n"},
    {"no limit", HUGE_VAL, "m +Inf\n"},
};

static void value_is_written(void **state) {
  const struct Value *row = *state;
  g_autoptr(GString) text = g_string_new(NULL);

  prom_value(text, "m", row->value);
  assert_string_equal(text->str, row->text);
}

static const struct Label {
  const char *name;
  const char *value;
  const char *text;
} labels[] = {
    {"plain", "web3", "m{l=\"web3\"} 1\n"},
    {"empty", "", "m{l=\"\"} 1\n"},
    {"nothing at all", NULL, "m{l=\"\"} 1\n"},
    {"quotes", "a\"b", "m{l=\"a\\\"b\"} 1\n"},
    {"a backslash", "a\\b", "m{l=\"a\\\\b\"} 1\n"},
    {"a line's end", "a\nb", "m{l=\"a\\nb\"} 1\n"},
    {"letters beyond ASCII", "größe", "m{l=\"größe\"} 1\n"},
    {"bytes that are no UTF-8", "a\xff", "m{l=\"a\xef\xbf\xbd\"} 1\n"},
    {"what looks like a line of its own", "x\"} 1\n# TYPE", "m{l=\"x\\\"} 1\\n# TYPE\"} 1\n"},
};

static void label_is_escaped(void **state) {
  const struct Label *row = *state;
  g_autoptr(GString) text = g_string_new(NULL);

  prom_sample(text, "m", &(PromLabel){"l", row->value}, 1, 1);
  assert_string_equal(text->str, row->text);
}

static void a_family_is_opened(void **state) {
  g_autoptr(GString) text = g_string_new(NULL);
  const PromLabel two[] = {{"a", "1"}, {"b", "2"}};

  prom_family(text, "m_total", PROM_COUNTER, "Of what.");
  prom_sample(text, "m_total", two, 2, 7);
  assert_string_equal(text->str,
                      "# HELP m_total Of what.\n# TYPE m_total counter\nm_total{a=\"1\",b=\"2\"} 7\n");
}

static void a_histogram_adds_up(void **state) {
  static const double bounds[] = {0.1, 1, 10};
  static const double seen[] = {0.1, 0.100001, 1, 3, 10, 11, 500};
  g_autoptr(GString) text = g_string_new(NULL);
  PromHistogram histogram = {{0}};

  for (size_t i = 0; i < G_N_ELEMENTS(seen); i++)
    prom_histogram_note(&histogram, bounds, G_N_ELEMENTS(bounds), seen[i]);
  prom_histogram(text, "h", "Of what.", &histogram, bounds, G_N_ELEMENTS(bounds));
  assert_string_equal(text->str, "# HELP h Of what.\n"
                                 "# TYPE h histogram\n"
                                 "h_bucket{le=\"0.1\"} 1\n"
                                 "h_bucket{le=\"1\"} 3\n"
                                 "h_bucket{le=\"10\"} 5\n"
                                 "h_bucket{le=\"+Inf\"} 7\n"
                                 "h_sum 525.200001\n"
                                 "h_count 7\n");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, value_is_written, values);
  TESTS_ADD_ROWS(&tests, label_is_escaped, labels);
  tests_add(&tests, "a family is opened", a_family_is_opened, NULL);
  tests_add(&tests, "a histogram adds up", a_histogram_adds_up, NULL);
  return tests_run(&tests, "promtext");
}

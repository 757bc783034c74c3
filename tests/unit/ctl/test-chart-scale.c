/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes: round steps, few ticks, labels that can be told apart. */
#include "agent/ctl/chart-scale.h"

#include "tests/unit/core/rows.h"

#define KIB 1024.0
#define MIB (1024.0 * KIB)
#define GIB (1024.0 * MIB)

typedef enum Kind { BYTES, RATE, PERCENT, TIME } Kind;

static const struct Axis {
  const char *name;
  Kind kind;
  double max;
  unsigned ticks_max;
  const char *labels; /* of all ticks */
  const char *unit;
} axes[] = {
    {"memory in powers of two", BYTES, 256 * MIB, 4, "0 64 128 192 256", "MiB"},
    {"a little more than one step", BYTES, 257 * MIB, 4, "0 128 256 384", "MiB"},
    {"less than one unit's half", BYTES, 1.2 * GIB, 5, "0 0.25 0.50 0.75 1.00 1.25", "GiB"},
    {"a terabyte guest", BYTES, 6.5 * 1024 * GIB, 4, "0 2 4 6 8", "TiB"},
    {"some bytes", BYTES, 3, 8, "0 1 2 3", "B"},
    {"nothing", BYTES, 0, 4, "0 0.25 0.50 0.75 1.00", "MiB"},
    {"one tick", BYTES, 100 * MIB, 1, "0 128", "MiB"},
    {"a rate in tens", RATE, 47 * MIB, 5, "0 10 20 30 40 50", "MiB/s"},
    {"a rate in twenties", RATE, 118 * MIB, 6, "0 20 40 60 80 100 120", "MiB/s"},
    {"a rate of one", RATE, 1.0 * GIB, 5, "0 0.2 0.4 0.6 0.8 1.0", "GiB/s"},
    {"no rate", RATE, 0, 2, "0 0.5 1.0", "MiB/s"},
    {"percent in halves", PERCENT, 0, 2, "0 50 100", "%"},
    {"percent in quarters", PERCENT, 0, 4, "0 25 50 75 100", "%"},
    {"percent with little room", PERCENT, 0, 1, "0 100", "%"},
    {"some seconds", TIME, 8.4, 10, "0 1 2 3 4 5 6 7 8", "s"},
    {"less than a second", TIME, 0.52, 6, "0 0.1 0.2 0.3 0.4 0.5", "s"},
    {"two minutes, less a moment", TIME, 119, 6, "0 30 60 90", "s"},
    {"some minutes", TIME, 300, 6, "0:00 1:00 2:00 3:00 4:00 5:00", "min:s"},
    {"half minutes", TIME, 125, 5, "0:00 0:30 1:00 1:30 2:00", "min:s"},
    {"some hours", TIME, 10420, 7, "0:00 0:30 1:00 1:30 2:00 2:30", "h:min"},
    {"some days", TIME, 5 * 86400, 5, "0d 0h 1d 0h 2d 0h 3d 0h 4d 0h 5d 0h", "days"},
    {"a month", TIME, 31 * 86400, 5, "0d 0h 8d 0h 16d 0h 24d 0h", "days"},
};

static Scale scale_of(const struct Axis *row) {
  switch (row->kind) {
  case BYTES:
    return scale_bytes(row->max, row->ticks_max);
  case RATE:
    return scale_rate(row->max, row->ticks_max);
  case PERCENT:
    return scale_percent(row->ticks_max);
  case TIME:
    break;
  }
  return scale_time(row->max, row->ticks_max);
}

static void axis_has_its_ticks(void **state) {
  const struct Axis *row = *state;
  g_autoptr(GString) labels = g_string_new(NULL);
  Scale scale = scale_of(row);

  for (unsigned i = 0; i < scale_count(&scale); i++)
    g_string_append_printf(labels, "%s%s", i > 0 ? " " : "", scale_label(&scale, i * scale.step).text);
  assert_string_equal(labels->str, row->labels);
  assert_string_equal(scale.unit_name, row->unit);
}

static void a_label_with_its_unit(void **state) {
  Scale bytes = scale_bytes(256 * MIB, 4), time = scale_time(300, 5), seconds = scale_time(9, 5);

  assert_string_equal(scale_label_unit(&bytes, 128 * MIB).text, "128 MiB");
  assert_string_equal(scale_label_unit(&bytes, 0).text, "0 MiB");
  assert_string_equal(scale_label_unit(&time, 90).text, "1:30");
  assert_string_equal(scale_label_unit(&seconds, 4).text, "4 s");
}

/* Of any size: what was seen is on it, it is not much larger, there are few ticks, and no two say the same. */
static void any_axis_holds_what_it_is_for(void **state) {
  for (double max = 0.5; max < 1e15; max *= 1.37) {
    for (unsigned ticks_max = 1; ticks_max <= 20; ticks_max++) {
      Scale scales[] = {scale_bytes(max, ticks_max), scale_rate(max, ticks_max), scale_time(max, ticks_max)};

      for (size_t s = 0; s < LENGTH(scales); s++) {
        const Scale *scale = &scales[s];

        assert_true(scale->max >= max * 0.999999);
        assert_true(scale->max - max <= scale->step * 1.000001);
        assert_true(scale_count(scale) <= ticks_max + 1);
        for (unsigned i = 1; i < scale_count(scale); i++)
          assert_string_not_equal(scale_label(scale, i * scale->step).text,
                                  scale_label(scale, (i - 1) * scale->step).text);
      }
    }
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, axis_has_its_ticks, axes);
  tests_add(&tests, "a label with its unit", a_label_with_its_unit, NULL);
  tests_add(&tests, "any axis holds what it is for", any_axis_holds_what_it_is_for, NULL);
  return tests_run(&tests, "ctl-chart-scale");
}

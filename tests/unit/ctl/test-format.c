/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes, rates, times and hostile text, as people read them. */
#include "agent/ctl/format.h"
#include "tests/unit/core/rows.h"

static const struct Number {
  const char *name;
  FormatText (*format)(int64_t);
  int64_t value;
  const char *text;
} numbers[] = {
    {"unknown size", format_bytes, -1, "-"},
    {"no bytes", format_bytes, 0, "0 B"},
    {"the last without a unit", format_bytes, 1023, "1023 B"},
    {"one KiB", format_bytes, 1024, "1.0 KiB"},
    {"below ten has a decimal", format_bytes, 9961472, "9.5 MiB"},
    {"what would round to ten has none", format_bytes, 10444800, "10 MiB"},
    {"hundreds", format_bytes, 123731968, "118 MiB"},
    {"what would round to 1024 takes the next unit", format_bytes, 1073741823, "1.0 GiB"},
    {"the largest", format_bytes, INT64_MAX, "8.0 EiB"},
    {"a rate", format_rate, 123731968, "118 MiB/s"},
    {"a small rate", format_rate, 5, "5 B/s"},
    {"unknown rate", format_rate, -1, "-"},
    {"milliseconds", format_duration_ms, 999, "999 ms"},
    {"seconds", format_duration_ms, 12345, "12.3 s"},
    {"nearly a minute", format_duration_ms, 59949, "59.9 s"},
    {"a minute by rounding", format_duration_ms, 59950, "1 min 00 s"},
    {"minutes", format_duration_ms, 245000, "4 min 05 s"},
    {"hours", format_duration_ms, 7620000, "2 h 07 min"},
    {"days", format_duration_ms, 273600000, "3 d 4 h"},
    {"unknown duration", format_duration_ms, -1, "-"},
    {"a countdown ends at zero", format_seconds_of_ms, 999, "0 s"},
    {"a countdown", format_seconds_of_ms, 7000, "7 s"},
    {"the epoch", format_time, 0, "1970-01-01 00:00:00"},
    {"a clock", format_clock, INT64_C(86399000000), "23:59:59"},
    {"no time", format_time, -1, "-"},
};

static void number_reads(void **state) {
  const struct Number *row = *state;

  assert_string_equal(row->format(row->value).text, row->text);
}

static const struct Text {
  const char *name;
  const char *text;
  bool utf8;
  const char *safe;
} texts[] = {
    {"plain text stays", "web1 runs\n", true, "web1 runs\n"},
    {"an escape sequence is broken", "web\033[31m1\007", true, "web?[31m1?"},
    {"a carriage return does not go back", "a\rb\tc\x7f", true, "a?b?c?"},
    {"a C1 control character",
     "a\xc2\x9b"
     "31m",
     true, "a?31m"},
    {"letters stay where the locale has them", "gr\xc3\xbcn", true, "gr\xc3\xbcn"},
    {"and go where it has not", "gr\xc3\xbcn", false, "gr?n"},
    {"what turns the direction around goes",
     "a\xe2\x80\xae"
     "b",
     true, "a?b"},
};

static void text_is_safe(void **state) {
  const struct Text *row = *state;
  g_autofree char *safe = format_safe(row->text, row->utf8);

  assert_string_equal(safe, row->safe);
}

static void broken_utf8_is_safe(void **state) {
  g_autofree char *safe = format_safe("a\xff"
                                      "b",
                                      true);

  assert_true(g_utf8_validate(safe, -1, NULL));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, number_reads, numbers);
  TESTS_ADD_ROWS(&tests, text_is_safe, texts);
  tests_add(&tests, "broken utf8 is safe", broken_utf8_is_safe, NULL);
  return tests_run(&tests, "ctl-format");
}

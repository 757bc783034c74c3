/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The history of a migration: bounded, however long it takes, and true to what was read. */
#include "agent/job/history.h"

#include "proto/interface.h"
#include "tests/unit/core/rows.h"
#include "tests/unit/proto/interface-check.h"

#include <gio/gio.h>

#define POLL_MS 400
#define GAP_MS  3000
#define MIB     (UINT64_C(1) << 20)
#define ID      "0123456789abcdef0123456789abcdef"

static MigSample sample_of(uint64_t iteration, uint64_t remaining) {
  return (MigSample){.valid = true,
                     .active = true,
                     .iteration = iteration,
                     .memory_processed_bytes = 7 * MIB,
                     .memory_remaining_bytes = remaining,
                     .bandwidth_bytes_per_s = 50 * MIB,
                     .dirty_rate_bytes_per_s = 20 * MIB,
                     .expected_downtime_ms = 120};
}

static const HistoryPoint *points_of(const History *history, size_t *ret_n) {
  const HistoryPoint *points = history_points(history, ret_n);

  assert_true(*ret_n <= HISTORY_POINTS_MAX);
  return points;
}

/* From the start to `until_ms`, each where the one before ended. */
static void assert_without_gap(const History *history, uint64_t until_ms) {
  size_t n;
  const HistoryPoint *points = points_of(history, &n);
  uint64_t at_ms = 0;

  for (size_t i = 0; i < n; i++) {
    assert_int_equal(points[i].elapsed_ms - points[i].span_ms, at_ms);
    at_ms = points[i].elapsed_ms;
  }
  assert_int_equal(at_ms, until_ms);
}

static void each_reading_is_a_point_at_first(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  MigSample sample = sample_of(1, 100 * MIB);
  const HistoryPoint *points;
  size_t n;

  history_add(history, &sample, 500, MIG_STAGE_PRE_COPY);
  sample.throttle_pct = 20;
  sample.disk_remaining_bytes = 3;
  history_add(history, &sample, 900, MIG_STAGE_AUTO_CONVERGE);
  points = points_of(history, &n);
  assert_int_equal(n, 2);
  assert_int_equal(points[0].span_ms, 500);
  assert_int_equal(points[1].elapsed_ms, 900);
  assert_int_equal(points[1].span_ms, 400);
  assert_int_equal(points[1].stage, MIG_STAGE_AUTO_CONVERGE);
  assert_int_equal(points[1].throttle_pct, 20);
  assert_int_equal(points[1].iteration, 1);
  assert_int_equal(points[1].disk_remaining_bytes, 3);
  assert_int_equal(points[1].memory_processed_bytes, 7 * MIB);
  assert_int_equal(points[1].memory_remaining_bytes, 100 * MIB);
  assert_int_equal(points[1].memory_remaining_max_bytes, 100 * MIB);
  assert_int_equal(points[1].bandwidth_bytes_per_s, 50 * MIB);
  assert_int_equal(points[1].dirty_rate_bytes_per_s, 20 * MIB);
  assert_int_equal(points[1].expected_downtime_ms, 120);
}

static void a_rate_that_is_not_known_yet_is_that_of_what_moved(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  MigSample sample = sample_of(1, MIB);
  const HistoryPoint *points;
  size_t n;

  sample.bandwidth_bytes_per_s = 0;
  sample.memory_processed_bytes = 10 * MIB;
  history_add(history, &sample, 500, MIG_STAGE_PRE_COPY);
  history_add(history, &sample, 1000, MIG_STAGE_PRE_COPY);
  sample.memory_processed_bytes = 110 * MIB;
  history_add(history, &sample, 1000 + 10 * GAP_MS, MIG_STAGE_PRE_COPY);
  points = points_of(history, &n);
  assert_int_equal(points[0].bandwidth_bytes_per_s, 20 * MIB);
  assert_int_equal(points[1].bandwidth_bytes_per_s, 0);
  assert_int_equal(points[2].bandwidth_bytes_per_s, 100 * MIB / (10 * GAP_MS / 1000));
}

static void a_reading_that_is_not_later_is_ignored(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  MigSample sample = sample_of(1, MIB);
  size_t n;

  history_add(history, &sample, 0, MIG_STAGE_PRE_COPY);
  history_add(history, &sample, 500, MIG_STAGE_PRE_COPY);
  history_add(history, &sample, 500, MIG_STAGE_PRE_COPY);
  history_add(history, &sample, 499, MIG_STAGE_PRE_COPY);
  points_of(history, &n);
  assert_int_equal(n, 2);
}

/* A day, each 400 ms: the points stay few, even, and without a gap; area under the bandwidth is what moved. */
static void a_day_is_bounded_and_evenly_spaced(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  MigSample sample = sample_of(1, 0);
  double moved = 0, shown = 0;
  const unsigned readings = 216000;
  uint64_t longest_ms = 0, shortest_ms = UINT64_MAX;
  const HistoryPoint *points;
  size_t n;

  for (unsigned i = 1; i <= readings; i++) {
    sample.bandwidth_bytes_per_s = (i / 500 % 7) * 10 * MIB;
    sample.memory_remaining_bytes = (readings - i) * MIB;
    moved += (double)sample.bandwidth_bytes_per_s * POLL_MS / 1000;
    history_add(history, &sample, (uint64_t)i * POLL_MS, MIG_STAGE_PRE_COPY);
  }
  assert_without_gap(history, (uint64_t)readings * POLL_MS);
  points = points_of(history, &n);
  assert_true(n >= HISTORY_POINTS_MAX / 4);
  for (size_t i = 0; i < n; i++) {
    shown += (double)points[i].bandwidth_bytes_per_s * (double)points[i].span_ms / 1000;
    if (i + 1 == n)
      break; /* it grows yet */
    longest_ms = MAX(longest_ms, points[i].span_ms);
    shortest_ms = MIN(shortest_ms, points[i].span_ms);
    assert_true(points[i].memory_remaining_bytes > points[i + 1].memory_remaining_bytes);
  }
  assert_true(shown > 0.999 * moved && shown < 1.001 * moved);
  assert_true(longest_ms <= 3 * shortest_ms);
}

/* A sawtooth of `passes`, each of `readings`, from `top` down. */
static void saw(History *history, unsigned passes, unsigned readings, uint64_t top) {
  uint64_t at_ms = 0;

  for (unsigned pass = 1; pass <= passes; pass++)
    for (unsigned i = 0; i < readings; i++) {
      MigSample sample = sample_of(pass, top * (readings - i) / readings);

      history_add(history, &sample, at_ms += POLL_MS, MIG_STAGE_PRE_COPY);
    }
}

static void each_pass_keeps_its_top_and_its_end(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  const HistoryPoint *points;
  unsigned pass = 0;
  size_t n;

  saw(history, 40, 100, 100 * MIB);
  points = points_of(history, &n);
  for (size_t i = 0; i < n; i++) {
    if (points[i].iteration == pass)
      continue;
    assert_int_equal(points[i].iteration, ++pass);
    assert_int_equal(points[i].memory_remaining_max_bytes, 100 * MIB);
    if (i > 0)
      assert_int_equal(points[i - 1].memory_remaining_bytes, MIB);
  }
  assert_int_equal(pass, 40);
  assert_without_gap(history, 40 * 100 * POLL_MS);
}

static void more_passes_than_points_show_their_tops(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  const HistoryPoint *points;
  size_t n;

  saw(history, 5000, 3, 90 * MIB);
  points = points_of(history, &n);
  assert_without_gap(history, 5000 * 3 * POLL_MS);
  for (size_t i = 0; i < n; i++)
    if (points[i].span_ms >= 3 * POLL_MS)
      assert_int_equal(points[i].memory_remaining_max_bytes, 90 * MIB);
}

/* Neither passes nor stages nor gaps without number get past the bound. */
static void whatever_comes_it_is_bounded(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  uint64_t at_ms = 0;

  for (unsigned i = 0; i < 20000; i++) {
    MigSample sample = sample_of(i, MIB);
    size_t n;

    history_add(history, &sample, at_ms += (i % 3 == 0 ? 10 * GAP_MS : 1), (MigStage)(1 + i % 4));
    points_of(history, &n);
  }
}

static void the_highest_throttle_is_kept(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  const HistoryPoint *points;
  unsigned highest = 0;
  size_t n;

  for (unsigned i = 1; i <= 3000; i++) {
    MigSample sample = sample_of(1, MIB);

    sample.throttle_pct = i == 1001 ? 77 : 20;
    history_add(history, &sample, (uint64_t)i * POLL_MS, MIG_STAGE_AUTO_CONVERGE);
  }
  points = points_of(history, &n);
  for (size_t i = 0; i < n; i++)
    highest = MAX(highest, points[i].throttle_pct);
  assert_int_equal(highest, 77);
}

static void no_point_reaches_over_a_time_in_which_nobody_looked(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  uint64_t at_ms = 0, began_ms = 0;
  const HistoryPoint *points;
  unsigned gaps = 0;
  size_t n;

  for (unsigned i = 1; i <= 2000; i++) {
    MigSample sample = sample_of(1, MIB);

    at_ms += i == 1000 ? 60000 : POLL_MS;
    if (i == 1000)
      began_ms = at_ms;
    history_add(history, &sample, at_ms, MIG_STAGE_PRE_COPY);
  }
  points = points_of(history, &n);
  for (size_t i = 1; i < n; i++) {
    uint64_t begin_ms = points[i].elapsed_ms - points[i].span_ms;

    if (begin_ms == points[i - 1].elapsed_ms)
      continue;
    gaps++;
    assert_int_equal(begin_ms, began_ms);
    assert_int_equal(points[i - 1].elapsed_ms, began_ms - 60000);
  }
  assert_int_equal(gaps, 1);
}

/* --- its file --- */

static void its_file_reads_so(void **state) {
  g_autoptr(History) history = history_new(GAP_MS);
  MigSample sample = sample_of(2, 9);
  g_autofree char *text = NULL;

  history_add(history, &sample, 400, MIG_STAGE_PRE_COPY);
  sample.throttle_pct = 30;
  history_add(history, &sample, 800, MIG_STAGE_POST_COPY);
  text = history_to_text(history, ID);
  assert_string_equal(text, "{\"format\":1,\"job\":\"" ID "\",\"step_ms\":0,\"points\":["
                            "[\"pre_copy\",400,400,2,7340032,9,9,0,52428800,20971520,0,120],"
                            "[\"post_copy\",800,400,2,7340032,9,9,0,52428800,20971520,30,120]]}\n");
}

static void read_back_it_goes_on_as_if_nothing_had_been(void **state) {
  g_autoptr(History) history = history_new(GAP_MS), other = history_new(GAP_MS);
  g_autofree char *text = NULL, *other_text = NULL;

  for (unsigned i = 1; i <= 3000; i++) {
    MigSample sample = sample_of(1 + i / 100, i * MIB);

    history_add(history, &sample, (uint64_t)i * POLL_MS, MIG_STAGE_PRE_COPY);
    history_add(other, &sample, (uint64_t)i * POLL_MS, MIG_STAGE_PRE_COPY);
    if (i % 700 == 0) {
      g_autofree char *saved = history_to_text(history, ID);

      history_free(history);
      history = history_from_text(saved, strlen(saved), ID, GAP_MS, NULL);
      assert_non_null(history);
    }
  }
  text = history_to_text(history, ID);
  other_text = history_to_text(other, ID);
  assert_string_equal(text, other_text);
  assert_true(strlen(text) < 24 * 1024);
}

#define HEAD      "{\"format\":1,\"job\":\"" ID "\",\"step_ms\":0,\"points\":["
#define ROW(t, s) "[\"pre_copy\"," t "," s ",1,2,3,4,5,6,7,8,9]"

static const struct Text {
  const char *name;
  const char *text;
  int code;      /* of G_IO_ERROR; -1: it is read */
  size_t length; /* 0: of the text */
} texts[] = {
    {"no points", HEAD "]}", -1},
    {"two points", HEAD ROW("5", "5") "," ROW("9", "2") "]}", -1},
    {"a point with more fields than are known", HEAD "[\"pre_copy\",5,5,1,2,3,4,5,6,7,8,9,10]]}", -1},
    {"nothing", "", G_IO_ERROR_INVALID_DATA},
    {"half of one", HEAD "[\"pre_copy\",5", G_IO_ERROR_INVALID_DATA},
    {"zeroes, as a crash leaves them", "\0\0\0\0", G_IO_ERROR_INVALID_DATA, 4},
    {"no object", "[]", G_IO_ERROR_INVALID_DATA},
    {"of another job", "{\"format\":1,\"job\":\"ff\",\"step_ms\":0,\"points\":[]}", G_IO_ERROR_INVALID_DATA},
    {"no format", "{\"job\":\"" ID "\",\"points\":[]}", G_IO_ERROR_INVALID_DATA},
    {"a newer format", "{\"format\":2}", G_IO_ERROR_NOT_SUPPORTED},
    {"no list", "{\"format\":1,\"job\":\"" ID "\",\"points\":{}}", G_IO_ERROR_INVALID_DATA},
    {"points that go back", HEAD ROW("5", "5") "," ROW("4", "1") "]}", G_IO_ERROR_INVALID_DATA},
    {"points that overlap", HEAD ROW("5", "5") "," ROW("9", "5") "]}", G_IO_ERROR_INVALID_DATA},
    {"a span before the start", HEAD ROW("5", "6") "]}", G_IO_ERROR_INVALID_DATA},
    {"a negative number", HEAD ROW("5", "-1") "]}", G_IO_ERROR_INVALID_DATA},
    {"too few fields", HEAD "[\"pre_copy\",5,5]]}", G_IO_ERROR_INVALID_DATA},
    {"a stage that is none", HEAD "[\"flying\",5,5,1,2,3,4,5,6,7,8,9]]}", G_IO_ERROR_INVALID_DATA},
};

static void text_is_read_or_refused(void **state) {
  const struct Text *row = *state;
  size_t length = row->length > 0 ? row->length : strlen(row->text);
  g_autoptr(GError) error = NULL;
  g_autoptr(History) history = history_from_text(row->text, length, ID, GAP_MS, &error);

  if (row->code < 0) {
    assert_non_null(history);
    return;
  }
  assert_null(history);
  assert_true(g_error_matches(error, G_IO_ERROR, row->code));
}

static void more_points_than_there_are_is_refused(void **state) {
  g_autoptr(GString) text = g_string_new(HEAD);
  g_autoptr(GError) error = NULL;

  for (int i = 1; i <= HISTORY_POINTS_MAX + 1; i++)
    g_string_append_printf(text, "%s[\"pre_copy\",%d,1,1,2,3,4,5,6,7,8,9]", i > 1 ? "," : "", i);
  g_string_append(text, "]}");
  assert_null(history_from_text(text->str, text->len, ID, GAP_MS, &error));
  assert_true(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA));
}

static void the_wire_shows_what_the_interface_says(void **state) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  g_autoptr(History) history = history_new(GAP_MS);
  g_autofree char *parameter = NULL;
  json_t *samples, *sample, *holder;
  MigSample reading = sample_of(3, 5 * MIB);
  size_t i;

  history_add(history, &reading, 400, MIG_STAGE_POST_COPY);
  samples = history_to_json(history);
  sample = json_array_get(samples, 0);
  assert_string_equal(json_string_value(json_object_get(sample, "stage")), "post_copy");
  assert_int_equal(json_integer_value(json_object_get(sample, "iteration")), 3);
  assert_int_equal(json_integer_value(json_object_get(sample, "memory_remaining_bytes")), 5 * MIB);
  /* What is missing with the samples is the job, and nothing else. */
  holder = json_pack("{so}", "samples", samples);
  assert_false(varlink_interface_check(interface, VARLINK_CHECK_REPLY, "GetHistory", holder, &parameter));
  assert_string_equal(parameter, "job");
  json_array_foreach (samples, i, sample)
    assert_int_equal(json_object_size(sample), 12);
  json_decref(holder);
  samples = history_to_json(NULL);
  assert_int_equal(json_array_size(samples), 0);
  json_decref(samples);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "each reading is a point at first", each_reading_is_a_point_at_first, NULL);
  tests_add(&tests, "a rate that is not known yet is that of what moved",
            a_rate_that_is_not_known_yet_is_that_of_what_moved, NULL);
  tests_add(&tests, "a reading that is not later is ignored", a_reading_that_is_not_later_is_ignored, NULL);
  tests_add(&tests, "a day is bounded and evenly spaced", a_day_is_bounded_and_evenly_spaced, NULL);
  tests_add(&tests, "each pass keeps its top and its end", each_pass_keeps_its_top_and_its_end, NULL);
  tests_add(&tests, "more passes than points show their tops", more_passes_than_points_show_their_tops, NULL);
  tests_add(&tests, "whatever comes, it is bounded", whatever_comes_it_is_bounded, NULL);
  tests_add(&tests, "the highest throttle is kept", the_highest_throttle_is_kept, NULL);
  tests_add(&tests, "no point reaches over a time in which nobody looked",
            no_point_reaches_over_a_time_in_which_nobody_looked, NULL);
  tests_add(&tests, "its file reads so", its_file_reads_so, NULL);
  tests_add(&tests, "read back, it goes on as if nothing had been",
            read_back_it_goes_on_as_if_nothing_had_been, NULL);
  TESTS_ADD_ROWS(&tests, text_is_read_or_refused, texts);
  tests_add(&tests, "more points than there are is refused", more_points_than_there_are_is_refused, NULL);
  tests_add(&tests, "the wire shows what the interface says", the_wire_shows_what_the_interface_says, NULL);
  return tests_run(&tests, "history");
}

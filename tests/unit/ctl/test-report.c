/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a report takes from a reply, and its readings as lines and as columns. */
#include "agent/ctl/chart-series.h"

#include "tests/unit/ctl/reports.h"

#include <math.h>

#define MIB (1024.0 * 1024)

/* Bands are "STAGE BEGIN-END", marks "TIME FIRST-WORD". */
static const struct Real {
  const char *name; /* of the file */
  const char *title;
  const char *stages;
  const char *bands;
  const char *marks;
  unsigned n_points;
} reals[] = {
    {"post-copy", "web1 to node-b: migrated in 7.3 s, downtime 5 ms", "pre-copy 1.6 s, post-copy 5.9 s",
     "pre_copy 0.0-1.6, post_copy 1.6-7.5", "0.0 forecast, 1.6 start_post_copy:", 18},
    {"auto-converge", "web1 to node-b: aborted after 19.8 s (NOT_CONVERGING)",
     "pre-copy 9.8 s, auto-converge 10.0 s", "pre_copy 0.0-9.8, auto_converge 9.8-19.8",
     "0.0 forecast, 19.0 abort:", 48},
    {"running", "web1 to node-b: pre-copy, 4.0 s so far", "pre-copy 4.0 s", "pre_copy 0.0-4.0", "", 10},
    {"gap", "web1 to node-b: migrated in 7.3 s, downtime 5 ms", "pre-copy 1.6 s, post-copy 5.9 s",
     "pre_copy 0.0-1.6, post_copy 1.6-7.5", "0.0 forecast, 1.6 start_post_copy:, 4.4 asking, 4.4 the", 12},
};

static char *bands_of(const Report *report) {
  GString *text = g_string_new(NULL);

  for (guint i = 0; i < report->bands->len; i++)
    g_string_append_printf(text, "%s%s %.1f-%.1f", i > 0 ? ", " : "",
                           mig_stage_name(report_band(report, i)->stage), report_band(report, i)->begin_s,
                           report_band(report, i)->end_s);
  return g_string_free(text, FALSE);
}

static char *marks_of(const Report *report) {
  GString *text = g_string_new(NULL);

  for (guint i = 0; i < report->marks->len; i++) {
    const ReportMark *mark = report_mark(report, i);

    g_string_append_printf(text, "%s%.1f %.*s", i > 0 ? ", " : "", mark->at_s, (int)strcspn(mark->text, " "),
                           mark->text);
  }
  return g_string_free(text, FALSE);
}

static void a_real_one_is_understood(void **state) {
  const struct Real *row = *state;
  json_t *reply = reply_load(row->name);
  g_auto(Report) report = {0};

  assert_true(report_read(reply, &report));

  g_autofree char *title = report_title(&report), *stages = report_stages(&report);
  g_autofree char *bands = bands_of(&report), *marks = marks_of(&report);

  assert_true(report.started);
  assert_string_equal(title, row->title);
  assert_string_equal(stages, row->stages);
  assert_string_equal(bands, row->bands);
  assert_string_equal(marks, row->marks);
  assert_int_equal(report.points->len, row->n_points);
  json_decref(reply);
}

#define JOB(rest)                                                                                            \
  "{\"job\":{\"id\":\"0123456789abcdef\",\"domain\":{\"name\":\"web1\"},\"target\":{\"name\":\"kvm2\"}"      \
  "," rest
#define STARTED "\"phase\":\"migrating\",\"stage\":\"pre_copy\",\"started_usec_realtime\":1000000000"
#define SAMPLES ",\"samples\":["
#define POINT(at, span, stage, pass, remaining, rate)                                                        \
  "{\"elapsed_ms\":" #at ",\"span_ms\":" #span ",\"stage\":\"" stage "\",\"iteration\":" #pass               \
  ",\"memory_remaining_bytes\":" #remaining ",\"memory_remaining_max_bytes\":" #remaining                    \
  ",\"bandwidth_bytes_per_s\":" #rate ",\"dirty_rate_bytes_per_s\":" #rate ",\"throttle_pct\":0}"

static Report *read_text(const char *text, json_t **ret_reply) {
  Report *report = g_new0(Report, 1);
  json_error_t error;

  *ret_reply = json_loads(text, 0, &error);
  if (!*ret_reply)
    fail_msg("%s", error.text);
  assert_true(report_read(*ret_reply, report));
  return report;
}

static void let_go(Report *report, json_t *reply) {
  report_clear(report);
  g_free(report);
  json_decref(reply);
}

#define OVERLAPPING                                                                                          \
  JOB(STARTED "}" SAMPLES)                                                                                   \
  POINT(1000, 1000, "pre_copy", 1, 5, 6)                                                                     \
  "," POINT(1500, 1000, "pre_copy", 1, 5, 6) "," POINT(900, 100, "pre_copy", 1, 5,                           \
                                                       6) "," POINT(2000, 1000, "post_copy", 2, 5, 6) "]}"

static const struct Text {
  const char *name;
  const char *text;
  const char *title, *subtitle; /* NULL: nothing has started */
  const char *bands;
  const char *marks;
  unsigned n_points;
} texts[] = {
    {"one that waits", JOB("\"phase\":\"pending\"},\"samples\":[]}"), "web1 to kvm2: pending", NULL, "", "",
     0},
    {"one that was refused", JOB("\"phase\":\"failed\",\"failure\":{\"cause\":\"SAME_HOST\"}}}"),
     "web1 to kvm2: failed (SAME_HOST)", NULL, "", "", 0},
    {"one that has just started", JOB(STARTED "}" SAMPLES "]}"), "web1 to kvm2: pre-copy, 100 ms so far",
     "job 01234567, started 1970-01-01 00:16:40", "", "", 0},
    {"one whose readings are lost: events tell its stages",
     JOB("\"phase\":\"succeeded\",\"started_usec_realtime\":1000000000,\"finished_usec_realtime\":1009000000,"
         "\"events\":[{\"kind\":\"accepted\",\"stage\":\"none\",\"time_usec_realtime\":999000000,"
         "\"message\":\"a\"},{\"kind\":\"phase\",\"stage\":\"pre_copy\",\"time_usec_realtime\":1000000001,"
         "\"message\":\"b\"},{\"kind\":\"stage\",\"stage\":\"post_copy\",\"time_usec_realtime\":1004000000,"
         "\"message\":\"c\"},{\"kind\":\"abort_requested\",\"stage\":\"post_copy\",\"time_usec_realtime\":"
         "1005000000,\"message\":\"asked for\"}]}}"),
     "web1 to kvm2: migrated", "job 01234567, started 1970-01-01 00:16:40",
     "pre_copy 0.0-4.0, post_copy 4.0-9.0", "5.0 asked", 0},
    {"a switch after the last reading is seen in the events",
     JOB("\"phase\":\"succeeded\",\"started_usec_realtime\":1000000000,\"finished_usec_realtime\":1009000000,"
         "\"progress\":{\"memory_total_bytes\":1073741824,\"disk_total_bytes\":2147483648},"
         "\"result\":{\"total_time_ms\":8900,\"transferred_bytes\":1048576},"
         "\"events\":[{\"kind\":\"stage\",\"stage\":\"stop_and_copy\",\"time_usec_realtime\":1008500000,"
         "\"message\":\"c\"}]}" SAMPLES) POINT(8000, 8000, "pre_copy", 1, 5, 6) "]}",
     "web1 to kvm2: migrated in 8.9 s",
     "job 01234567, started 1970-01-01 00:16:40, 1.0 GiB of memory, 2.0 GiB of disks, 1.0 MiB transferred, 1 "
     "pass",
     "pre_copy 0.0-8.5, stop_and_copy 8.5-9.0", "", 1},
    {"what overlaps or goes back is left out", OVERLAPPING, "web1 to kvm2: pre-copy, 2.0 s so far",
     "job 01234567, started 1970-01-01 00:16:40, 2 passes", "pre_copy 0.0-1.0, post_copy 1.0-2.0", "", 2},
    {"a stage that this program does not know",
     JOB(STARTED "}" SAMPLES) POINT(1000, 1000, "warp", 1, 5, 6) "]}", "web1 to kvm2: pre-copy, 1.0 s so far",
     "job 01234567, started 1970-01-01 00:16:40, 1 pass", "", "", 1},
};

static void text_is_understood(void **state) {
  const struct Text *row = *state;
  json_t *reply;
  Report *report = read_text(row->text, &reply);
  g_autofree char *title = report_title(report), *subtitle = report_subtitle(report);
  g_autofree char *bands = bands_of(report), *marks = marks_of(report);

  assert_string_equal(title, row->title);
  assert_int_equal(report->started, row->subtitle != NULL);
  if (row->subtitle)
    assert_string_equal(subtitle, row->subtitle);
  assert_string_equal(bands, row->bands);
  assert_string_equal(marks, row->marks);
  assert_int_equal(report->points->len, row->n_points);
  let_go(report, reply);
}

static void no_job_is_no_report(void **state) {
  json_t *reply = json_pack("{s[]}", "samples");
  Report report;

  assert_false(report_read(reply, &report));
  json_decref(reply);
}

static const struct Time {
  const char *name; /* what it reads as */
  double at_s;
} times[] = {{"0.0 s", 0}, {"2.3 s", 2.34}, {"59.9 s", 59.94}, {"1 min 00 s", 59.96}, {"2 h 02 min", 7321}};

static void time_reads_so(void **state) {
  const struct Time *row = *state;

  assert_string_equal(report_format_time(row->at_s).text, row->name);
}

/* --- lines and columns --- */

#define TWO_PASSES                                                                                           \
  JOB("\"phase\":\"succeeded\",\"started_usec_realtime\":1000000000,\"finished_usec_realtime\":1010000000,"  \
      "\"progress\":{\"memory_total_bytes\":100}}" SAMPLES)                                                  \
  POINT(2000, 2000, "pre_copy", 1, 60, 20)                                                                   \
  "," POINT(4000, 2000, "pre_copy", 1, 20, 20) "," POINT(6000, 2000, "pre_copy", 2, 40, 10) "," POINT(       \
      9000, 1000, "post_copy", 2, 10, 30) "]}"

static const struct Series_ {
  const char *name;
  Series series;
  const char *vertices; /* "TIME:VALUE", "|" before where a line begins */
  const char *columns;  /* of one second each; "-": nobody looked */
} series_rows[] = {
    {"remaining begins with all, rises at a pass, falls in between", SERIES_REMAINING,
     "|0:100 2:60 4:20 4:40 6:40 |8:10 9:10", "100 80 60 40 40 40 - - 10 -"},
    {"bandwidth goes from middle to middle", SERIES_BANDWIDTH, "|0:20 1:20 3:20 5:10 6:10 |8:30 8.5:30 9:30",
     "20 20 20 17 12 10 - - 30 -"},
    {"dirty rate in steps, and not in post-copy", SERIES_DIRTY_RATE, "|0:20 2:20 2:20 4:20 4:10 6:10",
     "20 20 20 20 10 10 - - - -"},
    {"throttle in steps", SERIES_THROTTLE, "|0:0 2:0 2:0 4:0 4:0 6:0 |8:0 9:0", "0 0 0 0 0 0 - - 0 -"},
};

static void series_is_drawn_so(void **state) {
  const struct Series_ *row = *state;
  json_t *reply;
  Report *report = read_text(TWO_PASSES, &reply);
  g_autoptr(GArray) vertices = series_vertices(report, row->series);
  g_autoptr(GString) lines = g_string_new(NULL), columns = g_string_new(NULL);
  double values[10];

  for (guint i = 0; i < vertices->len; i++) {
    const SeriesVertex *vertex = &g_array_index(vertices, SeriesVertex, i);

    g_string_append_printf(lines, "%s%s%g:%g", i > 0 ? " " : "", vertex->begins ? "|" : "", vertex->at_s,
                           vertex->value);
  }
  assert_string_equal(lines->str, row->vertices);
  series_columns(report, row->series, values, LENGTH(values));
  for (size_t i = 0; i < LENGTH(values); i++)
    if (isnan(values[i]))
      g_string_append_printf(columns, "%s-", i > 0 ? " " : "");
    else
      g_string_append_printf(columns, "%s%g", i > 0 ? " " : "", floor(values[i]));
  assert_string_equal(columns->str, row->columns);
  let_go(report, reply);
}

/* Whatever comes: columns are within what was seen, and lines go forward. */
static void any_series_stays_within_what_was_seen(void **state) {
  GRand *rand = g_rand_new_with_seed(7);

  for (int round = 0; round < 300; round++) {
    json_t *reply = reply_random(rand);
    double columns[160], before_s = 0;
    g_auto(Report) report = {0};

    assert_true(report_read(reply, &report));
    for (int s = 0; s < SERIES_COUNT; s++) {
      const double most[] = {report.remaining_max, report.bandwidth_max, report.dirty_rate_max,
                             report.throttle_max};
      g_autoptr(GArray) vertices = series_vertices(&report, (Series)s);
      size_t n = (size_t)g_rand_int_range(rand, 1, LENGTH(columns) + 1);

      series_columns(&report, (Series)s, columns, n);
      for (size_t i = 0; i < n; i++)
        assert_true(isnan(columns[i]) || (columns[i] >= 0 && columns[i] <= most[s] * 1.000001));
      before_s = 0;
      for (guint i = 0; i < vertices->len; i++) {
        const SeriesVertex *vertex = &g_array_index(vertices, SeriesVertex, i);

        assert_true(vertex->at_s >= before_s - 0.001 && vertex->at_s <= report.end_s);
        before_s = vertex->at_s;
      }
    }
    for (guint i = 1; i < report.bands->len; i++)
      assert_true(report_band(&report, i)->begin_s == report_band(&report, i - 1)->end_s);
    json_decref(reply);
  }
  g_rand_free(rand);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, a_real_one_is_understood, reals);
  TESTS_ADD_ROWS(&tests, text_is_understood, texts);
  tests_add(&tests, "no job is no report", no_job_is_no_report, NULL);
  TESTS_ADD_ROWS(&tests, time_reads_so, times);
  TESTS_ADD_ROWS(&tests, series_is_drawn_so, series_rows);
  tests_add(&tests, "any series stays within what was seen", any_series_stays_within_what_was_seen, NULL);
  return tests_run(&tests, "ctl-report");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The progress line, at every width. */
#include "agent/ctl/format.h"
#include "agent/ctl/progress.h"
#include "tests/unit/core/rows.h"
#include "tests/unit/ctl/jobs.h"

#include <string.h>

#define DEADLINE_US INT64_C(100000000)

static const struct Line {
  const char *name;
  const char *changes; /* members of the job; ' for " */
  int64_t received_ms, away_ms;
  const char *line;
} lines[] = {
    {"pre-copy", "{}", 0, -1,
     "42%  pre-copy  pass 3  118 MiB/s  dirty 20 MiB/s  512 MiB left  downtime ~45 ms  deadline in 30 "
     "s"},
    {"abort under way", "{'abort_requested':true,'progress':null}", 0, -1,
     "42%  aborting (pre-copy)  deadline in 30 s"},
    {"numbers that are old", "{'progress':{'age_ms':1000}}", 4000, -1,
     "42%  pre-copy  deadline in 30 s  numbers 5 s old"},
    {"an agent that is away", "{'progress':null}", 0, 7000,
     "42%  pre-copy  deadline in 30 s  agent unreachable for 7 s"},
    {"post-copy",
     "{'stage':'post_copy','progress':{'iteration':4,'expected_downtime_ms':9,'post_copy_requests':77,"
     "'bandwidth_bytes_per_s':1048576,'dirty_rate_bytes_per_s':1}}",
     0, -1, "42%  post-copy  1.0 MiB/s  77 page faults  deadline in 30 s"},
    {"throttled", "{'stage':'auto_converge','progress':{'throttle_pct':40}}", 0, -1,
     "42%  auto-converge  throttle 40%  deadline in 30 s"},
    {"waiting",
     "{'phase':'pending','stage':'none','progress':null,'deadline_usec_realtime':null,"
     "'pending':{'reason':'OUTGOING_LIMIT','message':'2 of 2 are on the move','queue_position':3}}",
     0, -1, "42%  pending  #3 in the queue: 2 of 2 are on the move"},
    {"a deadline that passed counts no further", "{'progress':null,'deadline_usec_realtime':1}", 0, -1,
     "42%  pre-copy  deadline in 0 s"},
    {"no deadline", "{'progress':null,'deadline_usec_realtime':null}", 0, -1, "42%  pre-copy"},
    {"an end that is foreseen, instead of QEMU's downtime",
     "{'forecast':{'way':'pre_copy','total_time_ms':14001,'pause_ms':60,'floor_ms':55}}", 0, -1,
     "42%  pre-copy  pass 3  118 MiB/s  dirty 20 MiB/s  512 MiB left  pause ~60 ms  done in ~5 s  "
     "deadline in 30 s"},
    {"an end that is foreseen counts from the start of the migration",
     "{'progress':{},'started_usec_realtime':60000000,"
     "'forecast':{'way':'pre_copy','total_time_ms':17000,'pause_ms':60,'floor_ms':55}}",
     0, -1, "42%  pre-copy  pause ~60 ms  done in ~7 s  deadline in 30 s"},
    {"an end that is overdue",
     "{'progress':{'elapsed_ms':9000},'forecast':{'way':'pre_copy','total_time_ms':8000}}", 0, -1,
     "42%  pre-copy  done soon  deadline in 30 s"},
    {"another way that will be taken",
     "{'progress':{'elapsed_ms':9000},'forecast':{'way':'stop_and_copy','total_time_ms':12000,'pause_ms':"
     "3200}}",
     0, -1, "42%  pre-copy  pause ~3.2 s  done in ~3 s by a pause  deadline in 30 s"},
    {"no way that is permitted",
     "{'progress':{},'forecast':{'way':'none','total_time_ms':0,'pause_ms':0,'floor_ms':2000}}", 0, -1,
     "42%  pre-copy  no permitted way to complete  deadline in 30 s"},
    {"in post-copy the pause is over",
     "{'stage':'post_copy','progress':{'elapsed_ms':9000},"
     "'forecast':{'way':'post_copy','total_time_ms':12000,'pause_ms':60}}",
     0, -1, "42%  post-copy  done in ~3 s  deadline in 30 s"},
    {"in post-copy another way is stale",
     "{'stage':'post_copy','progress':{},'forecast':{'way':'pre_copy','total_time_ms':12000,'pause_ms':60}"
     "}",
     0, -1, "42%  post-copy  deadline in 30 s"},
    {"an abort ends what was foreseen",
     "{'abort_requested':true,'progress':{},'forecast':{'way':'pre_copy','total_time_ms':12000,'pause_ms':"
     "60}}",
     0, -1, "42%  aborting (pre-copy)  deadline in 30 s"},
    {"a way that is not known",
     "{'progress':{},'forecast':{'way':'by_air','total_time_ms':12000,'pause_ms':60}}", 0, -1,
     "42%  pre-copy  deadline in 30 s"},
    {"recovering", "{'phase':'recovering','progress':null,'deadline_usec_realtime':null}", 0, -1,
     "42%  recovering"},
};

static json_t *changed_job(const char *changes) {
  g_autofree char *text = g_strdelimit(g_strdup(changes), "'", '"');

  return job_new(json_loads(text, 0, NULL));
}

static void line_reads(void **state) {
  const struct Line *row = *state;
  json_t *json = changed_job(row->changes);
  JobView job;

  assert_true(job_view_read(json, &job));

  ProgressInput input = {.job = &job,
                         .percent = 42,
                         .now_us = DEADLINE_US - 30 * G_USEC_PER_SEC,
                         .received_ms = row->received_ms,
                         .away_ms = row->away_ms};
  g_autofree char *line = progress_line(&input);
  assert_string_equal(line, row->line);
  json_decref(json);
}

static void bar_fits_every_width(void **state) {
  json_t *json = job_new(json_pack("{s:{s:s}, s:{s:s, s:i, s:i}}", "domain", "name",
                                   "a-domain-with-quite-a-long-name-indeed", "forecast", "way", "post_copy",
                                   "total_time_ms", 20000, "pause_ms", 60));
  JobView job;

  assert_true(job_view_read(json, &job));
  for (unsigned width = 1; width <= 250; width++) {
    ProgressInput input = {.job = &job, .percent = 42, .now_us = DEADLINE_US, .away_ms = -1};
    g_autofree char *utf8 = progress_bar(&input, width, true);
    g_autofree char *ascii = progress_bar(&input, width, false);

    assert_true(format_width(utf8) <= width);
    assert_true(strlen(ascii) <= width);
    assert_true(g_str_is_ascii(ascii));
    if (width >= 4)
      assert_non_null(strstr(ascii, "42%"));
  }
  json_decref(json);
}

static void bar_is_as_full_as_it_says(void **state) {
  json_t *json = job_new(json_pack("{s:n}", "progress"));
  JobView job;

  assert_true(job_view_read(json, &job));
  for (int percent = 0; percent <= 100; percent++) {
    ProgressInput input = {.job = &job, .percent = percent, .now_us = DEADLINE_US, .away_ms = -1};
    g_autofree char *line = progress_bar(&input, 200, false);
    size_t full = strspn(strchr(line, '[') + 1, "#");
    size_t whole = strspn(strchr(line, '[') + 1, "#.");

    assert_int_equal(full, (size_t)percent * whole / 100);
  }
  json_decref(json);
}

static void each_phase_and_stage_has_words(void **state) {
  for (int stage = 0; stage < MIG_STAGE_COUNT; stage++)
    assert_true(strlen(progress_stage_words((MigStage)stage)) > 0);
  for (int stage = 0; stage < MIG_STAGE_COUNT; stage++)
    assert_true(strlen(progress_way_words((MigStage)stage)) > 0);
  for (int phase = 0; phase < MIG_PHASE_COUNT; phase++)
    assert_true(strlen(progress_doing(&(JobView){.phase = (MigPhase)phase})) > 0);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, line_reads, lines);
  tests_add(&tests, "bar fits every width", bar_fits_every_width, NULL);
  tests_add(&tests, "bar is as full as it says", bar_is_as_full_as_it_says, NULL);
  tests_add(&tests, "each phase and stage has words", each_phase_and_stage_has_words, NULL);
  return tests_run(&tests, "ctl-progress");
}

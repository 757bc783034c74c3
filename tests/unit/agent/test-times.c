/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a job's time goes. */
#include "agent/job/times.h"

#include "tests/unit/core/rows.h"

#include <glib.h>

static void the_parts_add_up_to_the_time_that_passed(void **state) {
  JobTimes times = {.since_ms = 1000};

  job_times_enter(&times, JOB_PART_CHECKS, 1010);
  job_times_enter(&times, JOB_PART_QUEUED, 1015);
  job_times_enter(&times, JOB_PART_CHECKS, 1100);
  job_times_enter(&times, JOB_PART_BEGIN, 1130);
  job_times_enter(&times, JOB_PART_BEGIN, 1500);
  assert_int_equal(times.spent_ms[JOB_PART_QUEUED], 10 + 85);
  assert_int_equal(times.spent_ms[JOB_PART_CHECKS], 5 + 30);
  assert_int_equal(times.spent_ms[JOB_PART_BEGIN], 370);
  assert_int_equal(job_times_total_ms(&times), 500);
}

/* Two libvirtds' events may arrive in the wrong order. */
static void a_part_that_ends_before_it_began_took_no_time(void **state) {
  JobTimes times = {.since_ms = 1000, .part = JOB_PART_PASSES};

  job_times_enter(&times, JOB_PART_SWITCH, 1100);
  job_times_enter(&times, JOB_PART_SETTLE, 1095);
  job_times_enter(&times, JOB_PART_SETTLE, 1200);
  assert_int_equal(times.spent_ms[JOB_PART_SWITCH], 0);
  assert_int_equal(times.spent_ms[JOB_PART_SETTLE], 100);
  assert_int_equal(job_times_total_ms(&times), 200);
}

static void what_took_no_time_is_not_told_in_words(void **state) {
  JobTimes times = {.spent_ms = {[JOB_PART_CHECKS] = 1020, [JOB_PART_POST_COPY] = 5}};
  g_autofree char *text = job_times_describe(&times);

  assert_string_equal(text, "checks 1.02 s, post-copy 0.01 s");
}

static void every_part_has_a_name_of_its_own(void **state) {
  for (int part = 0; part < JOB_PART_COUNT; part++) {
    JobTimes times = {.spent_ms = {0}}, back = {.inexact = true};
    json_t *json;

    times.spent_ms[part] = 1 + (uint64_t)part;
    json = job_times_to_json(&times);
    job_times_from_json(&back, json);
    assert_memory_equal(&back, &times, sizeof times);
    assert_non_null(job_part_name((JobPart)part));
    json_decref(json);
  }
  assert_null(job_part_name(JOB_PART_COUNT));
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "the parts add up to the time that passed", the_parts_add_up_to_the_time_that_passed,
            NULL);
  tests_add(&tests, "a part that ends before it began took no time",
            a_part_that_ends_before_it_began_took_no_time, NULL);
  tests_add(&tests, "what took no time is not told in words", what_took_no_time_is_not_told_in_words, NULL);
  tests_add(&tests, "every part has a name of its own", every_part_has_a_name_of_its_own, NULL);
  return tests_run(&tests, "times");
}

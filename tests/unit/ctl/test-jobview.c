/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Jobs taken out of JSON, whole and broken. */
#include "tests/unit/core/rows.h"
#include "tests/unit/ctl/jobs.h"

static void a_whole_job_is_read(void **state) {
  json_t *json = job_new(NULL);
  JobView job;

  assert_true(job_view_read(json, &job));
  assert_string_equal(job.domain, "web1");
  assert_int_equal(job.phase, MIG_PHASE_MIGRATING);
  assert_int_equal(job.stage, MIG_STAGE_PRE_COPY);
  assert_int_equal(job.percent, 42);
  assert_int_equal(job_view_remaining(&job), 512 << 20);
  assert_string_equal(job_view_target(&job), "kvm2");
  assert_int_equal(job.started_us, -1);
  assert_false(job.has_failure || job.has_result || job.has_forecast);
  json_decref(json);
}

static void a_forecast_is_read(void **state) {
  json_t *json = job_new(json_pack("{s:{s:s, s:i, s:i, s:i}}", "forecast", "way", "post_copy",
                                   "total_time_ms", 7000, "pause_ms", 60, "floor_ms", 900));
  JobView job;

  assert_true(job_view_read(json, &job));
  assert_true(job.has_forecast);
  assert_int_equal(job.forecast_way, MIG_STAGE_POST_COPY);
  assert_int_equal(job.forecast_total_ms, 7000);
  assert_int_equal(job.forecast_pause_ms, 60);
  assert_int_equal(job.forecast_floor_ms, 900);
  json_decref(json);
}

static void memory_and_disks_count_together(void **state) {
  json_t *json = job_new(
      json_pack("{s:{s:i, s:i}}", "progress", "memory_remaining_bytes", 5, "disk_remaining_bytes", 7));
  JobView job;

  assert_true(job_view_read(json, &job));
  assert_int_equal(job_view_remaining(&job), 12);
  json_decref(json);
}

static void a_target_without_a_name_is_called_by_its_uri(void **state) {
  json_t *json = job_new(json_pack("{s:{s:s}}", "target", "libvirt_uri", "qemu+tcp://x/system"));
  JobView job;

  assert_true(job_view_read(json, &job));
  assert_string_equal(job_view_target(&job), "qemu+tcp://x/system");
  json_decref(json);
}

static void a_cause_that_is_not_known_keeps_its_name(void **state) {
  json_t *json = job_new(
      json_pack("{s:s, s:{s:s, s:s}}", "phase", "failed", "failure", "cause", "NEW_CAUSE", "message", "m"));
  JobView job;

  assert_true(job_view_read(json, &job));
  assert_int_equal(job.cause, MIG_CAUSE_NONE);
  assert_string_equal(job.cause_name, "NEW_CAUSE");
  json_decref(json);
}

static const struct Broken {
  const char *name;
  const char *json;
} broken[] = {
    {"nothing", "{}"},
    {"no domain", "{\"id\":\"a\",\"phase\":\"pending\"}"},
    {"no phase", "{\"id\":\"a\",\"domain\":{\"name\":\"d\"}}"},
    {"a phase that is not known", "{\"id\":\"a\",\"domain\":{\"name\":\"d\"},\"phase\":\"flying\"}"},
    {"numbers for texts", "{\"id\":1,\"domain\":2,\"phase\":3}"},
};

static void broken_job_is_refused(void **state) {
  const struct Broken *row = *state;
  json_t *json = json_loads(row->json, 0, NULL);
  JobView job;

  assert_false(job_view_read(json, &job));
  assert_false(job_view_read(NULL, &job));
  json_decref(json);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "a whole job is read", a_whole_job_is_read, NULL);
  tests_add(&tests, "a forecast is read", a_forecast_is_read, NULL);
  tests_add(&tests, "memory and disks count together", memory_and_disks_count_together, NULL);
  tests_add(&tests, "a target without a name is called by its uri",
            a_target_without_a_name_is_called_by_its_uri, NULL);
  tests_add(&tests, "a cause that is not known keeps its name", a_cause_that_is_not_known_keeps_its_name,
            NULL);
  TESTS_ADD_ROWS(&tests, broken_job_is_refused, broken);
  return tests_run(&tests, "ctl-jobview");
}

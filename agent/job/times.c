/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a job's time goes. */
#include "agent/job/times.h"

#include "agent/base/clock.h"
#include "proto/json.h"

#include <glib.h>
#include <inttypes.h>

static const char *const part_names[] = {
    [JOB_PART_QUEUED] = "queued", [JOB_PART_CHECKS] = "checks",         [JOB_PART_BEGIN] = "begin",
    [JOB_PART_DISKS] = "disks",   [JOB_PART_FIRST_PASS] = "first_pass", [JOB_PART_PASSES] = "passes",
    [JOB_PART_SWITCH] = "switch", [JOB_PART_POST_COPY] = "post_copy",   [JOB_PART_SETTLE] = "settle",
};
TABLE_COVERS(part_names, JOB_PART_COUNT);

const char *job_part_name(JobPart part) {
  return table_name(part_names, JOB_PART_COUNT, (int)part);
}

void job_times_enter(JobTimes *times, JobPart part, uint64_t at_ms) {
  uint64_t until_ms = MAX(at_ms, times->since_ms);

  times->spent_ms[times->part] += until_ms - times->since_ms;
  times->since_ms = until_ms;
  times->since_usec = g_get_real_time() - ((int64_t)clock_now_ms() - (int64_t)until_ms) * 1000;
  times->part = part;
}

uint64_t job_times_total_ms(const JobTimes *times) {
  uint64_t total_ms = 0;

  for (int part = 0; part < JOB_PART_COUNT; part++)
    total_ms += times->spent_ms[part];
  return total_ms;
}

char *job_times_describe(const JobTimes *times) {
  GString *text = g_string_new(NULL);

  for (int part = 0; part < JOB_PART_COUNT; part++)
    if (times->spent_ms[part] > 0)
      g_string_append_printf(text, "%s%s %.2f s", text->len > 0 ? ", " : "", part_names[part],
                             (double)times->spent_ms[part] / 1000);
  return g_strdelimit(g_string_free(text, FALSE), "_", '-');
}

json_t *job_times_to_json(const JobTimes *times) {
  json_t *object = json_pack("{sb}", "exact", (int)!times->inexact);

  for (int part = 0; part < JOB_PART_COUNT; part++) {
    g_autofree char *key = g_strdup_printf("%s_ms", part_names[part]);

    json_object_set_new_nocheck(object, key, json_integer((json_int_t)times->spent_ms[part]));
  }
  return object;
}

static uint64_t count_of(json_t *object, const char *key) {
  json_int_t value = json_integer_value(json_object_get(object, key));

  return value > 0 ? (uint64_t)value : 0;
}

void job_times_from_json(JobTimes *times, json_t *object) {
  times->inexact = !json_is_true(json_object_get(object, "exact"));
  for (int part = 0; part < JOB_PART_COUNT; part++) {
    g_autofree char *key = g_strdup_printf("%s_ms", part_names[part]);

    times->spent_ms[part] = count_of(object, key);
  }
}

json_t *job_times_to_record(const JobTimes *times) {
  json_t *object = job_times_to_json(times);

  json_object_set_new_nocheck(object, "part", json_string(part_names[times->part]));
  json_object_set_new_nocheck(object, "since_ms", json_integer((json_int_t)times->since_ms));
  json_object_set_new_nocheck(object, "since_usec", json_integer(times->since_usec));
  json_object_set_new_nocheck(object, "stopped_ms", json_integer((json_int_t)times->stopped_ms));
  json_object_set_new_nocheck(object, "resumed_ms", json_integer((json_int_t)times->resumed_ms));
  return object;
}

void job_times_from_record(JobTimes *times, json_t *record, bool same_boot) {
  int part = table_find(part_names, JOB_PART_COUNT, json_string_of(record, "part"));
  int64_t now_usec = g_get_real_time();

  *times = (JobTimes){.part = (JobPart)MAX(part, 0), .since_ms = clock_now_ms(), .since_usec = now_usec};
  job_times_from_json(times, record);
  if (same_boot && count_of(record, "since_ms") > 0) {
    times->since_ms = count_of(record, "since_ms");
    times->since_usec = (int64_t)count_of(record, "since_usec");
    times->resumed_ms = count_of(record, "resumed_ms");
    /* Unheard until now: this process may hear of it late, or not at all. */
    times->stopped_ms = times->resumed_ms > 0 ? count_of(record, "stopped_ms") : 0;
  } else if (count_of(record, "since_usec") > 0) {
    times->spent_ms[times->part] +=
        (uint64_t)MAX(now_usec - (int64_t)count_of(record, "since_usec"), 0) / 1000;
    times->inexact = true;
  }
}

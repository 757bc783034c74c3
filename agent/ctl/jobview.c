/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as reported by the agent, parsed from its JSON. */
#include "agent/ctl/jobview.h"

#include <stddef.h>

int64_t json_int_of(json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);

  return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

/* Maps a member of a JSON object to its place in the view. */
typedef struct Field {
  const char *name;
  size_t offset;
} Field;

#define FIELD(name, member)                                                                                  \
  { name, offsetof(JobView, member) }

static const Field job_strings[] = {
    FIELD("id", id),
    FIELD("request_key", request_key),
    FIELD("source", source),
    FIELD("policy_name", policy_name),
    FIELD("policy_matched", policy_matched),
    FIELD("next_action", next_action),
};
static const Field job_numbers[] = {
    FIELD("created_usec_realtime", created_us),
    FIELD("started_usec_realtime", started_us),
    FIELD("finished_usec_realtime", finished_us),
    FIELD("deadline_usec_realtime", deadline_us),
    FIELD("bandwidth_share_bytes_per_s", bandwidth_share),
};
static const Field domain_strings[] = {FIELD("name", domain), FIELD("uuid", domain_uuid)};
static const Field target_strings[] = {
    FIELD("name", target_name),
    FIELD("libvirt_uri", target_uri),
    FIELD("migrate_uri", migrate_uri),
};
static const Field pending_strings[] = {FIELD("reason", pending_reason), FIELD("message", pending_message)};
static const Field pending_numbers[] = {
    FIELD("queue_position", queue_position),
    FIELD("since_usec_realtime", pending_since_us),
    FIELD("until_usec_realtime", pending_until_us),
    FIELD("held_since_usec_realtime", held_since_us),
};
static const Field progress_numbers[] = {
    FIELD("percent", percent),
    FIELD("elapsed_ms", elapsed_ms),
    FIELD("memory_total_bytes", memory_total),
    FIELD("memory_processed_bytes", memory_processed),
    FIELD("memory_remaining_bytes", memory_remaining),
    FIELD("disk_total_bytes", disk_total),
    FIELD("disk_processed_bytes", disk_processed),
    FIELD("disk_remaining_bytes", disk_remaining),
    FIELD("bandwidth_bytes_per_s", bandwidth),
    FIELD("dirty_rate_bytes_per_s", dirty_rate),
    FIELD("iteration", iteration),
    FIELD("throttle_pct", throttle_pct),
    FIELD("expected_downtime_ms", expected_downtime_ms),
    FIELD("post_copy_requests", post_copy_requests),
    FIELD("age_ms", age_ms),
};
static const Field recovery_strings[] = {FIELD("evidence", recovery_evidence),
                                         FIELD("error", recovery_error)};
static const Field recovery_numbers[] = {
    FIELD("since_usec_realtime", recovery_since_us),
    FIELD("tries", recovery_tries),
    FIELD("tried_usec_realtime", recovery_tried_us),
    FIELD("again_usec_realtime", recovery_again_us),
};
static const Field forecast_numbers[] = {
    FIELD("total_time_ms", forecast_total_ms),
    FIELD("pause_ms", forecast_pause_ms),
    FIELD("floor_ms", forecast_floor_ms),
};
static const Field failure_strings[] = {
    FIELD("cause", cause_name),
    FIELD("phase", failure_phase),
    FIELD("stage", failure_stage),
    FIELD("message", failure_message),
    FIELD("libvirt_message", libvirt_message),
};
static const Field failure_numbers[] = {FIELD("libvirt_code", libvirt_code)};
static const Field result_strings[] = {
    FIELD("running_at", running_at),
    FIELD("evidence", evidence),
    FIELD("downtime_unknown", downtime_unknown),
};
static const Field result_numbers[] = {
    FIELD("total_time_ms", total_time_ms),
    FIELD("libvirt_time_ms", libvirt_time_ms),
    FIELD("downtime_ms", downtime_ms),
    FIELD("downtime_error_ms", downtime_error_ms),
    FIELD("libvirt_downtime_ms", libvirt_downtime_ms),
    FIELD("transferred_bytes", transferred_bytes),
};

static void read_strings(json_t *object, const Field *fields, size_t n_fields, JobView *view) {
  for (size_t i = 0; i < n_fields; i++)
    *(const char **)((char *)view + fields[i].offset) = json_string_of(object, fields[i].name);
}

static void read_numbers(json_t *object, const Field *fields, size_t n_fields, JobView *view) {
  for (size_t i = 0; i < n_fields; i++)
    *(int64_t *)((char *)view + fields[i].offset) = json_int_of(object, fields[i].name);
}

#define READ_STRINGS(object, fields) read_strings(object, fields, sizeof(fields) / sizeof((fields)[0]), &view)
#define READ_NUMBERS(object, fields) read_numbers(object, fields, sizeof(fields) / sizeof((fields)[0]), &view)

/* Unknown ways are dropped: no forecast is better than a wrong one. */
static void read_forecast(json_t *forecast, JobView *view) {
  const char *way = json_string_of(forecast, "way");
  int stage = way ? mig_stage_from_name(way) : MIG_ENUM_UNKNOWN;

  read_numbers(forecast, forecast_numbers, sizeof(forecast_numbers) / sizeof(forecast_numbers[0]), view);
  view->has_forecast = stage != MIG_ENUM_UNKNOWN;
  view->forecast_way = view->has_forecast ? (MigStage)stage : MIG_STAGE_NONE;
}

bool job_view_read(json_t *job, JobView *ret) {
  JobView view = {.json = job};
  const char *phase = json_string_of(job, "phase"), *stage = json_string_of(job, "stage");
  const char *direction = json_string_of(job, "direction");
  json_t *progress = json_object_get(job, "progress"), *failure = json_object_get(job, "failure");
  json_t *result = json_object_get(job, "result"), *pending = json_object_get(job, "pending");
  json_t *recovery = json_object_get(job, "recovery");
  int value;

  READ_STRINGS(job, job_strings);
  READ_NUMBERS(job, job_numbers);
  READ_STRINGS(json_object_get(job, "domain"), domain_strings);
  READ_STRINGS(json_object_get(job, "target"), target_strings);
  READ_STRINGS(pending, pending_strings);
  READ_NUMBERS(pending, pending_numbers);
  READ_NUMBERS(progress, progress_numbers);
  READ_STRINGS(recovery, recovery_strings);
  READ_NUMBERS(recovery, recovery_numbers);
  read_forecast(json_object_get(job, "forecast"), &view);
  READ_STRINGS(failure, failure_strings);
  READ_NUMBERS(failure, failure_numbers);
  READ_STRINGS(result, result_strings);
  READ_NUMBERS(result, result_numbers);
  view.has_progress = json_is_object(progress);
  view.has_failure = json_is_object(failure);
  view.has_result = json_is_object(result);
  view.abort_requested = json_bool_of(job, "abort_requested");

  if (!view.id || !view.domain || !phase)
    return false;
  value = mig_phase_from_name(phase);
  if (value == MIG_ENUM_UNKNOWN)
    return false;
  view.phase = (MigPhase)value;
  value = stage ? mig_stage_from_name(stage) : MIG_ENUM_UNKNOWN;
  view.stage = value == MIG_ENUM_UNKNOWN ? MIG_STAGE_NONE : (MigStage)value;
  value = direction ? mig_direction_from_name(direction) : MIG_ENUM_UNKNOWN;
  view.direction = value == MIG_ENUM_UNKNOWN ? MIG_DIRECTION_OUTGOING : (MigDirection)value;
  value = view.cause_name ? mig_cause_from_name(view.cause_name) : MIG_ENUM_UNKNOWN;
  view.cause = value == MIG_ENUM_UNKNOWN ? MIG_CAUSE_NONE : (MigCause)value;
  *ret = view;
  return true;
}

const char *job_view_target(const JobView *job) {
  if (job->target_name)
    return job->target_name;
  return job->target_uri ? job->target_uri : "its target";
}

int64_t job_view_remaining(const JobView *job) {
  if (job->memory_remaining < 0)
    return job->disk_remaining;
  return job->memory_remaining + (job->disk_remaining > 0 ? job->disk_remaining : 0);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as reported by the agent, parsed from its JSON. */
#pragma once

#include "libmigrate/core/types.h"
#include "proto/json.h"

#include <stdint.h>

/* Strings belong to `json` and live as long as it does. Absent strings are NULL, absent numbers -1. */
typedef struct JobView {
  json_t *json;
  const char *id;
  const char *domain, *domain_uuid;
  const char *target_name, *target_uri, *migrate_uri;
  MigDirection direction;
  MigPhase phase;
  MigStage stage;
  bool abort_requested;
  const char *source; /* of an incoming job */
  const char *request_key, *policy_name, *policy_matched, *next_action;
  int64_t created_us, started_us, finished_us, deadline_us;
  int64_t bandwidth_share; /* bytes/s */

  /* pending */
  const char *pending_reason, *pending_message;
  int64_t queue_position, pending_since_us, pending_until_us, held_since_us;

  /* progress */
  bool has_progress;
  int64_t percent, elapsed_ms;
  int64_t memory_total, memory_processed, memory_remaining;
  int64_t disk_total, disk_processed, disk_remaining;
  int64_t bandwidth, dirty_rate, iteration, throttle_pct, expected_downtime_ms, post_copy_requests, age_ms;

  /* recovery */
  const char *recovery_evidence, *recovery_error;
  int64_t recovery_since_us, recovery_tries, recovery_tried_us, recovery_again_us;

  /* forecast */
  bool has_forecast;
  MigStage forecast_way; /* NONE: no permitted way to complete */
  int64_t forecast_total_ms, forecast_pause_ms, forecast_floor_ms;

  /* failure */
  bool has_failure;
  MigCause cause;
  const char *cause_name; /* set even if this program does not know the cause */
  const char *failure_message, *libvirt_message;
  const char *failure_phase, *failure_stage;
  int64_t libvirt_code;

  /* result */
  bool has_result;
  int64_t total_time_ms, libvirt_time_ms, transferred_bytes;
  int64_t downtime_ms, downtime_error_ms, libvirt_downtime_ms;
  const char *running_at, *evidence, *downtime_unknown;
} JobView;

/* False if it is not a job: id, domain or phase is missing or invalid. Takes no reference. */
bool job_view_read(json_t *job, JobView *ret);

/* The target's name, or its URI if it has none. Never NULL. */
const char *job_view_target(const JobView *job);

/* Memory and disks combined; -1: unknown. */
int64_t job_view_remaining(const JobView *job);

/* A number member of an object; -1 if absent or of another type. */
int64_t json_int_of(json_t *object, const char *key);

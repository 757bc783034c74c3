/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as JSON: as the interface shows it. */
#include "agent/job/jobjson-private.h"

#include "agent/base/policyjson.h"
#include "agent/job/recordformat.h"

#include <gio/gio.h>
#include <string.h>

#define NEWS_EVENTS 8

/* JSON integers on the wire are signed. */
static json_t *json_count(uint64_t value) {
  return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

void jobjson_set_time(json_t *object, const char *key, int64_t value_usec) {
  if (value_usec > 0)
    json_object_set_new_nocheck(object, key, json_integer(value_usec));
}

void jobjson_set_count_if(json_t *object, bool have, const char *key, uint64_t value) {
  if (have)
    json_object_set_new_nocheck(object, key, json_count(value));
}

static json_t *target_to_json(const Job *job) {
  json_t *object = json_object();

  json_set_string(object, "name", job->target_name);
  json_set_string(object, "libvirt_uri", job->target_uri);
  json_set_string(object, "migrate_uri", job->migrate_uri);
  return object;
}

static json_t *domain_to_json(const Job *job) {
  return json_pack("{ss ss}", "name", job->domain_name, "uuid", job->domain_uuid);
}

static json_t *event_to_json(const JobEvent *event) {
  json_t *object = json_pack("{sI sI ss ss ss ss}", "seq", (json_int_t)event->seq, "time_usec_realtime",
                             (json_int_t)event->time_usec, "phase", mig_phase_name(event->phase), "stage",
                             mig_stage_name(event->stage), "kind", event->kind, "message", event->message);

  if (event->cause != MIG_CAUSE_NONE)
    json_set_string(object, "cause", mig_cause_name(event->cause));
  return object;
}

json_t *jobjson_events(const Job *job, unsigned newest) {
  json_t *array = json_array();

  for (guint i = job->events->len > newest ? job->events->len - newest : 0; i < job->events->len; i++)
    json_array_append_new(array, event_to_json(job->events->pdata[i]));
  return array;
}

const JobjsonCount jobjson_sample_counts[JOBJSON_SAMPLE_COUNTS] = {
    {"elapsed_ms", offsetof(MigSample, elapsed_ms)},
    {"memory_total_bytes", offsetof(MigSample, memory_total_bytes)},
    {"memory_processed_bytes", offsetof(MigSample, memory_processed_bytes)},
    {"memory_remaining_bytes", offsetof(MigSample, memory_remaining_bytes)},
    {"disk_total_bytes", offsetof(MigSample, disk_total_bytes)},
    {"disk_processed_bytes", offsetof(MigSample, disk_processed_bytes)},
    {"disk_remaining_bytes", offsetof(MigSample, disk_remaining_bytes)},
    {"bandwidth_bytes_per_s", offsetof(MigSample, bandwidth_bytes_per_s)},
    {"dirty_rate_bytes_per_s", offsetof(MigSample, dirty_rate_bytes_per_s)},
    {"iteration", offsetof(MigSample, iteration)},
    {"throttle_pct", offsetof(MigSample, throttle_pct)},
    {"expected_downtime_ms", offsetof(MigSample, expected_downtime_ms)},
    {"post_copy_requests", offsetof(MigSample, post_copy_requests)},
};

json_t *jobjson_progress(const Job *job, const JobContext *context) {
  const MigSample *sample = &job->sample;
  bool ages = !job_is_final(job) && context->now_ms > sample->now_ms;
  json_t *object = json_object();

  json_object_set_new_nocheck(object, "percent", json_count(job->percent));
  for (size_t i = 0; i < JOBJSON_SAMPLE_COUNTS; i++)
    json_object_set_new_nocheck(
        object, jobjson_sample_counts[i].key,
        json_count(G_STRUCT_MEMBER(uint64_t, sample, jobjson_sample_counts[i].offset)));
  json_object_set_new_nocheck(object, "age_ms", json_count(ages ? context->now_ms - sample->now_ms : 0));
  return object;
}

json_t *jobjson_failure(const JobFailure *failure) {
  json_t *object = json_pack("{ss ss ss ss}", "cause", mig_cause_name(failure->cause), "phase",
                             mig_phase_name(failure->phase), "stage", mig_stage_name(failure->stage),
                             "message", failure->message);

  if (failure->libvirt_message) {
    json_object_set_new_nocheck(object, "libvirt_code", json_integer(failure->libvirt_code));
    json_set_string(object, "libvirt_message", failure->libvirt_message);
  }
  return object;
}

static json_t *finding_to_json(const char *code, bool blocks, bool transient, const char *seen,
                               const char *remedy) {
  json_t *object = json_pack("{sb sb}", "blocks", (int)blocks, "transient", (int)transient);

  json_set_string(object, "code", code);
  json_set_string(object, "seen", seen);
  json_set_string(object, "remedy", remedy);
  return object;
}

static json_t *findings_to_json(const GPtrArray *findings) {
  json_t *array = json_array();

  for (guint i = 0; findings && i < findings->len; i++) {
    const JobFinding *finding = findings->pdata[i];

    json_array_append_new(array, finding_to_json(finding->code, finding->blocks, finding->transient,
                                                 finding->seen, finding->remedy));
  }
  return array;
}

json_t *check_report_to_json(const MigCheckReport *report) {
  json_t *array = json_array();

  for (size_t i = 0; i < report->count; i++) {
    const MigFinding *finding = &report->findings[i];
    /* Cut to size, perhaps inside a character. */
    g_autofree char *seen = g_utf8_make_valid(finding->seen, -1);
    g_autofree char *remedy = g_utf8_make_valid(finding->remedy, -1);

    json_array_append_new(array,
                          finding_to_json(finding->code, finding->blocks, finding->transient, seen, remedy));
  }
  return array;
}

json_t *job_findings_to_json(const Job *job) {
  return findings_to_json(job->findings);
}

static json_t *result_to_json(const Job *job) {
  json_t *object = json_object();

  const JobResult *result = &job->result;
  bool by_events = result->downtime_error_ms > 0;

  json_object_set_new_nocheck(object, "total_time_ms", json_count(result->total_time_ms));
  if (job_times_total_ms(&job->times) > 0)
    json_object_set_new_nocheck(object, "parts", job_times_to_json(&job->times));
  jobjson_set_count_if(object, result->have_libvirt_time, "libvirt_time_ms", result->libvirt_time_ms);
  jobjson_set_count_if(object, result->have_downtime, "downtime_ms", result->downtime_ms);
  if (result->have_downtime)
    json_set_string(object, "downtime_source", by_events ? "events" : "libvirt");
  jobjson_set_count_if(object, by_events, "downtime_error_ms", result->downtime_error_ms);
  json_set_string(object, "downtime_unknown", result->downtime_unknown);
  jobjson_set_count_if(object, result->have_libvirt_downtime, "libvirt_downtime_ms",
                       result->libvirt_downtime_ms);
  jobjson_set_count_if(object, result->have_transferred, "transferred_bytes", result->transferred_bytes);
  json_set_string(object, "running_at", job_where_name(result->running_at));
  json_set_string(object, "evidence", result->evidence ? result->evidence : "");
  return object;
}

static json_t *recovery_to_json(const Job *job) {
  const JobRecovery *recovery = &job->recovery;
  json_t *object = json_object();

  json_object_set_new_nocheck(object, "since_usec_realtime", json_integer(recovery->since_usec));
  json_set_string(object, "evidence", job->result.evidence ? job->result.evidence : "asking both ends");
  json_object_set_new_nocheck(object, "tries", json_integer(recovery->tries));
  jobjson_set_time(object, "tried_usec_realtime", recovery->tried_usec);
  jobjson_set_time(object, "again_usec_realtime", recovery->again_usec);
  json_set_string(object, "error", recovery->error);
  return object;
}

static json_t *pending_to_json(const Job *job, const JobContext *context) {
  json_t *object = json_pack("{ss ss si sI}", "reason", context->pending_reason, "message",
                             context->pending_message, "queue_position", (int)context->queue_position,
                             "since_usec_realtime", (json_int_t)job->pending_since_usec);

  jobjson_set_time(object, "until_usec_realtime", context->pending_until_usec);
  jobjson_set_time(object, "held_since_usec_realtime", context->held_since_usec);
  jobjson_set_time(object, "retry_usec_realtime", context->retry_usec);
  jobjson_set_count_if(object, context->tries > 0, "tries", context->tries);
  return object;
}

/* Only for keys that are not built-in defaults. */
static json_t *sources_to_json(const Job *job) {
  json_t *array = json_array();

  for (unsigned key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    GoalSource source = (GoalSource)job->policy_sources[key];

    if (source != GOAL_SOURCE_DEFAULT)
      json_array_append_new(array, json_pack("{ss ss}", "key", mig_policy_key_info((MigPolicyKey)key)->name,
                                             "source", goal_source_name(source)));
  }
  return array;
}

json_t *jobjson_common(const Job *job) {
  json_t *object = json_object();

  json_set_string(object, "id", job->id);
  json_set_string(object, "request_key", job->request_key);
  json_set_string(object, "direction", mig_direction_name(job->direction));
  json_set_string(object, "drain", job->drain_id);
  if (job->caller)
    json_object_set_new_nocheck(object, "caller", caller_to_json(job->caller));
  json_object_set_new_nocheck(object, "domain", domain_to_json(job));
  json_object_set_new_nocheck(object, "target", target_to_json(job));
  if (job->lease)
    json_set_string(object, "source", job->lease->source);
  if (job->lease && job->lease->leased && !job_is_final(job))
    json_object_set_new_nocheck(object, "lease", job_lease_to_json(job));
  json_object_set_new_nocheck(object, "revision", json_count(job->revision));
  json_set_string(object, "phase", mig_phase_name(job->phase));
  json_set_string(object, "stage", mig_stage_name(job->stage));
  json_object_set_new_nocheck(object, "policy", policy_to_json(&job->policy, POLICY_ALL_KEYS));
  json_set_string(object, "policy_name", job->policy_name);
  json_set_string(object, "policy_matched", job->policy_matched);
  json_object_set_new_nocheck(object, "policy_sources", sources_to_json(job));
  json_object_set_new_nocheck(object, "abort_requested", json_boolean(job->abort_requested));
  jobjson_set_time(object, "created_usec_realtime", job->created_usec);
  jobjson_set_time(object, "started_usec_realtime", job->started_usec);
  jobjson_set_time(object, "finished_usec_realtime", job->finished_usec);
  jobjson_set_count_if(object, job->share_bytes_per_s > 0, "bandwidth_share_bytes_per_s",
                       job->share_bytes_per_s);
  json_set_string(object, "next_action", job->next_action);
  if (job->findings)
    json_object_set_new_nocheck(object, "findings", findings_to_json(job->findings));
  if (job_is_final(job))
    json_object_set_new_nocheck(object, "result", result_to_json(job));
  return object;
}

const char *way_to_stage_name(MigWay way) {
  static const MigStage stages[] = {MIG_STAGE_PRE_COPY, MIG_STAGE_AUTO_CONVERGE, MIG_STAGE_STOP_AND_COPY,
                                    MIG_STAGE_POST_COPY, MIG_STAGE_NONE};

  G_STATIC_ASSERT(G_N_ELEMENTS(stages) == MIG_WAY_COUNT + 1);
  return mig_stage_name(stages[way]);
}

static json_t *forecast_to_json(const Job *job) {
  json_t *object = json_object();

  json_set_string(object, "way", way_to_stage_name(job->forecast.way));
  json_object_set_new_nocheck(object, "total_time_ms", json_count(job->forecast.total_ms));
  json_object_set_new_nocheck(object, "pause_ms", json_count(job->forecast.pause_ms));
  json_object_set_new_nocheck(object, "floor_ms", json_count(job->forecast.floor_ms));
  return object;
}

json_t *job_to_json(const Job *job, const JobContext *context, JobDetail view) {
  json_t *object = jobjson_common(job);

  if (job->deadline_ms > 0 && !job_is_final(job))
    jobjson_set_time(object, "deadline_usec_realtime",
                     context->now_usec + ((int64_t)job->deadline_ms - (int64_t)context->now_ms) * 1000);
  /* Until the end this is only a potential cause of failure: the domain may still arrive. */
  if (job_is_final(job) && job->failure.cause != MIG_CAUSE_NONE)
    json_object_set_new_nocheck(object, "failure", jobjson_failure(&job->failure));
  if (job->phase == MIG_PHASE_PENDING)
    json_object_set_new_nocheck(object, "pending", pending_to_json(job, context));
  if (job->phase == MIG_PHASE_RECOVERING)
    json_object_set_new_nocheck(object, "recovery", recovery_to_json(job));
  if (job->have_sample)
    json_object_set_new_nocheck(object, "progress", jobjson_progress(job, context));
  if (job->forecast.known && !job_is_final(job))
    json_object_set_new_nocheck(object, "forecast", forecast_to_json(job));
  json_object_set_new_nocheck(object, "events",
                              jobjson_events(job, view == JOB_DETAIL_FULL ? JOB_EVENTS_MAX : NEWS_EVENTS));
  return object;
}

json_t *job_to_summary(const Job *job, const JobContext *context) {
  json_t *object = json_object();

  json_set_string(object, "id", job->id);
  json_object_set_new_nocheck(object, "domain", domain_to_json(job));
  json_object_set_new_nocheck(object, "target", target_to_json(job));
  json_set_string(object, "direction", mig_direction_name(job->direction));
  json_set_string(object, "phase", mig_phase_name(job->phase));
  json_set_string(object, "stage", mig_stage_name(job->stage));
  json_object_set_new_nocheck(object, "percent", json_integer(job->percent));
  if (job_is_final(job) && job->failure.cause != MIG_CAUSE_NONE)
    json_set_string(object, "cause", mig_cause_name(job->failure.cause));
  if (job->phase == MIG_PHASE_PENDING) {
    json_set_string(object, "pending_reason", context->pending_reason);
    jobjson_set_count_if(object, context->queue_position > 0, "queue_position", context->queue_position);
    jobjson_set_time(object, "pending_until_usec_realtime", context->pending_until_usec);
  }
  jobjson_set_time(object, "created_usec_realtime", job->created_usec);
  jobjson_set_time(object, "finished_usec_realtime", job->finished_usec);
  jobjson_set_count_if(object, job->result.have_downtime, "downtime_ms", job->result.downtime_ms);
  jobjson_set_count_if(object, job_is_final(job), "total_time_ms", job->result.total_time_ms);
  return object;
}

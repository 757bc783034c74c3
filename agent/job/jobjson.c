/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as JSON: as the interface shows it, and as its record keeps it. */
#include "agent/job/jobjson.h"

#include "agent/job/recordformat.h"

#include <gio/gio.h>
#include <inttypes.h>
#include <string.h>

#define NEWS_EVENTS 8

/* By far more than the numbers that may come between two records of a job. */
#define REVISION_LEAP (UINT64_C(1) << 20)

/* JSON on the wire has signed integers. */
static json_t *json_count(uint64_t value) {
  return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

/* Absent stands for unknown: sets nothing for NULL. */
static void set_string(json_t *object, const char *key, const char *value) {
  if (value)
    json_object_set_new_nocheck(object, key, json_string(value));
}

static void set_time(json_t *object, const char *key, int64_t value_usec) {
  if (value_usec > 0)
    json_object_set_new_nocheck(object, key, json_integer(value_usec));
}

static void set_count_if(json_t *object, bool have, const char *key, uint64_t value) {
  if (have)
    json_object_set_new_nocheck(object, key, json_count(value));
}

json_t *policy_to_json(const MigPolicy *policy) {
  json_t *object = json_object();

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    uint64_t value = policy->values[key];
    json_t *json = NULL;

    switch (info->type) {
    case MIG_POLICY_TYPE_INT:
      json = json_count(value);
      break;
    case MIG_POLICY_TYPE_BOOL:
      json = json_boolean(value);
      break;
    case MIG_POLICY_TYPE_ENUM:
      json = json_string(info->enum_names[value]);
      break;
    }
    json_object_set_new_nocheck(object, info->name, json);
  }
  return object;
}

/* What is past all integers is past all limits as well; to convert it would make anything of it, such as 0, no limit. */
static uint64_t count_of_number(json_t *value) {
  if (json_is_integer(value))
    return (uint64_t)json_integer_value(value);
  return json_real_value(value) < 9e18 ? (uint64_t)json_real_value(value) : UINT64_MAX;
}

static MigPolicyError policy_set_json(MigPolicy *policy, const MigPolicyKeyInfo *info, json_t *value,
                                      char *ret_message, size_t message_size) {
  switch (info->type) {
  case MIG_POLICY_TYPE_INT:
    if (!json_is_number(value) || json_number_value(value) < 0) {
      g_snprintf(ret_message, message_size, "a number from %" PRIu64 " to %" PRIu64 " is needed", info->min,
                 info->max);
      return MIG_POLICY_ERROR_NOT_A_NUMBER;
    }
    return mig_policy_set(policy, info->key, count_of_number(value), ret_message, message_size);
  case MIG_POLICY_TYPE_BOOL:
    if (!json_is_boolean(value)) {
      g_snprintf(ret_message, message_size, "true or false is needed");
      return MIG_POLICY_ERROR_NOT_A_BOOLEAN;
    }
    return mig_policy_set(policy, info->key, json_is_true(value), ret_message, message_size);
  case MIG_POLICY_TYPE_ENUM:
    return mig_policy_set_text(policy, info->name, json_is_string(value) ? json_string_value(value) : "",
                               ret_message, message_size);
  }
  return MIG_POLICY_ERROR_UNKNOWN_KEY;
}

bool policy_from_json(json_t *object, MigPolicy *ret_policy, const char **ret_key, char *ret_message,
                      size_t message_size) {
  MigPolicy policy;
  const char *key;
  json_t *value;

  mig_policy_init(&policy);
  json_object_foreach (object, key, value) {
    const MigPolicyKeyInfo *info = mig_policy_key_by_name(key);

    if (info && json_is_null(value))
      continue;
    *ret_key = key;
    if (!info) {
      g_snprintf(ret_message, message_size, "there is no such key");
      return false;
    }
    if (policy_set_json(&policy, info, value, ret_message, message_size) != MIG_POLICY_OK)
      return false;
  }
  *ret_policy = policy;
  return true;
}

static json_t *target_to_json(const Job *job) {
  json_t *object = json_object();

  set_string(object, "name", job->target_name);
  set_string(object, "libvirt_uri", job->target_uri);
  set_string(object, "migrate_uri", job->migrate_uri);
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
    set_string(object, "cause", mig_cause_name(event->cause));
  return object;
}

static json_t *events_to_json(const Job *job, unsigned newest) {
  json_t *array = json_array();

  for (guint i = job->events->len > newest ? job->events->len - newest : 0; i < job->events->len; i++)
    json_array_append_new(array, event_to_json(job->events->pdata[i]));
  return array;
}

static json_t *progress_to_json(const Job *job, const JobContext *context) {
  const MigSample *sample = &job->sample;
  uint64_t age_ms = context->now_ms > sample->now_ms ? context->now_ms - sample->now_ms : 0;
  json_t *object = json_object();

  const struct {
    const char *key;
    uint64_t value;
  } counts[] = {
      {"percent", job->percent},
      {"elapsed_ms", sample->elapsed_ms},
      {"memory_total_bytes", sample->memory_total_bytes},
      {"memory_processed_bytes", sample->memory_processed_bytes},
      {"memory_remaining_bytes", sample->memory_remaining_bytes},
      {"disk_total_bytes", sample->disk_total_bytes},
      {"disk_processed_bytes", sample->disk_processed_bytes},
      {"disk_remaining_bytes", sample->disk_remaining_bytes},
      {"bandwidth_bytes_per_s", sample->bandwidth_bytes_per_s},
      {"dirty_rate_bytes_per_s", sample->dirty_rate_bytes_per_s},
      {"iteration", sample->iteration},
      {"throttle_pct", sample->throttle_pct},
      {"expected_downtime_ms", sample->expected_downtime_ms},
      {"post_copy_requests", sample->post_copy_requests},
      {"age_ms", job_is_final(job) ? 0 : age_ms},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
    json_object_set_new_nocheck(object, counts[i].key, json_count(counts[i].value));
  return object;
}

static json_t *failure_to_json(const JobFailure *failure) {
  json_t *object = json_pack("{ss ss ss ss}", "cause", mig_cause_name(failure->cause), "phase",
                             mig_phase_name(failure->phase), "stage", mig_stage_name(failure->stage),
                             "message", failure->message);

  if (failure->libvirt_message) {
    json_object_set_new_nocheck(object, "libvirt_code", json_integer(failure->libvirt_code));
    set_string(object, "libvirt_message", failure->libvirt_message);
  }
  return object;
}

static json_t *finding_to_json(const char *code, bool blocks, bool transient, const char *seen,
                               const char *remedy) {
  json_t *object = json_pack("{sb sb}", "blocks", (int)blocks, "transient", (int)transient);

  set_string(object, "code", code);
  set_string(object, "seen", seen);
  set_string(object, "remedy", remedy);
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
    /* Cut to size, perhaps in the middle of a character. */
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

  set_count_if(object, job->have_total_time, "total_time_ms", job->total_time_ms);
  set_count_if(object, job->have_downtime, "downtime_ms", job->downtime_ms);
  set_count_if(object, job->have_transferred, "transferred_bytes", job->transferred_bytes);
  set_string(object, "running_at", job->running_at);
  set_string(object, "evidence", job->evidence ? job->evidence : "");
  return object;
}

static json_t *recovery_to_json(const Job *job) {
  const JobRecovery *recovery = &job->recovery;
  json_t *object = json_object();

  json_object_set_new_nocheck(object, "since_usec_realtime", json_integer(recovery->since_usec));
  set_string(object, "evidence", job->evidence ? job->evidence : "both ends are being asked");
  json_object_set_new_nocheck(object, "tries", json_integer(recovery->tries));
  set_time(object, "tried_usec_realtime", recovery->tried_usec);
  set_time(object, "again_usec_realtime", recovery->again_usec);
  set_string(object, "error", recovery->error);
  return object;
}

static json_t *pending_to_json(const Job *job, const JobContext *context) {
  json_t *object = json_pack("{ss ss si sI}", "reason", context->pending_reason, "message",
                             context->pending_message, "queue_position", (int)context->queue_position,
                             "since_usec_realtime", (json_int_t)job->pending_since_usec);

  set_time(object, "until_usec_realtime", context->pending_until_usec);
  set_time(object, "held_since_usec_realtime", context->held_since_usec);
  set_time(object, "retry_usec_realtime", context->retry_usec);
  set_count_if(object, context->tries > 0, "tries", context->tries);
  return object;
}

/* Of what is not built in. */
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

static json_t *job_common(const Job *job) {
  json_t *object = json_object();

  set_string(object, "id", job->id);
  set_string(object, "request_key", job->request_key);
  set_string(object, "direction", mig_direction_name(job->direction));
  set_string(object, "drain", job->drain_id);
  if (job->caller)
    json_object_set_new_nocheck(object, "caller", caller_to_json(job->caller));
  json_object_set_new_nocheck(object, "domain", domain_to_json(job));
  json_object_set_new_nocheck(object, "target", target_to_json(job));
  if (job->lease)
    set_string(object, "source", job->lease->source);
  if (job->lease && job->lease->leased && !job_is_final(job))
    json_object_set_new_nocheck(object, "lease", job_lease_to_json(job));
  json_object_set_new_nocheck(object, "revision", json_count(job->revision));
  set_string(object, "phase", mig_phase_name(job->phase));
  set_string(object, "stage", mig_stage_name(job->stage));
  json_object_set_new_nocheck(object, "policy", policy_to_json(&job->policy));
  set_string(object, "policy_name", job->policy_name);
  set_string(object, "policy_matched", job->policy_matched);
  json_object_set_new_nocheck(object, "policy_sources", sources_to_json(job));
  json_object_set_new_nocheck(object, "abort_requested", json_boolean(job->abort_requested));
  set_time(object, "created_usec_realtime", job->created_usec);
  set_time(object, "started_usec_realtime", job->started_usec);
  set_time(object, "finished_usec_realtime", job->finished_usec);
  set_count_if(object, job->share_bytes_per_s > 0, "bandwidth_share_bytes_per_s", job->share_bytes_per_s);
  set_string(object, "next_action", job->next_action);
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

  set_string(object, "way", way_to_stage_name(job->forecast_way));
  json_object_set_new_nocheck(object, "total_time_ms", json_count(job->forecast_total_ms));
  json_object_set_new_nocheck(object, "pause_ms", json_count(job->forecast_pause_ms));
  json_object_set_new_nocheck(object, "floor_ms", json_count(job->forecast_floor_ms));
  return object;
}

static json_t *plan_to_json(const MigPlan *plan) {
  return json_pack("{sb sb si si sI}", "post_copy", (int)plan->post_copy, "auto_converge",
                   (int)plan->auto_converge, "throttle_initial_pct", (int)plan->throttle_initial_pct,
                   "throttle_increment_pct", (int)plan->throttle_increment_pct, "downtime_ms",
                   (json_int_t)plan->downtime_ms);
}

static json_t *steering_to_json(const MigSteering *steering) {
  json_t *object = json_pack("{sI sb}", "downtime_ms", (json_int_t)steering->downtime_ms, "pausing",
                             (int)steering->pausing);
  json_t *ways = json_array();

  for (int way = 0; way < MIG_WAY_COUNT; way++)
    if (steering->refused & (1u << way))
      json_array_append_new(ways, json_string(mig_way_name((MigWay)way)));
  json_object_set_new_nocheck(object, "tried_in_vain", ways);
  return object;
}

json_t *job_to_json(const Job *job, const JobContext *context, JobView view) {
  json_t *object = job_common(job);

  if (job->deadline_ms > 0 && !job_is_final(job))
    set_time(object, "deadline_usec_realtime",
             context->now_usec + ((int64_t)job->deadline_ms - (int64_t)context->now_ms) * 1000);
  /* Until the end it is what the end will be blamed on, should there be one: the domain may still arrive. */
  if (job_is_final(job) && job->failure.cause != MIG_CAUSE_NONE)
    json_object_set_new_nocheck(object, "failure", failure_to_json(&job->failure));
  if (job->phase == MIG_PHASE_PENDING)
    json_object_set_new_nocheck(object, "pending", pending_to_json(job, context));
  if (job->phase == MIG_PHASE_RECOVERING)
    json_object_set_new_nocheck(object, "recovery", recovery_to_json(job));
  if (job->have_sample)
    json_object_set_new_nocheck(object, "progress", progress_to_json(job, context));
  if (job->have_forecast && !job_is_final(job))
    json_object_set_new_nocheck(object, "forecast", forecast_to_json(job));
  json_object_set_new_nocheck(object, "events",
                              events_to_json(job, view == JOB_VIEW_FULL ? JOB_EVENTS_MAX : NEWS_EVENTS));
  return object;
}

json_t *job_to_summary(const Job *job, const JobContext *context) {
  json_t *object = json_object();

  set_string(object, "id", job->id);
  json_object_set_new_nocheck(object, "domain", domain_to_json(job));
  json_object_set_new_nocheck(object, "target", target_to_json(job));
  set_string(object, "direction", mig_direction_name(job->direction));
  set_string(object, "phase", mig_phase_name(job->phase));
  set_string(object, "stage", mig_stage_name(job->stage));
  json_object_set_new_nocheck(object, "percent", json_integer(job->percent));
  if (job_is_final(job) && job->failure.cause != MIG_CAUSE_NONE)
    set_string(object, "cause", mig_cause_name(job->failure.cause));
  if (job->phase == MIG_PHASE_PENDING) {
    set_string(object, "pending_reason", context->pending_reason);
    set_count_if(object, context->queue_position > 0, "queue_position", context->queue_position);
    set_time(object, "pending_until_usec_realtime", context->pending_until_usec);
  }
  set_time(object, "created_usec_realtime", job->created_usec);
  set_time(object, "finished_usec_realtime", job->finished_usec);
  set_count_if(object, job->have_downtime, "downtime_ms", job->downtime_ms);
  set_count_if(object, job->have_total_time, "total_time_ms", job->total_time_ms);
  return object;
}

/* Nothing but true things: what is absent is not known, and no action rests on it. */
static const struct {
  const char *key;
  size_t offset;
} record_facts[] = {
    {"ran_before", offsetof(MigSettleRecord, ran_before)},
    {"paused_by_agent", offsetof(MigSettleRecord, paused_by_agent)},
    {"pause_answered", offsetof(MigSettleRecord, pause_answered)},
    {"persist_target", offsetof(MigSettleRecord, persist_target)},
    {"undefine_source", offsetof(MigSettleRecord, undefine_source)},
    {"target_was_absent", offsetof(MigSettleRecord, target_was_absent)},
    {"seen_there", offsetof(MigSettleRecord, seen_there)},
    {"completed", offsetof(MigSettleRecord, completed)},
    {"told_it_stayed", offsetof(MigSettleRecord, told_it_stayed)},
    {"told_it_ran", offsetof(MigSettleRecord, told_it_ran)},
};
G_STATIC_ASSERT(G_N_ELEMENTS(record_facts) * sizeof(bool) == sizeof(MigSettleRecord));

static json_t *facts_to_json(const MigSettleRecord *record) {
  json_t *object = json_object();

  for (size_t i = 0; i < G_N_ELEMENTS(record_facts); i++)
    json_object_set_new_nocheck(object, record_facts[i].key,
                                json_boolean(G_STRUCT_MEMBER(bool, record, record_facts[i].offset)));
  return object;
}

json_t *job_to_record(const Job *job, const char *boot_id) {
  json_t *wire = job_common(job);
  json_t *jobs = json_pack("{sI ss sI sI sI sI sI sI sb sb}", "seq", (json_int_t)job->seq, "boot_id", boot_id,
                           "started_ms", (json_int_t)job->started_ms, "memory_bytes",
                           (json_int_t)job->memory_bytes, "disk_bytes", (json_int_t)job->disk_bytes,
                           "pending_since_usec", (json_int_t)job->pending_since_usec, "pending_since_ms",
                           (json_int_t)job->pending_since_ms, "events_seq", (json_int_t)job->events_seq,
                           "have_sample", (int)job->have_sample, "begun", (int)job->begun);
  JobContext then = {.now_ms = job->sample.now_ms};

  if (job->phase == MIG_PHASE_RECOVERING)
    set_time(jobs, "recovering_since_usec", job->recovery.since_usec);
  if (job_is_final(job))
    json_object_set_new_nocheck(jobs, "finished_ms", json_integer(job->finished_ms));
  set_string(jobs, "request_digest", job->request_digest);
  set_count_if(jobs, job->link_bytes_per_s > 0, "link_bytes_per_s", job->link_bytes_per_s);
  if (job->have_plan) {
    json_object_set_new_nocheck(jobs, "plan", plan_to_json(&job->plan));
    json_object_set_new_nocheck(jobs, "steering", steering_to_json(&job->steering));
    json_object_set_new_nocheck(jobs, "before", facts_to_json(&job->record));
    set_count_if(jobs, job->source_id > 0, "source_id", (uint64_t)job->source_id);
    set_count_if(jobs, job->job_began_ms > 0, "job_began_ms", job->job_began_ms);
  }
  if (job->lease)
    json_object_set_new_nocheck(jobs, "lease", job_lease_to_record(job->lease));
  json_object_set_new_nocheck(wire, "events", events_to_json(job, JOB_EVENTS_MAX));
  if (job->failure.cause != MIG_CAUSE_NONE)
    json_object_set_new_nocheck(wire, "failure", failure_to_json(&job->failure));
  if (job->have_sample)
    json_object_set_new_nocheck(wire, "progress", progress_to_json(job, &then));
  return json_pack("{si so so}", "format", RECORD_FORMAT, "job", wire, "agent", jobs);
}

/* Reading a record: what is absent stays as it is. */

static char *get_string(json_t *object, const char *key) {
  return g_strdup(json_string_value(json_object_get(object, key)));
}

/* Of those that are cut. */
static char *get_text(json_t *object, const char *key) {
  return job_copy_text(json_string_value(json_object_get(object, key)));
}

static uint64_t get_count(json_t *object, const char *key) {
  json_int_t value = json_integer_value(json_object_get(object, key));

  return value > 0 ? (uint64_t)value : 0;
}

static unsigned get_small(json_t *object, const char *key, unsigned max) {
  return (unsigned)MIN(get_count(object, key), max);
}

static bool get_count_if(json_t *object, const char *key, uint64_t *ret_value) {
  if (!json_is_integer(json_object_get(object, key)))
    return false;
  *ret_value = get_count(object, key);
  return true;
}

static int get_enum(json_t *object, const char *key, int (*from_name)(const char *)) {
  const char *name = json_string_value(json_object_get(object, key));

  return name ? from_name(name) : MIG_ENUM_UNKNOWN;
}

/* For those that have a harmless zero. */
static int get_enum_or_zero(json_t *object, const char *key, int (*from_name)(const char *)) {
  return MAX(get_enum(object, key, from_name), 0);
}

static void read_events(Job *job, json_t *array) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object) {
    const char *kind = json_string_value(json_object_get(object, "kind"));

    if (!kind)
      continue;
    job_add_event(job, kind, (MigCause)get_enum_or_zero(object, "cause", mig_cause_from_name), "%s",
                  json_string_value(json_object_get(object, "message")));
    JobEvent *event = job->events->pdata[job->events->len - 1];
    event->seq = get_count(object, "seq");
    event->time_usec = (int64_t)get_count(object, "time_usec_realtime");
    event->phase = (MigPhase)get_enum_or_zero(object, "phase", mig_phase_from_name);
    event->stage = (MigStage)get_enum_or_zero(object, "stage", mig_stage_from_name);
  }
}

static void read_sources(Job *job, json_t *array) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object) {
    const MigPolicyKeyInfo *info = mig_policy_key_by_name(json_string_value(json_object_get(object, "key")));

    if (info)
      job->policy_sources[info->key] = (uint8_t)get_enum_or_zero(object, "source", goal_source_from_name);
  }
}

static void read_failure(JobFailure *failure, json_t *object) {
  failure->cause = (MigCause)get_enum_or_zero(object, "cause", mig_cause_from_name);
  failure->phase = (MigPhase)get_enum_or_zero(object, "phase", mig_phase_from_name);
  failure->stage = (MigStage)get_enum_or_zero(object, "stage", mig_stage_from_name);
  failure->message = get_text(object, "message");
  failure->libvirt_code = (int)get_small(object, "libvirt_code", INT_MAX);
  failure->libvirt_message = get_text(object, "libvirt_message");
  if (failure->cause != MIG_CAUSE_NONE && !failure->message)
    failure->message = g_strdup(mig_cause_describe(failure->cause));
}

static void read_findings(Job *job, json_t *array) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object) {
    const char *code = json_string_value(json_object_get(object, "code"));
    const char *seen = json_string_value(json_object_get(object, "seen"));
    const char *remedy = json_string_value(json_object_get(object, "remedy"));

    if (code && seen && remedy)
      job_add_finding(job, code, json_is_true(json_object_get(object, "blocks")),
                      json_is_true(json_object_get(object, "transient")), seen, remedy);
  }
}

static void read_result(Job *job, json_t *object) {
  static const char *const places[] = {"source", "target", "none"};
  const char *running_at = json_string_value(json_object_get(object, "running_at"));

  job->have_total_time = get_count_if(object, "total_time_ms", &job->total_time_ms);
  job->have_downtime = get_count_if(object, "downtime_ms", &job->downtime_ms);
  job->have_transferred = get_count_if(object, "transferred_bytes", &job->transferred_bytes);
  job->evidence = get_text(object, "evidence");
  for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
    if (g_strcmp0(running_at, places[i]) == 0)
      job->running_at = places[i];
}

static void read_progress(Job *job, json_t *object) {
  MigSample *sample = &job->sample;

  job->percent = get_small(object, "percent", 100);
  sample->valid = true;
  sample->elapsed_ms = get_count(object, "elapsed_ms");
  sample->memory_total_bytes = get_count(object, "memory_total_bytes");
  sample->memory_processed_bytes = get_count(object, "memory_processed_bytes");
  sample->memory_remaining_bytes = get_count(object, "memory_remaining_bytes");
  sample->disk_total_bytes = get_count(object, "disk_total_bytes");
  sample->disk_processed_bytes = get_count(object, "disk_processed_bytes");
  sample->disk_remaining_bytes = get_count(object, "disk_remaining_bytes");
  sample->bandwidth_bytes_per_s = get_count(object, "bandwidth_bytes_per_s");
  sample->dirty_rate_bytes_per_s = get_count(object, "dirty_rate_bytes_per_s");
  sample->iteration = get_count(object, "iteration");
  sample->throttle_pct = get_count(object, "throttle_pct");
  sample->expected_downtime_ms = get_count(object, "expected_downtime_ms");
  sample->post_copy_requests = get_count(object, "post_copy_requests");
}

static void read_plan(Job *job, json_t *object) {
  if (!json_is_object(object))
    return;
  job->have_plan = true;
  job->plan.post_copy = json_is_true(json_object_get(object, "post_copy"));
  job->plan.auto_converge = json_is_true(json_object_get(object, "auto_converge"));
  job->plan.throttle_initial_pct = get_small(object, "throttle_initial_pct", 100);
  job->plan.throttle_increment_pct = get_small(object, "throttle_increment_pct", 100);
  job->plan.downtime_ms = get_count(object, "downtime_ms");
}

static void read_steering(MigSteering *steering, json_t *object) {
  json_t *name;
  size_t i;

  steering->downtime_ms = get_count(object, "downtime_ms");
  steering->pausing = json_is_true(json_object_get(object, "pausing"));
  json_array_foreach (json_object_get(object, "tried_in_vain"), i, name)
    for (int way = 0; way < MIG_WAY_COUNT; way++)
      if (g_strcmp0(json_string_value(name), mig_way_name((MigWay)way)) == 0)
        steering->refused |= 1u << way;
}

static void read_facts(MigSettleRecord *record, json_t *object) {
  for (size_t i = 0; i < G_N_ELEMENTS(record_facts); i++)
    G_STRUCT_MEMBER(bool, record, record_facts[i].offset) =
        json_is_true(json_object_get(object, record_facts[i].key));
}

/* Monotonic times mean nothing after a reboot; nothing that ran then runs now either, and what waited waits anew. For how
 * long a finished job was kept the time of day has to do then. */
static void read_clock(Job *job, json_t *jobs, const char *boot_id) {
  bool same_boot = g_strcmp0(json_string_value(json_object_get(jobs, "boot_id")), boot_id) == 0;
  json_t *finished = json_object_get(jobs, "finished_ms");
  uint64_t since_ms = get_count(jobs, "pending_since_ms");
  int64_t now_ms = g_get_monotonic_time() / 1000;

  if (same_boot) {
    job->started_ms = get_count(jobs, "started_ms");
    job->job_began_ms = get_count(jobs, "job_began_ms");
    job->source_id = (int)MIN(get_count(jobs, "source_id"), INT_MAX);
  }
  job->pending_since_ms = same_boot && since_ms > 0 ? since_ms : (uint64_t)now_ms;
  if (same_boot && finished)
    job->finished_ms = json_integer_value(finished);
  else
    job->finished_ms = now_ms - MAX(g_get_real_time() - job->finished_usec, 0) / 1000;
}

Job *job_from_record(json_t *record, const char *boot_id, GError **error) {
  json_t *wire = json_object_get(record, "job");
  json_t *jobs = json_object_get(record, "agent");
  json_t *domain = json_object_get(wire, "domain");
  json_t *target = json_object_get(wire, "target");
  const char *id = json_string_value(json_object_get(wire, "id"));
  int phase = get_enum(wire, "phase", mig_phase_from_name);
  g_autoptr(Job) job = job_new();
  const char *key = NULL;
  char message[200] = "";
  char *uuid;

  if (!record_upgrade(record, error))
    return NULL;
  if (!id || strlen(id) != JOB_ID_SIZE - 1 || phase == MIG_ENUM_UNKNOWN) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "it lacks an id or a phase");
    return NULL;
  }
  if (!policy_from_json(json_object_get(wire, "policy"), &job->policy, &key, message, sizeof message)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "its policy's %s is bad: %s", key, message);
    return NULL;
  }
  g_strlcpy(job->id, id, sizeof job->id);
  job->phase = (MigPhase)phase;
  job->stage = (MigStage)get_enum_or_zero(wire, "stage", mig_stage_from_name);
  job->direction = (MigDirection)get_enum_or_zero(wire, "direction", mig_direction_from_name);
  if (job->direction == MIG_DIRECTION_INCOMING)
    job->lease = job_lease_from_record(json_object_get(jobs, "lease"));
  job->domain_name = get_string(domain, "name");
  uuid = get_string(domain, "uuid");
  if (uuid)
    g_strlcpy(job->domain_uuid, uuid, sizeof job->domain_uuid);
  g_free(uuid);
  job->target_name = get_string(target, "name");
  job->target_uri = get_string(target, "libvirt_uri");
  job->migrate_uri = get_string(target, "migrate_uri");
  if (!job->domain_name || !job->domain_uuid[0] || !job->target_uri) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "it lacks its domain or its target");
    return NULL;
  }
  job->request_key = get_string(wire, "request_key");
  job->request_digest = get_string(jobs, "request_digest");
  job->link_bytes_per_s = get_count(jobs, "link_bytes_per_s");
  job->share_bytes_per_s = get_count(wire, "bandwidth_share_bytes_per_s");
  job->policy_name = get_string(wire, "policy_name");
  job->drain_id = get_string(wire, "drain");
  job->caller = caller_from_json(json_object_get(wire, "caller"));
  job->policy_matched = get_string(wire, "policy_matched");
  read_sources(job, json_object_get(wire, "policy_sources"));
  job->abort_requested = json_is_true(json_object_get(wire, "abort_requested"));
  /* The interface promises it; what a new job has stands for one that is not told. */
  if (get_count(wire, "created_usec_realtime") > 0)
    job->created_usec = (int64_t)get_count(wire, "created_usec_realtime");
  job->started_usec = (int64_t)get_count(wire, "started_usec_realtime");
  job->finished_usec = (int64_t)get_count(wire, "finished_usec_realtime");
  job->next_action = get_text(wire, "next_action");
  job->seq = get_count(jobs, "seq");
  job->memory_bytes = get_count(jobs, "memory_bytes");
  job->disk_bytes = get_count(jobs, "disk_bytes");
  job->pending_since_usec = (int64_t)get_count(jobs, "pending_since_usec");
  job->have_sample = json_is_true(json_object_get(jobs, "have_sample"));
  read_clock(job, jobs, boot_id);
  read_plan(job, json_object_get(jobs, "plan"));
  read_steering(&job->steering, json_object_get(jobs, "steering"));
  read_facts(&job->record, json_object_get(jobs, "before"));
  job->begun = json_is_true(json_object_get(jobs, "begun"));
  job->recovery.since_usec = (int64_t)get_count(jobs, "recovering_since_usec");
  if (job->phase == MIG_PHASE_RECOVERING && job->recovery.since_usec == 0)
    job->recovery.since_usec = g_get_real_time();
  read_failure(&job->failure, json_object_get(wire, "failure"));
  read_findings(job, json_object_get(wire, "findings"));
  read_result(job, json_object_get(wire, "result"));
  read_progress(job, json_object_get(wire, "progress"));
  read_events(job, json_object_get(wire, "events"));
  job->events_seq = get_count(jobs, "events_seq");
  job->revision = get_count(wire, "revision");
  if (!job_is_final(job)) {
    /* Numbers alone raise a job's revision without a record. So it goes on from beyond all that clients can have seen, whatever
     * the time of day is now. The milliseconds since the epoch rise faster than any job changes. */
    job->revision = MAX(job->revision + REVISION_LEAP, (uint64_t)(g_get_real_time() / 1000));
    job->have_sample = false; /* of which nobody knows any more how old it is */
  }
  job->durable = true;
  return g_steal_pointer(&job);
}

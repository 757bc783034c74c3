/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's record, written and read: what of a job outlives the process. */
#include "agent/job/jobrecord.h"

#include "agent/base/policyjson.h"
#include "agent/job/jobjson-private.h"
#include "agent/job/recordformat.h"

#include <errno.h>
#include <gio/gio.h>
#include <limits.h>
#include <string.h>

/* Far more than progress can raise a job's revision between two of its records. */
#define REVISION_LEAP (UINT64_C(1) << 20)

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

/* Only what is true: an absent fact is unknown, and no action rests on it. */
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
  json_t *wire = jobjson_common(job);
  json_t *agent = json_pack("{sI ss sI sI sI sI sI sI sb sb}", "seq", (json_int_t)job->seq, "boot_id",
                            boot_id, "started_ms", (json_int_t)job->started_ms, "memory_bytes",
                            (json_int_t)job->memory_bytes, "disk_bytes", (json_int_t)job->disk_bytes,
                            "pending_since_usec", (json_int_t)job->pending_since_usec, "pending_since_ms",
                            (json_int_t)job->pending_since_ms, "events_seq", (json_int_t)job->events_seq,
                            "have_sample", (int)job->have_sample, "begun", (int)job->begun);
  JobContext then = {.now_ms = job->sample.now_ms};

  if (job->phase == MIG_PHASE_RECOVERING)
    jobjson_set_time(agent, "recovering_since_usec", job->recovery.since_usec);
  if (job_is_final(job))
    json_object_set_new_nocheck(agent, "finished_ms", json_integer(job->finished_ms));
  else
    json_object_set_new_nocheck(agent, "times", job_times_to_record(&job->times));
  json_set_string(agent, "request_digest", job->request_digest);
  jobjson_set_count_if(agent, job->link_bytes_per_s > 0, "link_bytes_per_s", job->link_bytes_per_s);
  if (job->have_plan) {
    json_object_set_new_nocheck(agent, "plan", plan_to_json(&job->plan));
    json_object_set_new_nocheck(agent, "steering", steering_to_json(&job->steering));
    json_object_set_new_nocheck(agent, "before", facts_to_json(&job->record));
    jobjson_set_count_if(agent, job->source_id > 0, "source_id", (uint64_t)job->source_id);
    jobjson_set_count_if(agent, job->job_began_ms > 0, "job_began_ms", job->job_began_ms);
  }
  if (job->lease)
    json_object_set_new_nocheck(agent, "lease", job_lease_to_record(job->lease));
  json_object_set_new_nocheck(wire, "events", jobjson_events(job, JOB_EVENTS_MAX));
  if (job->failure.cause != MIG_CAUSE_NONE)
    json_object_set_new_nocheck(wire, "failure", jobjson_failure(&job->failure));
  if (job->have_sample)
    json_object_set_new_nocheck(wire, "progress", jobjson_progress(job, &then));
  return json_pack("{si so so}", "format", RECORD_FORMAT, "job", wire, "agent", agent);
}

/* Reading a record: absent fields keep their values. */

/* For texts that are cut to size. */
static char *get_text(json_t *object, const char *key) {
  return job_copy_text(json_string_of(object, key));
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
  const char *name = json_string_of(object, key);

  return name ? from_name(name) : MIG_ENUM_UNKNOWN;
}

/* For enums with a harmless zero. */
static int get_enum_or_zero(json_t *object, const char *key, int (*from_name)(const char *)) {
  return MAX(get_enum(object, key, from_name), 0);
}

static void read_events(Job *job, json_t *array) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object) {
    const char *kind = json_string_of(object, "kind");

    if (!kind)
      continue;
    job_add_event(job, kind, (MigCause)get_enum_or_zero(object, "cause", mig_cause_from_name), "%s",
                  json_string_of(object, "message"));
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
    const MigPolicyKeyInfo *info = mig_policy_key_by_name(json_string_of(object, "key"));

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
    const char *code = json_string_of(object, "code");
    const char *seen = json_string_of(object, "seen");
    const char *remedy = json_string_of(object, "remedy");

    if (code && seen && remedy)
      job_add_finding(job, code, json_bool_of(object, "blocks"), json_bool_of(object, "transient"), seen,
                      remedy);
  }
}

static void read_result(Job *job, json_t *object) {
  int where = job_where_from_name(json_string_of(object, "running_at"));

  JobResult *result = &job->result;
  const char *unknown = json_string_of(object, "downtime_unknown");

  if (job_is_final(job))
    job_times_from_json(&job->times, json_object_get(object, "parts"));
  result->total_time_ms = get_count(object, "total_time_ms");
  result->have_libvirt_time = get_count_if(object, "libvirt_time_ms", &result->libvirt_time_ms);
  result->have_downtime = get_count_if(object, "downtime_ms", &result->downtime_ms);
  result->downtime_error_ms = get_count(object, "downtime_error_ms");
  result->downtime_unknown = g_intern_string(unknown);
  result->have_libvirt_downtime = get_count_if(object, "libvirt_downtime_ms", &result->libvirt_downtime_ms);
  result->have_transferred = get_count_if(object, "transferred_bytes", &result->transferred_bytes);
  result->evidence = get_text(object, "evidence");
  if (where != MIG_ENUM_UNKNOWN)
    job->result.running_at = (JobWhere)where;
}

static void read_progress(Job *job, json_t *object) {
  MigSample *sample = &job->sample;

  job->percent = get_small(object, "percent", 100);
  sample->valid = true;
  for (size_t i = 0; i < JOBJSON_SAMPLE_COUNTS; i++)
    G_STRUCT_MEMBER(uint64_t, sample, jobjson_sample_counts[i].offset) =
        get_count(object, jobjson_sample_counts[i].key);
}

static void read_plan(Job *job, json_t *object) {
  if (!json_is_object(object))
    return;
  job->have_plan = true;
  job->plan.post_copy = json_bool_of(object, "post_copy");
  job->plan.auto_converge = json_bool_of(object, "auto_converge");
  job->plan.throttle_initial_pct = get_small(object, "throttle_initial_pct", 100);
  job->plan.throttle_increment_pct = get_small(object, "throttle_increment_pct", 100);
  job->plan.downtime_ms = get_count(object, "downtime_ms");
}

static void read_steering(MigSteering *steering, json_t *object) {
  json_t *name;
  size_t i;

  steering->downtime_ms = get_count(object, "downtime_ms");
  steering->pausing = json_bool_of(object, "pausing");
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

/* Monotonic times mean nothing after a reboot: nothing that ran then runs now, and waiting starts anew. For how long a finished
 * job has been kept, the time of day has to do. */
static void read_clock(Job *job, json_t *agent, const char *boot_id) {
  bool same_boot = g_strcmp0(json_string_of(agent, "boot_id"), boot_id) == 0;
  json_t *finished = json_object_get(agent, "finished_ms");
  uint64_t since_ms = get_count(agent, "pending_since_ms");
  int64_t now_ms = g_get_monotonic_time() / 1000;

  if (same_boot) {
    job->started_ms = get_count(agent, "started_ms");
    job->job_began_ms = get_count(agent, "job_began_ms");
    job->source_id = (int)MIN(get_count(agent, "source_id"), INT_MAX);
  }
  job_times_from_record(&job->times, json_object_get(agent, "times"), same_boot);
  job->pending_since_ms = same_boot && since_ms > 0 ? since_ms : (uint64_t)now_ms;
  if (same_boot && finished)
    job->finished_ms = json_integer_value(finished);
  else
    job->finished_ms = now_ms - MAX(g_get_real_time() - job->finished_usec, 0) / 1000;
}

/* False: one of them is missing. */
static bool read_ends(Job *job, json_t *wire) {
  json_t *domain = json_object_get(wire, "domain"), *target = json_object_get(wire, "target");
  g_autofree char *uuid = g_strdup(json_string_of(domain, "uuid"));

  job->domain_name = g_strdup(json_string_of(domain, "name"));
  if (uuid)
    g_strlcpy(job->domain_uuid, uuid, sizeof job->domain_uuid);
  job->target_name = g_strdup(json_string_of(target, "name"));
  job->target_uri = g_strdup(json_string_of(target, "libvirt_uri"));
  job->migrate_uri = g_strdup(json_string_of(target, "migrate_uri"));
  return job->domain_name && job->domain_uuid[0] && job->target_uri;
}

Job *job_from_record(json_t *record, const char *boot_id, GError **error) {
  json_t *wire = json_object_get(record, "job");
  json_t *agent = json_object_get(record, "agent");
  const char *id = json_string_of(wire, "id");
  int phase = get_enum(wire, "phase", mig_phase_from_name);
  g_autoptr(Job) job = job_new();
  const char *key = NULL;
  char message[200] = "";

  if (!record_upgrade(record, error))
    return NULL;
  if (!id || strlen(id) != JOB_ID_SIZE - 1 || phase == MIG_ENUM_UNKNOWN) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "missing or invalid id or phase");
    return NULL;
  }
  if (!policy_from_json(json_object_get(wire, "policy"), &job->policy, &key, message, sizeof message)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "invalid %s in its policy: %s", key, message);
    return NULL;
  }
  g_strlcpy(job->id, id, sizeof job->id);
  job->phase = (MigPhase)phase;
  job->stage = (MigStage)get_enum_or_zero(wire, "stage", mig_stage_from_name);
  job->direction = (MigDirection)get_enum_or_zero(wire, "direction", mig_direction_from_name);
  if (job->direction == MIG_DIRECTION_INCOMING)
    job->lease = job_lease_from_record(json_object_get(agent, "lease"));
  if (!read_ends(job, wire)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "missing domain or target");
    return NULL;
  }
  job->request_key = g_strdup(json_string_of(wire, "request_key"));
  job->request_digest = g_strdup(json_string_of(agent, "request_digest"));
  job->link_bytes_per_s = get_count(agent, "link_bytes_per_s");
  job->share_bytes_per_s = get_count(wire, "bandwidth_share_bytes_per_s");
  job->policy_name = g_strdup(json_string_of(wire, "policy_name"));
  job->drain_id = g_strdup(json_string_of(wire, "drain"));
  job->caller = caller_from_json(json_object_get(wire, "caller"));
  job->policy_matched = g_strdup(json_string_of(wire, "policy_matched"));
  read_sources(job, json_object_get(wire, "policy_sources"));
  job->abort_requested = json_bool_of(wire, "abort_requested");
  /* The interface promises it; defaults stand in for what is missing. */
  if (get_count(wire, "created_usec_realtime") > 0)
    job->created_usec = (int64_t)get_count(wire, "created_usec_realtime");
  job->started_usec = (int64_t)get_count(wire, "started_usec_realtime");
  job->finished_usec = (int64_t)get_count(wire, "finished_usec_realtime");
  job->next_action = get_text(wire, "next_action");
  job->seq = get_count(agent, "seq");
  job->memory_bytes = get_count(agent, "memory_bytes");
  job->disk_bytes = get_count(agent, "disk_bytes");
  job->pending_since_usec = (int64_t)get_count(agent, "pending_since_usec");
  job->have_sample = json_bool_of(agent, "have_sample");
  read_clock(job, agent, boot_id);
  read_plan(job, json_object_get(agent, "plan"));
  read_steering(&job->steering, json_object_get(agent, "steering"));
  read_facts(&job->record, json_object_get(agent, "before"));
  job->begun = json_bool_of(agent, "begun");
  job->recovery.since_usec = (int64_t)get_count(agent, "recovering_since_usec");
  if (job->phase == MIG_PHASE_RECOVERING && job->recovery.since_usec == 0)
    job->recovery.since_usec = g_get_real_time();
  read_failure(&job->failure, json_object_get(wire, "failure"));
  read_findings(job, json_object_get(wire, "findings"));
  read_result(job, json_object_get(wire, "result"));
  read_progress(job, json_object_get(wire, "progress"));
  read_events(job, json_object_get(wire, "events"));
  job->events_seq = get_count(agent, "events_seq");
  job->revision = get_count(wire, "revision");
  if (!job_is_final(job)) {
    /* Progress raises a job's revision without a new record. So continue beyond anything that clients can have seen, whatever
     * the time of day: milliseconds since the epoch rise faster than any job's revision. */
    job->revision = MAX(job->revision + REVISION_LEAP, (uint64_t)(g_get_real_time() / 1000));
    job->have_sample = false; /* its age is unknown */
  }
  job->durable = true;
  return g_steal_pointer(&job);
}

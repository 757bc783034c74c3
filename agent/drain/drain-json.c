/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain as JSON: for clients, and for its record.
 *
 * While a drain is in progress its record has only what was requested: jobs and libvirtd tell the rest. Once it is over the
 * record has the outcome for each domain as well, since jobs are not kept forever. */
#include "agent/drain/drain-private.h"

#include "agent/base/clock.h"
#include "agent/base/policyjson.h"
#include "agent/job/recordformat.h"
#include "libmigrate/core/table.h"

#include <gio/gio.h>
#include <string.h>

static const char *const state_names[] = {
    [DRAIN_CHECKING] = "checking", [DRAIN_MOVING] = "moving",   [DRAIN_STOPPING] = "stopping",
    [DRAIN_FINISHED] = "finished", [DRAIN_ABORTED] = "aborted",
};
TABLE_COVERS(state_names, DRAIN_STATE_COUNT);

static const char *const guest_state_names[] = {
    [DRAIN_GUEST_CHECKING] = "checking",
    [DRAIN_GUEST_WAITING] = "waiting",
    [DRAIN_GUEST_MOVING] = "moving",
    [DRAIN_GUEST_MOVED] = "moved",
    [DRAIN_GUEST_CANNOT_MOVE] = "cannot_move",
    [DRAIN_GUEST_LEFT] = "left",
    [DRAIN_GUEST_GONE] = "gone",
};
TABLE_COVERS(guest_state_names, DRAIN_GUEST_STATE_COUNT);

static json_t *targets_to_json(const Drain *drain) {
  json_t *array = json_array();

  for (guint i = 0; i < drain->targets->len; i++) {
    const DrainTarget *target = drain->targets->pdata[i];
    json_t *object = json_object();

    json_set_string(object, "name", target->name);
    json_set_string(object, "libvirt_uri", target->uri);
    json_set_string(object, "migrate_uri", target->migrate_uri);
    json_array_append_new(array, object);
  }
  return array;
}

static json_t *common_to_json(const Drain *drain) {
  json_t *object = json_pack("{ss so ss ss sI}", "id", drain->id, "targets", targets_to_json(drain), "state",
                             state_names[drain->state], "by", drain->by, "started_usec_realtime",
                             (json_int_t)drain->started_usec);

  json_set_string(object, "request_key", drain->request_key);
  json_set_string(object, "aborted_by", drain->aborted_by);
  if (drain->finished_usec > 0)
    json_object_set_new(object, "finished_usec_realtime", json_integer(drain->finished_usec));
  return object;
}

json_t *drain_status_to_json(const Drain *drain) {
  json_t *object = common_to_json(drain);
  unsigned counts[DRAIN_GUEST_STATE_COUNT];
  unsigned total = 0;

  drain_count(drain, counts);
  for (size_t i = 0; i < DRAIN_GUEST_STATE_COUNT; i++) {
    json_object_set_new(object, guest_state_names[i], json_integer(counts[i]));
    total += counts[i];
  }
  json_object_set_new(object, "total", json_integer(total));
  return object;
}

static json_t *refusals_to_json(const Drain *drain, const DrainGuest *guest) {
  json_t *array = json_array();

  for (guint i = 0; i < drain->targets->len; i++)
    if (guest->blockers[i])
      json_array_append_new(array,
                            json_pack("{ss sO}", "target", drain_target_label(drain->targets->pdata[i]),
                                      "findings", guest->blockers[i]));
  return array;
}

/* For a waiting job, including what it waits for. */
static void describe_job(const Drain *drain, const DrainGuest *guest, const Job *job, json_t *object) {
  json_set_string(object, "target", job->target_name ? job->target_name : job->target_uri);
  json_set_string(object, "phase", mig_phase_name(job->phase));
  json_object_set_new(object, "percent", json_integer(job->percent));
  if (job->phase == MIG_PHASE_PENDING && !guest->message) {
    JobPending pending;

    job_queue_explain(drain->drains->jobs->queue, job, clock_now_ms(), &pending);
    json_set_string(object, "message", pending.message);
    g_free(pending.message);
  }
}

static json_t *guest_to_json(const Drain *drain, const DrainGuest *guest) {
  json_t *object = json_pack("{s{ss ss} ss}", "domain", "name", guest->name, "uuid", guest->uuid, "state",
                             guest_state_names[guest->state]);
  bool told = *guest->job_id && !guest->sending;
  const Job *job = told ? job_table_find_id(drain->drains->jobs->table, guest->job_id) : NULL;

  json_set_string(object, "job", told ? guest->job_id : NULL);
  json_set_string(object, "message", guest->message);
  if (job)
    describe_job(drain, guest, job, object);
  if (guest->state == DRAIN_GUEST_CANNOT_MOVE)
    json_object_set_new(object, "refusals", refusals_to_json(drain, guest));
  return object;
}

json_t *drain_guests_to_json(const Drain *drain, uint64_t after) {
  json_t *array;

  if (drain->final_guests)
    return json_incref(drain->final_guests);
  array = json_array();
  for (guint i = 0; i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];

    if (guest->revision > after)
      json_array_append_new(array, guest_to_json(drain, guest));
  }
  return array;
}

/* --- the record --- */

/* The rest of the record takes less than a quarter of it: drain-calls.c limits the targets. */
#define GUESTS_BYTES_MAX (STORE_RECORD_BYTES_MAX / 4 * 3)

static bool fits(json_t *guests) {
  return json_dumpb(guests, NULL, 0, JSON_COMPACT) <= GUESTS_BYTES_MAX;
}

/* A copy without these members. */
static json_t *guests_without(json_t *guests, const char *const *keys, size_t n) {
  json_t *array = json_array(), *guest;
  size_t i;

  json_array_foreach (guests, i, guest) {
    json_t *copy = json_copy(guest);

    for (size_t k = 0; k < n; k++)
      json_object_del(copy, keys[k]);
    json_array_append_new(array, copy);
  }
  return array;
}

/* Thousands of guests that cannot be migrated, each with findings for dozens of targets, do not fit into a record. Then the
 * findings are dropped first, then messages and targets, and finally the guests. The outcome of the drain is always kept. */
static json_t *guests_that_fit(json_t *guests) {
  static const char *const spare[] = {"refusals", "message", "target"};

  if (fits(guests))
    return json_incref(guests);
  for (size_t n = 1; n <= G_N_ELEMENTS(spare); n += 2) {
    json_t *smaller = guests_without(guests, spare, n);

    if (fits(smaller))
      return smaller;
    json_decref(smaller);
  }
  return json_array();
}

json_t *drain_to_record(const Drain *drain) {
  json_t *object = common_to_json(drain);

  json_set_string(object, "digest", drain->digest);
  if (drain->caller)
    json_object_set_new(object, "caller", caller_to_json(drain->caller));
  if (drain->aborter)
    json_object_set_new(object, "aborter", caller_to_json(drain->aborter));
  json_set_string(object, "policy_name", drain->asked.policy_name);
  json_object_set_new(object, "policy", policy_to_json(&drain->asked.over, drain->asked.over.set));
  if (drain->final_guests)
    json_object_set_new(object, "guests", guests_that_fit(drain->final_guests));
  return json_pack("{si so}", "format", RECORD_FORMAT, "drain", object);
}

static void read_targets(Drain *drain, json_t *array) {
  json_t *object;
  size_t i;

  json_array_foreach (array, i, object) {
    const char *uri = json_string_of(object, "libvirt_uri");

    if (uri && drain->targets->len < DRAIN_TARGETS_MAX)
      drain_add_target(drain, json_string_of(object, "name"), uri, json_string_of(object, "migrate_uri"));
  }
}

static void read_final_guests(Drain *drain, json_t *array) {
  json_t *object;
  size_t i;

  drain->final_guests = json_is_array(array) ? json_incref(array) : json_array();
  json_array_foreach (drain->final_guests, i, object) {
    int state = table_find(guest_state_names, DRAIN_GUEST_STATE_COUNT, json_string_of(object, "state"));

    if (state >= 0)
      drain->final_counts[state]++;
  }
}

/* A file may contain anything: an incomplete record is rejected as a whole. */
static bool read_all(Drain *drain, json_t *object, GError **error) {
  const char *id = json_string_of(object, "id");
  int state = table_find(state_names, DRAIN_STATE_COUNT, json_string_of(object, "state"));
  const char *key = NULL;
  char message[200];

  drain->by = g_strdup(json_string_of(object, "by"));
  read_targets(drain, json_object_get(object, "targets"));
  if (!id || strlen(id) != JOB_ID_SIZE - 1 || state < 0 || !drain->by || drain->targets->len == 0) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "its id, state, caller or targets are missing or invalid");
    return false;
  }
  if (!policy_from_json(json_object_get(object, "policy"), &drain->asked.over, &key, message,
                        sizeof message)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s in its policy is invalid: %s", key, message);
    return false;
  }
  g_strlcpy(drain->id, id, sizeof drain->id);
  drain->state = (DrainState)state;
  drain->request_key = g_strdup(json_string_of(object, "request_key"));
  drain->digest = g_strdup(json_string_of(object, "digest"));
  drain->caller = caller_from_json(json_object_get(object, "caller"));
  drain->aborter = caller_from_json(json_object_get(object, "aborter"));
  drain->aborted_by = g_strdup(json_string_of(object, "aborted_by"));
  if (!drain->aborted_by && drain->state == DRAIN_STOPPING)
    drain->aborted_by = g_strdup("an unknown caller");
  drain->asked.policy_name = g_strdup(json_string_of(object, "policy_name"));
  drain->started_usec = (int64_t)json_integer_value(json_object_get(object, "started_usec_realtime"));
  drain->finished_usec = (int64_t)json_integer_value(json_object_get(object, "finished_usec_realtime"));
  /* What was known about the domains is lost. */
  if (drain->state == DRAIN_MOVING)
    drain->state = DRAIN_CHECKING;
  if (drain_is_over(drain))
    read_final_guests(drain, json_object_get(object, "guests"));
  return true;
}

Drain *drain_from_record(Drains *drains, json_t *record, GError **error) {
  Drain *drain;

  if (!record_upgrade(record, error))
    return NULL;
  drain = drain_new(drains);
  if (read_all(drain, json_object_get(record, "drain"), error))
    return drain;
  drain_free(drain);
  return NULL;
}

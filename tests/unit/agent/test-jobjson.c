/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as JSON: the record keeps all that matters, the wire shows what the interface says. */
#include "agent/job/jobjson.h"
#include "agent/job/jobrecord.h"

#include "agent/base/policyjson.h"

#include "agent/job/store.h"
#include "proto/idl.h"
#include "proto/interface.h"
#include "tests/unit/core/rows.h"

#define BOOT "11111111-2222-4333-8444-555555555555"

/* Every field different from what a new job has. */
static Job *full_job(MigPhase phase) {
  Job *job = job_new();
  char message[100];

  strcpy(job->id, "0123456789abcdef0123456789abcdef");
  job->seq = 17;
  job->request_key = g_strdup("key-1");
  job->request_digest = g_strdup("d1935");
  job->direction = MIG_DIRECTION_OUTGOING;
  job->domain_name = g_strdup("vm \"1\" é");
  strcpy(job->domain_uuid, "e47a3cb2-3cf1-43db-8764-d2f9d88cca43");
  job->caller = g_new0(Caller, 1);
  *job->caller = (Caller){1000, 1001, 4711, g_strdup("nova-compute.service"), g_strdup("python3")};
  job->target_name = g_strdup("node-b");
  job->target_uri = g_strdup("qemu+tls://node-b/system");
  job->migrate_uri = g_strdup("tcp://10.0.0.2");
  job->policy_name = g_strdup("gentle");
  job->policy_matched = g_strdup("large");
  job->policy_sources[MIG_POLICY_MAX_DOWNTIME_MS] = GOAL_SOURCE_NAMED;
  job->policy_sources[MIG_POLICY_TLS] = GOAL_SOURCE_TUNED;
  assert_int_equal(mig_policy_set_text(&job->policy, "tls", "require", message, sizeof message),
                   MIG_POLICY_OK);
  assert_int_equal(mig_policy_set_text(&job->policy, "max_downtime_ms", "77", message, sizeof message),
                   MIG_POLICY_OK);
  job->created_usec = 1700000000000001;
  job->pending_since_usec = 1700000000000002;
  job->pending_since_ms = 4000;
  job->started_usec = 1700000001000003;
  job->started_ms = 5000;
  job->memory_bytes = 268435456;
  job->disk_bytes = 1048576;
  job->have_sample = true;
  job->sample = (MigSample){.valid = true,
                            .active = true,
                            .now_ms = 6500,
                            .elapsed_ms = 1,
                            .memory_total_bytes = 2,
                            .memory_processed_bytes = 3,
                            .memory_remaining_bytes = 4,
                            .disk_total_bytes = 5,
                            .disk_processed_bytes = 6,
                            .disk_remaining_bytes = 7,
                            .bandwidth_bytes_per_s = 8,
                            .dirty_rate_bytes_per_s = 9,
                            .iteration = 10,
                            .throttle_pct = 11,
                            .expected_downtime_ms = 12,
                            .post_copy_requests = 13};
  job->percent = 42;
  job->abort_requested = true;
  job_add_event(job, "accepted", MIG_CAUSE_NONE, "to be moved");
  job_add_event(job, "decision", MIG_CAUSE_DEADLINE, "abort: too late");
  for (guint i = 0; i < job->events->len; i++)
    ((JobEvent *)job->events->pdata[i])->time_usec = 1700000002000000 + i;
  job->phase = phase;
  if (phase == MIG_PHASE_MIGRATING) {
    job->stage = MIG_STAGE_PRE_COPY;
    job->next_action = g_strdup("waits");
    job->deadline_ms = 9000;
  }
  if (phase == MIG_PHASE_RECOVERING)
    job->recovery = (JobRecovery){.since_usec = 1700000002000005,
                                  .tries = 3,
                                  .tried_usec = 1700000002500006,
                                  .again_usec = 1700000004500007,
                                  .error = g_strdup("the link is cut")};
  if (job_is_final(job)) {
    job->failure = (JobFailure){.cause = MIG_CAUSE_LINK_LOST,
                                .phase = MIG_PHASE_MIGRATING,
                                .stage = MIG_STAGE_PRE_COPY,
                                .message = g_strdup("the link was lost"),
                                .libvirt_code = 38,
                                .libvirt_message = g_strdup("client socket is closed")};
    job->finished_usec = 1700000009000004;
    job->finished_ms = 9000;
    job->times = (JobTimes){.spent_ms = {[JOB_PART_CHECKS] = 1000, [JOB_PART_FIRST_PASS] = 8000}};
    job->result.have_libvirt_time = job->result.have_downtime = job->result.have_transferred = true;
    job->result.have_libvirt_downtime = true;
    job->result.total_time_ms = 9000;
    job->result.libvirt_time_ms = 8000;
    job->result.downtime_ms = 0;
    job->result.transferred_bytes = 123456789;
    job->result.running_at = JOB_AT_SOURCE;
    job->result.evidence = g_strdup("source: running; target: absent");
  }
  job->revision = 99;
  return job;
}

static Job *read_back(json_t *record, const char *boot_id) {
  g_autoptr(GError) error = NULL;
  Job *job = job_from_record(record, boot_id, &error);

  if (!job)
    fail_msg("%s", error->message);
  return job;
}

static void assert_same_json(json_t *a, json_t *b) {
  if (!json_equal(a, b)) {
    g_autofree char *one = json_dumps(a, JSON_INDENT(1) | JSON_SORT_KEYS);
    g_autofree char *other = json_dumps(b, JSON_INDENT(1) | JSON_SORT_KEYS);

    fail_msg("%s\nis not\n%s", one, other);
  }
}

/* --- the record --- */

static void the_drain_of_a_job_is_kept_and_told(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_PENDING);
  const JobContext context = {.pending_reason = "NEXT", .pending_message = "next in the queue"};
  g_autoptr(Job) back = NULL;
  json_t *record, *told;

  assert_null(job->drain_id);
  job->drain_id = g_strdup("fedcba9876543210fedcba9876543210");
  record = job_to_record(job, BOOT);
  back = read_back(record, BOOT);
  told = job_to_json(back, &context, JOB_DETAIL_FULL);
  assert_string_equal(back->drain_id, job->drain_id);
  assert_string_equal(json_string_value(json_object_get(told, "drain")), job->drain_id);
  json_decref(told);
  json_decref(record);
}

static void a_finished_job_comes_back_as_it_was(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_FAILED);
  json_t *record = job_to_record(job, BOOT);
  g_autoptr(Job) back = read_back(record, BOOT);
  json_t *again = job_to_record(back, BOOT);

  assert_same_json(record, again);
  assert_true(back->durable);
  assert_true(back->result.have_downtime);
  assert_int_equal(back->result.downtime_ms, 0);
  assert_string_equal(back->request_digest, "d1935");
  assert_int_equal(back->result.running_at, JOB_AT_SOURCE);
  assert_int_equal(back->failure.libvirt_code, 38);
  assert_int_equal(back->started_ms, 5000);
  assert_int_equal(back->events->len, 2);
  assert_int_equal(back->events_seq, 2);
  assert_int_equal(back->revision, 99);
  json_decref(record);
  json_decref(again);
}

static void an_unfinished_job_comes_back_with_a_higher_revision_and_no_old_numbers(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  json_t *record = job_to_record(job, BOOT);
  g_autoptr(Job) back = read_back(record, BOOT);

  assert_true(back->revision > job->revision + 1000000);
  assert_false(back->have_sample);
  assert_int_equal(back->percent, 42);
  assert_int_equal(back->phase, MIG_PHASE_MIGRATING);
  assert_int_equal(back->stage, MIG_STAGE_PRE_COPY);
  assert_int_equal(back->started_ms, 5000);
  assert_int_equal(back->memory_bytes, job->memory_bytes);
  assert_int_equal(back->disk_bytes, job->disk_bytes);
  assert_int_equal(back->seq, 17);
  assert_true(back->abort_requested);
  assert_string_equal(back->migrate_uri, "tcp://10.0.0.2");
  assert_int_equal(back->caller->uid, 1000);
  assert_int_equal(back->caller->gid, 1001);
  assert_int_equal(back->caller->pid, 4711);
  assert_string_equal(back->caller->unit, "nova-compute.service");
  assert_string_equal(back->caller->comm, "python3");
  assert_memory_equal(back->policy.values, job->policy.values, sizeof job->policy.values);
  json_decref(record);
}

static void what_is_not_there_stays_not_there(void **state) {
  g_autoptr(Job) job = job_new();
  json_t *record, *again;
  g_autoptr(Job) back = NULL;

  job->domain_name = g_strdup("vm1");
  strcpy(job->domain_uuid, "e47a3cb2-3cf1-43db-8764-d2f9d88cca43");
  job->target_uri = g_strdup("test:///b");
  job->phase = MIG_PHASE_ABORTED;
  record = job_to_record(job, BOOT);
  back = read_back(record, BOOT);
  again = job_to_record(back, BOOT);
  assert_same_json(record, again);
  assert_null(back->request_key);
  assert_null(back->target_name);
  assert_false(back->result.have_downtime);
  assert_int_equal(back->failure.cause, MIG_CAUSE_NONE);
  json_decref(record);
  json_decref(again);
}

static void times_of_another_boot_are_not_taken_for_ours(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  json_t *record = job_to_record(job, BOOT);
  g_autoptr(Job) back = read_back(record, "another");

  assert_int_equal(back->started_ms, 0);
  assert_int_equal(back->started_usec, job->started_usec);
  json_decref(record);
}

/* Each by itself, and with the rest: an action on a domain may rest on it. */
static void what_was_known_before_the_move_is_kept(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);

  job->have_plan = true;
  for (unsigned bits = 0; bits < 64; bits++) {
    job->record = (MigSettleRecord){.ran_before = bits & 1,
                                    .paused_by_agent = bits & 2,
                                    .persist_target = bits & 4,
                                    .undefine_source = bits & 8,
                                    .target_was_absent = bits & 16,
                                    .pause_answered = bits & 32};
    json_t *record = job_to_record(job, BOOT);
    g_autoptr(Job) back = read_back(record, BOOT);

    assert_memory_equal(&back->record, &job->record, sizeof job->record);
    json_decref(record);
  }
}

static void what_the_monitor_asked_for_is_kept(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);

  job->have_plan = true;
  for (unsigned bits = 0; bits < 2u << MIG_WAY_COUNT; bits++) {
    job->steering = (MigSteering){.downtime_ms = bits, .pausing = bits & 1, .refused = bits >> 1};
    json_t *record = job_to_record(job, BOOT);
    g_autoptr(Job) back = read_back(record, BOOT);

    assert_int_equal(back->steering.downtime_ms, job->steering.downtime_ms);
    assert_int_equal(back->steering.pausing, job->steering.pausing);
    assert_int_equal(back->steering.refused, job->steering.refused);
    json_decref(record);
  }
}

static void a_record_of_an_older_agent_knows_nothing_of_before(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  json_t *record;

  job->have_plan = true;
  job->record.ran_before = job->record.persist_target = true;
  record = job_to_record(job, BOOT);
  json_object_del(json_object_get(record, "agent"), "before");
  g_autoptr(Job) back = read_back(record, BOOT);
  assert_memory_equal(&back->record, &(MigSettleRecord){0}, sizeof job->record);
  json_decref(record);
}

static void numbers_too_large_for_the_wire_are_cut(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_SUCCEEDED);
  JobContext context = {.now_ms = 7000, .now_usec = 1700000003000000};
  json_t *json;

  job->sample.memory_total_bytes = UINT64_MAX;
  json = job_to_json(job, &context, JOB_DETAIL_FULL);
  assert_true(json_integer_value(json_object_get(json_object_get(json, "progress"), "memory_total_bytes")) ==
              INT64_MAX);
  json_decref(json);
}

typedef struct Damage {
  const char *name;
  const char *record;
  const char *says;
} Damage;

#define GOOD                                                                                                 \
  "\"domain\":{\"name\":\"a\",\"uuid\":\"b\"},\"target\":{\"libvirt_uri\":\"c\"},\"phase\":\"pending\","     \
  "\"id\":\"0123456789abcdef0123456789abcdef\""

static const Damage damages[] = {
    {"an empty object", "{}", "missing or invalid format"},
    {"no object", "[]", "missing or invalid format"},
    {"no format", "{\"job\":{" GOOD "}}", "missing or invalid format"},
    {"a newer format", "{\"format\":4,\"job\":{" GOOD "}}", "newer handoffd"},
    {"a format older than the first", "{\"format\":0,\"job\":{" GOOD "}}", "missing or invalid format"},
    {"no id", "{\"format\":1,\"job\":{\"phase\":\"pending\"}}", "id or phase"},
    {"a short id", "{\"format\":1,\"job\":{\"phase\":\"pending\",\"id\":\"12\"}}", "id or phase"},
    {"an unknown phase",
     "{\"format\":1,\"job\":{\"phase\":\"lost\",\"id\":\"0123456789abcdef0123456789abcdef\"}}",
     "id or phase"},
    {"no domain",
     "{\"format\":1,\"job\":{\"phase\":\"pending\",\"id\":\"0123456789abcdef0123456789abcdef\","
     "\"target\":{\"libvirt_uri\":\"c\"}}}",
     "domain or target"},
    {"no target",
     "{\"format\":1,\"job\":{\"phase\":\"pending\",\"id\":\"0123456789abcdef0123456789abcdef\","
     "\"domain\":{\"name\":\"a\",\"uuid\":\"b\"}}}",
     "domain or target"},
    {"a policy that cannot be", "{\"format\":1,\"job\":{" GOOD ",\"policy\":{\"max_throttle_pct\":0}}}",
     "max_throttle_pct"},
    {"a policy key of a newer agent", "{\"format\":1,\"job\":{" GOOD ",\"policy\":{\"warp\":1}}}", "warp"},
};

static void test_damage(void **state) {
  const Damage *damage = *state;
  json_t *record = json_loads(damage->record, 0, NULL);
  g_autoptr(GError) error = NULL;

  assert_non_null(record);
  assert_null(job_from_record(record, BOOT, &error));
  if (!strstr(error->message, damage->says))
    fail_msg("it says: %s", error->message);
  json_decref(record);
}

/* Whatever is of a wrong type inside must not bring the agent down. */
static void each_member_of_a_record_may_be_of_any_type(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_FAILED);
  static const char *const values[] = {"null", "1", "-1", "1.5", "true", "\"x\"", "[]", "{}", "[1]", "[{}]"};

  for (size_t v = 0; v < LENGTH(values); v++) {
    json_t *value = json_loads(values[v], JSON_DECODE_ANY, NULL);

    for (int part = 0; part < 2; part++) {
      json_t *model = job_to_record(job, BOOT);
      json_t *members = json_object_get(model, part ? "agent" : "job");
      const char *key;
      json_t *old;

      json_object_foreach (members, key, old) {
        json_t *record = json_deep_copy(model);
        g_autoptr(GError) error = NULL;
        g_autoptr(Job) back = NULL;

        json_object_set(json_object_get(record, part ? "agent" : "job"), key, value);
        back = job_from_record(record, BOOT, &error);
        assert_true(back || error);
        if (back) {
          JobContext context = {.pending_reason = "X"};
          json_t *json = job_to_json(back, &context, JOB_DETAIL_FULL);

          assert_non_null(json);
          json_decref(json);
        }
        json_decref(record);
      }
      json_decref(model);
    }
    json_decref(value);
  }
}

/* --- the wire --- */

typedef struct View {
  const char *name;
  MigPhase phase;
} View;

static const View views[] = {
    {"a pending job is as the interface says", MIG_PHASE_PENDING},
    {"a migrating job is as the interface says", MIG_PHASE_MIGRATING},
    {"a recovering job is as the interface says", MIG_PHASE_RECOVERING},
    {"a failed job is as the interface says", MIG_PHASE_FAILED},
    {"a succeeded job is as the interface says", MIG_PHASE_SUCCEEDED},
};

static void check_type(const char *name, json_t *value) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  const VarlinkMember *type = varlink_interface_find(interface, VARLINK_MEMBER_TYPE, name);
  g_autofree char *at = NULL;

  assert_non_null(type);
  if (!varlink_type_check(type->type, value, &at))
    fail_msg("it is no %s, at %s", name, at);
}

static void test_view(void **state) {
  const View *view = *state;
  g_autoptr(Job) job = full_job(view->phase);
  JobContext context = {.queue_position = 3,
                        .pending_reason = "OUTGOING_LIMIT",
                        .pending_message = "2 of 2",
                        .pending_until_usec = 1700000900000002,
                        .held_since_usec = 1700000000000002,
                        .retry_usec = 1700000004000002,
                        .tries = 2,
                        .now_ms = 7000,
                        .now_usec = 1700000003000000};
  json_t *json = job_to_json(job, &context, JOB_DETAIL_FULL);
  json_t *summary = job_to_summary(job, &context);

  check_type("Job", json);
  check_type("JobSummary", summary);
  assert_int_equal(json_object_get(json, "pending") != NULL, view->phase == MIG_PHASE_PENDING);
  assert_int_equal(json_object_get(json, "recovery") != NULL, view->phase == MIG_PHASE_RECOVERING);
  assert_int_equal(json_object_get(summary, "pending_reason") != NULL, view->phase == MIG_PHASE_PENDING);
  assert_int_equal(json_object_get(json, "result") != NULL, job_is_final(job));
  assert_int_equal(json_object_get(json, "failure") != NULL, job_is_final(job));
  json_decref(json);
  json_decref(summary);
}

static void a_deadline_is_told_in_the_time_of_the_wall(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  JobContext context = {.now_ms = 7000, .now_usec = 1700000003000000};
  json_t *json = job_to_json(job, &context, JOB_DETAIL_FULL);

  assert_true(json_integer_value(json_object_get(json, "deadline_usec_realtime")) == 1700000005000000);
  assert_true(json_integer_value(json_object_get(json_object_get(json, "progress"), "age_ms")) == 500);
  json_decref(json);
}

static void news_have_the_newest_events_only(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  JobContext context = {0};
  json_t *json, *events;

  for (int i = 0; i < 100; i++)
    job_add_event(job, "warning", MIG_CAUSE_NONE, "%d", i);
  json = job_to_json(job, &context, JOB_DETAIL_NEWS);
  events = json_object_get(json, "events");
  assert_true(json_array_size(events) < 20);
  assert_true(
      json_integer_value(json_object_get(json_array_get(events, json_array_size(events) - 1), "seq")) == 102);
  json_decref(json);
  json = job_to_json(job, &context, JOB_DETAIL_FULL);
  assert_int_equal(json_array_size(json_object_get(json, "events")), 102);
  json_decref(json);
}

/* --- golden: what is on the disks of those who upgrade, and what their controllers read --- */

static void hold_against(const char *name, json_t *json) {
  g_autofree char *path = g_build_filename(g_getenv("GOLDEN"), name, NULL);
  json_t *golden;

  if (g_getenv("REGEN"))
    assert_int_equal(json_dump_file(json, path, JSON_INDENT(2) | JSON_SORT_KEYS), 0);
  golden = json_load_file(path, 0, NULL);
  if (!golden)
    fail_msg("%s: not there; REGEN=1 makes it", path);
  assert_same_json(json, golden);
  json_decref(golden);
}

static void the_record_has_not_changed(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_FAILED);
  json_t *record = job_to_record(job, BOOT);

  hold_against("record.json", record);
  json_decref(record);
}

static void the_wire_has_not_changed(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  JobContext context = {.now_ms = 7000, .now_usec = 1700000003000000};
  json_t *json = job_to_json(job, &context, JOB_DETAIL_FULL);

  hold_against("job.json", json);
  json_decref(json);
}

/* --- older formats --- */

/* A record as the first agents wrote it, of a job that has waited since then. */
static json_t *first_record(int64_t pending_since_usec) {
  g_autofree char *path = g_build_filename(g_getenv("GOLDEN"), "record-1.json", NULL);
  json_t *record = json_load_file(path, 0, NULL);

  assert_non_null(record);
  assert_int_equal(json_integer_value(json_object_get(record, "format")), 1);
  json_object_set_new(json_object_get(record, "agent"), "pending_since_usec",
                      json_integer(pending_since_usec));
  return record;
}

static uint64_t monotonic_ms(void) {
  return (uint64_t)g_get_monotonic_time() / 1000;
}

static void a_record_of_the_first_format_is_read_and_becomes_one_of_today(void **state) {
  json_t *record = first_record(1700000000000002);
  g_autoptr(Job) job = read_back(record, BOOT);
  json_t *again = job_to_record(job, BOOT);
  json_t *agent = json_object_get(again, "agent");
  g_autofree char *path = g_build_filename(g_getenv("GOLDEN"), "record.json", NULL);
  json_t *today = json_load_file(path, 0, NULL);

  assert_string_equal(job->id, "0123456789abcdef0123456789abcdef");
  assert_int_equal(job->phase, MIG_PHASE_FAILED);
  /* But for what is counted on this machine's clock. */
  json_object_set(agent, "pending_since_ms",
                  json_object_get(json_object_get(today, "agent"), "pending_since_ms"));
  json_object_set(agent, "finished_ms", json_object_get(json_object_get(today, "agent"), "finished_ms"));
  /* Nor was it kept then who asked. */
  assert_null(job->caller);
  json_object_del(json_object_get(today, "job"), "caller");
  /* Nor where the time went. What was the total is libvirt's. */
  assert_int_equal(job->result.libvirt_time_ms, 8000);
  json_object_del(json_object_get(json_object_get(today, "job"), "result"), "parts");
  assert_same_json(again, today);
  json_decref(record);
  json_decref(again);
  json_decref(today);
}

static void what_waited_in_the_first_format_has_waited_so_long(void **state) {
  uint64_t before_ms = monotonic_ms();
  json_t *record = first_record(g_get_real_time() - 10 * G_USEC_PER_SEC);
  g_autoptr(Job) job = read_back(record, BOOT);

  assert_in_range(job->pending_since_ms, before_ms - 10001, monotonic_ms() - 9999);
  json_decref(record);
}

/* The time of day may have been set in between. */
static void what_waits_since_tomorrow_waits_since_now(void **state) {
  uint64_t before_ms = monotonic_ms();
  json_t *record = first_record(g_get_real_time() + INT64_C(86400) * G_USEC_PER_SEC);
  g_autoptr(Job) job = read_back(record, BOOT);

  assert_in_range(job->pending_since_ms, before_ms, monotonic_ms());
  json_decref(record);
}

static void what_waited_before_a_reboot_waits_anew(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_PENDING);
  json_t *record = job_to_record(job, BOOT);
  uint64_t before_ms = monotonic_ms();
  g_autoptr(Job) same = read_back(record, BOOT);
  g_autoptr(Job) other = read_back(record, "another boot");

  assert_int_equal(same->pending_since_ms, 4000);
  assert_in_range(other->pending_since_ms, before_ms, monotonic_ms());
  json_decref(record);
}

static void what_went_on_in_an_older_format_has_gone_on_since_its_request(void **state) {
  g_autoptr(Job) job = full_job(MIG_PHASE_MIGRATING);
  json_t *record;

  job->created_usec = g_get_real_time() - 10 * G_USEC_PER_SEC;
  record = job_to_record(job, BOOT);
  json_object_set_new(record, "format", json_integer(2));
  json_object_del(json_object_get(record, "agent"), "times");
  g_autoptr(Job) back = read_back(record, BOOT);
  job_times_enter(&back->times, JOB_PART_SETTLE, monotonic_ms());
  assert_in_range(job_times_total_ms(&back->times), 9999, 20000);
  assert_true(back->times.inexact);
  json_decref(record);
}

/* --- where the time went --- */

static Job *job_in_its_first_pass(void) {
  Job *job = full_job(MIG_PHASE_MIGRATING);

  job->times = (JobTimes){.part = JOB_PART_CHECKS,
                          .since_ms = monotonic_ms() - 2000,
                          .spent_ms = {[JOB_PART_QUEUED] = 100, [JOB_PART_CHECKS] = 10}};
  job_times_enter(&job->times, JOB_PART_FIRST_PASS, monotonic_ms() - 1000);
  return job;
}

static void the_time_goes_on_over_a_restart(void **state) {
  g_autoptr(Job) job = job_in_its_first_pass();
  json_t *record = job_to_record(job, BOOT);
  g_autoptr(Job) back = read_back(record, BOOT);

  assert_memory_equal(&back->times, &job->times, sizeof job->times);
  json_decref(record);
}

static void after_a_reboot_the_time_of_day_has_to_do(void **state) {
  g_autoptr(Job) job = job_in_its_first_pass();
  json_t *record = job_to_record(job, BOOT);
  g_autoptr(Job) back = read_back(record, "another boot");

  assert_true(back->times.inexact);
  assert_int_equal(back->times.part, JOB_PART_FIRST_PASS);
  assert_int_equal(back->times.spent_ms[JOB_PART_QUEUED], 100);
  assert_in_range(back->times.spent_ms[JOB_PART_FIRST_PASS], 1000, 10000);
  assert_in_range(back->times.since_ms, monotonic_ms() - 5000, monotonic_ms());
  json_decref(record);
}

/* This process may hear much later that the guest runs at the target, or for another reason. */
static void a_stop_without_its_end_is_forgotten_over_a_restart(void **state) {
  g_autoptr(Job) job = job_in_its_first_pass();

  job->times.stopped_ms = 4711;
  for (int resumed = 0; resumed < 2; resumed++) {
    json_t *record;

    job->times.resumed_ms = resumed ? 4800 : 0;
    record = job_to_record(job, BOOT);
    g_autoptr(Job) back = read_back(record, BOOT);
    assert_int_equal(back->times.stopped_ms, resumed ? 4711 : 0);
    assert_int_equal(back->times.resumed_ms, resumed ? 4800 : 0);
    json_decref(record);
  }
}

/* --- policy --- */

static void each_policy_key_comes_back(void **state) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    const uint64_t values[] = {info->min, info->max, info->default_value};

    for (size_t i = 0; i < LENGTH(values); i++) {
      MigPolicy policy, back;
      const char *bad = NULL;
      char message[200];
      json_t *json;

      mig_policy_init(&policy);
      assert_int_equal(mig_policy_set(&policy, (MigPolicyKey)key, values[i], message, sizeof message),
                       MIG_POLICY_OK);
      json = policy_to_json(&policy, POLICY_ALL_KEYS);
      assert_int_equal(json_object_size(json), MIG_POLICY_KEY_COUNT);
      check_type("Policy", json);
      if (!policy_from_json(json, &back, &bad, message, sizeof message))
        fail_msg("%s: %s", bad, message);
      assert_memory_equal(back.values, policy.values, sizeof policy.values);
      json_decref(json);
    }
  }
}

typedef struct PolicyRow {
  const char *name;
  const char *json;
  const char *bad_key; /* NULL: it is fine */
} PolicyRow;

static const PolicyRow policy_rows[] = {
    {"nothing is set by an empty policy", "{}", NULL},
    {"null is absent", "{\"max_downtime_ms\":null}", NULL},
    {"an unknown key is named", "{\"max_downtime_ms\":1,\"speed\":2}", "speed"},
    {"an unknown key is named though it is null", "{\"speed\":null}", "speed"},
    {"text is no number", "{\"max_downtime_ms\":\"5\"}", "max_downtime_ms"},
    {"a number is no text", "{\"tls\":1}", "tls"},
    {"a number is no truth", "{\"zerocopy\":1}", "zerocopy"},
    {"below zero", "{\"max_pause_ms\":-1}", "max_pause_ms"},
    {"past the range", "{\"max_throttle_pct\":100}", "max_throttle_pct"},
    {"no value of the enum", "{\"compression\":\"lzma\"}", "compression"},
};

static void test_policy_row(void **state) {
  const PolicyRow *row = *state;
  json_t *json = json_loads(row->json, 0, NULL);
  const char *bad = NULL;
  char message[200] = "";
  MigPolicy policy;
  bool ok = policy_from_json(json, &policy, &bad, message, sizeof message);

  assert_int_equal(ok, row->bad_key == NULL);
  if (ok) {
    assert_int_equal(policy.set, 0);
  } else {
    assert_string_equal(bad, row->bad_key);
    assert_true(strlen(message) > 0);
  }
  json_decref(json);
}

static void only_what_is_given_counts_as_set(void **state) {
  json_t *json = json_pack("{si sb}", "max_downtime_ms", 5, "zerocopy", 0);
  const char *bad = NULL;
  char message[200];
  MigPolicy policy;

  assert_true(policy_from_json(json, &policy, &bad, message, sizeof message));
  assert_int_equal(policy.set,
                   (UINT32_C(1) << MIG_POLICY_MAX_DOWNTIME_MS) | (UINT32_C(1) << MIG_POLICY_ZEROCOPY));
  json_decref(json);
}

#define ADD(function) tests_add(&tests, #function, function, NULL)

/* --- the largest --- */

/* Control characters, of which each becomes six bytes of JSON: the worst that a text can be. */
static char *worst(size_t length) {
  return g_strnfill(length, '\x01');
}

static void fill_with_the_worst(Job *job) {
  g_autofree char *text = worst(3 * JOB_TEXT_MAX), *path = worst(JOB_PATH_MAX), *word = worst(JOB_WORD_MAX);
  const MigImage image = {.path = path, .pool = word, .volume = word, .format = word};

  job->request_key = worst(JOB_NAME_MAX);
  job->request_digest = worst(JOB_NAME_MAX);
  job->domain_name = worst(JOB_NAME_MAX);
  strcpy(job->domain_uuid, "e47a3cb2-3cf1-43db-8764-d2f9d88cca43");
  job->target_name = worst(JOB_NAME_MAX);
  job->target_uri = worst(JOB_URI_MAX);
  job->migrate_uri = worst(JOB_URI_MAX);
  job->policy_name = worst(JOB_NAME_MAX);
  job->policy_matched = worst(JOB_NAME_MAX);
  job->drain_id = worst(JOB_NAME_MAX);
  job->direction = MIG_DIRECTION_INCOMING;
  job->lease = job_lease_new();
  job->lease->source = worst(JOB_URI_MAX);
  job->lease->leased = true;
  for (int i = 0; i < JOB_IMAGES_MAX; i++) {
    job_lease_add_image(job->lease, word, &image);
    ((JobImage *)job->lease->images->pdata[i])->state = JOB_IMAGE_MADE; /* they are in it twice */
  }
  for (int i = 0; i < JOB_EVENTS_MAX + 50; i++)
    job_add_event(job, "warning", MIG_CAUSE_LINK_LOST, "%s", text);
  for (int i = 0; i < MIG_FINDINGS_MAX; i++)
    job_add_finding(job, "TARGET_MEMORY", true, true, text, text);
  job_note_failure(job, MIG_CAUSE_LINK_LOST, NULL, "%s", text);
  job->failure.libvirt_message = job_copy_text(text);
  job_set_evidence(job, text);
  job_set_next_action(job, text);
  job->have_plan = job->have_sample = true;
}

/* What is written can be read: whatever a job was given, and whatever was said of it. */
static void the_largest_job_that_is_accepted_can_be_read_back(void **state) {
  g_autoptr(Job) job = job_new();
  g_autoptr(Job) back = NULL;
  json_t *record;
  size_t bytes;

  fill_with_the_worst(job);
  assert_true(job_check_limits(job, NULL));
  record = job_to_record(job, BOOT);
  bytes = json_dumpb(record, NULL, 0, JSON_COMPACT);
  printf("# the largest record has %zu KiB\n", bytes / 1024);
  /* With room for what later agents may add. */
  assert_in_range(bytes, 1024 * 1024, STORE_RECORD_BYTES_MAX / 4 * 3);
  back = read_back(record, BOOT);
  assert_int_equal(back->events->len, JOB_EVENTS_MAX);
  assert_int_equal(back->lease->images->len, JOB_IMAGES_MAX);
  json_decref(record);
}

static void a_text_is_cut_between_two_characters(void **state) {
  g_autoptr(GString) text = g_string_new("x");
  g_autofree char *cut = NULL, *again = NULL;

  while (text->len < 2 * JOB_TEXT_MAX)
    g_string_append(text, "\xe2\x82\xac");
  cut = job_copy_text(text->str);
  assert_true(strlen(cut) <= JOB_TEXT_MAX && strlen(cut) > JOB_TEXT_MAX - 6);
  assert_true(g_utf8_validate(cut, -1, NULL));
  assert_true(g_str_has_suffix(cut, "\xe2\x82\xac\xe2\x80\xa6"));
  again = job_copy_text(cut);
  assert_string_equal(cut, again);
}

/* Numbers that no integer can hold: a caller's, too. */
static void a_number_past_all_limits_is_refused(void **state) {
  static const double numbers[] = {1e19, 1.8446744073709552e19, 4e300, -1e300};

  for (size_t i = 0; i < LENGTH(numbers); i++) {
    json_t *policy = json_pack("{sf}", "bandwidth_bytes_per_s", numbers[i]);
    const char *key = NULL;
    char message[200];
    MigPolicy read;

    if (policy_from_json(policy, &read, &key, message, sizeof message))
      fail_msg("%g was taken", numbers[i]);
    assert_string_equal(key, "bandwidth_bytes_per_s");
    json_decref(policy);
  }
}

typedef struct Given {
  const char *name;
  size_t offset; /* of the text in Job */
  size_t max;
} Given;

static const Given givens[] = {
    {"domain's name", offsetof(Job, domain_name), JOB_NAME_MAX},
    {"target's name", offsetof(Job, target_name), JOB_NAME_MAX},
    {"target's URI", offsetof(Job, target_uri), JOB_URI_MAX},
    {"migrate_uri", offsetof(Job, migrate_uri), JOB_URI_MAX},
    {"policy's name", offsetof(Job, policy_name), JOB_NAME_MAX},
    {"request key", offsetof(Job, request_key), JOB_NAME_MAX},
};

static void what_is_longer_than_is_kept_is_refused_by_name(void **state) {
  const Given *row = *state;
  g_autoptr(Job) job = job_new();
  g_autoptr(GError) error = NULL;
  char **text = (char **)((char *)job + row->offset);

  *text = worst(row->max);
  assert_true(job_check_limits(job, NULL));
  g_free(*text);
  *text = worst(row->max + 1);
  assert_false(job_check_limits(job, &error));
  assert_non_null(strstr(error->message, row->name));
}

static void no_lease_keeps_more_images_than_a_record_may_have(void **state) {
  const MigImage image = {.path = "/d", .format = "raw"};
  g_autoptr(GError) error = NULL;
  g_autoptr(Job) job = job_new();

  job->lease = job_lease_new();
  for (int i = 0; i < JOB_IMAGES_MAX; i++)
    job_lease_add_image(job->lease, "vda", &image);
  assert_true(job_check_limits(job, NULL));
  job_lease_add_image(job->lease, "vda", &image);
  assert_false(job_check_limits(job, &error));
  assert_non_null(strstr(error->message, "257 disk images"));
}

int main(void) {
  Tests tests = {0};

  ADD(the_drain_of_a_job_is_kept_and_told);
  ADD(a_finished_job_comes_back_as_it_was);
  ADD(an_unfinished_job_comes_back_with_a_higher_revision_and_no_old_numbers);
  ADD(what_is_not_there_stays_not_there);
  ADD(times_of_another_boot_are_not_taken_for_ours);
  ADD(what_was_known_before_the_move_is_kept);
  ADD(what_the_monitor_asked_for_is_kept);
  ADD(a_record_of_an_older_agent_knows_nothing_of_before);
  ADD(numbers_too_large_for_the_wire_are_cut);
  ADD(the_largest_job_that_is_accepted_can_be_read_back);
  ADD(a_number_past_all_limits_is_refused);
  ADD(a_text_is_cut_between_two_characters);
  ADD(no_lease_keeps_more_images_than_a_record_may_have);
  TESTS_ADD_ROWS(&tests, what_is_longer_than_is_kept_is_refused_by_name, givens);
  TESTS_ADD_ROWS(&tests, test_damage, damages);
  ADD(each_member_of_a_record_may_be_of_any_type);
  TESTS_ADD_ROWS(&tests, test_view, views);
  ADD(a_deadline_is_told_in_the_time_of_the_wall);
  ADD(news_have_the_newest_events_only);
  ADD(the_record_has_not_changed);
  ADD(the_wire_has_not_changed);
  ADD(a_record_of_the_first_format_is_read_and_becomes_one_of_today);
  ADD(what_waited_in_the_first_format_has_waited_so_long);
  ADD(what_waits_since_tomorrow_waits_since_now);
  ADD(what_waited_before_a_reboot_waits_anew);
  ADD(what_went_on_in_an_older_format_has_gone_on_since_its_request);
  ADD(the_time_goes_on_over_a_restart);
  ADD(after_a_reboot_the_time_of_day_has_to_do);
  ADD(a_stop_without_its_end_is_forgotten_over_a_restart);
  ADD(each_policy_key_comes_back);
  TESTS_ADD_ROWS(&tests, test_policy_row, policy_rows);
  ADD(only_what_is_given_counts_as_set);
  return tests_run(&tests, "jobjson");
}

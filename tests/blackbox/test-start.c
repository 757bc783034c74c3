/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start: an acknowledged job is on disk and is done once, and an invalid call gets its named error. */
#include "tests/blackbox/harness.h"

#include <signal.h>

static json_t *with_key(json_t *parameters, const char *key) {
  json_object_set_new(parameters, "request_key", json_string(key));
  return parameters;
}

static void the_record_is_on_disk_before_the_reply(void **state) {
  Bb *bb = *state;
  json_t *job, *record;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", json_pack("{si}", "max_downtime_ms", 123));
  record = bb_record(bb, text_of(job, "id"));
  assert_text(record, "job.id", text_of(job, "id"));
  assert_text(record, "job.domain.name", "vm1");
  assert_int_equal(number_of(record, "job.policy.max_downtime_ms"), 123);
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 123);
  assert_text(job, "domain.name", "vm1");
}

static void a_reply_of_a_killed_daemon_still_counts(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_text(bb_truth(bb, "vm1"), "host", "b");
}

static void the_same_key_gives_the_same_job(void **state) {
  Bb *bb = *state;
  json_t *first, *again;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  first = client_call(client, "Start", with_key(bb_start_parameters(bb, "vm1"), "key 1"));
  again = client_call(client, "Start", with_key(bb_start_parameters(bb, "vm1"), "key 1"));
  assert_true(json_is_true(json_object_get(first, "created")));
  assert_true(json_is_false(json_object_get(again, "created")));
  assert_text(again, "job.id", text_of(first, "job.id"));
  assert_text(again, "job.request_key", "key 1");
  bb_await_phase(bb, text_of(first, "job.id"), "succeeded");

  /* Even after it has ended, and although the domain has left. */
  again = client_call(client, "Start", with_key(bb_start_parameters(bb, "vm1"), "key 1"));
  assert_true(json_is_false(json_object_get(again, "created")));
  assert_text(again, "job.id", text_of(first, "job.id"));
}

static void the_same_key_for_something_else_is_a_conflict(void **state) {
  Bb *bb = *state;
  json_t *first, *error, *parameters;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  first = client_call(client, "Start", with_key(bb_start_parameters(bb, "vm1"), "k"));
  error =
      client_refused(client, "Start", with_key(bb_start_parameters(bb, "vm2"), "k"), "RequestKeyConflict");
  assert_text(error, "job", text_of(first, "job.id"));
  assert_text(error, "request_key", "k");
  parameters = with_key(bb_start_parameters(bb, "vm1"), "k");
  json_object_set_new(parameters, "policy", json_pack("{si}", "max_downtime_ms", 1));
  client_refused(client, "Start", parameters, "RequestKeyConflict");
}

static void a_key_survives_a_restart(void **state) {
  Bb *bb = *state;
  json_t *first, *again;

  bb_start(bb);
  first = client_call(bb_connect(bb), "Start", with_key(bb_start_parameters(bb, "vm1"), "k"));
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  again = client_call(bb_connect(bb), "Start", with_key(bb_start_parameters(bb, "vm1"), "k"));
  assert_true(json_is_false(json_object_get(again, "created")));
  assert_text(again, "job.id", text_of(first, "job.id"));
  client_refused(bb_connect(bb), "Start", with_key(bb_start_parameters(bb, "vm3"), "k"),
                 "RequestKeyConflict");
}

static void many_callers_with_one_key_at_once_make_one_job(void **state) {
  enum { CALLERS = 20 };
  Bb *bb = *state;
  Client *clients[CALLERS];
  const char *id = NULL;
  int created = 0;

  bb_start(bb);
  bb_link_slow(bb);
  /* All wait for libvirtd at the same time. */
  bb_set_call(bb, "domain_facts", json_pack("{si}", "delay_ms", 100));
  for (int i = 0; i < CALLERS; i++) {
    clients[i] = bb_connect(bb);
    client_send(clients[i], "Start", with_key(bb_start_parameters(bb, "vm1"), "k"), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    json_t *answer = client_receive(clients[i], NULL, NULL);

    created += json_is_true(json_object_get(answer, "created"));
    if (id)
      assert_text(answer, "job.id", id);
    id = text_of(answer, "job.id");
  }
  assert_int_equal(created, 1);
  assert_int_equal(json_array_size(json_object_get(client_call(clients[0], "List", NULL), "jobs")), 1);
}

static void many_callers_without_a_key_make_one_job_and_the_others_get_an_error(void **state) {
  enum { CALLERS = 10 };
  Bb *bb = *state;
  Client *clients[CALLERS];
  int created = 0, busy = 0;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "domain_facts", json_pack("{si}", "delay_ms", 50));
  for (int i = 0; i < CALLERS; i++) {
    clients[i] = bb_connect(bb);
    client_send(clients[i], "Start", bb_start_parameters(bb, "vm1"), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    g_autofree char *error = NULL;

    client_receive(clients[i], &error, NULL);
    created += !error;
    busy += error && strcmp(error, "DomainBusy") == 0;
  }
  assert_int_equal(created, 1);
  assert_int_equal(busy, CALLERS - 1);
}

static void a_second_start_for_the_domain_names_the_first(void **state) {
  Bb *bb = *state;
  json_t *job, *error, *parameters;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "DomainBusy");
  assert_text(error, "job", text_of(job, "id"));

  /* The UUID names the same domain. */
  parameters = bb_start_parameters(bb, text_of(job, "domain.uuid"));
  client_refused(client, "Start", parameters, "DomainBusy");
}

static void a_domain_can_migrate_again_once_its_job_has_ended(void **state) {
  Bb *bb = *state;
  json_t *first, *second;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  first = client_start(client, "vm1", NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", text_of(first, "id")));
  bb_await_phase(bb, text_of(first, "id"), "aborted");
  bb_link_fast(bb);
  second = client_start(client, "vm1", NULL);
  assert_string_not_equal(text_of(first, "id"), text_of(second, "id"));
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
  assert_text(client_get(client, "vm1"), "id", text_of(second, "id"));
}

/* --- invalid calls --- */

typedef struct Refusal {
  const char *name;
  const char *parameters; /* JSON; %s is the target */
  const char *error;
  const char *at; /* a member of the error's parameters */
  const char *text;
} Refusal;

static const Refusal refusals[] = {
    {"unknown domain", "{\"domain\":\"nobody\",\"target\":\"%s\"}", "NoSuchDomain", "domain", "nobody"},
    {"empty domain", "{\"domain\":\"\",\"target\":\"%s\"}", "NoSuchDomain", "domain", ""},
    {"unknown target", "{\"domain\":\"vm1\",\"target\":\"node-x\"}", "NoSuchTarget", "target", "node-x"},
    {"empty target", "{\"domain\":\"vm1\",\"target\":\"\"}", "NoSuchTarget", "target", ""},
    {"unknown named policy", "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy_name\":\"fast\"}",
     "NoSuchPolicy", "policy_name", "fast"},
    {"unknown policy key", "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_downtime\":1}}",
     "InvalidParameter", "parameter", "policy.max_downtime"},
    {"policy value of the wrong type",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_downtime_ms\":\"1\"}}", "InvalidParameter",
     "parameter", "policy.max_downtime_ms"},
    {"policy value that is not a whole number",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_downtime_ms\":1.5}}", "InvalidParameter",
     "parameter", "policy.max_downtime_ms"},
    {"unknown enum value", "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"tls\":\"perhaps\"}}",
     "InvalidParameter", "parameter", "policy.tls"},
    {"policy value below its range",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_throttle_pct\":0}}", "InvalidPolicy", "key",
     "max_throttle_pct"},
    {"policy value above its range",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_throttle_pct\":100}}", "InvalidPolicy", "key",
     "max_throttle_pct"},
    {"negative policy value", "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"max_downtime_ms\":-1}}",
     "InvalidPolicy", "key", "max_downtime_ms"},
    {"policy value that overflows",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"bandwidth_bytes_per_s\":9223372036854775807}}",
     "InvalidPolicy", "key", "bandwidth_bytes_per_s"},
    {"goals that exclude each other",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"policy\":{\"allow_post_copy\":true,\"parallel_connections\":4}"
     "}",
     "PolicyConflict", "code", "POST_COPY_PARALLEL"},
    {"unknown field", "{\"domain\":\"vm1\",\"target\":\"%s\",\"targets\":1}", "InvalidParameter", "parameter",
     "targets"},
    {"missing field", "{\"domain\":\"vm1\"}", "InvalidParameter", "parameter", "target"},
    {"field of the wrong type", "{\"domain\":7,\"target\":\"%s\"}", "InvalidParameter", "parameter",
     "domain"},
    {"empty request key", "{\"domain\":\"vm1\",\"target\":\"%s\",\"request_key\":\"\"}", "InvalidParameter",
     "parameter", "request_key"},
    {"request key with a control character",
     "{\"domain\":\"vm1\",\"target\":\"%s\",\"request_key\":\"a\\nb\"}", "InvalidParameter", "parameter",
     "request_key"},
};

static void test_refusal(void **state) {
  Bb *bb = *state;
  const Refusal *refusal = bb->row;
  g_autofree char *target = bb_target(bb, "b");
  g_auto(GStrv) pieces = g_strsplit(refusal->parameters, "%s", 2);
  g_autofree char *text = g_strjoinv(target, pieces);
  json_t *parameters = json_loads(text, 0, NULL);
  json_t *error;
  Client *client;

  assert_non_null(parameters);
  bb_start(bb);
  client = bb_connect(bb);
  error = client_refused(client, "Start", parameters, refusal->error);
  assert_text(error, refusal->at, refusal->text);
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
}

static void a_key_that_is_too_long_is_refused(void **state) {
  Bb *bb = *state;
  g_autofree char *longest = g_strnfill(128, 'k');
  g_autofree char *longer = g_strnfill(129, 'k');
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_refused(client, "Start", with_key(bb_start_parameters(bb, "vm1"), longer), "InvalidParameter");
  client_call(client, "Start", with_key(bb_start_parameters(bb, "vm1"), longest));
}

static void a_configured_target_and_policy_are_used_by_name(void **state) {
  Bb *bb = *state;
  g_autofree char *target = bb_target(bb, "b");
  g_autofree char *sections = g_strdup_printf("[Target node-b]\nLibvirtURI=%s\nMigrateURI=tcp://10.0.0.2\n"
                                              "[Policy gentle]\nmax_downtime_ms=77\nBandwidth=3M\n",
                                              target);
  json_t *job, *parameters;
  Client *client;

  bb_configure(bb, sections);
  bb_start(bb);
  client = bb_connect(bb);
  assert_int_equal(json_array_size(json_object_get(client_call(client, "GetNode", NULL), "targets")), 1);
  parameters = json_pack("{ss ss ss s{si}}", "domain", "vm1", "target", "node-b", "policy_name", "gentle",
                         "policy", "max_pause_ms", 5);
  job = json_object_get(client_call(client, "Start", parameters), "job");
  assert_text(job, "target.name", "node-b");
  assert_text(job, "target.libvirt_uri", target);
  assert_text(job, "target.migrate_uri", "tcp://10.0.0.2");
  assert_text(job, "policy_name", "gentle");
  assert_int_equal(number_of(job, "policy.max_downtime_ms"), 77);
  assert_int_equal(number_of(job, "policy.max_pause_ms"), 5);
  assert_int_equal(number_of(job, "policy.max_throttle_pct"), 80);
}

/* What only the checks of both ends can find becomes a job that failed with its cause. */
typedef struct Failure {
  const char *name;
  void (*arrange)(Bb *bb);
  const char *host;
  const char *policy;
  const char *cause;
} Failure;

static void nothing(Bb *bb) {
}

static void target_away(Bb *bb) {
  bb_set_host(bb, "b", "reachable", json_false());
}

static void there_already(Bb *bb) {
  bb_set_domain(bb, "vm1", "states", json_pack("{ss}", "b", "running"));
}

static void shut_off(Bb *bb) {
  bb_set_domain(bb, "vm1", "state", json_string("inactive"));
}

static void passthrough(Bb *bb) {
  bb_set_domain(bb, "vm1", "passthrough", json_true());
}

static void migrate_denied(Bb *bb) {
  bb_set_call(bb, "migrate", json_pack("{ss ss}", "fail", "DENIED", "message", "not you"));
}

static const Failure failures[] = {
    {"the target does not answer", target_away, "b", NULL, "TARGET_UNREACHABLE"},
    {"the target does not exist", nothing, "nowhere", NULL, "TARGET_UNREACHABLE"},
    {"the target is this host", nothing, "a", NULL, "SAME_HOST"},
    {"the domain runs at the target already", there_already, "b", NULL, "DOMAIN_EXISTS_AT_TARGET"},
    {"the domain does not run", shut_off, "b", NULL, "DOMAIN_NOT_RUNNING"},
    {"post-copy with a passthrough device", passthrough, "b", "{\"allow_post_copy\":true}",
     "POLICY_CONFLICT"},
    {"libvirt refuses", migrate_denied, "b", NULL, "REFUSED"},
};

static void test_failure(void **state) {
  Bb *bb = *state;
  const Failure *failure = bb->row;
  g_autofree char *target = bb_target(bb, failure->host);
  json_t *parameters = json_pack("{ss ss}", "domain", "vm1", "target", target);
  json_t *job;

  if (failure->policy)
    json_object_set_new(parameters, "policy", json_loads(failure->policy, 0, NULL));
  bb_configure(bb, "UnschedulableTimeout=100ms\n");
  bb_start(bb);
  failure->arrange(bb);
  job = client_call(bb_connect(bb), "Start", parameters);
  job = bb_await_phase(bb, text_of(job, "job.id"), "failed");
  assert_text(job, "failure.cause", failure->cause);
  /* The job does not claim that a domain runs which did not. */
  assert_text(job, "result.running_at",
              strcmp(failure->cause, "DOMAIN_NOT_RUNNING") == 0 ? "unknown" : "source");
  assert_events_whole(job);
  assert_text(bb_truth(bb, "vm1"), "host", "a");
}

static void no_more_unfinished_jobs_than_allowed(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;

  bb_configure(bb, "MaxJobs=2\nMaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  client_start(client, "vm1", NULL);
  client_start(client, "vm2", NULL);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm3"), "TooManyJobs");
  assert_int_equal(number_of(error, "limit"), 2);
  client_call(client, "Abort", json_pack("{ss}", "job", "vm2"));
  client_start(client, "vm3", NULL);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, the_record_is_on_disk_before_the_reply);
  TESTS_ADD(&tests, a_reply_of_a_killed_daemon_still_counts);
  TESTS_ADD(&tests, the_same_key_gives_the_same_job);
  TESTS_ADD(&tests, the_same_key_for_something_else_is_a_conflict);
  TESTS_ADD(&tests, a_key_survives_a_restart);
  TESTS_ADD(&tests, many_callers_with_one_key_at_once_make_one_job);
  TESTS_ADD(&tests, many_callers_without_a_key_make_one_job_and_the_others_get_an_error);
  TESTS_ADD(&tests, a_second_start_for_the_domain_names_the_first);
  TESTS_ADD(&tests, a_domain_can_migrate_again_once_its_job_has_ended);
  TESTS_ADD(&tests, a_key_that_is_too_long_is_refused);
  TESTS_ADD(&tests, a_configured_target_and_policy_are_used_by_name);
  TESTS_ADD(&tests, no_more_unfinished_jobs_than_allowed);
  TESTS_ADD_ROWS(&tests, test_refusal, refusals);
  TESTS_ADD_ROWS(&tests, test_failure, failures);
  return bb_run(&tests, "start");
}

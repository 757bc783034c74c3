/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hung libvirtd: no other job and no client waits for it. */
#include "tests/blackbox/harness.h"

#include <unistd.h>

/* The promise is 100 ms. Sanitizers run the daemon many times slower. */
#ifdef BB_SANITIZED
#define ANSWER_MS 1000
#else
#define ANSWER_MS 100
#endif

static double call_ms(Client *client, const char *method, json_t *parameters) {
  gint64 before_us = g_get_monotonic_time();

  client_call(client, method, parameters);
  return (double)(g_get_monotonic_time() - before_us) / 1000;
}

static void assert_answers_fast(Client *client, const char *job) {
  double worst_ms = 0;

  for (int i = 0; i < 100; i++) {
    worst_ms = MAX(worst_ms, call_ms(client, "Get", json_pack("{ss}", "job", job)));
    worst_ms = MAX(worst_ms, call_ms(client, "List", NULL));
    worst_ms = MAX(worst_ms, call_ms(client, "GetNode", NULL));
  }
  if (worst_ms > ANSWER_MS)
    fail_msg("an answer took %.1f ms", worst_ms);
}

static void hung_job_statistics_delay_nobody_else(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job, *other;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_set_call(bb, "job_stats", json_pack("{sb}", "hang", 1));
  assert_answers_fast(client, text_of(job, "id"));

  /* Another job starts and is aborted meanwhile. */
  other = client_start(client, "vm2", NULL);
  bb_await_phase(bb, text_of(other, "id"), "migrating");
  assert_answers_fast(client, text_of(other, "id"));
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(other, "id"), "succeeded");
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

static void a_hung_abort_does_not_delay_another_jobs_deadline(void **state) {
  Bb *bb = *state;
  json_t *hung, *other;
  Client *client;

  bb_set_domain(bb, "vm2", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  hung = client_start(client, "vm1", NULL);
  other = client_start(client, "vm2", json_pack("{si}", "completion_timeout_s_per_gib", 4));
  bb_await(bb, text_of(hung, "id"), bb_has_numbers, NULL);
  bb_await_phase(bb, text_of(other, "id"), "migrating");
  bb_set_call(bb, "abort_job", json_pack("{sb si}", "hang", 1, "times", 1));
  client_call(client, "Abort", json_pack("{ss}", "job", text_of(hung, "id")));
  other = bb_await_phase(bb, text_of(other, "id"), "aborted");
  assert_text(other, "failure.cause", "DEADLINE");
  assert_true(number_of(other, "finished_usec_realtime") - number_of(other, "started_usec_realtime") <
              2600000);
  assert_text(client_get(client, text_of(hung, "id")), "phase", "migrating");
  bb_set_call(bb, "abort_job", NULL);
  hung = bb_await_phase(bb, text_of(hung, "id"), "aborted");
  assert_text(hung, "failure.cause", "USER_ABORT");
}

static void the_deadline_holds_though_job_statistics_hang(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", json_pack("{si}", "completion_timeout_s_per_gib", 4));
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_set_call(bb, "job_stats", json_pack("{sb}", "hang", 1));
  job = bb_await_event(bb, text_of(job, "id"), "decision", "abort: ");
  assert_text(find_event(job, "decision", "abort: "), "cause", "DEADLINE");
  bb_set_call(bb, "job_stats", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "DEADLINE");
}

static void a_hung_libvirtd_refuses_a_start_in_time(void **state) {
  Bb *bb = *state;
  gint64 before_us;
  Client *client, *starter;
  double took_ms;
  json_t *error;

  bb_configure(bb, "ConnectTimeout=2500ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  starter = bb_connect(bb);
  client_call(client, "GetNode", NULL);
  bb_set_host(bb, "a", "hung", json_true());
  before_us = g_get_monotonic_time();
  client_send(starter, "Start", bb_start_parameters(bb, "vm1"), 0);
  for (int i = 0; i < 20; i++)
    assert_true(call_ms(client, "List", NULL) < ANSWER_MS);
  {
    g_autofree char *name = NULL;

    error = client_receive(starter, &name, NULL);
    assert_non_null(name);
    assert_string_equal(name, "HypervisorUnavailable");
  }
  took_ms = (double)(g_get_monotonic_time() - before_us) / 1000;
  assert_text(error, "uri", bb->libvirt_uri);
  assert_true(took_ms >= 2400 && took_ms < 10000);
  assert_non_null(strstr(json_string_value(json_object_get(error, "message")), " within 2.5 s"));

  /* Once it answers again, so does Start. */
  bb_set_host(bb, "a", "hung", json_false());
  client_start(client, "vm1", NULL);
}

static void an_unreachable_libvirtd_is_reported(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *node;

  bb_configure(bb, "ConnectTimeout=300ms\n");
  bb_set_host(bb, "a", "reachable", json_false());
  bb_start(bb);
  client = bb_connect(bb);
  node = client_call(client, "GetNode", NULL);
  assert_true(json_is_false(json_object_get(node, "libvirt_reachable")));
  assert_null(json_object_get(node, "libvirt_version"));
  client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "HypervisorUnavailable");
}

static void checks_of_a_hung_target_end_at_the_limit(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job, *other;

  bb_configure(bb, "PrepareTimeout=1s\nMaxOutgoing=2\n");
  bb_start(bb);
  bb_set_call(bb, "survey_target", json_pack("{sb si}", "hang", 1, "times", 1));
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "preparing");
  bb_set_call(bb, "b.host_facts", NULL);
  assert_answers_fast(client, text_of(job, "id"));
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "PREPARE_TIMEOUT");
  bb_set_call(bb, "survey_target", NULL);
  other = client_start(client, "vm2", NULL);
  bb_await_phase(bb, text_of(other, "id"), "succeeded");
}

static void missing_job_statistics_are_reported_and_the_migration_goes_on(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_set_call(bb, "job_stats", json_pack("{ss ss}", "fail", "FAILED", "message", "no numbers today"));
  bb_await_event(bb, text_of(job, "id"), "warning", "no numbers today");
  bb_set_call(bb, "job_stats", NULL);
  bb_await_event(bb, text_of(job, "id"), "warning", "reports progress again");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
}

static double since_ms(gint64 began_us) {
  return (double)(g_get_monotonic_time() - began_us) / 1000;
}

/* The source's libvirtd goes away in the middle: reported soon, however long a connection may take. */
static void an_unknown_outcome_is_reported_at_once(void **state) {
  Bb *bb = *state;
  gint64 began_us;
  json_t *job;

  bb_configure(bb, "ConnectTimeout=60s\n");
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  began_us = g_get_monotonic_time();
  bb_set_host(bb, "a", "reachable", json_false());
  job = bb_await_phase(bb, text_of(job, "id"), "recovering");
  /* Far below ConnectTimeout=, which it must not wait for. */
  assert_in_range((unsigned)since_ms(began_us), 0, 30000);
  assert_non_null(strstr(text_of(job, "recovery.evidence"), "the source does not answer"));
  bb_set_host(bb, "a", "reachable", json_true());
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_null(member_of(job, "recovery"));
  assert_events_whole(job);
}

static bool says(json_t *job, gconstpointer text) {
  json_t *evidence = member_of(job, "recovery.evidence");

  return evidence && strstr(json_string_value(evidence), text);
}

/* The target's libvirtd hangs when both ends are asked: no call waits for it, and there is a verdict once it continues. */
static void a_hung_target_delays_only_its_own_job(void **state) {
  Bb *bb = *state;
  json_t *job, *other;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_set_call(bb, "b.domain_status", json_pack("{sb}", "hang", 1));
  bb_set_call(bb, "migrate", json_pack("{si}", "detach_after_ms", 1));
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  bb_await(bb, text_of(job, "id"), says, "did not answer within 3 s");
  assert_answers_fast(client, text_of(job, "id"));
  /* The agent keeps asking, but leaves only so many hung calls behind. */
  bb_await(bb, text_of(job, "id"), says, "calls to it hang");
  other = client_start(client, "vm2", NULL);
  bb_set_call(bb, "b.domain_status", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  bb_set_call(bb, "migrate", NULL);
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(other, "id"), "succeeded");
}

static void hung_job_statistics_are_reported_and_delay_no_action(void **state) {
  Bb *bb = *state;
  gint64 began_us;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_set_call(bb, "job_stats", json_pack("{sb}", "hang", 1));
  job = bb_await_event(bb, text_of(job, "id"), "warning", "has not answered for");
  assert_text(job, "phase", "migrating");
  began_us = g_get_monotonic_time();
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  /* Below the keepalive, which the job statistics wait for. */
  assert_in_range((unsigned)since_ms(began_us), 0, 20000);
  assert_text(job, "failure.cause", "USER_ABORT");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, hung_job_statistics_delay_nobody_else);
  TESTS_ADD(&tests, a_hung_abort_does_not_delay_another_jobs_deadline);
  TESTS_ADD(&tests, the_deadline_holds_though_job_statistics_hang);
  TESTS_ADD(&tests, a_hung_libvirtd_refuses_a_start_in_time);
  TESTS_ADD(&tests, an_unreachable_libvirtd_is_reported);
  TESTS_ADD(&tests, checks_of_a_hung_target_end_at_the_limit);
  TESTS_ADD(&tests, an_unknown_outcome_is_reported_at_once);
  TESTS_ADD(&tests, a_hung_target_delays_only_its_own_job);
  TESTS_ADD(&tests, hung_job_statistics_are_reported_and_delay_no_action);
  TESTS_ADD(&tests, missing_job_statistics_are_reported_and_the_migration_goes_on);
  return bb_run(&tests, "hang");
}

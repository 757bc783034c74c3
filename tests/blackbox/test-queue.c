/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which jobs wait, for what, since when and until when; and that no job waits for what does not concern it. */
#include "tests/blackbox/harness.h"

#include <signal.h>

static json_t *start_towards(Client *client, const char *domain, const char *host, json_t *policy) {
  g_autofree char *target = bb_target(client->bb, host);
  json_t *parameters = json_pack("{ss ss}", "domain", domain, "target", target);

  if (policy)
    json_object_set_new(parameters, "policy", policy);
  return json_object_get(client_call(client, "Start", parameters), "job");
}

static void add_host(Bb *bb, const char *host) {
  json_object_set_new(json_object_get(bb->world, "hosts"), host, json_object());
  bb_publish(bb);
}

static void away(Bb *bb, const char *host) {
  bb_set_host(bb, host, "reachable", json_false());
}

static void back(Bb *bb, const char *host) {
  bb_set_host(bb, host, "reachable", json_true());
}

static bool is_held_by(json_t *job, gconstpointer reason) {
  json_t *now = member_of(job, "pending.reason");

  return now && strcmp(json_string_value(now), reason) == 0;
}

static json_t *await_reason(Bb *bb, json_t *job, const char *reason) {
  return bb_await(bb, text_of(job, "id"), is_held_by, reason);
}

static json_t *summary_of(Client *client, const char *domain) {
  json_t *jobs = json_object_get(client_call(client, "List", json_pack("{ss}", "domain", domain)), "jobs");

  assert_int_equal(json_array_size(jobs), 1);
  return json_array_get(jobs, 0);
}

/* --- an unreachable target --- */

static void a_job_waits_for_an_unreachable_target(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  away(bb, "b");
  client = bb_connect(bb);
  job = await_reason(bb, client_start(client, "vm1", NULL), "TARGET_UNREACHABLE");
  assert_text(job, "phase", "pending");
  assert_null(member_of(job, "failure"));
  assert_non_null(strstr(text_of(job, "pending.message"), "next check in"));
  assert_int_equal(number_of(job, "pending.tries"), 1);
  assert_int_equal(number_of(job, "pending.queue_position"), 1);
  assert_true(number_of(job, "pending.held_since_usec_realtime") >=
              number_of(job, "pending.since_usec_realtime"));
  assert_true(number_of(job, "pending.retry_usec_realtime") >
              number_of(job, "pending.held_since_usec_realtime"));
  /* UnschedulableTimeout= is 5 min, well before PendingTimeout=. */
  assert_true(llabs(number_of(job, "pending.until_usec_realtime") -
                    number_of(job, "pending.held_since_usec_realtime") - 300000000) < 50000);
  back(bb, "b");
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
  assert_non_null(find_event(job, "phase", "TARGET_UNREACHABLE: "));
  assert_non_null(find_event(job, "phase", "checking again whether it can start"));
}

static void it_waits_no_longer_than_unschedulable_timeout(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_configure(bb, "UnschedulableTimeout=1200ms\n");
  bb_start(bb);
  away(bb, "b");
  job = bb_await_phase(bb, text_of(client_start(bb_connect(bb), "vm1", NULL), "id"), "failed");
  assert_text(job, "failure.cause", "TARGET_UNREACHABLE");
  assert_text(job, "failure.phase", "pending");
  assert_non_null(strstr(text_of(job, "failure.message"), "UnschedulableTimeout="));
  assert_text(job, "result.running_at", "source");
  assert_true(number_of(job, "finished_usec_realtime") - number_of(job, "created_usec_realtime") >= 1200000);
  assert_events_whole(job);
}

static void it_waits_no_longer_than_pending_timeout_in_total(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_configure(bb, "UnschedulableTimeout=0\nPendingTimeout=600ms\n");
  bb_start(bb);
  away(bb, "b");
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "PENDING_TIMEOUT");
  assert_non_null(strstr(text_of(job, "failure.message"), "PendingTimeout="));
  assert_non_null(strstr(text_of(job, "failure.message"), "checked "));
}

static void permanent_blockers_fail_at_once(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "b.open", json_pack("{ss ss}", "fail", "DENIED", "message", "no such user"));
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "TARGET_UNREACHABLE");
  assert_non_null(strstr(text_of(job, "failure.message"), "no such user"));
  assert_null(find_event(job, "phase", "checking again"));
}

static void a_held_target_does_not_delay_other_targets(void **state) {
  Bb *bb = *state;
  json_t *held, *other;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  add_host(bb, "c");
  bb_start(bb);
  away(bb, "b");
  client = bb_connect(bb);
  held = await_reason(bb, start_towards(client, "vm1", "b", json_pack("{ss}", "priority", "critical")),
                      "TARGET_UNREACHABLE");
  /* Another job for this target need not find out by itself. */
  other = start_towards(client, "vm2", "b", NULL);
  assert_text(other, "pending.reason", "TARGET_UNREACHABLE");
  assert_int_equal(number_of(other, "pending.queue_position"), 2);
  for (int i = 3; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    other = start_towards(client, name, "c", NULL);
    bb_await_phase(bb, text_of(other, "id"), "succeeded");
  }
  assert_text(client_get(client, text_of(held, "id")), "domain.name", "vm1");
  back(bb, "b");
  bb_await_phase(bb, text_of(held, "id"), "succeeded");
  bb_await_phase(bb, text_of(client_get(client, "vm2"), "id"), "succeeded");
}

static void a_held_job_can_be_aborted(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  away(bb, "b");
  client = bb_connect(bb);
  job = await_reason(bb, client_start(client, "vm1", NULL), "TARGET_UNREACHABLE");
  client_call(client, "Abort", json_pack("{ss}", "job", text_of(job, "id")));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  /* The domain is free for another job. */
  back(bb, "b");
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "succeeded");
}

static void a_held_job_keeps_waiting_after_a_restart(void **state) {
  Bb *bb = *state;
  json_int_t since;
  json_t *job;

  bb_start(bb);
  away(bb, "b");
  job = await_reason(bb, client_start(bb_connect(bb), "vm1", NULL), "TARGET_UNREACHABLE");
  since = number_of(job, "pending.since_usec_realtime");
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  job = await_reason(bb, job, "TARGET_UNREACHABLE");
  assert_int_equal(number_of(job, "pending.since_usec_realtime"), since);
  back(bb, "b");
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
}

/* --- this node --- */

static void without_this_nodes_libvirtd_all_jobs_wait(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *second;

  bb_configure(bb, "MaxOutgoing=1\nConnectTimeout=2s\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  second = client_start(client, "vm2", NULL);
  assert_text(second, "pending.reason", "OUTGOING_LIMIT");
  bb_stop(bb, SIGKILL);
  away(bb, "a");
  bb_start(bb);
  client = bb_connect(bb);
  second = client_get(client, "vm2");
  assert_text(second, "phase", "pending");
  assert_true(is_held_by(second, "AGENT_STARTING") || is_held_by(second, "SOURCE_UNREACHABLE"));
  assert_non_null(strstr(text_of(second, "pending.message"), "libvirtd"));
  back(bb, "a");
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
}

/* --- limits --- */

static void a_target_has_a_limit(void **state) {
  Bb *bb = *state;
  g_autofree char *target = bb_target(bb, "b");
  g_autofree char *section = g_strdup_printf("[Target b]\nLibvirtURI=%s\nMaxOutgoing=1\n", target);
  json_t *first, *second, *third;
  Client *client;

  bb_configure(bb, "MaxOutgoing=2\n");
  bb_configure(bb, section);
  add_host(bb, "c");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  first = start_towards(client, "vm1", "b", NULL);
  bb_await_phase(bb, text_of(first, "id"), "migrating");
  second = start_towards(client, "vm2", "b", NULL);
  assert_text(second, "pending.reason", "TARGET_LIMIT");
  assert_non_null(strstr(text_of(second, "pending.message"), "1 of at most 1"));
  third = start_towards(client, "vm3", "c", NULL);
  bb_await_phase(bb, text_of(third, "id"), "migrating");
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "outgoing_running"), 2);
  assert_text(client_get(client, "vm2"), "phase", "pending");
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
}

static void a_list_says_what_each_job_waits_for(void **state) {
  Bb *bb = *state;
  json_t *summary;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  client_start(client, "vm2", NULL);
  client_start(client, "vm3", json_pack("{ss}", "priority", "user"));
  summary = summary_of(client, "vm2");
  assert_text(summary, "pending_reason", "OUTGOING_LIMIT");
  assert_int_equal(number_of(summary, "queue_position"), 2);
  assert_true(number_of(summary, "pending_until_usec_realtime") > 0);
  assert_int_equal(number_of(summary_of(client, "vm3"), "queue_position"), 1);
  assert_null(json_object_get(summary_of(client, "vm1"), "queue_position"));
}

static void a_priority_may_be_changed_while_waiting(void **state) {
  Bb *bb = *state;
  json_t *second, *third;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  second = client_start(client, "vm2", NULL);
  third = client_start(client, "vm3", NULL);
  third = json_object_get(
      client_call(client, "Tune",
                  json_pack("{ss s{ss}}", "job", text_of(third, "id"), "policy", "priority", "user")),
      "job");
  assert_int_equal(number_of(third, "pending.queue_position"), 1);
  bb_link_fast(bb);
  second = bb_await_phase(bb, text_of(second, "id"), "succeeded");
  third = client_get(client, text_of(third, "id"));
  assert_true(number_of(third, "finished_usec_realtime") < number_of(second, "finished_usec_realtime"));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_job_waits_for_an_unreachable_target);
  TESTS_ADD(&tests, it_waits_no_longer_than_unschedulable_timeout);
  TESTS_ADD(&tests, it_waits_no_longer_than_pending_timeout_in_total);
  TESTS_ADD(&tests, permanent_blockers_fail_at_once);
  TESTS_ADD(&tests, a_held_target_does_not_delay_other_targets);
  TESTS_ADD(&tests, a_held_job_can_be_aborted);
  TESTS_ADD(&tests, a_held_job_keeps_waiting_after_a_restart);
  TESTS_ADD(&tests, without_this_nodes_libvirtd_all_jobs_wait);
  TESTS_ADD(&tests, a_target_has_a_limit);
  TESTS_ADD(&tests, a_list_says_what_each_job_waits_for);
  TESTS_ADD(&tests, a_priority_may_be_changed_while_waiting);
  return bb_run(&tests, "queue");
}

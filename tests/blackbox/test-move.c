/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job and its ends: one that works, aborts, guards, changed goals, and what gets lost meanwhile. */
#include "tests/blackbox/harness.h"

#include <unistd.h>

static json_t *start_and_reach(Bb *bb, Client *client, json_t *policy, const char *phase) {
  json_t *job = client_start(client, "vm1", policy);

  return bb_await_phase(bb, text_of(job, "id"), phase);
}

/* Phase migrating begins before the first byte; once there are job statistics, libvirt has a job that can be aborted. */
static json_t *start_and_move(Bb *bb, Client *client, json_t *policy) {
  json_t *job = start_and_reach(bb, client, policy, "migrating");

  return bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
}

static void abort_job(Client *client, const char *job) {
  json_t *answer = client_call(client, "Abort", json_pack("{ss}", "job", job));

  assert_true(json_is_true(member_of(answer, "job.abort_requested")));
}

static void assert_still_here(Bb *bb, json_t *job) {
  assert_text(job, "result.running_at", "source");
  assert_text(bb_truth(bb, "vm1"), "host", "a");
  assert_null(json_object_get(bb_truth(bb, "vm1"), "job"));
  assert_events_whole(job);
}

/* --- a job that works --- */

static void the_stream_shows_each_phase_in_order_and_the_end(void **state) {
  static const char *const order[] = {"pending", "preparing", "migrating", "succeeded"};
  json_int_t revision = -1, percent = -1;
  bool continues = true, seen_last = false;
  Bb *bb = *state;
  Client *client, *watcher;
  json_t *job = NULL, *same;
  size_t at = 0;

  bb_start(bb);
  bb_set_call(bb, "survey_target", json_pack("{si}", "delay_ms", 60));
  client = bb_connect(bb);
  watcher = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  client_send(watcher, "Watch", json_pack("{ss}", "job", text_of(job, "id")), VARLINK_CALL_MORE);
  while (continues) {
    const char *phase;

    job = json_object_get(client_receive(watcher, NULL, &continues), "job");
    phase = text_of(job, "phase");
    while (strcmp(order[at], phase) != 0) {
      at++;
      assert_true(at < G_N_ELEMENTS(order));
    }
    assert_true(number_of(job, "revision") >= revision);
    revision = number_of(job, "revision");
    if (member_of(job, "progress")) {
      assert_true(number_of(job, "progress.percent") >= percent);
      percent = number_of(job, "progress.percent");
      assert_true(number_of(job, "progress.memory_remaining_bytes") <=
                  number_of(job, "progress.memory_total_bytes"));
      assert_true(number_of(job, "progress.age_ms") < BB_PATIENCE_MS);
    }
    assert_false(seen_last);
    seen_last = !continues;
  }
  assert_text(job, "phase", "succeeded");
  assert_int_equal(percent, 100);
  assert_text(job, "result.running_at", "target");
  assert_true(number_of(job, "result.total_time_ms") > 0);
  assert_true(number_of(job, "result.downtime_ms") > 0);
  assert_true(number_of(job, "result.transferred_bytes") >= 16 << 20);
  assert_null(member_of(job, "failure"));
  assert_events_whole(job);

  same = client_get(client, text_of(job, "id"));
  assert_true(json_equal(job, same));
  assert_text(bb_truth(bb, "vm1"), "host", "b");

  /* After the stream, the connection serves other calls again. */
  client_call(watcher, "GetNode", NULL);
}

static void the_numbers_are_those_of_the_hypervisor(void **state) {
  Bb *bb = *state;
  json_t *job, *truth;

  bb_start(bb);
  job = start_and_reach(bb, bb_connect(bb), NULL, "succeeded");
  truth = json_object_get(bb_truth(bb, "vm1"), "final");
  assert_int_equal(number_of(job, "result.libvirt_downtime_ms"), number_of(truth, "downtime_ms"));
  assert_int_equal(number_of(job, "result.libvirt_time_ms"), number_of(truth, "total_time_ms"));
  assert_int_equal(number_of(job, "result.transferred_bytes"), number_of(truth, "transferred_bytes"));
}

static void without_events_the_end_is_found_by_asking(void **state) {
  Bb *bb = *state;

  bb_start(bb);
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  start_and_reach(bb, bb_connect(bb), NULL, "succeeded");
}

static void the_queue_is_worked_off_by_priority_and_age(void **state) {
  Bb *bb = *state;
  json_t *second, *third, *urgent;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, NULL, "migrating");
  second = client_start(client, "vm2", NULL);
  third = client_start(client, "vm3", NULL);
  assert_text(second, "phase", "pending");
  assert_text(second, "pending.reason", "OUTGOING_LIMIT");
  assert_int_equal(number_of(second, "pending.queue_position"), 1);
  assert_int_equal(number_of(third, "pending.queue_position"), 2);
  urgent = client_start(client, "vm4", json_pack("{ss}", "priority", "critical"));
  assert_int_equal(number_of(urgent, "pending.queue_position"), 1);
  assert_int_equal(number_of(client_get(client, "vm2"), "pending.queue_position"), 2);
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "pending"), 3);
  bb_link_fast(bb);
  third = bb_await_phase(bb, text_of(third, "id"), "succeeded");
  second = client_get(client, text_of(second, "id"));
  urgent = client_get(client, text_of(urgent, "id"));
  assert_true(number_of(urgent, "finished_usec_realtime") < number_of(second, "finished_usec_realtime"));
  assert_true(number_of(second, "finished_usec_realtime") < number_of(third, "finished_usec_realtime"));
}

static void a_job_that_waits_too_long_fails(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\nPendingTimeout=100ms\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, NULL, "migrating");
  job = client_start(client, "vm2", NULL);
  assert_true(number_of(job, "pending.until_usec_realtime") > 0);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "PENDING_TIMEOUT");
  assert_text(job, "failure.phase", "pending");
}

/* --- aborts --- */

static void abort_while_pending(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  client_start(client, "vm2", NULL);
  job = client_start(client, "vm1", NULL);
  assert_text(job, "phase", "pending");
  abort_job(client, "vm1");
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  assert_text(job, "failure.phase", "pending");
  assert_still_here(bb, job);
}

static void abort_while_preparing(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "survey_target", json_pack("{sb}", "hang", 1));
  client = bb_connect(bb);
  job = start_and_reach(bb, client, NULL, "preparing");
  abort_job(client, "vm1");
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  assert_text(job, "failure.phase", "preparing");

  /* The hung call continues now, and starts nothing. */
  bb_set_call(bb, "survey_target", NULL);
  job = start_and_move(bb, client, NULL);
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
}

static void abort_while_migrating(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  bb_set_call(bb, "abort_job", json_pack("{sb}", "hang", 1));
  abort_job(client, "vm1");
  abort_job(client, "vm1"); /* does no harm */
  bb_set_call(bb, "abort_job", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  assert_text(job, "failure.phase", "migrating");
  assert_non_null(find_event(job, "abort_requested", "uid 0"));
  assert_still_here(bb, job);
  client_refused(client, "Abort", json_pack("{ss}", "job", "vm1"), "NotAbortable");
}

static void an_abort_that_libvirt_refuses_at_first_is_repeated(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "abort_job", json_pack("{ss si}", "fail", "NOT_RUNNING", "times", 2));
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  abort_job(client, "vm1");
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
}

static void an_abort_that_comes_too_late_does_not_hide_success(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "abort_job", json_pack("{sb}", "hang", 1));
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  abort_job(client, "vm1");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_null(member_of(job, "failure"));
  assert_non_null(find_event(job, "warning", "too late"));
  assert_text(bb_truth(bb, "vm1"), "host", "b");
}

/* --- guards --- */

static void the_deadline_aborts_with_its_numbers(void **state) {
  Bb *bb = *state;
  json_int_t started, finished, deadline;
  json_t *job;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  job =
      start_and_reach(bb, bb_connect(bb), json_pack("{si}", "completion_timeout_s_per_gib", 4), "migrating");
  deadline = number_of(job, "deadline_usec_realtime");
  started = number_of(job, "started_usec_realtime");
  assert_true(llabs(deadline - started - 1000000) < 50000);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  finished = number_of(job, "finished_usec_realtime");
  assert_text(job, "failure.cause", "DEADLINE");
  assert_text(job, "failure.phase", "migrating");
  assert_non_null(strpbrk(text_of(job, "failure.message"), "0123456789"));
  assert_true(finished >= deadline - 1000);
  assert_true(finished < deadline + 1500000);
  assert_still_here(bb, job);
}

static void no_progress_aborts_and_blames_the_link(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_move(bb, client, json_pack("{si}", "progress_timeout_s", 1));
  bb_set_link(bb, "cut", json_true());
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "LINK_STALLED");
  assert_still_here(bb, job);
}

/* --- changed goals --- */

static void a_tuned_bandwidth_reaches_the_migration(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  job = client_call(client, "Tune",
                    json_pack("{ss s{si}}", "job", "vm1", "policy", "bandwidth_bytes_per_s", 5 << 20));
  assert_int_equal(number_of(job, "job.policy.bandwidth_bytes_per_s"), 5 << 20);
  assert_non_null(find_event(json_object_get(job, "job"), "tuned", "bandwidth_bytes_per_s"));
  job = bb_await_event(bb, text_of(job, "job.id"), "action", "new bandwidth limit");
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "job.bandwidth"), 5 << 20);
  assert_int_equal(number_of(bb_record(bb, text_of(job, "id")), "job.policy.bandwidth_bytes_per_s"), 5 << 20);
}

static void tuned_timeouts_hold_from_now_on(void **state) {
  Bb *bb = *state;
  json_int_t before;
  Client *client;
  json_t *job;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_reach(bb, client, NULL, "migrating");
  before = number_of(job, "deadline_usec_realtime");
  job = client_call(client, "Tune",
                    json_pack("{ss s{si}}", "job", "vm1", "policy", "completion_timeout_s_per_gib", 4));
  assert_true(number_of(job, "job.deadline_usec_realtime") < before - 30 * 1000000);
  job = bb_await_phase(bb, text_of(job, "job.id"), "aborted");
  assert_text(job, "failure.cause", "DEADLINE");
}

static void what_is_fixed_at_the_start_is_refused_as_a_whole(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *error;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, NULL, "migrating");
  error = client_refused(client, "Tune",
                         json_pack("{ss s{si si}}", "job", "vm1", "policy", "bandwidth_bytes_per_s", 1 << 20,
                                   "parallel_connections", 2),
                         "InvalidPolicy");
  assert_text(error, "key", "parallel_connections");
  assert_int_equal(number_of(client_get(client, "vm1"), "policy.bandwidth_bytes_per_s"), 0);
}

static json_t *tune_post_copy(bool allow) {
  return json_pack("{ss s{sb}}", "job", "vm1", "policy", "allow_post_copy", (int)allow);
}

static void a_way_not_allowed_at_the_start_cannot_be_allowed_later(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *error;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, NULL, "migrating");
  error = client_refused(client, "Tune", tune_post_copy(true), "InvalidPolicy");
  assert_text(error, "key", "allow_post_copy");
  assert_non_null(strstr(text_of(error, "message"), "fixed when the migration starts"));
  client_call(client, "Tune", tune_post_copy(false));
}

static void a_way_allowed_at_the_start_can_be_forbidden_and_allowed_again(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, json_pack("{sb}", "allow_post_copy", 1), "migrating");
  client_call(client, "Tune", tune_post_copy(false));
  assert_true(json_is_false(member_of(client_get(client, "vm1"), "policy.allow_post_copy")));
  client_call(client, "Tune", tune_post_copy(true));
  assert_true(json_is_true(member_of(client_get(client, "vm1"), "policy.allow_post_copy")));
}

static void a_pending_job_takes_any_goal(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  client_start(client, "vm2", NULL);
  client_start(client, "vm1", NULL);
  job =
      client_call(client, "Tune", json_pack("{ss s{si}}", "job", "vm1", "policy", "parallel_connections", 2));
  assert_int_equal(number_of(job, "job.policy.parallel_connections"), 2);
}

static void conflicting_goals_are_refused_when_tuned(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  client_start(client, "vm2", NULL);
  client_start(client, "vm1", json_pack("{sb}", "allow_post_copy", 1));
  client_refused(client, "Tune", json_pack("{ss s{si}}", "job", "vm1", "policy", "parallel_connections", 2),
                 "PolicyConflict");
}

static void the_goals_of_a_finished_job_stay(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  start_and_reach(bb, client, NULL, "succeeded");
  client_refused(client, "Tune", json_pack("{ss s{si}}", "job", "vm1", "policy", "progress_timeout_s", 2),
                 "InvalidPolicy");
}

/* --- what gets lost meanwhile --- */

static void a_failed_call_is_a_success_if_the_domain_migrated(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "migrate",
              json_pack("{ss ss}", "fail_after", "UNREACHABLE", "message", "client socket is closed"));
  job = start_and_reach(bb, bb_connect(bb), NULL, "succeeded");
  assert_null(member_of(job, "failure"));
  assert_text(job, "result.running_at", "target");
  assert_non_null(find_event(job, "action", "client socket is closed"));
}

static void a_call_that_returns_while_the_migration_goes_on(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "migrate", json_pack("{si}", "detach_after_ms", 100));
  job = start_and_reach(bb, bb_connect(bb), NULL, "migrating");
  job = bb_await_event(bb, text_of(job, "id"), "action", "the migration call failed");
  assert_text(job, "phase", "migrating");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_null(member_of(job, "failure"));
}

static void never_failed(json_t *job) {
  assert_string_not_equal(text_of(job, "phase"), "failed");
}

static void it_waits_for_a_target_that_does_not_answer_at_the_end(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  bb_set_host(bb, "b", "reachable", json_false());
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "recovering");
  never_failed(job);
  assert_null(member_of(job, "failure"));
  assert_non_null(member_of(job, "next_action"));
  never_failed(client_get(client, "vm1"));
  bb_set_host(bb, "b", "reachable", json_true());
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_null(member_of(job, "failure"));
  assert_events_whole(job);
}

static void it_waits_for_a_source_that_does_not_answer_at_the_end(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_configure(bb, "ConnectTimeout=2s\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = start_and_move(bb, client, NULL);
  bb_set_host(bb, "a", "reachable", json_false());
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "recovering");
  never_failed(client_get(client, "vm1"));
  bb_set_host(bb, "a", "reachable", json_true());
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_text(job, "result.running_at", "target");
}

static void a_guest_that_dies_meanwhile_is_not_blamed_on_the_link(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = start_and_move(bb, bb_connect(bb), NULL);
  bb_set_domain(bb, "vm1", "state", json_string("inactive"));
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "failure.cause", "GUEST_STOPPED");
  assert_text(job, "result.running_at", "none");
}

static void an_abort_by_somebody_else_is_told_from_ours(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "migrate",
              json_pack("{ss ss}", "fail", "ABORTED", "message", "job 'migration out' canceled by client"));
  job = start_and_reach(bb, bb_connect(bb), NULL, "failed");
  assert_text(job, "failure.cause", "CANCELLED_ELSEWHERE");
  assert_still_here(bb, job);
}

static void without_certificates_at_the_target_only_tls_yes_falls_back(void **state) {
  static const struct {
    const char *tls;
    bool certificates;
    const char *phase;
    bool in_clear;
  } rows[] = {
      {"no", false, "succeeded", false},   {"yes", true, "succeeded", false},
      {"yes", false, "succeeded", true},   {"require", true, "succeeded", false},
      {"require", false, "failed", false},
  };
  Bb *bb = *state;

  bb_start(bb);
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    g_autofree char *domain = g_strdup_printf("tls%zu", i);
    json_t *job;

    bb_set_host(bb, "b", "certificates", json_boolean(rows[i].certificates));
    bb_add_domain(bb, domain);
    job = client_start(bb_connect(bb), domain, json_pack("{ss}", "tls", rows[i].tls));
    job = bb_await_phase(bb, text_of(job, "id"), rows[i].phase);
    assert_int_equal(find_event(job, "warning", "migrating UNENCRYPTED") != NULL, rows[i].in_clear);
    assert_text(bb_truth(bb, domain), "host", strcmp(rows[i].phase, "failed") == 0 ? "a" : "b");
    if (strcmp(rows[i].phase, "failed") == 0)
      assert_text(job, "failure.cause", "REFUSED");
  }
}

static void two_live_copies_are_reported_and_neither_is_touched(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = start_and_move(bb, bb_connect(bb), NULL);
  bb_set_domain(bb, "vm1", "states", json_pack("{ss ss}", "a", "running", "b", "running"));
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "result.running_at", "unknown");
  assert_non_null(strstr(text_of(job, "failure.message"), "both ends"));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, the_stream_shows_each_phase_in_order_and_the_end);
  TESTS_ADD(&tests, the_numbers_are_those_of_the_hypervisor);
  TESTS_ADD(&tests, without_events_the_end_is_found_by_asking);
  TESTS_ADD(&tests, the_queue_is_worked_off_by_priority_and_age);
  TESTS_ADD(&tests, a_job_that_waits_too_long_fails);
  TESTS_ADD(&tests, abort_while_pending);
  TESTS_ADD(&tests, abort_while_preparing);
  TESTS_ADD(&tests, abort_while_migrating);
  TESTS_ADD(&tests, an_abort_that_libvirt_refuses_at_first_is_repeated);
  TESTS_ADD(&tests, an_abort_that_comes_too_late_does_not_hide_success);
  TESTS_ADD(&tests, the_deadline_aborts_with_its_numbers);
  TESTS_ADD(&tests, no_progress_aborts_and_blames_the_link);
  TESTS_ADD(&tests, a_tuned_bandwidth_reaches_the_migration);
  TESTS_ADD(&tests, tuned_timeouts_hold_from_now_on);
  TESTS_ADD(&tests, what_is_fixed_at_the_start_is_refused_as_a_whole);
  TESTS_ADD(&tests, a_way_not_allowed_at_the_start_cannot_be_allowed_later);
  TESTS_ADD(&tests, a_way_allowed_at_the_start_can_be_forbidden_and_allowed_again);
  TESTS_ADD(&tests, a_pending_job_takes_any_goal);
  TESTS_ADD(&tests, conflicting_goals_are_refused_when_tuned);
  TESTS_ADD(&tests, the_goals_of_a_finished_job_stay);
  TESTS_ADD(&tests, a_failed_call_is_a_success_if_the_domain_migrated);
  TESTS_ADD(&tests, a_call_that_returns_while_the_migration_goes_on);
  TESTS_ADD(&tests, it_waits_for_a_target_that_does_not_answer_at_the_end);
  TESTS_ADD(&tests, it_waits_for_a_source_that_does_not_answer_at_the_end);
  TESTS_ADD(&tests, a_guest_that_dies_meanwhile_is_not_blamed_on_the_link);
  TESTS_ADD(&tests, an_abort_by_somebody_else_is_told_from_ours);
  TESTS_ADD(&tests, without_certificates_at_the_target_only_tls_yes_falls_back);
  TESTS_ADD(&tests, two_live_copies_are_reported_and_neither_is_touched);
  return bb_run(&tests, "move");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The times that a job reports, against a stopwatch and the hypervisor's truth. */
#include "tests/blackbox/harness.h"

#include <string.h>

/* What it takes to send a request, and to read the end of its job. */
#define SLACK_MS 400

static const char *const parts[] = {"queued", "checks", "begin",     "disks", "first_pass",
                                    "passes", "switch", "post_copy", "settle"};

static json_int_t part_of(json_t *job, const char *part) {
  g_autofree char *path = g_strdup_printf("result.parts.%s_ms", part);

  return number_of(job, path);
}

/* The parts add up to the total, and that is what passed between the request and the end. */
static void assert_adds_up(json_t *job) {
  json_int_t total_ms = number_of(job, "result.total_time_ms"), sum_ms = 0;
  json_int_t passed_ms =
      (number_of(job, "finished_usec_realtime") - number_of(job, "created_usec_realtime")) / 1000;

  for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
    sum_ms += part_of(job, parts[i]);
  assert_int_equal(sum_ms, total_ms);
  assert_in_range(total_ms, passed_ms - 5, passed_ms + 5);
}

static bool is_exact(json_t *job) {
  return json_is_true(member_of(job, "result.parts.exact"));
}

static json_t *move(Bb *bb, const char *domain) {
  json_t *job = client_start(bb_connect(bb), domain, NULL);

  return bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

/* On a busy machine two connections may deliver their events in the wrong order. The parts are then reported as inexact. */
static void the_total_is_what_a_stopwatch_shows(void **state) {
  static const char *const domains[] = {"vm1", "vm2", "vm3"};
  Bb *bb = *state;
  bool exact = false;

  bb_start(bb);
  bb_set_call(bb, "survey_target", json_pack("{si}", "delay_ms", 200));
  for (size_t i = 0; i < G_N_ELEMENTS(domains) && !exact; i++) {
    gint64 begin_us = g_get_monotonic_time();
    json_t *job = move(bb, domains[i]);
    json_int_t shown_ms = (g_get_monotonic_time() - begin_us) / 1000;

    assert_adds_up(job);
    assert_in_range(number_of(job, "result.total_time_ms"), MAX(shown_ms - SLACK_MS, 200), shown_ms + 1);
    assert_true(part_of(job, "checks") >= 200);
    assert_int_equal(part_of(job, "post_copy"), 0);
    exact = is_exact(job) && part_of(job, "first_pass") > 0;
  }
  assert_true(exact);
}

/* Looking up the domain is part of it. */
static void the_time_counts_from_the_request(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "domain_facts", json_pack("{si}", "delay_ms", 300));
  job = move(bb, "vm1");
  assert_adds_up(job);
  assert_true(part_of(job, "queued") >= 300);
}

static void waiting_for_a_turn_is_a_part(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  job = client_start(bb_connect(bb), "vm2", NULL);
  g_usleep(300000);
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_adds_up(job);
  assert_true(part_of(job, "queued") >= 300);
}

/* The fake's ticks are 10 ms: libvirt's number counts if it is larger. */
static void the_downtime_is_about_that_of_the_hypervisor(void **state) {
  Bb *bb = *state;
  json_int_t truth_ms, told_ms;
  json_t *job;

  bb_start(bb);
  job = move(bb, "vm1");
  truth_ms = number_of(json_object_get(bb_truth(bb, "vm1"), "final"), "downtime_ms");
  told_ms = number_of(job, "result.downtime_ms");
  assert_int_equal(number_of(job, "result.libvirt_downtime_ms"), truth_ms);
  assert_in_range(told_ms, truth_ms > 20 ? truth_ms - 20 : 0, truth_ms + 100);
  assert_null(member_of(job, "result.downtime_unknown"));
}

static void without_events_the_downtime_is_libvirts_and_the_parts_are_not_exact(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "events", json_pack("{sb}", "drop", 1));
  job = move(bb, "vm1");
  assert_adds_up(job);
  assert_false(is_exact(job));
  assert_text(job, "result.downtime_source", "libvirt");
  assert_null(member_of(job, "result.downtime_error_ms"));
}

static void a_paused_guest_has_no_downtime_but_a_reason(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_start(bb);
  job = move(bb, "vm1");
  assert_adds_up(job);
  assert_null(member_of(job, "result.downtime_ms"));
  assert_text(job, "result.downtime_unknown", "the guest was not running");
}

/* --- post-copy --- */

static json_t *begin_post_copy(Bb *bb) {
  Client *client = bb_connect(bb);
  json_t *job;

  bb_link_slow(bb);
  job = client_start(client, "vm1", json_pack("{sb}", "allow_post_copy", 1));
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_call(client, "Complete", json_pack("{ss ss}", "job", "vm1", "by", "post_copy"));
  return bb_await_event(bb, text_of(job, "id"), "stage", "post_copy");
}

static void post_copy_has_a_downtime_by_the_events_of_both_ends(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  job = begin_post_copy(bb);
  g_usleep(200000);
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_adds_up(job);
  assert_true(is_exact(job));
  assert_true(part_of(job, "post_copy") >= 200);
  assert_text(job, "result.downtime_source", "events");
  assert_in_range(number_of(job, "result.downtime_ms"), 0, 100);
  assert_in_range(number_of(job, "result.downtime_error_ms"), 1, 100);
  assert_null(member_of(job, "result.libvirt_downtime_ms"));
}

/* The target's event is on record: it goes on from there. */
static void await_resumed_on_record(Bb *bb, const char *id) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * G_GINT64_CONSTANT(1000);

  while (number_of(bb_record(bb, id), "agent.times.resumed_ms") == 0) {
    assert_true(g_get_monotonic_time() < until);
    g_usleep(20000);
  }
}

static void post_copy_keeps_its_downtime_over_a_restart(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  job = begin_post_copy(bb);
  await_resumed_on_record(bb, text_of(job, "id"));
  bb_stop(bb, SIGKILL);
  g_usleep(200000);
  bb_start(bb);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_adds_up(job);
  assert_true(is_exact(job));
  assert_true(part_of(job, "post_copy") >= 200);
  assert_text(job, "result.downtime_source", "events");
}

static json_t *post_copy_unheard_of(Bb *bb, const char *events) {
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, events, json_pack("{sb}", "drop", 1));
  job = begin_post_copy(bb);
  g_usleep(200000);
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_adds_up(job);
  assert_false(is_exact(job));
  assert_true(part_of(job, "post_copy") > 0);
  assert_null(member_of(job, "result.downtime_ms"));
  assert_null(member_of(job, "result.downtime_source"));
  return job;
}

static void a_stop_that_nobody_heard_of_leaves_no_downtime_but_a_reason(void **state) {
  json_t *job = post_copy_unheard_of(*state, "a.events");

  assert_non_null(strstr(text_of(job, "result.downtime_unknown"), "when the guest stopped"));
}

static void so_does_a_target_that_is_not_heard(void **state) {
  json_t *job = post_copy_unheard_of(*state, "b.events");

  assert_non_null(strstr(text_of(job, "result.downtime_unknown"), "the target's libvirtd"));
}

/* --- other ends --- */

static void no_time_is_lost_when_the_agent_is_killed(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  g_usleep(300000);
  bb_start(bb);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_adds_up(job);
  assert_true(is_exact(job));
  assert_true(part_of(job, "first_pass") >= 300);
}

static void an_aborted_job_has_times_as_well(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_adds_up(job);
  assert_true(part_of(job, "first_pass") > 0);
  assert_null(member_of(job, "result.downtime_ms"));
  assert_null(member_of(job, "result.downtime_unknown"));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, the_total_is_what_a_stopwatch_shows);
  TESTS_ADD(&tests, the_time_counts_from_the_request);
  TESTS_ADD(&tests, waiting_for_a_turn_is_a_part);
  TESTS_ADD(&tests, the_downtime_is_about_that_of_the_hypervisor);
  TESTS_ADD(&tests, without_events_the_downtime_is_libvirts_and_the_parts_are_not_exact);
  TESTS_ADD(&tests, a_paused_guest_has_no_downtime_but_a_reason);
  TESTS_ADD(&tests, post_copy_has_a_downtime_by_the_events_of_both_ends);
  TESTS_ADD(&tests, post_copy_keeps_its_downtime_over_a_restart);
  TESTS_ADD(&tests, a_stop_that_nobody_heard_of_leaves_no_downtime_but_a_reason);
  TESTS_ADD(&tests, so_does_a_target_that_is_not_heard);
  TESTS_ADD(&tests, no_time_is_lost_when_the_agent_is_killed);
  TESTS_ADD(&tests, an_aborted_job_has_times_as_well);
  return bb_run(&tests, "times");
}

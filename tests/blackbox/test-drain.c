/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draining a node: within the limits, whatever its domains and its targets do meanwhile. */
#include "tests/blackbox/drain.h"

/* --- a whole drain --- */

static void twelve_migrate_two_at_a_time_and_one_with_a_passthrough_device_stays(void **state) {
  Bb *bb = *state;
  json_t *stays, *node;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  give_passthrough_device(bb, "vm7");
  bb_start(bb);
  follow = drain(bb, "b");
  await_state(&follow, "moving");
  /* Reported at once, before any has migrated. */
  assert_int_equal(number_of(follow.status, "moved"), 0);
  stays = guest_of(&follow, "vm7");
  assert_text(stays, "state", "cannot_move");
  assert_text(json_array_get(json_object_get(stays, "refusals"), 0), "target",
              text_of(json_array_get(json_object_get(follow.status, "targets"), 0), "libvirt_uri"));
  assert_text(
      json_array_get(json_object_get(json_array_get(json_object_get(stays, "refusals"), 0), "findings"), 0),
      "code", "HOSTDEV_PCI");
  assert_non_null(strstr(text_of(stays, "message"), "HOSTDEV_PCI"));
  assert_ends(&follow, "finished", "moved 11, cannot_move 1");
  assert_true(number_of(follow.status, "finished_usec_realtime") >
              number_of(follow.status, "started_usec_realtime"));
  for (int i = 1; i <= 12; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    assert_guest(&follow, name, i == 7 ? "cannot_move" : "moved");
    assert_runs_at(bb, name, i == 7 ? "a" : "b");
  }
  assert_one_job_each(bb, text_of(follow.status, "id"));
  assert_int_equal(json_array_size(jobs_of(bb)), 11);
  assert_in_range(most_at_once(bb), 1, 2);
  node = client_call(bb_connect(bb), "GetNode", NULL);
  assert_text(node, "cordon.reason", "cordoned for a drain");
  assert_text(node, "drain.state", "finished");
}

static void an_empty_node_is_drained_at_once(void **state) {
  Bb *bb = *state;
  Follow follow;

  have_domains(bb, 0);
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "");
}

static void a_paused_domain_migrates_and_a_shut_off_one_does_not(void **state) {
  Bb *bb = *state;
  Follow follow;

  have_domains(bb, 2);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_set_domain(bb, "vm2", "state", json_string("inactive"));
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "moved 1");
  assert_runs_at(bb, "vm1", "b");
}

/* --- order and targets --- */

static void the_order_is_priority_then_shortest_first(void **state) {
  Bb *bb = *state;
  static const char *const expected[] = {"vm3", "vm4", "vm1", "vm2"};
  Follow follow;
  json_t *jobs;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_configure(bb, "[Policy first]\nMatch=name=vm3\nPriority=critical\n");
  bb_set_domain(bb, "vm3", "memory_bytes", json_integer(64 << 20));
  bb_set_domain(bb, "vm2", "memory_bytes", json_integer(32 << 20));
  bb_set_domain(bb, "vm4", "memory_bytes", json_integer(8 << 20));
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "moved 4");
  jobs = jobs_of(bb);
  for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
    assert_text(json_array_get(jobs, i), "domain.name", expected[i]);
}

static void domains_that_would_not_converge_go_last(void **state) {
  Bb *bb = *state;
  Follow follow;
  json_t *jobs;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(8 << 20));
  /* The smallest of the rest. It rewrites all of its memory over and over, and is measured while vm1 migrates. */
  bb_set_domain(bb, "vm2", "memory_bytes", json_integer(60 << 20));
  bb_set_domain(bb, "vm2", "working_set_bytes", json_integer(60 << 20));
  bb_set_domain(bb, "vm2", "dirty_bytes_per_s", json_integer(1 << 30));
  bb_set_domain(bb, "vm3", "memory_bytes", json_integer(64 << 20));
  bb_set_domain(bb, "vm4", "memory_bytes", json_integer(64 << 20));
  follow = drain_slowly(bb);
  await_numbers(bb, &follow, "vm1");
  bb_set_link(bb, "bytes_per_s", json_integer(64 << 20));
  assert_ends(&follow, "finished", "moved 3, left 1");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm2"), "message"), "NOT_CONVERGING"));
  jobs = jobs_of(bb);
  assert_text(json_array_get(jobs, 0), "domain.name", "vm1");
  assert_text(json_array_get(jobs, 3), "domain.name", "vm2");
}

static void the_target_with_the_most_room_is_next(void **state) {
  Bb *bb = *state;
  const json_int_t gib = 1 << 30;
  int at_b = 0, at_c = 0;
  Follow follow;

  add_host(bb, "c");
  bb_set_host(bb, "b", "free_memory_bytes", json_integer(8 * gib));
  bb_set_host(bb, "c", "free_memory_bytes", json_integer(8 * gib - (40 << 20)));
  bb_start(bb);
  follow = drain(bb, "bc");
  assert_ends(&follow, "finished", "moved 4");
  for (int i = 1; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);
    const char *host = text_of(bb_truth(bb, name), "host");

    at_b += strcmp(host, "b") == 0;
    at_c += strcmp(host, "c") == 0;
  }
  assert_int_equal(at_b, 3);
  assert_int_equal(at_c, 1);
}

static void the_limit_of_a_target_holds(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=4\nMaxPerTarget=1\n");
  add_host(bb, "c");
  bb_start(bb);
  follow = drain(bb, "bc");
  assert_ends(&follow, "finished", "moved 4");
  assert_in_range(most_at_once(bb), 1, 2);
}

static void its_jobs_have_the_goals_of_the_drain(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  follow = drain_with(bb, "b", json_pack("{si}", "max_downtime_ms", 123));
  await_end(&follow);
  assert_int_equal(number_of(client_get(bb_connect(bb), text_of(guest_of(&follow, "vm1"), "job")),
                             "policy.max_downtime_ms"),
                   123);
}

/* --- targets that refuse or are unreachable --- */

static void a_target_that_refuses_all_is_reported_at_once(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_set_call(bb, "b.open", json_pack("{ss ss}", "fail", "DENIED", "message", "no such user"));
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "cannot_move 4");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "TARGET_REFUSES"));
  assert_int_equal(json_array_size(jobs_of(bb)), 0);
}

static void once_a_target_refuses_the_rest_go_to_the_other(void **state) {
  Bb *bb = *state;
  const json_int_t gib = 1 << 30;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  add_host(bb, "c");
  bb_set_host(bb, "b", "free_memory_bytes", json_integer(8 * gib));
  bb_set_host(bb, "c", "free_memory_bytes", json_integer(4 * gib));
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "bc");
  await_numbers(bb, &follow, "vm1");
  bb_set_call(bb, "b.survey_target", json_pack("{ss ss}", "fail", "DENIED", "message", "no such user"));
  bb_set_link(bb, "bytes_per_s", json_integer(64 << 20));
  assert_ends(&follow, "finished", "moved 4");
  assert_runs_at(bb, "vm1", "b");
  /* One job found out for all. */
  assert_int_equal(json_array_size(jobs_of(bb)), 5);
  for (int i = 2; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    assert_runs_at(bb, name, "c");
  }
}

static void it_waits_for_an_unreachable_target(void **state) {
  Bb *bb = *state;
  Follow follow;
  json_t *guest;

  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 1);
  while (!(guest = json_object_get(follow.guests, "vm1")) || !json_object_get(guest, "message") ||
         !strstr(text_of(guest, "message"), "checked "))
    follow_next(&follow);
  /* These find out for all. */
  assert_in_range(number_of(follow.status, "moving"), 1, 2);
  assert_int_equal(number_of(follow.status, "waiting") + number_of(follow.status, "moving"), 4);
  bb_set_host(bb, "b", "reachable", json_true());
  assert_ends(&follow, "finished", "moved 4");
}

static void but_only_up_to_the_limit(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "UnschedulableTimeout=700ms\n");
  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "left 4");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm4"), "message"), "TARGET_UNREACHABLE"));
  assert_true(json_array_size(jobs_of(bb)) <= 2);
}

/* --- what domains do meanwhile --- */

static void a_domain_that_starts_meanwhile_migrates_too(void **state) {
  Bb *bb = *state;
  Follow follow;

  follow = drain_slowly(bb);
  await_count(&follow, "moving", 2);
  bb_add_domain(bb, "late");
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 5");
  assert_guest(&follow, "late", "moved");
  assert_runs_at(bb, "late", "b");
}

static void a_domain_that_stops_while_it_waits_is_gone(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  follow = drain_slowly(bb);
  await_guest(&follow, "vm1", "moving");
  bb_set_domain(bb, "vm3", "state", json_string("inactive"));
  await_guest(&follow, "vm3", "gone");
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 3, gone 1");
  assert_runs_at(bb, "vm3", "a");
}

static void a_domain_that_stops_while_it_migrates_is_gone_and_migrates_if_it_comes_back(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  follow = drain_slowly(bb);
  await_numbers(bb, &follow, "vm1");
  bb_set_domain(bb, "vm1", "state", json_string("inactive"));
  await_guest(&follow, "vm1", "gone");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "GUEST_STOPPED"));
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  await_guest(&follow, "vm1", "waiting");
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 4");
  assert_runs_at(bb, "vm1", "b");
}

static void a_domain_whose_job_is_aborted_is_left(void **state) {
  Bb *bb = *state;
  Follow follow;

  follow = drain_slowly(bb);
  await_guest(&follow, "vm1", "moving");
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", text_of(guest_of(&follow, "vm1"), "job")));
  await_guest(&follow, "vm1", "left");
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 3, left 1");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "USER_ABORT"));
  assert_runs_at(bb, "vm1", "a");
}

static void a_job_from_before_is_followed_like_the_drains_own(void **state) {
  Bb *bb = *state;
  Follow follow;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm2", NULL);
  follow = drain(bb, "b");
  await_guest(&follow, "vm2", "moving");
  assert_text(guest_of(&follow, "vm2"), "job", text_of(job, "id"));
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 4");
  assert_int_equal(json_array_size(jobs_of(bb)), 4);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, twelve_migrate_two_at_a_time_and_one_with_a_passthrough_device_stays);
  TESTS_ADD(&tests, an_empty_node_is_drained_at_once);
  TESTS_ADD(&tests, a_paused_domain_migrates_and_a_shut_off_one_does_not);
  TESTS_ADD(&tests, the_order_is_priority_then_shortest_first);
  TESTS_ADD(&tests, domains_that_would_not_converge_go_last);
  TESTS_ADD(&tests, the_target_with_the_most_room_is_next);
  TESTS_ADD(&tests, the_limit_of_a_target_holds);
  TESTS_ADD(&tests, its_jobs_have_the_goals_of_the_drain);
  TESTS_ADD(&tests, a_target_that_refuses_all_is_reported_at_once);
  TESTS_ADD(&tests, once_a_target_refuses_the_rest_go_to_the_other);
  TESTS_ADD(&tests, it_waits_for_an_unreachable_target);
  TESTS_ADD(&tests, but_only_up_to_the_limit);
  TESTS_ADD(&tests, a_domain_that_starts_meanwhile_migrates_too);
  TESTS_ADD(&tests, a_domain_that_stops_while_it_waits_is_gone);
  TESTS_ADD(&tests, a_domain_that_stops_while_it_migrates_is_gone_and_migrates_if_it_comes_back);
  TESTS_ADD(&tests, a_domain_whose_job_is_aborted_is_left);
  TESTS_ADD(&tests, a_job_from_before_is_followed_like_the_drains_own);
  return bb_run(&tests, "drain");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain that is aborted, or whose agent is killed; and the calls about drains. */
#include "tests/blackbox/drain.h"

/* --- aborts --- */

static void aborted_it_starts_nothing_more_and_lets_running_migrations_finish(void **state) {
  Bb *bb = *state;
  json_t *status;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  follow = drain_slowly(bb);
  await_count(&follow, "moving", 2);
  await_numbers(bb, &follow, "vm1");
  await_numbers(bb, &follow, "vm10");
  status = json_object_get(client_call(bb_connect(bb), "AbortDrain", NULL), "drain");
  assert_text(status, "state", "stopping");
  assert_non_null(strstr(text_of(status, "aborted_by"), "uid "));
  await_count(&follow, "left", 10);
  bb_link_fast(bb);
  assert_ends(&follow, "aborted", "moved 2, left 10");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm5"), "message"), "aborted"));
  assert_int_equal(json_array_size(jobs_of(bb)), 2);
  /* Repeating it does no harm; the node stays cordoned; and a new drain takes the rest. */
  client_call(bb_connect(bb), "AbortDrain", NULL);
  client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm5"), "NodeCordoned");
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "moved 10");
}

static void aborted_it_withdraws_queued_jobs(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 1);
  client_call(bb_connect(bb), "AbortDrain", NULL);
  assert_ends(&follow, "aborted", "left 4");
  bb_set_host(bb, "b", "reachable", json_true());
  assert_runs_at(bb, "vm1", "a");
}

/* --- restarts --- */

static void killed_in_the_middle_it_resumes(void **state) {
  Bb *bb = *state;
  g_autofree char *id = NULL;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  give_passthrough_device(bb, "vm7");
  bb_start(bb);
  /* A quarter of a second each: the kills come at arbitrary points. */
  follow = drain(bb, "b");
  id = g_strdup(text_of(follow.status, "id"));
  for (int moved = 2; moved <= 8; moved += 2) {
    await_count(&follow, "moved", moved);
    follow = kill_and_start(bb);
    assert_text(follow.status, "id", id);
    client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm7"), "NodeCordoned");
  }
  assert_ends(&follow, "finished", "moved 11, cannot_move 1");
  assert_one_job_each(bb, id);
  assert_in_range(most_at_once(bb), 1, 2);
  for (int i = 1; i <= 12; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    assert_runs_at(bb, name, i == 7 ? "a" : "b");
  }
}

static void killed_right_after_the_reply_it_begins(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  drain(bb, "b");
  follow = kill_and_start(bb);
  assert_ends(&follow, "finished", "moved 4");
}

static void an_abort_is_remembered(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  follow = drain_slowly(bb);
  await_numbers(bb, &follow, "vm1");
  client_call(bb_connect(bb), "AbortDrain", NULL);
  follow = kill_and_start(bb);
  bb_link_fast(bb);
  await_end(&follow);
  assert_text(follow.status, "state", "aborted");
  assert_guest(&follow, "vm1", "moved");
  assert_int_equal(json_array_size(jobs_of(bb)), 1);
}

static void its_result_is_remembered(void **state) {
  Bb *bb = *state;
  Follow follow, again;

  have_domains(bb, 3);
  give_passthrough_device(bb, "vm2");
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  again = watch_drain(bb);
  assert_true(again.over);
  assert_true(json_equal(again.status, follow.status));
  assert_text(guest_of(&again, "vm2"), "message", text_of(guest_of(&follow, "vm2"), "message"));
  assert_guest(&again, "vm1", "moved");
}

static void jobs_no_longer_kept_still_count(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "KeepFinished=0\n");
  bb_start(bb);
  follow = drain(bb, "b");
  assert_ends(&follow, "finished", "moved 4");
}

static void without_this_nodes_libvirtd_it_waits(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "ConnectTimeout=2s\n");
  follow = drain_slowly(bb);
  await_count(&follow, "moving", 2);
  bb_stop(bb, SIGKILL);
  bb_set_host(bb, "a", "reachable", json_false());
  bb_start(bb);
  follow = watch_drain(bb);
  assert_text(follow.status, "state", "checking");
  bb_set_host(bb, "a", "reachable", json_true());
  bb_link_fast(bb);
  assert_ends(&follow, "finished", "moved 4");
}

static void an_unreadable_record_ends_the_drain_but_not_the_agent(void **state) {
  Bb *bb = *state;
  g_autofree char *path = bb_record_path(bb, "drain");
  Follow follow;

  follow = drain_slowly(bb);
  await_count(&follow, "moving", 2);
  bb_stop(bb, SIGKILL);
  assert_true(g_file_set_contents(path, "{\"format\":1,\"drain\":{}}", -1, NULL));
  bb_start(bb);
  client_refused(bb_connect(bb), "AbortDrain", NULL, "NoDrain");
  client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm4"), "NodeCordoned");
  bb_link_fast(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_runs_at(bb, "vm1", "b");
  assert_runs_at(bb, "vm4", "b");
}

/* --- calls --- */

static void refuse_drain(Bb *bb, json_t *parameters, const char *error) {
  Client *client = bb_connect(bb);
  g_autofree char *got = NULL;

  client_send(client, "Drain", parameters, VARLINK_CALL_MORE);
  client_receive(client, &got, NULL);
  assert_non_null(got);
  assert_string_equal(got, error);
}

static void an_invalid_drain_is_refused_and_does_not_cordon(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  refuse_drain(bb, json_pack("{s[]}", "targets"), "InvalidParameter");
  refuse_drain(bb, json_pack("{s[s]}", "targets", "nowhere"), "NoSuchTarget");
  refuse_drain(bb, json_pack("{so ss}", "targets", targets_of(bb, "b"), "policy_name", "none"),
               "NoSuchPolicy");
  refuse_drain(bb, drain_parameters(bb, "b", "", NULL), "InvalidParameter");
  refuse_drain(
      bb,
      drain_parameters(bb, "b", NULL, json_pack("{sb si}", "allow_post_copy", 1, "parallel_connections", 4)),
      "PolicyConflict");
  client_refused(client, "Drain", drain_parameters(bb, "b", NULL, NULL), "ExpectedMore");
  assert_null(json_object_get(client_call(client, "GetNode", NULL), "cordon"));
  assert_null(json_object_get(client_call(client, "GetNode", NULL), "drain"));
  client_refused(client, "AbortDrain", NULL, "NoDrain");
}

static void one_key_is_one_drain_and_only_one_runs_at_a_time(void **state) {
  Bb *bb = *state;
  Follow first, again, same;

  add_host(bb, "c");
  bb_start(bb);
  bb_link_slow(bb);
  first = follow_call(bb, "Drain", drain_parameters(bb, "b", "k", NULL));
  again = follow_call(bb, "Drain", drain_parameters(bb, "b", "k", NULL));
  assert_text(again.status, "id", text_of(first.status, "id"));
  same = drain(bb, "b");
  assert_text(same.status, "id", text_of(first.status, "id"));
  refuse_drain(bb, drain_parameters(bb, "c", "k", NULL), "RequestKeyConflict");
  refuse_drain(bb, drain_parameters(bb, "c", NULL, NULL), "DrainBusy");
  refuse_drain(bb, drain_parameters(bb, "b", "l", NULL), "DrainBusy");
  bb_link_fast(bb);
  await_end(&first);
  await_end(&again);
  await_end(&same);
  assert_true(json_equal(first.guests, again.guests));
  again = follow_call(bb, "Drain", drain_parameters(bb, "b", "k", NULL));
  assert_true(again.over);
  assert_text(again.status, "id", text_of(first.status, "id"));
  /* Without a key it is a new drain. */
  same = drain(bb, "b");
  await_end(&same);
  assert_true(strcmp(text_of(same.status, "id"), text_of(first.status, "id")) != 0);
  assert_counts(&same, "");
}

static void a_watcher_that_disconnects_stops_nothing(void **state) {
  Bb *bb = *state;
  Follow follow;

  follow = drain_slowly(bb);
  await_count(&follow, "moving", 2);
  client_close(follow.client);
  bb_link_fast(bb);
  follow = watch_drain(bb);
  assert_ends(&follow, "finished", "moved 4");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, aborted_it_starts_nothing_more_and_lets_running_migrations_finish);
  TESTS_ADD(&tests, aborted_it_withdraws_queued_jobs);
  TESTS_ADD(&tests, killed_in_the_middle_it_resumes);
  TESTS_ADD(&tests, killed_right_after_the_reply_it_begins);
  TESTS_ADD(&tests, an_abort_is_remembered);
  TESTS_ADD(&tests, its_result_is_remembered);
  TESTS_ADD(&tests, jobs_no_longer_kept_still_count);
  TESTS_ADD(&tests, without_this_nodes_libvirtd_it_waits);
  TESTS_ADD(&tests, an_unreadable_record_ends_the_drain_but_not_the_agent);
  TESTS_ADD(&tests, an_invalid_drain_is_refused_and_does_not_cordon);
  TESTS_ADD(&tests, one_key_is_one_drain_and_only_one_runs_at_a_time);
  TESTS_ADD(&tests, a_watcher_that_disconnects_stops_nothing);
  return bb_run(&tests, "drain-ends");
}

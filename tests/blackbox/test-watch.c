/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watchers: slow ones, many, ones that disconnect. */
#include "tests/blackbox/harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static Client *watch(Bb *bb, const char *job) {
  Client *client = bb_connect(bb);

  client_send(client, "Watch", job ? json_pack("{ss}", "job", job) : NULL, VARLINK_CALL_MORE);
  return client;
}

/* The last message of a stream about one job. */
static json_t *read_to_the_end(Client *client) {
  json_int_t revision = -1;
  bool continues = true;
  json_t *job = NULL;

  while (continues) {
    job = json_object_get(client_receive(client, NULL, &continues), "job");
    assert_true(number_of(job, "revision") >= revision);
    revision = number_of(job, "revision");
  }
  return job;
}

static void a_slow_reader_gets_the_last_state(void **state) {
  Bb *bb = *state;
  int smallest = 1;
  Client *slow;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  slow = bb_connect(bb);
  setsockopt(varlink_client_get_fd(slow->varlink), SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
  client_send(slow, "Watch", json_pack("{ss}", "job", text_of(job, "id")), VARLINK_CALL_MORE);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);

  /* Far more than the socket holds, all of them changes of state. */
  for (int i = 1; i <= 300; i++)
    client_call(bb_connect(bb), "Tune",
                json_pack("{ss s{si}}", "job", "vm1", "policy", "progress_timeout_s", 1000 + i));
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  job = read_to_the_end(slow);
  assert_text(job, "phase", "succeeded");
  assert_int_equal(number_of(job, "policy.progress_timeout_s"), 1300);
}

static void a_slow_reader_of_all_jobs_gets_the_last_state_of_each_job(void **state) {
  Bb *bb = *state;
  const char *ids[2];
  int smallest = 1, final = 0;
  Client *slow, *client;
  json_t *job = NULL;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  slow = bb_connect(bb);
  setsockopt(varlink_client_get_fd(slow->varlink), SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest);
  client_send(slow, "Watch", NULL, VARLINK_CALL_MORE);
  ids[0] = text_of(client_start(client, "vm1", NULL), "id");
  ids[1] = text_of(client_start(client, "vm2", NULL), "id");
  for (int i = 1; i <= 200; i++)
    client_call(client, "Tune",
                json_pack("{ss s{si}}", "job", ids[i % 2], "policy", "progress_timeout_s", 1000 + i));
  bb_link_fast(bb);
  bb_await_phase(bb, ids[0], "succeeded");
  bb_await_phase(bb, ids[1], "succeeded");
  while (final < 2) {
    bool continues;

    job = json_object_get(client_receive(slow, NULL, &continues), "job");
    assert_true(continues);
    final += strcmp(text_of(job, "phase"), "succeeded") == 0;
  }
}

static void two_hundred_watchers_all_see_the_end(void **state) {
  enum { WATCHERS = 200 };
  Client *watchers[WATCHERS];
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  for (int i = 0; i < WATCHERS; i++)
    watchers[i] = watch(bb, text_of(job, "id"));
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_link_fast(bb);
  for (int i = 0; i < WATCHERS; i++) {
    job = read_to_the_end(watchers[i]);
    assert_text(job, "phase", "succeeded");
    assert_events_whole(job);
    /* The connection is free again. */
    client_call(watchers[i], "Get", json_pack("{ss}", "job", "vm1"));
  }
}

static void a_watcher_that_disconnects_cancels_nothing(void **state) {
  Bb *bb = *state;
  Client *client, *all;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  for (int i = 0; i < 20; i++)
    client_close(watch(bb, text_of(job, "id")));
  all = watch(bb, NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_close(all);
  client_close(client);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_true(json_is_false(json_object_get(job, "abort_requested")));
}

static void a_second_connection_aborts_while_a_stream_runs(void **state) {
  Bb *bb = *state;
  Client *watcher;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  watcher = watch(bb, text_of(job, "id"));
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", text_of(job, "id")));
  job = read_to_the_end(watcher);
  assert_text(job, "phase", "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
}

static void a_finished_job_is_reported_once(void **state) {
  Bb *bb = *state;
  Client *watcher;
  bool continues;
  json_t *job;

  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  watcher = watch(bb, text_of(job, "id"));
  job = json_object_get(client_receive(watcher, NULL, &continues), "job");
  assert_false(continues);
  assert_text(job, "phase", "succeeded");
}

static void watching_all_jobs_starts_with_the_unfinished_ones(void **state) {
  Bb *bb = *state;
  Client *client, *watcher;
  const char *running, *later;
  json_t *job;

  bb_start(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  bb_link_slow(bb);
  running = text_of(client_start(client, "vm2", NULL), "id");
  bb_await_phase(bb, running, "migrating");
  watcher = watch(bb, NULL);
  job = json_object_get(client_receive(watcher, NULL, NULL), "job");
  assert_text(job, "id", running);
  later = text_of(client_start(client, "vm3", NULL), "id");
  while (strcmp(text_of(job, "id"), later) != 0)
    job = json_object_get(client_receive(watcher, NULL, NULL), "job");
  bb_link_fast(bb);
  while (strcmp(text_of(job, "phase"), "succeeded") != 0)
    job = json_object_get(client_receive(watcher, NULL, NULL), "job");
}

static void an_unknown_job_cannot_be_followed(void **state) {
  Bb *bb = *state;
  g_autofree char *error = NULL;
  Client *client;

  bb_start(bb);
  client = watch(bb, "nothing");
  client_receive(client, &error, NULL);
  assert_non_null(error);
  assert_string_equal(error, "NoSuchJob");
}

static void mere_progress_comes_at_most_once_per_interval(void **state) {
  Bb *bb = *state;
  Client *watcher;
  gint64 first_us;
  json_t *job;

  /* The later of two lines holds. */
  bb_configure(bb, "WatchInterval=300ms\n");
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  watcher = watch(bb, text_of(job, "id"));
  client_receive(watcher, NULL, NULL);
  client_receive(watcher, NULL, NULL);
  first_us = g_get_monotonic_time();
  for (int i = 0; i < 3; i++)
    client_receive(watcher, NULL, NULL);
  assert_true(g_get_monotonic_time() - first_us > 3 * 250000);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_slow_reader_gets_the_last_state);
  TESTS_ADD(&tests, a_slow_reader_of_all_jobs_gets_the_last_state_of_each_job);
  TESTS_ADD(&tests, two_hundred_watchers_all_see_the_end);
  TESTS_ADD(&tests, a_watcher_that_disconnects_cancels_nothing);
  TESTS_ADD(&tests, a_second_connection_aborts_while_a_stream_runs);
  TESTS_ADD(&tests, a_finished_job_is_reported_once);
  TESTS_ADD(&tests, watching_all_jobs_starts_with_the_unfinished_ones);
  TESTS_ADD(&tests, an_unknown_job_cannot_be_followed);
  TESTS_ADD(&tests, mere_progress_comes_at_most_once_per_interval);
  return bb_run(&tests, "watch");
}

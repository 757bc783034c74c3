/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Running guests are measured now and then, and what is known of one travels with it. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define FORECAST "forecast before the start"

static json_int_t measured(Client *client) {
  json_t *node = client_call(client, "GetNode", json_object());

  return number_of(node, "profiling.measured");
}

static void await_measured(Client *client, json_int_t n) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * G_GINT64_CONSTANT(1000);

  while (measured(client) < n) {
    assert_true(g_get_monotonic_time() < until);
    g_usleep(20000);
  }
}

/* A migration for which the forecast matters, on a link of a known rate. */
static json_t *migrate(Client *client, const char *domain) {
  return client_start(client, domain,
                      json_pack("{sb si}", "allow_post_copy", 1, "bandwidth_bytes_per_s", 32 << 20));
}

static void each_running_guest_is_measured(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_set_domain(bb, "vm4", "state", json_string("paused"));
  bb_configure(bb, "ProfileInterval=200ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_measured(client, 3);
  bb_stop(bb, SIGTERM);
  assert_true(g_str_has_prefix(text_of(bb_truth(bb, "vm1"), "profile"), "1 "));
  assert_true(g_str_has_prefix(text_of(bb_truth(bb, "vm3"), "profile"), "1 "));
  assert_true(json_is_null(json_object_get(bb_truth(bb, "vm4"), "profile")));
}

static void again_and_again(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_configure(bb, "ProfileInterval=200ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  await_measured(client, 12);
  bb_stop(bb, SIGTERM);
}

static void none_if_the_configuration_says_so(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_configure(bb, "ProfileInterval=0\n");
  bb_start(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "succeeded");
  g_usleep(600000);
  assert_int_equal(measured(client), 0);
}

static void none_while_a_migration_runs(void **state) {
  Bb *bb = *state;
  json_int_t before;
  Client *client;
  json_t *job;

  bb_link_slow(bb);
  bb_configure(bb, "ProfileInterval=200ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  before = measured(client);
  g_usleep(800000);
  assert_int_equal(measured(client), before);
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  await_measured(client, before + 3);
}

static void a_profile_makes_the_probe_needless(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_set_domain(bb, "vm4", "state", json_string("paused"));
  bb_configure(bb, "ProfileInterval=200ms\n");
  bb_start(bb);
  await_measured(bb_connect(bb), 3);
  /* The agent is another one, and cannot measure: it has what the first one noted. */
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "probe_dirty_rate", json_pack("{ss}", "fail", "FAILED"));
  bb_start(bb);
  client = bb_connect(bb);
  job = migrate(client, "vm1");
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_non_null(find_event(job, "decision", FORECAST));
  /* A guest without one. */
  job = bb_await_phase(bb, text_of(migrate(client, "vm4"), "id"), "succeeded");
  assert_null(find_event(job, "decision", FORECAST));
}

static void one_that_cannot_be_noted_does_no_harm(void **state) {
  Bb *bb = *state;
  json_t *node;
  Client *client;

  bb_set_call(bb, "write_profile", json_pack("{ss}", "fail", "BUSY"));
  bb_configure(bb, "ProfileInterval=200ms\n");
  bb_start(bb);
  client = bb_connect(bb);
  do {
    node = client_call(client, "GetNode", json_object());
  } while (number_of(node, "profiling.failed") < 4);
  assert_int_equal(number_of(node, "profiling.measured"), 0);
  bb_await_phase(bb, text_of(migrate(client, "vm1"), "id"), "succeeded");
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD(&tests, each_running_guest_is_measured);
  TESTS_ADD(&tests, again_and_again);
  TESTS_ADD(&tests, none_if_the_configuration_says_so);
  TESTS_ADD(&tests, none_while_a_migration_runs);
  TESTS_ADD(&tests, a_profile_makes_the_probe_needless);
  TESTS_ADD(&tests, one_that_cannot_be_noted_does_no_harm);
  return bb_run(&tests, "profile");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon is killed while it steers a migration, and restarted: what it had requested of libvirt, and what callers had
 * requested of it, still holds. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define MIB (1 << 20)

/* A guest that dirties 8 MiB in each pass of a second. With a pause of 4 s permitted, the downtime limit goes up to just over a
 * second as the second pass begins. Then the link is so slow that QEMU does not reach the end of that pass. */
static const char *set_out_for_a_pause(Bb *bb) {
  const char *id;
  json_t *policy = json_pack("{si si}", "max_pause_ms", 4000, "completion_timeout_s_per_gib", 0);

  bb_set_domain(bb, "vm1", "dirty_bytes_per_s", json_integer(64 * MIB));
  bb_set_domain(bb, "vm1", "working_set_bytes", json_integer(8 * MIB));
  bb_set_link(bb, "bytes_per_s", json_integer(8 * MIB));
  bb_start(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", policy), "id");
  bb_await_event(bb, id, "action", "pause: accepted");
  bb_link_slow(bb);
  return id;
}

/* What QEMU has: "max_downtime_ms", "bandwidth". Both bounds included. */
static void await_held(Bb *bb, const char *what, json_int_t least, json_int_t most) {
  gint64 until = g_get_monotonic_time() + 10 * G_TIME_SPAN_SECOND;
  g_autofree char *path = g_strconcat("job.", what, NULL);
  json_int_t held;

  while (held = number_of(bb_truth(bb, "vm1"), path), held < least || held > most) {
    if (g_get_monotonic_time() > until)
      fail_msg("%s is %" JSON_INTEGER_FORMAT " instead of %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
               what, held, least, most);
    g_usleep(20000);
  }
}

/* Call it while no daemon runs. */
static void set_held(Bb *bb, const char *what, json_int_t value) {
  g_autofree char *path = g_strconcat(bb->control, ".state", NULL);
  json_t *root = bb_keep(bb, json_load_file(path, 0, NULL));
  json_t *job = member_of(root, "domains.vm1.job");

  assert_non_null(job);
  json_object_set_new(job, what, json_integer(value));
  assert_int_equal(json_dump_file(root, path, 0), 0);
}

/* The record is written while libvirt gets the limit, and may be later than that. */
static void await_recorded(Bb *bb, const char *id) {
  gint64 until = g_get_monotonic_time() + 10 * G_TIME_SPAN_SECOND;

  while (number_of(bb_record(bb, id), "agent.steering.downtime_ms") !=
         number_of(bb_truth(bb, "vm1"), "job.max_downtime_ms")) {
    assert_true(g_get_monotonic_time() < until);
    g_usleep(20000);
  }
}

static void kill_and_start(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_start(bb);
}

static void tune(Bb *bb, const char *id, json_t *policy) {
  client_call(bb_connect(bb), "Tune", json_pack("{ss so}", "job", id, "policy", policy));
}

static void let_it_end(Bb *bb, const char *id, const char *phase) {
  bb_link_fast(bb);
  assert_events_whole(bb_await_phase(bb, id, phase));
}

/* --- the downtime limit --- */

static void a_goal_tightened_after_the_restart_holds(void **state) {
  Bb *bb = *state;
  const char *id = set_out_for_a_pause(bb);

  await_held(bb, "max_downtime_ms", 1000, 4000);
  kill_and_start(bb);
  bb_await_phase(bb, id, "migrating");
  tune(bb, id, json_pack("{si si}", "max_pause_ms", 0, "max_downtime_ms", 100));
  await_held(bb, "max_downtime_ms", 1, 55);
  let_it_end(bb, id, "succeeded");
}

/* It was acknowledged, and never reached libvirt. */
static void a_goal_tightened_before_the_restart_holds(void **state) {
  Bb *bb = *state;
  const char *id = set_out_for_a_pause(bb);

  await_held(bb, "max_downtime_ms", 1000, 4000);
  bb_set_call(bb, "set_max_downtime", json_pack("{sb}", "hang", 1));
  tune(bb, id, json_pack("{si si}", "max_pause_ms", 0, "max_downtime_ms", 100));
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "set_max_downtime", NULL);
  bb_start(bb);
  await_held(bb, "max_downtime_ms", 1, 55);
  let_it_end(bb, id, "succeeded");
}

/* Somebody else may have set one meanwhile, or the record may be older than the limit. */
static void the_downtime_limit_is_set_again(void **state) {
  Bb *bb = *state;
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  set_held(bb, "max_downtime_ms", 5000);
  bb_start(bb);
  bb_await_event(bb, id, "action", "set_downtime: accepted");
  await_held(bb, "max_downtime_ms", 1, 255);
  let_it_end(bb, id, "succeeded");
}

static void a_pending_pause_still_comes(void **state) {
  Bb *bb = *state;
  const char *id = set_out_for_a_pause(bb);
  json_int_t limit_ms;

  await_held(bb, "max_downtime_ms", 1000, 4000);
  await_recorded(bb, id);
  bb_stop(bb, SIGKILL);
  limit_ms = number_of(bb_truth(bb, "vm1"), "job.max_downtime_ms");
  bb_start(bb);
  bb_await_event(bb, id, "action", "set_downtime: accepted");
  await_held(bb, "max_downtime_ms", limit_ms, limit_ms);
  assert_text(client_get(bb_connect(bb), id), "stage", "stop_and_copy");
  let_it_end(bb, id, "succeeded");
}

/* --- the bandwidth --- */

static const char *set_out(Bb *bb) {
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  return id;
}

static void a_bandwidth_tuned_before_the_restart_holds(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb);

  bb_set_call(bb, "set_bandwidth", json_pack("{sb}", "hang", 1));
  tune(bb, id, json_pack("{si}", "bandwidth_bytes_per_s", 7 * MIB));
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "set_bandwidth", NULL);
  bb_start(bb);
  await_held(bb, "bandwidth", 7 * MIB, 7 * MIB);
  let_it_end(bb, id, "succeeded");
}

static void a_bandwidth_that_libvirt_refused_is_set_later(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb);

  bb_set_call(bb, "set_bandwidth", json_pack("{ss}", "fail", "UNREACHABLE"));
  tune(bb, id, json_pack("{si}", "bandwidth_bytes_per_s", 7 * MIB));
  bb_await_event(bb, id, "warning", "new bandwidth limit: refused");
  bb_set_call(bb, "set_bandwidth", NULL);
  await_held(bb, "bandwidth", 7 * MIB, 7 * MIB);
  let_it_end(bb, id, "succeeded");
}

/* It had a share of a limit; now there is no limit to share. */
static void a_share_does_not_outlast_what_was_shared(void **state) {
  Bb *bb = *state;
  const char *id;

  bb_configure(bb, "MaxBandwidth=9M\n");
  id = set_out(bb);
  await_held(bb, "bandwidth", 9 * MIB, 9 * MIB);
  bb_stop(bb, SIGKILL);
  bb_configure(bb, "MaxBandwidth=0\n");
  bb_start(bb);
  await_held(bb, "bandwidth", 0, 0);
  let_it_end(bb, id, "succeeded");
}

/* --- an abort --- */

/* When the agent is back the guest has calmed down and would migrate; but the abort was decided and reported. */
static void an_abort_that_was_decided_is_carried_out(void **state) {
  Bb *bb = *state;
  const char *id;
  json_t *job;

  bb_set_domain(bb, "vm1", "dirty_bytes_per_s", json_integer(64 * MIB));
  bb_set_domain(bb, "vm1", "working_set_bytes", json_integer(8 * MIB));
  bb_set_link(bb, "bytes_per_s", json_integer(8 * MIB));
  bb_set_call(bb, "abort_job", json_pack("{sb}", "hang", 1));
  bb_start(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await_event(bb, id, "decision", "abort: ");
  while (!member_of(bb_record(bb, id), "job.failure")) /* a running job's is written after it was told */
    g_usleep(10000);
  bb_stop(bb, SIGKILL);
  bb_set_domain(bb, "vm1", "dirty_bytes_per_s", json_integer(0));
  bb_link_slow(bb);
  bb_set_call(bb, "abort_job", NULL);
  bb_start(bb);
  job = bb_await_phase(bb, id, "aborted");
  assert_text(job, "failure.cause", "NOT_CONVERGING");
  assert_events_whole(job);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_goal_tightened_after_the_restart_holds);
  TESTS_ADD(&tests, a_goal_tightened_before_the_restart_holds);
  TESTS_ADD(&tests, the_downtime_limit_is_set_again);
  TESTS_ADD(&tests, a_pending_pause_still_comes);
  TESTS_ADD(&tests, a_bandwidth_tuned_before_the_restart_holds);
  TESTS_ADD(&tests, a_bandwidth_that_libvirt_refused_is_set_later);
  TESTS_ADD(&tests, a_share_does_not_outlast_what_was_shared);
  TESTS_ADD(&tests, an_abort_that_was_decided_is_carried_out);
  return bb_run(&tests, "taken-up");
}

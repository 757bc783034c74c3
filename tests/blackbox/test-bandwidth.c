/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Running jobs share MaxBandwidth=: how much each gets and when, what libvirt is told, and which jobs wait for it. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define MIB (INT64_C(1) << 20)

/* The limit that the hypervisor has for a running migration; 0: none. */
static json_int_t limit_of(Bb *bb, const char *domain, const char *key) {
  json_t *job = json_object_get(bb_truth(bb, domain), "job");

  return json_integer_value(json_object_get(job, key)) / MIB;
}

static void await_limit(Bb *bb, const char *domain, const char *key, json_int_t mib) {
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  while (limit_of(bb, domain, key) != mib) {
    if (g_get_monotonic_time() > until)
      fail_msg("%s's %s is %d MiB/s, and not %d", domain, key, (int)limit_of(bb, domain, key), (int)mib);
    g_usleep(10000);
  }
}

static bool has_share(json_t *job, gconstpointer mib) {
  json_t *share = member_of(job, "bandwidth_share_bytes_per_s");

  return share && json_integer_value(share) == *(const int *)mib * MIB;
}

static json_t *await_share(Bb *bb, json_t *job, int mib) {
  return bb_await(bb, text_of(job, "id"), has_share, &mib);
}

/* Starts it and waits until bytes flow. */
static json_t *start_moving(Client *client, const char *domain, json_t *policy) {
  json_t *job = client_start(client, domain, policy);

  return bb_await(client->bb, text_of(job, "id"), bb_has_numbers, NULL);
}

static Client *begin(Bb *bb, const char *config) {
  bb_configure(bb, config);
  bb_start(bb);
  bb_link_slow(bb);
  return bb_connect(bb);
}

static void abort_job(Client *client, json_t *job) {
  client_call(client, "Abort", json_pack("{ss}", "job", text_of(job, "id")));
}

/* --- shares come and go --- */

static void two_jobs_get_half_each(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=2\nMaxBandwidth=64M\n");
  json_t *first = start_moving(client, "vm1", NULL), *second;

  await_limit(bb, "vm1", "bandwidth", 64);
  await_share(bb, first, 64);
  second = start_moving(client, "vm2", NULL);
  await_share(bb, second, 32);
  first = await_share(bb, first, 32);
  assert_non_null(find_event(first, "action", "now has 32 MiB/s of MaxBandwidth=, had 64"));
  assert_non_null(find_event(client_get(client, text_of(second, "id")), "decision",
                             "has 32 MiB/s of MaxBandwidth=64M, shared by 2 migrations"));
  await_limit(bb, "vm1", "bandwidth", 32);
  await_limit(bb, "vm2", "bandwidth", 32);
  assert_int_equal(number_of(client_call(client, "GetNode", NULL), "max_bandwidth_bytes_per_s"), 64 * MIB);
  abort_job(client, first);
  await_share(bb, second, 64);
  await_limit(bb, "vm2", "bandwidth", 64);
  bb_link_fast(bb);
  second = bb_await_phase(bb, text_of(second, "id"), "succeeded");
  assert_events_whole(second);
}

/* Of all running migrations, at one moment. */
static json_int_t sum_of_limits(Bb *bb) {
  g_autofree char *path = g_strconcat(bb->control, ".state", NULL);
  json_t *root = bb_keep(bb, json_load_file(path, 0, NULL)), *domain;
  json_int_t sum = 0;
  const char *name;

  json_object_foreach (json_object_get(root, "domains"), name, domain)
    sum += json_integer_value(json_object_get(json_object_get(domain, "job"), "bandwidth"));
  return sum / MIB;
}

static void a_lower_limit_is_set_before_a_higher_one(void **state) {
  static const char *const names[] = {"vm1", "vm2", "vm3"};
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=3\nMaxBandwidth=60M\n");
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  json_t *jobs[3];
  bool settled = false;

  for (int i = 0; i < 3; i++)
    jobs[i] = client_start(client, names[i], NULL);
  while (!settled && g_get_monotonic_time() < until) {
    assert_true(sum_of_limits(bb) <= 60);
    settled = true;
    for (int i = 0; i < 3; i++)
      settled = settled && limit_of(bb, names[i], "bandwidth") == 20;
    g_usleep(5000);
  }
  assert_true(settled);
  for (int i = 0; i < 3; i++)
    await_share(bb, jobs[i], 20);
  /* And when one ends. */
  abort_job(client, jobs[1]);
  for (until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000; limit_of(bb, "vm3", "bandwidth") != 30;) {
    assert_true(sum_of_limits(bb) <= 60);
    assert_true(g_get_monotonic_time() < until);
    g_usleep(5000);
  }
}

static void a_job_with_its_own_limit_leaves_the_rest_to_others(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=2\nMaxBandwidth=64M\n");
  json_t *first = start_moving(client, "vm1", json_pack("{sI}", "bandwidth_bytes_per_s", 8 * MIB));
  json_t *second = start_moving(client, "vm2", NULL);

  await_share(bb, first, 8);
  await_share(bb, second, 56);
  /* And a new limit is for both. */
  client_call(
      client, "Tune",
      json_pack("{ss s{sI}}", "job", text_of(first, "id"), "policy", "bandwidth_bytes_per_s", 20 * MIB));
  await_share(bb, second, 44);
  await_share(bb, first, 20);
  await_limit(bb, "vm1", "bandwidth", 20);
  await_limit(bb, "vm2", "bandwidth", 44);
}

static void post_copy_gets_the_same_share(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=2\nMaxBandwidth=64M\n");
  json_t *first = start_moving(
      client, "vm1", json_pack("{sb sI}", "allow_post_copy", 1, "post_copy_bandwidth_bytes_per_s", 4 * MIB));
  json_t *second = start_moving(client, "vm2", json_pack("{sb}", "allow_post_copy", 1));

  await_share(bb, first, 32);
  await_limit(bb, "vm1", "post_copy_bandwidth", 4);
  await_limit(bb, "vm2", "post_copy_bandwidth", 32);
  /* In post-copy its own limit is the lower one, and the other job gets the rest. */
  client_call(client, "Complete", json_pack("{ss ss}", "job", text_of(first, "id"), "by", "post_copy"));
  await_share(bb, first, 4);
  await_share(bb, second, 60);
  await_limit(bb, "vm2", "post_copy_bandwidth", 60);
}

static void copied_disks_get_the_share_of_one_slot(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *first, *second;

  bb_set_domain(bb, "vm1", "local_disks", json_integer(1));
  bb_set_domain(bb, "vm1", "local_disk_bytes", json_integer(16 * MIB));
  client = begin(bb, "MaxOutgoing=2\nMaxBandwidth=64M\n");
  first = client_start(client, "vm1", json_pack("{ss}", "copy_disks", "all"));
  await_share(bb, first, 32);
  /* For the disk, and for the memory. */
  await_limit(bb, "vm1", "bandwidth", 16);
  second = start_moving(client, "vm2", NULL);
  await_share(bb, second, 32);
  abort_job(client, second);
  bb_await_phase(bb, text_of(second, "id"), "aborted");
  assert_int_equal(limit_of(bb, "vm1", "bandwidth"), 16);
}

/* --- libvirt refuses a limit --- */

static void after_a_refused_limit_the_old_one_counts(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=3\nMaxBandwidth=64M\n");
  json_t *first = start_moving(client, "vm1", NULL), *second, *third;

  await_share(bb, first, 64);
  bb_set_call(bb, "set_bandwidth", json_pack("{ss ss}", "fail", "FAILED", "message", "not today"));
  second = client_start(client, "vm2", NULL);
  first = bb_await_event(bb, text_of(first, "id"), "warning", "64 MiB/s still count as in use: not today");
  assert_int_equal(number_of(first, "bandwidth_share_bytes_per_s"), 64 * MIB);
  second = client_get(client, text_of(second, "id"));
  assert_text(second, "phase", "preparing");
  assert_text(second, "next_action",
              "waits up to 60 s for a share of MaxBandwidth=, then returns to the queue");
  third = client_get(client, text_of(client_start(client, "vm3", NULL), "id"));
  assert_text(third, "pending.reason", "BANDWIDTH_LIMIT");
  assert_non_null(strstr(text_of(third, "pending.message"), "MaxBandwidth=64M"));
  assert_int_equal(number_of(third, "pending.queue_position"), 1);
  bb_set_call(bb, "set_bandwidth", NULL);
  await_share(bb, first, 22);
  await_share(bb, second, 21);
  await_share(bb, third, 21);
  await_limit(bb, "vm1", "bandwidth", 22);
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(third, "id"), "succeeded");
}

static bool waits_for_bandwidth(json_t *job, gconstpointer data) {
  json_t *reason = member_of(job, "pending.reason");

  return reason && strcmp(json_string_value(reason), "BANDWIDTH_LIMIT") == 0;
}

static void a_job_without_a_share_goes_back_to_the_queue(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=2\nMaxBandwidth=64M\nPrepareTimeout=1s\n");
  json_t *first = start_moving(client, "vm1", NULL), *second;

  bb_set_call(bb, "set_bandwidth", json_pack("{ss ss}", "fail", "FAILED", "message", "not today"));
  second = client_start(client, "vm2", NULL);
  second = bb_await(bb, text_of(second, "id"), waits_for_bandwidth, NULL);
  assert_non_null(
      strstr(text_of(second, "pending.message"), "no share of MaxBandwidth= became free within 1 s"));
  assert_true(number_of(second, "pending.tries") >= 1);
  assert_text(client_get(client, text_of(first, "id")), "phase", "migrating");
  bb_set_call(bb, "set_bandwidth", NULL);
  await_share(bb, second, 32);
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
}

/* --- who waits for it --- */

static void bandwidth_that_a_guest_needs_is_not_given_away(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *first, *second;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 * MIB));
  bb_set_domain(bb, "vm1", "dirty_bytes_per_s", json_integer(54 * MIB));
  bb_set_domain(bb, "vm1", "working_set_bytes", json_integer(200 * MIB));
  bb_configure(bb, "MaxOutgoing=2\nMaxBandwidth=64M\n");
  bb_start(bb);
  bb_set_link(bb, "bytes_per_s", json_integer(MIB));
  client = bb_connect(bb);
  first =
      start_moving(client, "vm1", json_pack("{si sb}", "progress_timeout_s", 0, "allow_auto_converge", 1));
  second = client_start(client, "vm2", NULL);
  second = bb_await(bb, text_of(second, "id"), waits_for_bandwidth, NULL);
  assert_non_null(strstr(text_of(second, "pending.message"), "another would get less than 8 MiB/s"));
  assert_null(member_of(second, "pending.held_since_usec_realtime"));
  await_limit(bb, "vm1", "bandwidth", 64);
  abort_job(client, first);
  await_share(bb, second, 64);
}

/* --- across a restart --- */

static void after_a_restart_limits_are_set_again(void **state) {
  Bb *bb = *state;
  Client *client = begin(bb, "MaxOutgoing=3\nMaxBandwidth=60M\n");
  json_t *first = start_moving(client, "vm1", NULL), *second = start_moving(client, "vm2", NULL), *third;

  await_limit(bb, "vm1", "bandwidth", 30);
  await_limit(bb, "vm2", "bandwidth", 30);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  client = bb_connect(bb);
  third = client_start(client, "vm3", NULL);
  await_share(bb, third, 20);
  await_share(bb, first, 20);
  await_share(bb, second, 20);
  await_limit(bb, "vm1", "bandwidth", 20);
  await_limit(bb, "vm2", "bandwidth", 20);
  await_limit(bb, "vm3", "bandwidth", 20);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, two_jobs_get_half_each);
  TESTS_ADD(&tests, a_lower_limit_is_set_before_a_higher_one);
  TESTS_ADD(&tests, a_job_with_its_own_limit_leaves_the_rest_to_others);
  TESTS_ADD(&tests, post_copy_gets_the_same_share);
  TESTS_ADD(&tests, copied_disks_get_the_share_of_one_slot);
  TESTS_ADD(&tests, after_a_refused_limit_the_old_one_counts);
  TESTS_ADD(&tests, a_job_without_a_share_goes_back_to_the_queue);
  TESTS_ADD(&tests, bandwidth_that_a_guest_needs_is_not_given_away);
  TESTS_ADD(&tests, after_a_restart_limits_are_set_again);
  return bb_run(&tests, "bandwidth");
}

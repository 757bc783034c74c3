/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A node is emptied: within the limits, whatever its domains, its targets and its agent do meanwhile. */
#include "tests/blackbox/harness.h"

#include <signal.h>

/* --- a drain, followed --- */

typedef struct Follow {
  Client *client;
  json_t *status; /* the newest */
  json_t *guests; /* by name, as told last */
  gint64 until_us;
  bool over;
} Follow;

/* A drain that goes nowhere may still have news. */
#define FOLLOW_S 60

static json_t *targets_of(Bb *bb, const char *hosts) {
  json_t *array = json_array();

  for (const char *host = hosts; *host; host++) {
    g_autofree char *target = bb_target(bb, (char[]){*host, '\0'});

    json_array_append_new(array, json_string(target));
  }
  return array;
}

static json_t *drain_parameters(Bb *bb, const char *hosts, const char *request_key, json_t *policy) {
  return json_pack("{so ss* so*}", "targets", targets_of(bb, hosts), "request_key", request_key, "policy",
                   policy);
}

/* Takes the next reply. Each has those that changed; together they are what the counts say. */
static void follow_next(Follow *follow) {
  json_t *reply, *guest;
  bool continues;
  size_t i;

  assert_false(follow->over);
  if (g_get_monotonic_time() > follow->until_us)
    fail_msg("it did not come to that within %d s", FOLLOW_S);
  reply = client_receive(follow->client, NULL, &continues);
  follow->status = json_object_get(reply, "drain");
  json_array_foreach (json_object_get(reply, "guests"), i, guest)
    json_object_set(follow->guests, text_of(guest, "domain.name"), guest);
  assert_int_equal(number_of(follow->status, "total"), json_object_size(follow->guests));
  follow->over = !continues;
}

static Follow follow_call(Bb *bb, const char *method, json_t *parameters) {
  Follow follow = {.client = bb_connect(bb),
                   .guests = bb_keep(bb, json_object()),
                   .until_us = g_get_monotonic_time() + FOLLOW_S * G_USEC_PER_SEC};

  client_send(follow.client, method, parameters, VARLINK_CALL_MORE);
  follow_next(&follow);
  return follow;
}

static Follow drain(Bb *bb, const char *hosts) {
  return follow_call(bb, "Drain", drain_parameters(bb, hosts, NULL, NULL));
}

static Follow drain_with(Bb *bb, const char *hosts, json_t *policy) {
  return follow_call(bb, "Drain", drain_parameters(bb, hosts, NULL, policy));
}

static Follow watch_drain(Bb *bb) {
  return follow_call(bb, "WatchDrain", NULL);
}

static json_t *guest_of(const Follow *follow, const char *name) {
  json_t *guest = json_object_get(follow->guests, name);

  if (!guest)
    fail_msg("the drain does not know %s", name);
  return guest;
}

static void await_guest(Follow *follow, const char *name, const char *state) {
  json_t *guest;

  while (!(guest = json_object_get(follow->guests, name)) || strcmp(text_of(guest, "state"), state) != 0)
    follow_next(follow);
}

static void await_state(Follow *follow, const char *state) {
  while (strcmp(text_of(follow->status, "state"), state) != 0)
    follow_next(follow);
}

static void await_count(Follow *follow, const char *state, json_int_t at_least) {
  while (number_of(follow->status, state) < at_least)
    follow_next(follow);
}

static void await_end(Follow *follow) {
  while (!follow->over)
    follow_next(follow);
}

static void assert_guest(const Follow *follow, const char *name, const char *state) {
  assert_text(guest_of(follow, name), "state", state);
}

/* "moved 3, left 1" and nothing else. */
static void assert_counts(const Follow *follow, const char *expected) {
  static const char *const states[] = {"checking",    "waiting", "moving", "moved",
                                       "cannot_move", "left",    "gone"};
  g_autoptr(GString) text = g_string_new(NULL);

  for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
    if (number_of(follow->status, states[i]) > 0)
      g_string_append_printf(text, "%s%s %d", text->len > 0 ? ", " : "", states[i],
                             (int)number_of(follow->status, states[i]));
  assert_string_equal(text->str, expected);
}

/* --- the world --- */

static void add_host(Bb *bb, const char *host) {
  json_object_set_new(json_object_get(bb->world, "hosts"), host, json_object());
  bb_publish(bb);
}

/* vm1 to vmN. */
static void have_domains(Bb *bb, int n) {
  json_object_clear(json_object_get(bb->world, "domains"));
  for (int i = 1; i <= n; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    bb_add_domain(bb, name);
  }
  bb_publish(bb);
}

static void give_passthrough_device(Bb *bb, const char *domain) {
  bb_set_domain(
      bb, domain, "xml",
      json_string("<domain type='kvm'><name>vm</name><uuid>00000000-0000-4000-8000-00000000000a</uuid>"
                  "<memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type arch='x86_64' "
                  "machine='pc-q35-7.2'>hvm</type></os><devices>"
                  "<emulator>/usr/bin/qemu-system-x86_64</emulator><hostdev mode='subsystem' "
                  "type='pci' managed='yes'><source><address domain='0x0000' bus='0x3b' slot='0x00' "
                  "function='0x1'/></source></hostdev></devices></domain>"));
}

static void assert_runs_at(Bb *bb, const char *domain, const char *host) {
  assert_text(bb_truth(bb, domain), "host", host);
}

static json_t *jobs_of(Bb *bb) {
  return json_object_get(client_call(bb_connect(bb), "List", NULL), "jobs");
}

/* How many of them moved at once, at most. */
static int most_at_once(Bb *bb) {
  json_t *jobs = jobs_of(bb), *a, *b;
  int most = 0;
  size_t i, k;

  json_array_foreach (jobs, i, a) {
    json_t *one = client_get(bb_connect(bb), text_of(a, "id"));
    json_int_t begin = number_of(one, "started_usec_realtime");
    int now = 0;

    json_array_foreach (jobs, k, b) {
      json_t *other = client_get(bb_connect(bb), text_of(b, "id"));

      now += number_of(other, "started_usec_realtime") <= begin &&
             number_of(other, "finished_usec_realtime") > begin;
    }
    most = MAX(most, now);
  }
  return most;
}

/* Each domain that moved did so by one job, which is of this drain. */
static void assert_one_job_each(Bb *bb, const char *drain_id) {
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  json_t *jobs = jobs_of(bb), *job;
  size_t i;

  json_array_foreach (jobs, i, job) {
    assert_true(g_hash_table_add(seen, (gpointer)text_of(job, "domain.name")));
    assert_text(client_get(bb_connect(bb), text_of(job, "id")), "drain", drain_id);
  }
}

/* --- a whole drain --- */

static void twelve_leave_two_at_a_time_and_one_with_a_passthrough_device_stays(void **state) {
  Bb *bb = *state;
  json_t *stays, *node;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  give_passthrough_device(bb, "vm7");
  bb_start(bb);
  follow = drain(bb, "b");
  await_state(&follow, "moving");
  /* Told at once, before any has moved. */
  assert_int_equal(number_of(follow.status, "moved"), 0);
  stays = guest_of(&follow, "vm7");
  assert_text(stays, "state", "cannot_move");
  assert_text(json_array_get(json_object_get(stays, "refusals"), 0), "target",
              text_of(json_array_get(json_object_get(follow.status, "targets"), 0), "libvirt_uri"));
  assert_text(
      json_array_get(json_object_get(json_array_get(json_object_get(stays, "refusals"), 0), "findings"), 0),
      "code", "HOSTDEV_PCI");
  assert_non_null(strstr(text_of(stays, "message"), "HOSTDEV_PCI"));
  await_end(&follow);
  assert_text(follow.status, "state", "finished");
  assert_counts(&follow, "moved 11, cannot_move 1");
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
  assert_text(node, "cordon.reason", "it is drained");
  assert_text(node, "drain.state", "finished");
}

static void an_empty_node_is_drained_at_once(void **state) {
  Bb *bb = *state;
  Follow follow;

  have_domains(bb, 0);
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_text(follow.status, "state", "finished");
  assert_counts(&follow, "");
}

static void a_paused_domain_is_moved_and_one_that_is_off_is_not(void **state) {
  Bb *bb = *state;
  Follow follow;

  have_domains(bb, 2);
  bb_set_domain(bb, "vm1", "state", json_string("paused"));
  bb_set_domain(bb, "vm2", "state", json_string("inactive"));
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_counts(&follow, "moved 1");
  assert_runs_at(bb, "vm1", "b");
}

/* --- order and targets --- */

static void the_order_is_priority_then_what_takes_less_time(void **state) {
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
  await_end(&follow);
  assert_counts(&follow, "moved 4");
  jobs = jobs_of(bb);
  for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
    assert_text(json_array_get(jobs, i), "domain.name", expected[i]);
}

static void what_is_not_foreseen_to_end_goes_last(void **state) {
  Bb *bb = *state;
  Follow follow;
  json_t *jobs;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(8 << 20));
  /* Of the rest the smallest; it writes all of its memory over and over, and is measured while vm1 moves. */
  bb_set_domain(bb, "vm2", "memory_bytes", json_integer(60 << 20));
  bb_set_domain(bb, "vm2", "working_set_bytes", json_integer(60 << 20));
  bb_set_domain(bb, "vm2", "dirty_bytes_per_s", json_integer(1 << 30));
  bb_set_domain(bb, "vm3", "memory_bytes", json_integer(64 << 20));
  bb_set_domain(bb, "vm4", "memory_bytes", json_integer(64 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_guest(&follow, "vm1", "moving");
  bb_await(bb, text_of(guest_of(&follow, "vm1"), "job"), bb_has_numbers, NULL);
  bb_set_link(bb, "bytes_per_s", json_integer(64 << 20));
  await_end(&follow);
  assert_counts(&follow, "moved 3, left 1");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm2"), "message"), "NOT_CONVERGING"));
  jobs = jobs_of(bb);
  assert_text(json_array_get(jobs, 0), "domain.name", "vm1");
  assert_text(json_array_get(jobs, 3), "domain.name", "vm2");
}

static void the_targets_are_filled_by_room(void **state) {
  Bb *bb = *state;
  const json_int_t gib = 1 << 30;
  int at_b = 0, at_c = 0;
  Follow follow;

  add_host(bb, "c");
  bb_set_host(bb, "b", "free_memory_bytes", json_integer(8 * gib));
  bb_set_host(bb, "c", "free_memory_bytes", json_integer(8 * gib - (40 << 20)));
  bb_start(bb);
  follow = drain(bb, "bc");
  await_end(&follow);
  assert_counts(&follow, "moved 4");
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
  await_end(&follow);
  assert_counts(&follow, "moved 4");
  assert_in_range(most_at_once(bb), 1, 2);
}

static void goals_of_the_drain_are_those_of_its_jobs(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  follow = drain_with(bb, "b", json_pack("{si}", "max_downtime_ms", 123));
  await_end(&follow);
  assert_int_equal(number_of(client_get(bb_connect(bb), text_of(guest_of(&follow, "vm1"), "job")),
                             "policy.max_downtime_ms"),
                   123);
}

/* --- targets that refuse or are away --- */

static void a_target_that_refuses_all_is_said_at_once(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_set_call(bb, "b.open", json_pack("{ss ss}", "fail", "DENIED", "message", "no such user"));
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_counts(&follow, "cannot_move 4");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "TARGET_REFUSES"));
  assert_int_equal(json_array_size(jobs_of(bb)), 0);
}

static void where_one_target_begins_to_refuse_the_rest_goes_to_the_other(void **state) {
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
  await_guest(&follow, "vm1", "moving");
  bb_await(bb, text_of(guest_of(&follow, "vm1"), "job"), bb_has_numbers, NULL);
  bb_set_call(bb, "b.survey_target", json_pack("{ss ss}", "fail", "DENIED", "message", "no such user"));
  bb_set_link(bb, "bytes_per_s", json_integer(64 << 20));
  await_end(&follow);
  assert_counts(&follow, "moved 4");
  assert_runs_at(bb, "vm1", "b");
  /* One has found out for all. */
  assert_int_equal(json_array_size(jobs_of(bb)), 5);
  for (int i = 2; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    assert_runs_at(bb, name, "c");
  }
}

static void a_target_that_is_away_is_waited_for(void **state) {
  Bb *bb = *state;
  Follow follow;
  json_t *guest;

  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 1);
  while (!(guest = json_object_get(follow.guests, "vm1")) || !json_object_get(guest, "message") ||
         !strstr(text_of(guest, "message"), "looked at"))
    follow_next(&follow);
  /* Those find out for all. */
  assert_in_range(number_of(follow.status, "moving"), 1, 2);
  assert_int_equal(number_of(follow.status, "waiting") + number_of(follow.status, "moving"), 4);
  bb_set_host(bb, "b", "reachable", json_true());
  await_end(&follow);
  assert_counts(&follow, "moved 4");
}

static void but_not_longer_than_may_be(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "UnschedulableTimeout=700ms\n");
  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_text(follow.status, "state", "finished");
  assert_counts(&follow, "left 4");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm4"), "message"), "TARGET_UNREACHABLE"));
  assert_true(json_array_size(jobs_of(bb)) <= 2);
}

/* --- what domains do meanwhile --- */

static void one_that_starts_meanwhile_is_moved_as_well(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 2);
  bb_add_domain(bb, "late");
  bb_link_fast(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 5");
  assert_guest(&follow, "late", "moved");
  assert_runs_at(bb, "late", "b");
}

static void one_that_stops_while_it_waits_is_gone(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_guest(&follow, "vm1", "moving");
  bb_set_domain(bb, "vm3", "state", json_string("inactive"));
  await_guest(&follow, "vm3", "gone");
  bb_link_fast(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 3, gone 1");
  assert_runs_at(bb, "vm3", "a");
}

static void one_that_stops_while_it_moves_is_gone_and_moved_if_it_comes_back(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_guest(&follow, "vm1", "moving");
  bb_await(bb, text_of(guest_of(&follow, "vm1"), "job"), bb_has_numbers, NULL);
  bb_set_domain(bb, "vm1", "state", json_string("inactive"));
  await_guest(&follow, "vm1", "gone");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "GUEST_STOPPED"));
  bb_set_domain(bb, "vm1", "state", json_string("running"));
  await_guest(&follow, "vm1", "waiting");
  bb_link_fast(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 4");
  assert_runs_at(bb, "vm1", "b");
}

static void one_whose_move_is_aborted_is_left(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_guest(&follow, "vm1", "moving");
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", text_of(guest_of(&follow, "vm1"), "job")));
  await_guest(&follow, "vm1", "left");
  bb_link_fast(bb);
  await_end(&follow);
  assert_text(follow.status, "state", "finished");
  assert_counts(&follow, "moved 3, left 1");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm1"), "message"), "USER_ABORT"));
  assert_runs_at(bb, "vm1", "a");
}

static void a_move_of_before_is_followed_as_one_of_the_drain(void **state) {
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
  await_end(&follow);
  assert_counts(&follow, "moved 4");
  assert_int_equal(json_array_size(jobs_of(bb)), 4);
}

/* --- an end that is asked for --- */

static void aborted_it_starts_nothing_more_and_lets_go_on_what_moves(void **state) {
  Bb *bb = *state;
  json_t *status;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 2);
  bb_await(bb, text_of(guest_of(&follow, "vm1"), "job"), bb_has_numbers, NULL);
  bb_await(bb, text_of(guest_of(&follow, "vm10"), "job"), bb_has_numbers, NULL);
  status = json_object_get(client_call(bb_connect(bb), "AbortDrain", NULL), "drain");
  assert_text(status, "state", "stopping");
  assert_non_null(strstr(text_of(status, "aborted_by"), "uid "));
  await_count(&follow, "left", 10);
  bb_link_fast(bb);
  await_end(&follow);
  assert_text(follow.status, "state", "aborted");
  assert_counts(&follow, "moved 2, left 10");
  assert_non_null(strstr(text_of(guest_of(&follow, "vm5"), "message"), "aborted"));
  assert_int_equal(json_array_size(jobs_of(bb)), 2);
  /* Once more does no harm; the node stays cordoned; and a new one takes the rest. */
  client_call(bb_connect(bb), "AbortDrain", NULL);
  client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm5"), "NodeCordoned");
  follow = drain(bb, "b");
  await_end(&follow);
  assert_counts(&follow, "moved 10");
}

static void aborted_it_takes_back_what_waits_in_the_queue(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_set_host(bb, "b", "reachable", json_false());
  bb_start(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 1);
  client_call(bb_connect(bb), "AbortDrain", NULL);
  await_end(&follow);
  assert_text(follow.status, "state", "aborted");
  assert_counts(&follow, "left 4");
  bb_set_host(bb, "b", "reachable", json_true());
  assert_runs_at(bb, "vm1", "a");
}

/* --- restarts --- */

static void killed_in_the_middle_it_goes_on(void **state) {
  Bb *bb = *state;
  g_autofree char *id = NULL;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=2\n");
  have_domains(bb, 12);
  give_passthrough_device(bb, "vm7");
  bb_start(bb);
  /* A quarter of a second each: the kills come at whatever point. */
  follow = drain(bb, "b");
  id = g_strdup(text_of(follow.status, "id"));
  for (int moved = 2; moved <= 8; moved += 2) {
    await_count(&follow, "moved", moved);
    bb_stop(bb, SIGKILL);
    bb_start(bb);
    follow = watch_drain(bb);
    assert_text(follow.status, "id", id);
    client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm7"), "NodeCordoned");
  }
  await_end(&follow);
  assert_text(follow.status, "state", "finished");
  assert_counts(&follow, "moved 11, cannot_move 1");
  assert_one_job_each(bb, id);
  assert_in_range(most_at_once(bb), 1, 2);
  for (int i = 1; i <= 12; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    assert_runs_at(bb, name, i == 7 ? "a" : "b");
  }
}

static void killed_right_after_the_answer_it_begins(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  drain(bb, "b");
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  follow = watch_drain(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 4");
}

static void an_abort_is_remembered(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_guest(&follow, "vm1", "moving");
  bb_await(bb, text_of(guest_of(&follow, "vm1"), "job"), bb_has_numbers, NULL);
  client_call(bb_connect(bb), "AbortDrain", NULL);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  follow = watch_drain(bb);
  bb_link_fast(bb);
  await_end(&follow);
  assert_text(follow.status, "state", "aborted");
  assert_guest(&follow, "vm1", "moved");
  assert_int_equal(json_array_size(jobs_of(bb)), 1);
}

static void what_came_of_it_is_remembered(void **state) {
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

static void jobs_that_are_not_kept_count_all_the_same(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "KeepFinished=0\n");
  bb_start(bb);
  follow = drain(bb, "b");
  await_end(&follow);
  assert_counts(&follow, "moved 4");
}

static void without_this_nodes_libvirtd_it_waits(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_configure(bb, "ConnectTimeout=2s\n");
  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 2);
  bb_stop(bb, SIGKILL);
  bb_set_host(bb, "a", "reachable", json_false());
  bb_start(bb);
  follow = watch_drain(bb);
  assert_text(follow.status, "state", "checking");
  bb_set_host(bb, "a", "reachable", json_true());
  bb_link_fast(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 4");
}

static void a_record_that_cannot_be_read_ends_the_drain_and_not_the_agent(void **state) {
  Bb *bb = *state;
  g_autofree char *path = bb_record_path(bb, "drain");
  Follow follow;

  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
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

static void what_cannot_be_is_refused_and_cordons_nothing(void **state) {
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

static void one_key_is_one_drain_and_there_is_one_at_a_time(void **state) {
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
  /* Without a key it is a new one. */
  same = drain(bb, "b");
  await_end(&same);
  assert_true(strcmp(text_of(same.status, "id"), text_of(first.status, "id")) != 0);
  assert_counts(&same, "");
}

static void a_watcher_that_leaves_stops_nothing(void **state) {
  Bb *bb = *state;
  Follow follow;

  bb_start(bb);
  bb_link_slow(bb);
  follow = drain(bb, "b");
  await_count(&follow, "moving", 2);
  client_close(follow.client);
  bb_link_fast(bb);
  follow = watch_drain(bb);
  await_end(&follow);
  assert_counts(&follow, "moved 4");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, twelve_leave_two_at_a_time_and_one_with_a_passthrough_device_stays);
  TESTS_ADD(&tests, an_empty_node_is_drained_at_once);
  TESTS_ADD(&tests, a_paused_domain_is_moved_and_one_that_is_off_is_not);
  TESTS_ADD(&tests, the_order_is_priority_then_what_takes_less_time);
  TESTS_ADD(&tests, what_is_not_foreseen_to_end_goes_last);
  TESTS_ADD(&tests, the_targets_are_filled_by_room);
  TESTS_ADD(&tests, the_limit_of_a_target_holds);
  TESTS_ADD(&tests, goals_of_the_drain_are_those_of_its_jobs);
  TESTS_ADD(&tests, a_target_that_refuses_all_is_said_at_once);
  TESTS_ADD(&tests, where_one_target_begins_to_refuse_the_rest_goes_to_the_other);
  TESTS_ADD(&tests, a_target_that_is_away_is_waited_for);
  TESTS_ADD(&tests, but_not_longer_than_may_be);
  TESTS_ADD(&tests, one_that_starts_meanwhile_is_moved_as_well);
  TESTS_ADD(&tests, one_that_stops_while_it_waits_is_gone);
  TESTS_ADD(&tests, one_that_stops_while_it_moves_is_gone_and_moved_if_it_comes_back);
  TESTS_ADD(&tests, one_whose_move_is_aborted_is_left);
  TESTS_ADD(&tests, a_move_of_before_is_followed_as_one_of_the_drain);
  TESTS_ADD(&tests, aborted_it_starts_nothing_more_and_lets_go_on_what_moves);
  TESTS_ADD(&tests, aborted_it_takes_back_what_waits_in_the_queue);
  TESTS_ADD(&tests, killed_in_the_middle_it_goes_on);
  TESTS_ADD(&tests, killed_right_after_the_answer_it_begins);
  TESTS_ADD(&tests, an_abort_is_remembered);
  TESTS_ADD(&tests, what_came_of_it_is_remembered);
  TESTS_ADD(&tests, jobs_that_are_not_kept_count_all_the_same);
  TESTS_ADD(&tests, without_this_nodes_libvirtd_it_waits);
  TESTS_ADD(&tests, a_record_that_cannot_be_read_ends_the_drain_and_not_the_agent);
  TESTS_ADD(&tests, what_cannot_be_is_refused_and_cordons_nothing);
  TESTS_ADD(&tests, one_key_is_one_drain_and_there_is_one_at_a_time);
  TESTS_ADD(&tests, a_watcher_that_leaves_stops_nothing);
  return bb_run(&tests, "drain");
}

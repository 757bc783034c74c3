/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For the tests of drains: follows a drain. */
#pragma once

#include "tests/blackbox/harness.h"

#include <signal.h>

/* --- following a drain --- */

typedef struct Follow {
  Client *client;
  json_t *status; /* the newest */
  json_t *guests; /* by name, as told last */
  gint64 until_us;
  bool over;
} Follow;

/* A drain that makes no progress may still send replies. */
#define FOLLOW_S 60

static inline json_t *targets_of(Bb *bb, const char *hosts) {
  json_t *array = json_array();

  for (const char *host = hosts; *host; host++) {
    g_autofree char *target = bb_target(bb, (char[]){*host, '\0'});

    json_array_append_new(array, json_string(target));
  }
  return array;
}

static inline json_t *drain_parameters(Bb *bb, const char *hosts, const char *request_key, json_t *policy) {
  return json_pack("{so ss* so*}", "targets", targets_of(bb, hosts), "request_key", request_key, "policy",
                   policy);
}

/* Takes the next reply. Each has the domains that changed; together they match the counts. */
static inline void follow_next(Follow *follow) {
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

static inline Follow follow_call(Bb *bb, const char *method, json_t *parameters) {
  Follow follow = {.client = bb_connect(bb),
                   .guests = bb_keep(bb, json_object()),
                   .until_us = g_get_monotonic_time() + FOLLOW_S * G_USEC_PER_SEC};

  client_send(follow.client, method, parameters, VARLINK_CALL_MORE);
  follow_next(&follow);
  return follow;
}

static inline Follow drain(Bb *bb, const char *hosts) {
  return follow_call(bb, "Drain", drain_parameters(bb, hosts, NULL, NULL));
}

static inline Follow drain_with(Bb *bb, const char *hosts, json_t *policy) {
  return follow_call(bb, "Drain", drain_parameters(bb, hosts, NULL, policy));
}

static inline Follow watch_drain(Bb *bb) {
  return follow_call(bb, "WatchDrain", NULL);
}

static inline json_t *guest_of(const Follow *follow, const char *name) {
  json_t *guest = json_object_get(follow->guests, name);

  if (!guest)
    fail_msg("the drain does not know %s", name);
  return guest;
}

static inline void await_guest(Follow *follow, const char *name, const char *state) {
  json_t *guest;

  while (!(guest = json_object_get(follow->guests, name)) || strcmp(text_of(guest, "state"), state) != 0)
    follow_next(follow);
}

static inline void await_state(Follow *follow, const char *state) {
  while (strcmp(text_of(follow->status, "state"), state) != 0)
    follow_next(follow);
}

static inline void await_count(Follow *follow, const char *state, json_int_t at_least) {
  while (number_of(follow->status, state) < at_least)
    follow_next(follow);
}

static inline void await_end(Follow *follow) {
  while (!follow->over)
    follow_next(follow);
}

static inline void assert_guest(const Follow *follow, const char *name, const char *state) {
  assert_text(guest_of(follow, name), "state", state);
}

/* "moved 3, left 1" and nothing else. */
static inline void assert_counts(const Follow *follow, const char *expected) {
  static const char *const states[] = {"checking",    "waiting", "moving", "moved",
                                       "cannot_move", "left",    "gone"};
  g_autoptr(GString) text = g_string_new(NULL);

  for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
    if (number_of(follow->status, states[i]) > 0)
      g_string_append_printf(text, "%s%s %d", text->len > 0 ? ", " : "", states[i],
                             (int)number_of(follow->status, states[i]));
  assert_string_equal(text->str, expected);
}

/* Follows it to its end, which must be this. */
static inline void assert_ends(Follow *follow, const char *state, const char *counts) {
  await_end(follow);
  assert_text(follow->status, "state", state);
  assert_counts(follow, counts);
}

/* Waits until it migrates and libvirt has job statistics. */
static inline void await_numbers(Bb *bb, Follow *follow, const char *name) {
  await_guest(follow, name, "moving");
  bb_await(bb, text_of(guest_of(follow, name), "job"), bb_has_numbers, NULL);
}

/* --- the agent --- */

/* Its migrations do not end before bb_link_fast(). */
static inline Follow drain_slowly(Bb *bb) {
  bb_start(bb);
  bb_link_slow(bb);
  return drain(bb, "b");
}

static inline Follow kill_and_start(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  return watch_drain(bb);
}

/* --- the world --- */

static inline void add_host(Bb *bb, const char *host) {
  json_object_set_new(json_object_get(bb->world, "hosts"), host, json_object());
  bb_publish(bb);
}

/* vm1 to vmN. */
static inline void have_domains(Bb *bb, int n) {
  json_object_clear(json_object_get(bb->world, "domains"));
  for (int i = 1; i <= n; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    bb_add_domain(bb, name);
  }
  bb_publish(bb);
}

static inline void give_passthrough_device(Bb *bb, const char *domain) {
  bb_set_domain(
      bb, domain, "xml",
      json_string("<domain type='kvm'><name>vm</name><uuid>00000000-0000-4000-8000-00000000000a</uuid>"
                  "<memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type arch='x86_64' "
                  "machine='pc-q35-7.2'>hvm</type></os><devices>"
                  "<emulator>/usr/bin/qemu-system-x86_64</emulator><hostdev mode='subsystem' "
                  "type='pci' managed='yes'><source><address domain='0x0000' bus='0x3b' slot='0x00' "
                  "function='0x1'/></source></hostdev></devices></domain>"));
}

static inline void assert_runs_at(Bb *bb, const char *domain, const char *host) {
  assert_text(bb_truth(bb, domain), "host", host);
}

static inline json_t *jobs_of(Bb *bb) {
  return json_object_get(client_call(bb_connect(bb), "List", NULL), "jobs");
}

/* The most that migrated at the same time. */
static inline int most_at_once(Bb *bb) {
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

/* Each domain that migrated did so by one job, which belongs to this drain. */
static inline void assert_one_job_each(Bb *bb, const char *drain_id) {
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  json_t *jobs = jobs_of(bb), *job;
  size_t i;

  json_array_foreach (jobs, i, job) {
    assert_true(g_hash_table_add(seen, (gpointer)text_of(job, "domain.name")));
    assert_text(client_get(bb_connect(bb), text_of(job, "id")), "drain", drain_id);
  }
}

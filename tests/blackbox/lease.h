/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to the tests of leases. Node a is ours, as always; guests come from b. */
#pragma once

#include "tests/blackbox/harness.h"

#include <string.h>

#define MIB (1 << 20)

/* vm8 and vm9 are at b. Returns a client of the agent. */
static inline Client *lease_start(Bb *bb) {
  static const char *const guests[] = {"vm8", "vm9"};

  for (size_t i = 0; i < LENGTH(guests); i++) {
    bb_add_domain(bb, guests[i]);
    bb_set_domain(bb, guests[i], "host", json_string("b"));
  }
  bb_start(bb);
  return bb_connect(bb);
}

static inline json_t *prepare_parameters(Bb *bb, const char *domain) {
  g_autofree char *source = bb_target(bb, "b");

  return json_pack("{ss ss}", "domain", domain, "source", source);
}

static inline json_t *with(json_t *parameters, const char *key, json_t *value) {
  json_object_set_new(parameters, key, value);
  return parameters;
}

static inline json_t *prepare(Bb *bb, Client *client, const char *domain) {
  return json_object_get(client_call(client, "Prepare", prepare_parameters(bb, domain)), "job");
}

static inline json_t *prepare_for(Bb *bb, Client *client, const char *domain, int seconds) {
  json_t *parameters = with(prepare_parameters(bb, domain), "timeout_s", json_integer(seconds));

  return json_object_get(client_call(client, "Prepare", parameters), "job");
}

/* Somebody at b migrates it here, or aborts that. */
static inline void migrate(Bb *bb, const char *domain) {
  bb_set_domain(bb, domain, "migrate_to", json_string("a"));
}

static inline void cancel(Bb *bb, const char *domain) {
  bb_set_domain(bb, domain, "migrate_to", NULL);
}

/* With a lease: brings it so far that it is migrating and does not arrive before bb_link_fast(). Returns its job. */
static inline json_t *let_come(Bb *bb, Client *client, const char *domain) {
  json_t *job = prepare(bb, client, domain);

  bb_link_slow(bb);
  migrate(bb, domain);
  return bb_await_phase(bb, text_of(job, "id"), "migrating");
}

/* Waits for the first job. */
static inline json_t *await_job(Client *client) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  json_t *job;

  do {
    job = json_array_get(member_of(client_call(client, "List", NULL), "jobs"), 0);
    assert_true(job || g_get_monotonic_time() < until_us);
  } while (!job);
  return job;
}

static inline json_t *node(Client *client) {
  return client_call(client, "GetNode", NULL);
}

static inline json_t *finding(json_t *error, const char *code) {
  json_t *found;
  size_t i;

  json_array_foreach (json_object_get(error, "findings"), i, found)
    if (strcmp(text_of(found, "code"), code) == 0)
      return found;
  fail_msg("no finding %s", code);
  return NULL;
}

static inline void assert_no_leases(Client *client) {
  assert_int_equal(number_of(node(client), "incoming"), 0);
  assert_int_equal(number_of(node(client), "reserved_bytes"), 0);
}

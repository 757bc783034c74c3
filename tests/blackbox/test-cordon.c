/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A cordoned node refuses new work, stays cordoned across restarts, and goes on with what it has. */
#include "tests/blackbox/harness.h"

#include <signal.h>

static json_t *cordon_of(Client *client) {
  return json_object_get(client_call(client, "GetNode", NULL), "cordon");
}

static void a_cordoned_node_refuses_a_start_and_says_why(void **state) {
  Bb *bb = *state;
  json_t *error;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  assert_null(cordon_of(client));
  client_call(client, "Cordon", json_pack("{ss}", "reason", "disk 3 fails"));
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "NodeCordoned");
  assert_text(error, "reason", "disk 3 fails");
  assert_non_null(strstr(text_of(error, "by"), "uid "));
  assert_text(cordon_of(client), "reason", "disk 3 fails");
  assert_int_equal(number_of(cordon_of(client), "since_usec_realtime"),
                   number_of(error, "since_usec_realtime"));
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);

  client_call(client, "Uncordon", NULL);
  assert_null(cordon_of(client));
  client_start(client, "vm1", NULL);
}

static void from_the_reply_on_it_survives_a_kill(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client_call(bb_connect(bb), "Cordon", NULL);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  client = bb_connect(bb);
  assert_text(cordon_of(client), "reason", "");
  client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "NodeCordoned");
  client_call(client, "Uncordon", NULL);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  client = bb_connect(bb);
  assert_null(cordon_of(client));
  client_start(client, "vm1", NULL);
}

static void accepted_jobs_go_on(void **state) {
  Bb *bb = *state;
  json_t *first, *second, *parameters;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  first = client_start(client, "vm1", NULL);
  parameters = bb_start_parameters(bb, "vm2");
  json_object_set_new(parameters, "request_key", json_string("k"));
  second = json_object_get(client_call(client, "Start", json_incref(parameters)), "job");
  client_call(client, "Cordon", NULL);
  /* Repeating an accepted call is not refused. */
  assert_text(client_call(client, "Start", parameters), "job.id", text_of(second, "id"));
  bb_link_fast(bb);
  bb_await_phase(bb, text_of(first, "id"), "succeeded");
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
}

static void even_if_cordoned_is_accepted(void **state) {
  Bb *bb = *state;
  json_t *parameters, *job;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_call(client, "Cordon", NULL);
  parameters = bb_start_parameters(bb, "vm1");
  json_object_set_new(parameters, "even_if_cordoned", json_false());
  client_refused(client, "Start", json_deep_copy(parameters), "NodeCordoned");
  json_object_set_new(parameters, "even_if_cordoned", json_true());
  job = json_object_get(client_call(client, "Start", parameters), "job");
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

static void a_start_that_was_waiting_for_libvirtd_is_refused(void **state) {
  Bb *bb = *state;
  g_autofree char *error = NULL;
  Client *client, *starter;

  bb_start(bb);
  client = bb_connect(bb);
  starter = bb_connect(bb);
  bb_set_call(bb, "domain_facts", json_pack("{sb}", "hang", 1));
  client_send(starter, "Start", bb_start_parameters(bb, "vm1"), 0);
  /* Once the second call is answered, both have been read. */
  client_call(client, "Cordon", NULL);
  bb_set_call(bb, "domain_facts", NULL);
  client_receive(starter, &error, NULL);
  assert_non_null(error);
  assert_string_equal(error, "NodeCordoned");
}

static void repeated_it_keeps_the_first_time(void **state) {
  Bb *bb = *state;
  json_int_t since;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_call(client, "Uncordon", NULL); /* does no harm */
  client_call(client, "Cordon", json_pack("{ss}", "reason", "one"));
  since = number_of(cordon_of(client), "since_usec_realtime");
  client_call(client, "Cordon", NULL);
  assert_text(cordon_of(client), "reason", "one");
  client_call(client, "Cordon", json_pack("{ss}", "reason", "two"));
  assert_text(cordon_of(client), "reason", "two");
  assert_int_equal(number_of(cordon_of(client), "since_usec_realtime"), since);
}

static void a_reason_has_a_limit(void **state) {
  Bb *bb = *state;
  g_autofree char *longest = g_strnfill(500, 'x'), *longer = g_strnfill(501, 'x');
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_refused(client, "Cordon", json_pack("{ss}", "reason", longer), "InvalidParameter");
  assert_null(cordon_of(client));
  client_call(client, "Cordon", json_pack("{ss}", "reason", longest));
}

static void an_unreadable_record_cordons(void **state) {
  Bb *bb = *state;
  g_autofree char *path = g_build_filename(bb->state_directory, "jobs", "node.json", NULL);
  Client *client;

  bb_start(bb);
  client_call(bb_connect(bb), "Cordon", NULL);
  bb_stop(bb, SIGTERM);
  assert_true(g_file_set_contents(path, "{\"format\":1,\"cor", -1, NULL));
  bb_start(bb);
  client = bb_connect(bb);
  client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "NodeCordoned");
  client_call(client, "Uncordon", NULL);
  client_start(client, "vm1", NULL);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_cordoned_node_refuses_a_start_and_says_why);
  TESTS_ADD(&tests, from_the_reply_on_it_survives_a_kill);
  TESTS_ADD(&tests, accepted_jobs_go_on);
  TESTS_ADD(&tests, even_if_cordoned_is_accepted);
  TESTS_ADD(&tests, a_start_that_was_waiting_for_libvirtd_is_refused);
  TESTS_ADD(&tests, repeated_it_keeps_the_first_time);
  TESTS_ADD(&tests, a_reason_has_a_limit);
  TESTS_ADD(&tests, an_unreadable_record_cordons);
  return bb_run(&tests, "cordon");
}

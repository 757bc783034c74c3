/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Acknowledged jobs survive a kill, however long their texts; and an unreadable record is not ignored. */
#include "tests/blackbox/harness.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef"

static json_t *keyed_start(Bb *bb, const char *domain, const char *key) {
  json_t *parameters = bb_start_parameters(bb, domain);

  json_object_set_new(parameters, "request_key", json_string(key));
  return parameters;
}

static bool is_begun(Client *client, json_t *parameters) {
  json_t *created = json_object_get(client_call(client, "Start", parameters), "created");

  return json_is_true(created);
}

static char *path_of(Bb *bb, const char *name) {
  return g_build_filename(bb->state_directory, "jobs", name, NULL);
}

static void put(Bb *bb, const char *name, const char *text) {
  g_autofree char *path = path_of(bb, name);

  assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool exists(Bb *bb, const char *name) {
  g_autofree char *path = path_of(bb, name);

  return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void remove_file(Bb *bb, const char *name) {
  g_autofree char *path = path_of(bb, name);

  assert_int_equal(unlink(path), 0);
}

/* --- long texts --- */

/* libvirt's errors may have any length, and each is reported. */
static void a_job_with_long_texts_survives_a_kill_unchanged(void **state) {
  g_autofree char *long_text = g_strnfill(300 * 1024, 'x');
  Bb *bb = *state;
  json_t *answer;
  Client *client;
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "set_bandwidth", json_pack("{ss ss}", "fail", "FAILED", "message", long_text));
  client = bb_connect(bb);
  answer = client_call(client, "Start", keyed_start(bb, "vm1", "k"));
  id = text_of(answer, "job.id");
  bb_await(bb, id, bb_has_numbers, NULL);
  for (int i = 1; i <= 5; i++) {
    g_autofree char *seen = g_strdup_printf("bandwidth_bytes_per_s=%d", 1000000 + i);

    client_call(client, "Tune",
                json_pack("{ss s{si}}", "job", id, "policy", "bandwidth_bytes_per_s", 1000000 + i));
    bb_await_event(bb, id, "tuned", seen);
    bb_await_event(bb, id, "warning", "new bandwidth limit: refused");
  }
  /* All of it is on disk. */
  client_call(client, "Tune", json_pack("{ss s{si}}", "job", id, "policy", "progress_timeout_s", 1000));
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "set_bandwidth", NULL);
  bb_start(bb);

  answer = client_call(bb_connect(bb), "Start", keyed_start(bb, "vm1", "k"));
  assert_text(answer, "job.id", id);
  assert_true(json_is_false(json_object_get(answer, "created")));
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
}

static void a_domain_too_large_for_a_record_gets_a_named_error(void **state) {
  g_autofree char *name = g_strnfill(100 * 1024, 'n');
  Bb *bb = *state;
  Client *client;
  json_t *error;

  bb_start(bb);
  bb_add_domain(bb, name);
  bb_publish(bb);
  client = bb_connect(bb);
  error = client_refused(client, "Start", keyed_start(bb, name, "k"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), "its domain's name has "));
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
  /* The key can be used again. */
  assert_true(is_begun(client, keyed_start(bb, "vm1", "k")));
}

/* --- unreadable records --- */

/* The record of a job for vm1 under the key "k", damaged in the middle. */
static char *torn_record(Bb *bb) {
  g_autofree char *path = NULL, *text = NULL;
  json_t *job = client_call(bb_connect(bb), "Start", keyed_start(bb, "vm1", "k"));
  const char *id = text_of(job, "job.id");

  bb_link_slow(bb);
  bb_await(bb, id, bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  path = bb_record_path(bb, id);
  assert_true(g_file_get_contents(path, &text, NULL, NULL));
  assert_non_null(strstr(text, "\"events\""));
  *strstr(text, "\"events\"") = '\0';
  assert_true(g_file_set_contents(path, text, -1, NULL));
  return g_strdup(id);
}

static void its_key_and_its_domain_stay_taken(void **state) {
  Bb *bb = *state;
  g_autofree char *id = NULL, *bad = NULL;
  Client *client;
  json_t *error, *node;

  bb_start(bb);
  id = torn_record(bb);
  bad = g_strconcat(id, ".json.bad", NULL);
  /* It is reported on each start. */
  for (int i = 0; i < 2; i++) {
    bb_start(bb);
    client = bb_connect(bb);
    error = client_refused(client, "Start", keyed_start(bb, "vm1", "k"), "StoreFailed");
    assert_non_null(strstr(text_of(error, "message"), id));
    client_refused(client, "Start", keyed_start(bb, "vm2", "k"), "StoreFailed");
    client_refused(client, "Start", keyed_start(bb, "vm1", "another"), "StoreFailed");
    node = client_call(client, "GetNode", NULL);
    assert_int_equal(json_array_size(json_object_get(node, "damaged_records")), 1);
    assert_text(json_array_get(json_object_get(node, "damaged_records"), 0), "request_key", "k");
    assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
    if (i == 0)
      bb_stop(bb, SIGTERM);
  }
  bb_link_fast(bb);
  assert_true(is_begun(client, keyed_start(bb, "vm3", "k3")));

  /* An operator has looked. */
  remove_file(bb, bad);
  assert_true(is_begun(client, keyed_start(bb, "vm2", "k")));
  assert_null(json_object_get(client_call(client, "GetNode", NULL), "damaged_records"));
}

typedef struct Unknown {
  const char *name;
  const char *text; /* NULL: a link, which cannot be opened */
  const char *file; /* what is to be moved away */
} Unknown;

static const Unknown unknowns[] = {
    {"empty", "", ID ".json.bad"},
    {"cut off before its key", "{\"format\":2,\"job\":{\"id\":\"" ID "\",\"requ", ID ".json.bad"},
    {"no record", "[]", ID ".json"},
    {"cannot be opened", NULL, ID ".json"},
    {"with a key twice",
     "{\"format\":2,\"job\":{\"id\":\"" ID
     "\",\"request_key\":\"k\",\"request_key\":\"l\",\"domain\":{\"uuid\":"
     "\"00000000-0000-4000-8000-000000000001\"}",
     ID ".json.bad"},
};

static void an_entirely_unreadable_record_blocks_all_starts(void **state) {
  Bb *bb = *state;
  const Unknown *row = bb->row;
  g_autofree char *path = path_of(bb, ID ".json");
  Client *client;
  json_t *error;

  bb_start(bb);
  bb_stop(bb, SIGTERM);
  if (row->text)
    put(bb, ID ".json", row->text);
  else
    assert_int_equal(symlink("/nowhere", path), 0);
  bb_start(bb);
  client = bb_connect(bb);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), row->file));
  remove_file(bb, row->file);
  client_start(client, "vm1", NULL);
}

static void a_good_record_in_place_of_a_bad_one_counts(void **state) {
  Bb *bb = *state;
  g_autofree char *bad = NULL;
  const char *id;
  json_t *answer;

  bb_start(bb);
  id = text_of(client_call(bb_connect(bb), "Start", keyed_start(bb, "vm1", "k")), "job.id");
  bb_await_phase(bb, id, "succeeded");
  bb_stop(bb, SIGTERM);
  bad = g_strconcat(id, ".json.bad", NULL);
  put(bb, bad, "torn");
  bb_start(bb);
  answer = client_call(bb_connect(bb), "Start", keyed_start(bb, "vm1", "k"));
  assert_text(answer, "job.id", id);
  client_start(bb_connect(bb), "vm2", NULL);
}

static void an_unreadable_cordon_holds_until_it_is_lifted(void **state) {
  Bb *bb = *state;

  bb_start(bb);
  client_call(bb_connect(bb), "Cordon", json_pack("{ss}", "reason", "disks"));
  bb_stop(bb, SIGTERM);
  put(bb, "node.json", "{\"format\":2,\"cor");
  for (int i = 0; i < 2; i++) {
    bb_start(bb);
    client_refused(bb_connect(bb), "Start", bb_start_parameters(bb, "vm1"), "NodeCordoned");
    bb_stop(bb, SIGTERM);
  }
  assert_true(exists(bb, "node.json.bad"));
  bb_start(bb);
  client_call(bb_connect(bb), "Uncordon", NULL);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  client_start(bb_connect(bb), "vm1", NULL);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_job_with_long_texts_survives_a_kill_unchanged);
  TESTS_ADD(&tests, a_domain_too_large_for_a_record_gets_a_named_error);
  TESTS_ADD(&tests, its_key_and_its_domain_stay_taken);
  TESTS_ADD_ROWS(&tests, an_entirely_unreadable_record_blocks_all_starts, unknowns);
  TESTS_ADD(&tests, a_good_record_in_place_of_a_bad_one_counts);
  TESTS_ADD(&tests, an_unreadable_cordon_holds_until_it_is_lifted);
  return bb_run(&tests, "records");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon is killed and restarted: a job has one history and one end. */
#include "tests/blackbox/harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The FakePhase in the scripted hypervisor's file. */
#define TRUTH_POST_COPY 5

static void kill_and_start(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_start(bb);
}

static void killed_while_pending(void **state) {
  Bb *bb = *state;
  json_t *first, *second;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  first = client_start(client, "vm1", NULL);
  second = client_start(client, "vm2", NULL);
  assert_text(second, "phase", "pending");
  bb_await(bb, text_of(first, "id"), bb_has_numbers, NULL);
  kill_and_start(bb);
  client = bb_connect(bb);
  assert_text(client_get(client, "vm2"), "phase", "pending");
  assert_int_equal(number_of(client_get(client, "vm2"), "pending.since_usec_realtime"),
                   number_of(second, "pending.since_usec_realtime"));
  client_refused(client, "Start", bb_start_parameters(bb, "vm2"), "DomainBusy");
  bb_link_fast(bb);
  second = bb_await_phase(bb, text_of(second, "id"), "succeeded");
  assert_events_whole(second);
  assert_events_whole(client_get(client, text_of(first, "id")));
}

static void killed_while_preparing(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "survey_target", json_pack("{sb}", "hang", 1));
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "preparing");
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "survey_target", NULL);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
}

static void killed_while_migrating(void **state) {
  Bb *bb = *state;
  json_t *before, *after;
  Client *client;

  bb_start(bb);
  bb_link_slow(bb);
  before = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(before, "id"), "migrating");
  before = bb_await(bb, text_of(before, "id"), bb_has_numbers, NULL);
  kill_and_start(bb);

  /* The migration is resumed where it is, and steered on; no second one begins. */
  after = bb_await_phase(bb, text_of(before, "id"), "migrating");
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
  assert_int_equal(number_of(after, "started_usec_realtime"), number_of(before, "started_usec_realtime"));
  assert_int_equal(number_of(after, "created_usec_realtime"), number_of(before, "created_usec_realtime"));
  assert_true(llabs(number_of(after, "deadline_usec_realtime") -
                    number_of(before, "deadline_usec_realtime")) < 50000);
  assert_true(number_of(after, "revision") > number_of(before, "revision"));

  client = bb_connect(bb);
  client_call(client, "Tune",
              json_pack("{ss s{si}}", "job", "vm1", "policy", "bandwidth_bytes_per_s", 1 << 30));
  bb_await_event(bb, text_of(before, "id"), "action", "new bandwidth limit");
  bb_link_fast(bb);
  after = bb_await_phase(bb, text_of(before, "id"), "succeeded");
  assert_events_whole(after);
  assert_true(number_of(after, "result.downtime_ms") > 0);
  assert_text(bb_truth(bb, "vm1"), "host", "b");
}

static void killed_again_and_again(void **state) {
  Bb *bb = *state;
  json_int_t revision = 0;
  const char *id;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  for (int i = 0; i < 5; i++) {
    bb_await_phase(bb, id, "migrating");
    job = bb_await(bb, id, bb_has_numbers, NULL);
    assert_true(number_of(job, "revision") > revision);
    /* The reply says that the record is on disk: a second kill during a write is another matter. */
    job = client_call(bb_connect(bb), "Tune",
                      json_pack("{ss s{si}}", "job", "vm1", "policy", "progress_timeout_s", 1000 + i));
    revision = number_of(job, "job.revision");
    kill_and_start(bb);
  }
  bb_link_fast(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_events_whole(job);
}

static void a_migration_that_ended_while_nobody_watched(void **state) {
  Bb *bb = *state;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  bb_link_fast(bb);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_true(number_of(job, "result.downtime_ms") > 0);
  assert_events_whole(job);
}

static void an_abort_requested_before_is_carried_out(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  bb_set_call(bb, "abort_job", json_pack("{sb}", "hang", 1));
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  bb_stop(bb, SIGKILL);
  bb_set_call(bb, "abort_job", NULL);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "USER_ABORT");
  assert_text(job, "failure.phase", "migrating");
  assert_events_whole(job);
}

static void the_deadline_counts_from_the_first_start(void **state) {
  Bb *bb = *state;
  json_int_t deadline;
  json_t *job;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", json_pack("{si}", "completion_timeout_s_per_gib", 6));
  job = bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  deadline = number_of(job, "deadline_usec_realtime");
  kill_and_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "DEADLINE");
  assert_true(number_of(job, "finished_usec_realtime") >= deadline - 1000);
  assert_true(number_of(job, "finished_usec_realtime") < deadline + 1500000);
}

/* Does not wait for the reply: whatever the daemon had done by then, repeating the call gives one job that ends well. */
static void a_start_can_be_repeated_after_a_kill_in_the_middle(void **state) {
  Bb *bb = *state;

  for (int i = 1; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);
    json_t *parameters = bb_start_parameters(bb, name);
    json_t *again;

    json_object_set_new(parameters, "request_key", json_string(name));
    bb_start(bb);
    client_send(bb_connect(bb), "Start", json_incref(parameters), 0);
    kill_and_start(bb);
    again = client_call(bb_connect(bb), "Start", parameters);
    bb_await_phase(bb, text_of(again, "job.id"), "succeeded");
    assert_int_equal(number_of(bb_truth(bb, name), "serial"), 1);
    bb_stop(bb, SIGKILL);
  }
}

/* --- post-copy --- */

static void make_post_copy(Bb *bb, const char *domain) {
  g_autofree char *path = g_strconcat(bb->control, ".state", NULL);
  json_t *root = bb_keep(bb, json_load_file(path, 0, NULL));
  json_t *job = json_object_get(json_object_get(json_object_get(root, "domains"), domain), "job");

  assert_non_null(job);
  json_object_set_new(job, "phase", json_integer(TRUTH_POST_COPY));
  assert_int_equal(json_dump_file(root, path, 0), 0);
}

static bool in_post_copy(json_t *job, gconstpointer data) {
  return strcmp(text_of(job, "stage"), "post_copy") == 0;
}

static json_t *reach_post_copy(Bb *bb) {
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", json_pack("{sb}", "allow_post_copy", 1));
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  make_post_copy(bb, "vm1");
  bb_start(bb);
  return bb_await(bb, text_of(job, "id"), in_post_copy, NULL);
}

static void found_in_post_copy_it_cannot_be_aborted(void **state) {
  Bb *bb = *state;
  json_t *job = reach_post_copy(bb);
  json_t *error;

  error = client_refused(bb_connect(bb), "Abort", json_pack("{ss}", "job", "vm1"), "NotAbortable");
  assert_text(error, "stage", "post_copy");
  assert_text(error, "job", text_of(job, "id"));
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
}

static void an_interrupted_post_copy_resumes_when_the_link_is_back(void **state) {
  Bb *bb = *state;
  json_t *job = reach_post_copy(bb);

  json_object_set_new(bb->world, "keepalive_ms", json_integer(200));
  bb_set_link(bb, "cut", json_true());
  job = bb_await_phase(bb, text_of(job, "id"), "recovering");
  assert_null(member_of(job, "failure"));
  client_refused(bb_connect(bb), "Abort", json_pack("{ss}", "job", "vm1"), "NotAbortable");
  bb_set_link(bb, "bytes_per_s", json_integer(1 << 30));
  bb_set_link(bb, "cut", json_false());
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_text(bb_truth(bb, "vm1"), "host", "b");
}

/* --- records --- */

static void put(Bb *bb, const char *name, const char *text) {
  g_autofree char *path = g_build_filename(bb->state_directory, "jobs", name, NULL);

  assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool exists(Bb *bb, const char *name) {
  g_autofree char *path = g_build_filename(bb->state_directory, "jobs", name, NULL);

  return g_file_test(path, G_FILE_TEST_EXISTS);
}

static char *read_log(Bb *bb) {
  char *text = NULL;

  assert_true(g_file_get_contents(bb->log, &text, NULL, NULL));
  return text;
}

static void a_damaged_record_is_set_aside_and_the_rest_is_read(void **state) {
  Bb *bb = *state;
  g_autofree char *log = NULL;
  json_t *job;

  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  bb_stop(bb, SIGTERM);
  put(bb, "00000000000000000000000000000001.json", "{\"format\":1,\"job\":{\"id\":\"0000");
  put(bb, "00000000000000000000000000000002.json", "");
  put(bb, "00000000000000000000000000000003.json.tmp", "{}");
  put(bb, "00000000000000000000000000000004.json", "[]");
  bb_start(bb);
  assert_int_equal(json_array_size(json_object_get(client_call(bb_connect(bb), "List", NULL), "jobs")), 1);
  assert_text(client_get(bb_connect(bb), text_of(job, "id")), "phase", "succeeded");
  assert_true(exists(bb, "00000000000000000000000000000001.json.bad"));
  assert_false(exists(bb, "00000000000000000000000000000001.json"));
  assert_true(exists(bb, "00000000000000000000000000000002.json.bad"));
  assert_false(exists(bb, "00000000000000000000000000000003.json.tmp"));
  log = read_log(bb);
  assert_non_null(strstr(log, "00000000000000000000000000000001"));
  assert_non_null(strstr(log, "00000000000000000000000000000004"));
}

/* It does not start: returns what it says. */
static char *start_in_vain(Bb *bb) {
  char *error = NULL;
  const char *program = g_getenv("HANDOFFD_FAKE");
  g_autofree char *other = g_build_filename(bb->directory, "other", NULL);
  const char *argv[] = {program,       "--config",          bb->config,      "--socket",      other,
                        "--state-dir", bb->state_directory, "--libvirt-uri", bb->libvirt_uri, NULL};
  int status = 0;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, &error,
                           &status, NULL));
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_false(g_file_test(other, G_FILE_TEST_EXISTS));
  return error;
}

/* It would forget acknowledged jobs: better it refuses to start, and migrations go on in libvirtd. */
static void it_does_not_start_on_a_record_of_a_newer_format(void **state) {
  static const char name[] = "0123456789abcdef0123456789abcdef.json";
  Bb *bb = *state;
  g_autofree char *error = NULL, *path = NULL;
  json_t *job;

  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  bb_stop(bb, SIGTERM);
  put(bb, name, "{\"format\":99,\"job\":{}}");
  error = start_in_vain(bb);
  assert_non_null(strstr(error, name));
  assert_non_null(strstr(error, "format 99"));
  assert_non_null(strstr(error, "newer handoffd"));
  assert_true(exists(bb, name));
  path = g_build_filename(bb->state_directory, "jobs", name, NULL);
  assert_int_equal(unlink(path), 0);
  bb_start(bb);
  assert_text(client_get(bb_connect(bb), text_of(job, "id")), "phase", "succeeded");
}

/* A newer agent replaces this one, with one job waiting and one running. */
static void records_of_an_older_format_are_upgraded(void **state) {
  Bb *bb = *state;
  static const char *const domains[] = {"vm1", "vm2"};
  const char *ids[G_N_ELEMENTS(domains)];

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  for (size_t i = 0; i < G_N_ELEMENTS(domains); i++) {
    ids[i] = text_of(client_start(bb_connect(bb), domains[i], NULL), "id");
    if (i == 0)
      bb_await(bb, ids[i], bb_has_numbers, NULL);
  }
  bb_stop(bb, SIGTERM);
  for (size_t i = 0; i < G_N_ELEMENTS(domains); i++) {
    json_t *record = bb_record(bb, ids[i]);
    g_autofree char *name = g_strconcat(ids[i], ".json", NULL), *text = NULL;

    json_object_set_new(record, "format", json_integer(1));
    json_object_del(json_object_get(record, "agent"), "pending_since_ms");
    text = json_dumps(record, 0);
    put(bb, name, text);
  }
  bb_start(bb);
  bb_await_phase(bb, ids[0], "migrating");
  assert_text(client_get(bb_connect(bb), ids[1]), "phase", "pending");
  bb_link_fast(bb);
  for (size_t i = 0; i < G_N_ELEMENTS(domains); i++) {
    assert_events_whole(bb_await_phase(bb, ids[i], "succeeded"));
    assert_int_equal(number_of(bb_truth(bb, domains[i]), "serial"), 1);
  }
  bb_stop(bb, SIGTERM);
  assert_int_equal(number_of(bb_record(bb, ids[0]), "format"), 3);
}

static void two_daemons_do_not_share_a_state_directory(void **state) {
  Bb *bb = *state;
  g_autofree char *error = NULL;

  bb_start(bb);
  error = start_in_vain(bb);
  assert_non_null(strstr(error, "another handoffd"));
  client_call(bb_connect(bb), "GetNode", NULL);
}

static void jobs_keep_their_order(void **state) {
  Bb *bb = *state;
  json_t *before, *after;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  for (int i = 1; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    client_start(client, name, NULL);
  }
  before = client_call(client, "List", NULL);
  kill_and_start(bb);
  after = client_call(bb_connect(bb), "List", NULL);
  for (size_t i = 0; i < 4; i++)
    assert_text(json_array_get(json_object_get(after, "jobs"), i), "id",
                text_of(json_array_get(json_object_get(before, "jobs"), i), "id"));
}

/* --- many jobs --- */

#define FINISHED 1000
#define RUNNING  20

/* Copies of a finished job's record, as if so many jobs had finished. */
static void put_finished(Bb *bb, json_t *record, unsigned n) {
  for (unsigned i = 1; i <= n; i++) {
    g_autofree char *id = g_strdup_printf("%032x", i);
    g_autofree char *name = g_strconcat(id, ".json", NULL);
    g_autofree char *text = NULL;

    json_object_set_new(json_object_get(record, "job"), "id", json_string(id));
    json_object_set_new(json_object_get(record, "agent"), "seq", json_integer(1000 + i));
    text = json_dumps(record, JSON_COMPACT);
    put(bb, name, text);
  }
}

static char *domain_name(unsigned number) {
  return g_strdup_printf("vm%u", number);
}

/* How many are migrating, with fresh job statistics. */
static unsigned count_steered(Client *client) {
  unsigned n = 0;

  for (unsigned i = 1; i <= RUNNING; i++) {
    g_autofree char *name = domain_name(i);
    json_t *job = client_get(client, name);

    n += strcmp(text_of(job, "phase"), "migrating") == 0 && member_of(job, "progress");
  }
  return n;
}

/* Only prints how long it takes; bench-control measures it, because a test's machine may be busy. */
static void all_jobs_are_steered_again_despite_many_finished_ones(void **state) {
  Bb *bb = *state;
  json_t *job, *record;
  gint64 began_us;
  Client *client;
  double ms;

  bb_configure(bb, "MaxOutgoing=100\nKeepFinished=2000\n");
  for (unsigned i = 5; i <= RUNNING; i++) {
    g_autofree char *name = domain_name(i);

    bb_add_domain(bb, name);
  }
  bb_add_domain(bb, "other");
  bb_start(bb);
  job = client_start(bb_connect(bb), "other", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  record = bb_record(bb, text_of(job, "id"));
  bb_link_slow(bb);
  client = bb_connect(bb);
  for (unsigned i = 1; i <= RUNNING; i++) {
    g_autofree char *name = domain_name(i);

    client_start(client, name, NULL);
  }
  for (unsigned i = 1; i <= RUNNING; i++) {
    g_autofree char *name = domain_name(i);

    bb_await(bb, name, bb_has_numbers, NULL);
  }
  bb_stop(bb, SIGKILL);
  put_finished(bb, record, FINISHED);

  began_us = g_get_monotonic_time();
  bb_start(bb);
  client = bb_connect(bb);
  print_message("# ready after %.0f ms\n", (double)(g_get_monotonic_time() - began_us) / 1000);
  while (count_steered(client) < RUNNING)
    assert_true(g_get_monotonic_time() - began_us < BB_PATIENCE_MS * 1000);
  ms = (double)(g_get_monotonic_time() - began_us) / 1000;
  print_message("# %d finished and %d running jobs: steering again after %.0f ms\n", FINISHED, RUNNING, ms);
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")),
                   FINISHED + RUNNING + 1);

  /* They can be steered: each takes a new limit, and migrates when it may. */
  client_call(client, "Tune",
              json_pack("{ss s{si}}", "job", "vm20", "policy", "bandwidth_bytes_per_s", 1 << 30));
  bb_await_event(bb, "vm20", "action", "new bandwidth limit");
  bb_link_fast(bb);
  for (unsigned i = 1; i <= RUNNING; i++) {
    g_autofree char *name = domain_name(i);

    assert_events_whole(bb_await_phase(bb, name, "succeeded"));
  }
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, killed_while_pending);
  TESTS_ADD(&tests, killed_while_preparing);
  TESTS_ADD(&tests, killed_while_migrating);
  TESTS_ADD(&tests, killed_again_and_again);
  TESTS_ADD(&tests, a_migration_that_ended_while_nobody_watched);
  TESTS_ADD(&tests, an_abort_requested_before_is_carried_out);
  TESTS_ADD(&tests, the_deadline_counts_from_the_first_start);
  TESTS_ADD(&tests, a_start_can_be_repeated_after_a_kill_in_the_middle);
  TESTS_ADD(&tests, found_in_post_copy_it_cannot_be_aborted);
  TESTS_ADD(&tests, an_interrupted_post_copy_resumes_when_the_link_is_back);
  TESTS_ADD(&tests, a_damaged_record_is_set_aside_and_the_rest_is_read);
  TESTS_ADD(&tests, it_does_not_start_on_a_record_of_a_newer_format);
  TESTS_ADD(&tests, records_of_an_older_format_are_upgraded);
  TESTS_ADD(&tests, two_daemons_do_not_share_a_state_directory);
  TESTS_ADD(&tests, jobs_keep_their_order);
  TESTS_ADD(&tests, all_jobs_are_steered_again_despite_many_finished_ones);
  return bb_run(&tests, "restart");
}

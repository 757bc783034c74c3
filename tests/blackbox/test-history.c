/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The history of a job: available while it runs, after a kill and as long as the job is kept, and never in the way. */
#include "tests/blackbox/harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES_MAX 256

static json_t *get_history(Bb *bb, const char *job) {
  return client_call(bb_connect(bb), "GetHistory", json_pack("{ss}", "job", job));
}

static size_t count_samples(json_t *answer) {
  return json_array_size(json_object_get(answer, "samples"));
}

static json_t *last_sample(json_t *answer) {
  return json_array_get(json_object_get(answer, "samples"), count_samples(answer) - 1);
}

/* In order, without overlap, within the job's life. */
static void assert_samples_sane(json_t *answer) {
  json_t *samples = json_object_get(answer, "samples"), *sample, *job = json_object_get(answer, "job");
  json_int_t at_ms = 0, end_usec = json_integer_value(member_of(job, "finished_usec_realtime"));
  size_t i;

  assert_true(json_array_size(samples) > 0 && json_array_size(samples) <= SAMPLES_MAX);
  json_array_foreach (samples, i, sample) {
    json_int_t begin_ms = number_of(sample, "elapsed_ms") - number_of(sample, "span_ms");

    assert_true(begin_ms >= at_ms);
    at_ms = number_of(sample, "elapsed_ms");
    assert_true(number_of(sample, "memory_remaining_bytes") <=
                number_of(sample, "memory_remaining_max_bytes"));
    assert_true(number_of(sample, "memory_remaining_max_bytes") <= 1 << 30);
    assert_true(strcmp(text_of(sample, "stage"), "none") != 0);
  }
  if (end_usec > 0)
    assert_true(at_ms <= (end_usec - number_of(job, "started_usec_realtime")) / 1000 + 1000);
}

/* A migration that runs until the test lets it end. */
static const char *start_slow(Bb *bb) {
  const char *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  return id;
}

static char *path_of(Bb *bb, const char *id, const char *suffix) {
  return g_strdup_printf("%s/history/%s%s", bb->state_directory, id, suffix);
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

/* Waits for a file of that name, by inotify on its directory. */
static void await_file(Bb *bb, const char *path) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  g_autofree char *directory = g_path_get_dirname(path);
  int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
  char events[4096];

  assert_true(inotify_add_watch(watch, directory, IN_MOVED_TO) >= 0);
  while (!exists(path) && g_get_monotonic_time() < until_us)
    if (poll(&poll_fd, 1, 1000) > 0)
      assert_true(read(watch, events, sizeof events) > 0 || errno == EAGAIN);
  close(watch);
  assert_true(exists(path));
}

/* --- while it runs, and when it has ended --- */

static bool has_moved(json_t *job, gconstpointer data) {
  return bb_has_numbers(job, NULL) && number_of(job, "progress.elapsed_ms") >= 500;
}

static void a_running_migration_has_a_history(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  json_t *answer, *sample;

  bb_await(bb, id, has_moved, NULL);
  answer = get_history(bb, "vm1");
  assert_text(answer, "job.id", id);
  assert_samples_sane(answer);
  assert_true(count_samples(answer) >= 5);
  sample = last_sample(answer);
  assert_text(sample, "stage", "pre_copy");
  assert_int_equal(number_of(sample, "iteration"), 1);
  assert_true(number_of(sample, "memory_processed_bytes") > 0);
  assert_true(number_of(sample, "memory_remaining_bytes") > 0);
  /* Nothing else has it. */
  assert_null(member_of(client_get(bb_connect(bb), id), "samples"));
}

static void a_finished_job_keeps_its_history(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  json_t *before, *after;

  bb_await(bb, id, has_moved, NULL);
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  before = get_history(bb, id);
  assert_samples_sane(before);
  assert_text(before, "job.phase", "succeeded");
  assert_true(json_equal(before, get_history(bb, id)));
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  after = get_history(bb, id);
  assert_true(json_equal(json_object_get(before, "samples"), json_object_get(after, "samples")));
}

static void a_waiting_job_has_none(void **state) {
  Bb *bb = *state;

  bb_configure(bb, "MaxOutgoing=1\n");
  start_slow(bb);
  client_start(bb_connect(bb), "vm2", NULL);
  assert_int_equal(count_samples(get_history(bb, "vm2")), 0);
  assert_text(get_history(bb, "vm2"), "job.phase", "pending");
}

static void an_unknown_job_is_refused_as_with_get(void **state) {
  Bb *bb = *state;
  json_t *error;

  bb_start(bb);
  error = client_refused(bb_connect(bb), "GetHistory", json_pack("{ss}", "job", "vm1"), "NoSuchJob");
  assert_text(error, "job", "vm1");
}

static void it_is_removed_with_the_job(void **state) {
  Bb *bb = *state;
  g_autofree char *first_path = NULL, *second_path = NULL;
  json_t *first, *second;

  bb_configure(bb, "KeepFinished=1\n");
  bb_start(bb);
  first = client_start(bb_connect(bb), "vm1", NULL);
  first_path = path_of(bb, text_of(first, "id"), ".json");
  bb_await_phase(bb, text_of(first, "id"), "succeeded");
  get_history(bb, text_of(first, "id"));
  assert_true(exists(first_path));
  second = client_start(bb_connect(bb), "vm2", NULL);
  second_path = path_of(bb, text_of(second, "id"), ".json");
  bb_await_phase(bb, text_of(second, "id"), "succeeded");
  /* Until the agent's clock has dropped it: there is nothing to wait on, so ask. */
  for (gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
       exists(first_path) && g_get_monotonic_time() < until_us;)
    get_history(bb, text_of(second, "id"));
  assert_false(exists(first_path));
  assert_true(exists(second_path));
}

/* --- kills and restarts --- */

static void killed_in_the_middle_it_goes_on(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  g_autofree char *path = path_of(bb, id, ".json");
  json_t *before, *after;
  size_t kept = 0;

  await_file(bb, path);
  before = get_history(bb, id);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  bb_await_phase(bb, id, "migrating");
  bb_await(bb, id, bb_has_numbers, NULL);
  after = get_history(bb, id);
  assert_samples_sane(after);
  /* What was written before the kill is unchanged, and what came after follows it. */
  while (json_equal(json_array_get(json_object_get(before, "samples"), kept),
                    json_array_get(json_object_get(after, "samples"), kept)))
    kept++;
  assert_true(kept >= 2);
  assert_true(number_of(last_sample(after), "elapsed_ms") > number_of(last_sample(before), "elapsed_ms"));

  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  after = get_history(bb, id);
  assert_samples_sane(after);
  assert_true(count_samples(after) > kept);
}

static void a_clean_stop_loses_nothing(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  json_t *before, *after, *sample;
  size_t i;

  bb_await(bb, id, has_moved, NULL);
  before = get_history(bb, id);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  bb_await(bb, id, bb_has_numbers, NULL);
  after = get_history(bb, id);
  json_array_foreach (json_object_get(before, "samples"), i, sample)
    assert_true(json_equal(sample, json_array_get(json_object_get(after, "samples"), i)));
}

static void put(const char *path, const char *text) {
  assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void a_damaged_history_is_set_aside_and_the_job_goes_on(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  g_autofree char *path = path_of(bb, id, ".json");
  g_autofree char *bad = path_of(bb, id, ".json.bad");
  g_autofree char *log = NULL;
  json_t *answer;

  await_file(bb, path);
  bb_stop(bb, SIGKILL);
  put(path, "{\"format\":1,\"job\":");
  bb_start(bb);
  bb_await(bb, id, bb_has_numbers, NULL);
  assert_samples_sane(get_history(bb, id));
  assert_true(exists(bad));
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");

  /* And of a finished job: the damage is reported, and the reply comes without it. */
  answer = get_history(bb, id);
  assert_samples_sane(answer);
  put(path, "");
  assert_int_equal(count_samples(get_history(bb, id)), 0);
  assert_text(get_history(bb, id), "job.phase", "succeeded");
  assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
  assert_non_null(strstr(log, "its report will be incomplete"));
}

static void histories_without_a_job_are_removed_on_startup(void **state) {
  Bb *bb = *state;
  const char *id = start_slow(bb);
  g_autofree char *path = path_of(bb, id, ".json");
  g_autofree char *orphan = path_of(bb, "00000000000000000000000000000001", ".json");
  g_autofree char *cut_off = path_of(bb, id, ".json.tmp");

  await_file(bb, path);
  bb_stop(bb, SIGKILL);
  put(orphan, "{}");
  put(cut_off, "{");
  bb_start(bb);
  assert_false(exists(orphan));
  assert_false(exists(cut_off));
  assert_true(exists(path));
}

static void if_no_history_can_be_written_the_job_runs_anyway(void **state) {
  Bb *bb = *state;
  g_autofree char *path = g_build_filename(bb->state_directory, "history", NULL);
  const char *id;

  assert_int_equal(mkdir(bb->state_directory, 0700), 0);
  put(path, "in the way");
  id = start_slow(bb);
  bb_await(bb, id, has_moved, NULL);
  assert_samples_sane(get_history(bb, id));
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  assert_int_equal(count_samples(get_history(bb, id)), 0);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_running_migration_has_a_history);
  TESTS_ADD(&tests, a_finished_job_keeps_its_history);
  TESTS_ADD(&tests, a_waiting_job_has_none);
  TESTS_ADD(&tests, an_unknown_job_is_refused_as_with_get);
  TESTS_ADD(&tests, it_is_removed_with_the_job);
  TESTS_ADD(&tests, killed_in_the_middle_it_goes_on);
  TESTS_ADD(&tests, a_clean_stop_loses_nothing);
  TESTS_ADD(&tests, a_damaged_history_is_set_aside_and_the_job_goes_on);
  TESTS_ADD(&tests, histories_without_a_job_are_removed_on_startup);
  TESTS_ADD(&tests, if_no_history_can_be_written_the_job_runs_anyway);
  return bb_run(&tests, "history");
}

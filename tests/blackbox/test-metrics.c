/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The metrics: they parse, follow the conventions, count what happens, and show each caller only what it may see. */
#include "tests/blackbox/harness.h"

#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 20

static const char *get_metrics(Client *client) {
  return text_of(client_call(client, "GetMetrics", NULL), "text");
}

/* The value of a series, named as in the text, or NAN. */
static double value_of(const char *text, const char *series) {
  g_autofree char *line = g_strconcat("\n", series, " ", NULL);
  const char *found = strstr(text, line);

  return found ? g_ascii_strtod(found + strlen(line), NULL) : NAN;
}

static void assert_value(const char *text, const char *series, double expected) {
  double value = value_of(text, series);

  if (!(value == expected))
    fail_msg("%s is %f, not %f, in:\n%s", series, value, expected, text);
}

static void assert_absent(const char *text, const char *words) {
  if (strstr(text, words))
    fail_msg("%s is in:\n%s", words, text);
}

/* Prometheus's own parser, and its conventions. */
static void assert_good(const Bb *bb, const char *text) {
  g_autofree char *path = g_build_filename(bb->directory, "judged.prom", NULL);
  const char *argv[] = {g_getenv("CHECK_PROMTEXT"), path, NULL};
  g_autoptr(GError) error = NULL;
  g_autofree char *said = NULL;
  int status;

  assert_true(g_file_set_contents(path, text, -1, NULL));
  if (!g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &said, NULL, &status,
                    &error))
    fail_msg("%s", error->message);
  if (!g_spawn_check_wait_status(status, NULL))
    fail_msg("%s\n%s", said, text);
}

/* The daemon serves before it has a connection. */
static Client *connect_when_ready(Bb *bb) {
  Client *client = bb_connect(bb);

  for (int waited_ms = 0; waited_ms < BB_PATIENCE_MS; waited_ms += LOOK_MS) {
    if (json_is_true(json_object_get(client_call(client, "GetNode", NULL), "libvirt_reachable")))
      return client;
    g_usleep(LOOK_MS * 1000);
  }
  fail_msg("libvirtd is not reached");
  return NULL;
}

/* --- what is counted --- */

static void a_node_that_has_done_nothing_has_all_of_its_series(void **state) {
  Bb *bb = *state;
  const char *text;

  bb_start(bb);
  text = get_metrics(connect_when_ready(bb));
  assert_good(bb, text);
  assert_value(text, "handoffd_libvirt_up", 1);
  assert_value(text, "handoffd_store_up", 1);
  assert_value(text, "handoffd_cordoned", 0);
  assert_value(text, "handoffd_jobs_accepted_total", 0);
  assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"pending\"}", 0);
  assert_value(text,
               "handoffd_jobs_finished_total{direction=\"outgoing\",phase=\"succeeded\",cause=\"NONE\"}", 0);
  assert_value(
      text, "handoffd_jobs_finished_total{direction=\"outgoing\",phase=\"aborted\",cause=\"DEADLINE\"}", 0);
  assert_value(text, "handoffd_migration_downtime_seconds_count", 0);
  assert_value(text, "handoffd_job_oldest_wait_seconds", 0);
}

static void a_move_is_counted(void **state) {
  Bb *bb = *state;
  const char *text;
  Client *client;
  json_t *job;

  bb_start(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  text = get_metrics(client);
  assert_good(bb, text);
  assert_value(text, "handoffd_jobs_accepted_total", 1);
  assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"succeeded\"}", 1);
  assert_value(text,
               "handoffd_jobs_finished_total{direction=\"outgoing\",phase=\"succeeded\",cause=\"NONE\"}", 1);
  assert_value(text, "handoffd_job_wait_seconds_count", 1);
  assert_value(text, "handoffd_migration_duration_seconds_count", 1);
  assert_value(text, "handoffd_migration_duration_seconds_sum",
               (double)number_of(job, "result.total_time_ms") / 1000);
  assert_value(text, "handoffd_migration_part_seconds_total{part=\"first_pass\"}",
               (double)number_of(job, "result.parts.first_pass_ms") / 1000);
  assert_value(text, "handoffd_migration_downtime_seconds_sum",
               (double)number_of(job, "result.downtime_ms") / 1000);
  assert_value(text, "handoffd_migration_transferred_bytes_total",
               (double)number_of(job, "result.transferred_bytes"));
  assert_absent(text, "vm1");

  /* Kept jobs stay; counters start again with the process. */
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  text = get_metrics(bb_connect(bb));
  assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"succeeded\"}", 1);
  assert_value(text, "handoffd_jobs_accepted_total", 0);
}

static void how_a_job_failed_is_counted_by_its_cause(void **state) {
  Bb *bb = *state;
  const char *text;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  bb_await_phase(bb, text_of(job, "id"), "aborted");
  text = get_metrics(client);
  assert_value(
      text, "handoffd_jobs_finished_total{direction=\"outgoing\",phase=\"aborted\",cause=\"USER_ABORT\"}", 1);
  assert_value(text, "handoffd_migration_duration_seconds_count", 0);
}

static void the_state_of_the_node_shows(void **state) {
  Bb *bb = *state;
  const char *text;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  bb_await_phase(bb, text_of(client_start(client, "vm1", NULL), "id"), "migrating");
  client_start(client, "vm2", NULL);
  client_call(client, "Cordon", NULL);
  text = get_metrics(client);
  assert_good(bb, text);
  assert_value(text, "handoffd_cordoned", 1);
  assert_value(text, "handoffd_outgoing_limit", 1);
  assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"migrating\"}", 1);
  assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"pending\"}", 1);
  assert_true(value_of(text, "handoffd_job_oldest_wait_seconds") > 0);
}

/* --- who sees what --- */

static void migrating_domains_show_to_those_who_may_read_jobs(void **state) {
  Bb *bb = *state;
  g_autofree char *series = NULL, *info = NULL;
  struct passwd *nobody = getpwnam("nobody");
  const char *text, *id;

  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  text = get_metrics(bb_connect(bb));
  assert_good(bb, text);
  series = g_strdup_printf("handoffd_migration_memory_remaining_bytes{domain=\"vm1\",job_id=\"%s\"}", id);
  assert_true(value_of(text, series) > 0);
  info = g_strdup_printf("handoffd_migration_info{domain=\"vm1\",job_id=\"%s\",direction=\"outgoing\"", id);
  assert_non_null(strstr(text, info));

  if (geteuid() == 0 && nobody) {
    text = get_metrics(bb_connect_as(bb, nobody->pw_uid, nobody->pw_gid, nobody->pw_gid));
    assert_good(bb, text);
    assert_absent(text, "vm1");
    assert_value(text, "handoffd_jobs{direction=\"outgoing\",phase=\"migrating\"}", 1);
  }
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  assert_absent(get_metrics(bb_connect(bb)), "vm1");
}

static void handoffctl_prints_the_same(void **state) {
  Bb *bb = *state;
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, "metrics", NULL};
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;
  int status;

  bb_start(bb);
  connect_when_ready(bb);
  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, NULL,
                           &status, &error));
  assert_true(g_spawn_check_wait_status(status, NULL));
  assert_good(bb, text);
  assert_value(text, "handoffd_libvirt_up", 1);
}

/* --- the file --- */

static char *await_file(const char *path, const char *words) {
  for (int waited_ms = 0; waited_ms < BB_PATIENCE_MS; waited_ms += LOOK_MS) {
    g_autofree char *text = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL) && strstr(text, words))
      return g_steal_pointer(&text);
    g_usleep(LOOK_MS * 1000);
  }
  fail_msg("%s does not get: %s", path, words);
  return NULL;
}

static void the_file_follows_and_goes_with_the_agent(void **state) {
  Bb *bb = *state;
  g_autofree char *path = g_build_filename(bb->directory, "handoffd.prom", NULL);
  g_autofree char *setting = g_strdup_printf("MetricsFile=%s\nMetricsInterval=1s\n", path);
  g_autofree char *before = NULL, *after = NULL;
  struct stat status;
  json_t *job;

  bb_configure(bb, setting);
  bb_start(bb);
  before = await_file(path, "handoffd_libvirt_up 1\n");
  assert_good(bb, before);
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 07777, 0644);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  after = await_file(path, "phase=\"succeeded\",cause=\"NONE\"} 1\n");
  assert_good(bb, after);
  bb_stop(bb, SIGTERM);
  assert_int_equal(access(path, F_OK), -1);
}

static void a_file_that_cannot_be_written_is_reported_and_harms_no_job(void **state) {
  Bb *bb = *state;
  g_autofree char *directory = g_build_filename(bb->directory, "away", NULL);
  g_autofree char *path = g_build_filename(directory, "handoffd.prom", NULL);
  g_autofree char *setting = g_strdup_printf("MetricsFile=%s\nMetricsInterval=1s\n", path);
  g_autofree char *text = NULL, *said = NULL, *said_again = NULL;
  json_t *job;

  bb_configure(bb, setting);
  bb_start(bb);
  said = await_file(bb->log, "cannot write the metrics, retrying");
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_int_equal(g_mkdir_with_parents(directory, 0755), 0);
  text = await_file(path, "handoffd_libvirt_up 1\n");
  said_again = await_file(bb->log, "the metrics can be written again");
}

int main(void) {
  Tests tests = {0};

  if (!g_getenv("CHECK_PROMTEXT") || !g_getenv("HANDOFFCTL")) {
    fprintf(stderr, "CHECK_PROMTEXT and HANDOFFCTL are to name the programs\n");
    return 1;
  }
  TESTS_ADD(&tests, a_node_that_has_done_nothing_has_all_of_its_series);
  TESTS_ADD(&tests, a_move_is_counted);
  TESTS_ADD(&tests, how_a_job_failed_is_counted_by_its_cause);
  TESTS_ADD(&tests, the_state_of_the_node_shows);
  TESTS_ADD(&tests, migrating_domains_show_to_those_who_may_read_jobs);
  TESTS_ADD(&tests, handoffctl_prints_the_same);
  TESTS_ADD(&tests, the_file_follows_and_goes_with_the_agent);
  TESTS_ADD(&tests, a_file_that_cannot_be_written_is_reported_and_harms_no_job);
  return bb_run(&tests, "metrics");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A node that has no threads left. On startup the agent exits with a message; later a call gets a named error or a job waits, and
 * everything continues once there are threads again. Nothing crashes, and nothing migrates that cannot be steered. */
#include "tests/blackbox/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_LIMIT (-1)

/* So many more threads may be created from now on. */
static void set_threads(Bb *bb, int64_t n) {
  g_autofree char *path = g_build_filename(bb->directory, "threads", NULL);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

  /* In place, because the daemon has it mapped. */
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, &n, sizeof n, 0), sizeof n);
  close(fd);
}

static void start_unlimited(Bb *bb) {
  set_threads(bb, NO_LIMIT);
  bb_start(bb);
}

static bool has_no_threads(json_t *job, gconstpointer data) {
  json_t *reason = member_of(job, "pending.reason");

  return reason && strcmp(json_string_value(reason), "NO_THREADS") == 0;
}

/* It waits; or it migrates, and nobody can be asked about the outcome; or it lacked no thread. */
static bool lacks_threads_or_is_done(json_t *job, gconstpointer data) {
  const char *phase = text_of(job, "phase");

  return has_no_threads(job, NULL) || strcmp(phase, "recovering") == 0 || strcmp(phase, "succeeded") == 0;
}

/* --- the start --- */

/* True: it serves. Otherwise it has exited by itself, with a message. */
static bool try_start(Bb *bb, int64_t threads, char **ret_said) {
  g_autofree char *socket = g_build_filename(bb->directory, "try", NULL);
  g_autofree char *file = g_build_filename(bb->directory, "threads", NULL);
  g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "FAKE_THREADS", file, TRUE);
  const char *argv[] = {
      g_getenv("HANDOFFD_FAKE"), "--config",      bb->config,      "--socket", socket, "--state-dir",
      bb->state_directory,       "--libvirt-uri", bb->libvirt_uri, NULL};
  gint64 until = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  int status = 0, out;
  char said[4096];
  ssize_t n;
  GPid pid;

  set_threads(bb, threads);
  unlink(socket);
  assert_true(g_spawn_async_with_pipes(NULL, (char **)(uintptr_t)argv, environment, G_SPAWN_DO_NOT_REAP_CHILD,
                                       NULL, NULL, &pid, NULL, NULL, &out, NULL));
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (g_file_test(socket, G_FILE_TEST_EXISTS)) {
      kill(pid, SIGTERM);
      assert_int_equal(waitpid(pid, &status, 0), pid);
      close(out);
      assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      return true;
    }
    assert_true(g_get_monotonic_time() < until);
    g_usleep(2000);
  }
  n = read(out, said, sizeof said - 1);
  close(out);
  said[MAX(n, 0)] = '\0';
  *ret_said = g_strdup(said);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
    fail_msg("with %d threads it ended by %#x: %s", (int)threads, (unsigned)status, said);
  return false;
}

/* One thread less each time, until not even the first can be created. The scripted hypervisor's own comes before all. */
static void without_an_essential_thread_it_does_not_start_and_says_so(void **state) {
  Bb *bb = *state;
  unsigned refused = 0;
  int64_t threads = 1;

  start_unlimited(bb);
  bb_stop(bb, SIGTERM);
  for (;; threads++) {
    g_autofree char *said = NULL;

    if (try_start(bb, threads, &said))
      break;
    refused++;
    assert_non_null(strstr(said, "cannot start"));
    assert_true(threads < 20);
  }
  assert_true(refused >= 2); /* the store's, the hypervisor's; without histories it serves */
}

/* --- while it serves --- */

static void calls_that_need_a_thread_get_a_named_error(void **state) {
  Bb *bb = *state;
  g_autofree char *target = bb_target(bb, "b");
  Client *client;
  json_t *error, *job;

  start_unlimited(bb);
  client = bb_connect(bb);
  set_threads(bb, 0);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm1"), "HypervisorUnavailable");
  assert_non_null(strstr(text_of(error, "message"), "no threads left"));
  client_refused(client, "Check", json_pack("{ss ss}", "domain", "vm1", "target", target),
                 "HypervisorUnavailable");
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
  assert_true(bb_is_alive(bb));

  set_threads(bb, NO_LIMIT);
  client_call(client, "Check", json_pack("{ss ss}", "domain", "vm1", "target", target));
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
}

/* Whichever of a job's threads is missing: before the migration nothing begins, after it nothing is declared. */
static void a_job_waits_for_its_threads(void **state) {
  Bb *bb = *state;
  g_autofree char *target = bb_target(bb, "b");
  unsigned waited = 0;
  Client *client;

  start_unlimited(bb);
  client = bb_connect(bb);
  /* One for the lookup. */
  client_call(client, "Check", json_pack("{ss ss}", "domain", "vm1", "target", target));
  for (int64_t threads = 0; threads < 8; threads++) {
    g_autofree char *domain = g_strdup_printf("guest%d", (int)threads);
    const char *id;
    json_t *job;

    bb_add_domain(bb, domain);
    bb_publish(bb);
    /* The pool's thread does the lookup and may have ended: so allow one more. */
    bb_set_call(bb, "survey_domain", json_pack("{sb}", "hang", 1));
    id = text_of(client_start(client, domain, NULL), "id");
    bb_await_phase(bb, id, "preparing");
    set_threads(bb, threads);
    bb_set_call(bb, "survey_domain", NULL);
    job = bb_await(bb, id, lacks_threads_or_is_done, NULL);
    if (has_no_threads(job, NULL)) {
      waited++;
      assert_text(bb_truth(bb, domain), "host", "a");
    }
    assert_true(bb_is_alive(bb));
    set_threads(bb, NO_LIMIT);
    bb_await_phase(bb, id, "succeeded");
  }
  assert_true(waited >= 2); /* the steerer's, the counter's */
}

/* A slot becomes free for it when there is no thread. */
static void a_job_without_any_thread_waits(void **state) {
  Bb *bb = *state;
  Client *client;
  const char *first, *second;

  bb_configure(bb, "MaxOutgoing=1\n");
  start_unlimited(bb);
  client = bb_connect(bb);
  bb_link_slow(bb);
  first = text_of(client_start(client, "vm1", NULL), "id");
  second = text_of(client_start(client, "vm2", NULL), "id");
  bb_await(bb, first, bb_has_numbers, NULL);
  set_threads(bb, 0);
  bb_configure(bb, "MaxOutgoing=2\n");
  assert_int_equal(kill(bb->pid, SIGHUP), 0);
  bb_await(bb, second, has_no_threads, NULL);
  assert_true(bb_is_alive(bb));
  bb_link_fast(bb);
  set_threads(bb, NO_LIMIT);
  bb_await_phase(bb, second, "succeeded");
}

/* It gets its threads one by one. */
static void running_migrations_are_resumed_once_there_are_threads(void **state) {
  Bb *bb = *state;
  int64_t at_start;
  Client *client;
  const char *id;

  start_unlimited(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  bb_stop(bb, SIGKILL);
  /* As many as it has when idle. */
  for (at_start = 3; at_start < 20; at_start++) {
    g_autofree char *said = NULL;

    if (try_start(bb, at_start, &said))
      break;
  }
  set_threads(bb, at_start);
  bb_start(bb);
  client = bb_connect(bb);
  assert_text(client_get(client, id), "phase", "recovering");
  set_threads(bb, 0);
  assert_text(client_get(client, id), "domain.name", "vm1");
  assert_true(bb_is_alive(bb));
  set_threads(bb, NO_LIMIT);
  bb_await_phase(bb, id, "migrating");
  client_call(bb_connect(bb), "Abort", json_pack("{ss}", "job", id));
  bb_await_phase(bb, id, "aborted");
  assert_text(bb_truth(bb, "vm1"), "host", "a");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, without_an_essential_thread_it_does_not_start_and_says_so);
  TESTS_ADD(&tests, calls_that_need_a_thread_get_a_named_error);
  TESTS_ADD(&tests, a_job_waits_for_its_threads);
  TESTS_ADD(&tests, a_job_without_any_thread_waits);
  TESTS_ADD(&tests, running_migrations_are_resumed_once_there_are_threads);
  return bb_run(&tests, "threads");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A state directory that is full: Start is refused, nothing that was acknowledged is forgotten. */
#include "tests/blackbox/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A file system of 256 KiB, which only this program and its daemon see. */
static void mount_small(Bb *bb) {
  assert_int_equal(mkdir(bb->state_directory, 0700), 0);
  assert_int_equal(mount("tmpfs", bb->state_directory, "tmpfs", 0, "size=256k,nr_inodes=128"), 0);
}

static char *ballast(Bb *bb) {
  return g_build_filename(bb->state_directory, "ballast", NULL);
}

static void fill(Bb *bb) {
  g_autofree char *path = ballast(bb);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
  char block[4096] = {0};

  assert_true(fd >= 0);
  while (write(fd, block, sizeof block) > 0)
    ;
  assert_int_equal(errno, ENOSPC);
  close(fd);
}

static void make_room(Bb *bb) {
  g_autofree char *path = ballast(bb);

  assert_int_equal(unlink(path), 0);
}

static size_t count_jobs(Client *client) {
  return json_array_size(json_object_get(client_call(client, "List", NULL), "jobs"));
}

static void start_is_refused_and_nothing_is_forgotten(void **state) {
  Bb *bb = *state;
  json_t *done, *error, *job;
  Client *client;

  mount_small(bb);
  bb_start(bb);
  client = bb_connect(bb);
  done = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(done, "id"), "succeeded");

  fill(bb);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm2"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), "No space left"));
  client_refused(client, "Start", bb_start_parameters(bb, "vm2"), "StoreFailed");
  assert_int_equal(count_jobs(client), 1);
  assert_text(client_get(client, text_of(done, "id")), "phase", "succeeded");
  client_refused(client, "Get", json_pack("{ss}", "job", "vm2"), "NoSuchJob");
  assert_text(bb_truth(bb, "vm2"), "host", "a");

  make_room(bb);
  job = client_start(client, "vm2", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_int_equal(count_jobs(client), 2);
}

static void a_refused_key_can_be_used_again(void **state) {
  Bb *bb = *state;
  json_t *parameters, *answer;
  Client *client;

  mount_small(bb);
  bb_start(bb);
  client = bb_connect(bb);
  fill(bb);
  parameters = bb_start_parameters(bb, "vm1");
  json_object_set_new(parameters, "request_key", json_string("k"));
  client_refused(client, "Start", json_incref(parameters), "StoreFailed");
  make_room(bb);
  answer = client_call(client, "Start", parameters);
  assert_true(json_is_true(json_object_get(answer, "created")));
}

static json_t *abort_on_a_full_disk(Bb *bb, Client *client) {
  json_t *job, *error;

  bb_link_slow(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  fill(bb);

  /* What cannot be kept is not promised. The end is asked for all the same. */
  error = client_refused(client, "Abort", json_pack("{ss}", "job", "vm1"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), "No space left"));
  return bb_await_phase(bb, text_of(job, "id"), "aborted");
}

static void a_record_that_could_not_be_written_is_written_later(void **state) {
  Bb *bb = *state;
  g_autofree char *directory = NULL;
  json_t *job;
  int watch;

  mount_small(bb);
  bb_start(bb);
  job = abort_on_a_full_disk(bb, bb_connect(bb));
  directory = g_build_filename(bb->state_directory, "jobs", NULL);
  watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  assert_true(inotify_add_watch(watch, directory, IN_MOVED_TO) >= 0);
  make_room(bb);
  while (strcmp(text_of(bb_record(bb, text_of(job, "id")), "job.phase"), "aborted") != 0) {
    struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
    char events[4096];

    assert_int_equal(poll(&poll_fd, 1, BB_PATIENCE_MS), 1);
    assert_true(read(watch, events, sizeof events) > 0);
  }
  close(watch);
}

static void after_a_kill_both_ends_are_asked_what_came_of_it(void **state) {
  Bb *bb = *state;
  json_t *job;

  mount_small(bb);
  bb_start(bb);
  job = abort_on_a_full_disk(bb, bb_connect(bb));
  bb_stop(bb, SIGKILL);
  make_room(bb);
  bb_start(bb);
  job = bb_await_event(bb, text_of(job, "id"), "agent_restarted", "");
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "result.running_at", "source");
  assert_text(bb_truth(bb, "vm1"), "host", "a");
  assert_events_whole(job);
}

int main(void) {
  Tests tests = {0};

  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
    printf("1..0 # SKIP a mount namespace needs root\n");
    return geteuid() == 0 ? 1 : 77;
  }
  TESTS_ADD(&tests, start_is_refused_and_nothing_is_forgotten);
  TESTS_ADD(&tests, a_refused_key_can_be_used_again);
  TESTS_ADD(&tests, a_record_that_could_not_be_written_is_written_later);
  TESTS_ADD(&tests, after_a_kill_both_ends_are_asked_what_came_of_it);
  return bb_run(&tests, "full disk");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state directory becomes full or read-only while jobs run: Start is refused, no acknowledged job is forgotten, and
 * running migrations go on. */
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

/* A file system of 256 KiB, which only this program and its daemon see. No histories: they are written periodically and could
 * make room just when a test wants none. */
static void mount_small(Bb *bb) {
  g_autofree char *histories = g_build_filename(bb->state_directory, "history", NULL);

  assert_int_equal(mkdir(bb->state_directory, 0700), 0);
  assert_int_equal(mount("tmpfs", bb->state_directory, "tmpfs", 0, "size=256k,nr_inodes=128"), 0);
  assert_true(g_file_set_contents(histories, "", 0, NULL));
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

static void remount(Bb *bb, unsigned long flags) {
  assert_int_equal(mount(NULL, bb->state_directory, NULL, MS_REMOUNT | MS_BIND | flags, NULL), 0);
}

/* As the kernel does to a file system with an error. */
static void make_read_only(Bb *bb) {
  remount(bb, MS_RDONLY);
}

static void make_writable(Bb *bb) {
  remount(bb, 0);
}

/* What happens to the state directory. */
typedef struct Trouble {
  const char *name;
  void (*begin)(Bb *bb);
  void (*end)(Bb *bb);
  const char *says;
} Trouble;

static const Trouble troubles[] = {
    {"full", fill, make_room, "No space left"},
    {"read-only", make_read_only, make_writable, "Read-only file system"},
};

typedef struct Row {
  const Trouble *trouble;
  void (*test)(Bb *bb, const Trouble *trouble);
} Row;

static size_t count_jobs(Client *client) {
  return json_array_size(json_object_get(client_call(client, "List", NULL), "jobs"));
}

static void start_is_refused_and_nothing_is_forgotten(Bb *bb, const Trouble *trouble) {
  json_t *done, *error, *job;
  Client *client;

  mount_small(bb);
  bb_start(bb);
  client = bb_connect(bb);
  done = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(done, "id"), "succeeded");
  /* A record that is replaced later would make room. */
  while (g_strcmp0(text_of(bb_record(bb, text_of(done, "id")), "job.phase"), "succeeded") != 0)
    g_usleep(10000);

  trouble->begin(bb);
  error = client_refused(client, "Start", bb_start_parameters(bb, "vm2"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), trouble->says));
  client_refused(client, "Start", bb_start_parameters(bb, "vm2"), "StoreFailed");
  assert_int_equal(count_jobs(client), 1);
  assert_text(client_get(client, text_of(done, "id")), "phase", "succeeded");
  client_refused(client, "Get", json_pack("{ss}", "job", "vm2"), "NoSuchJob");
  assert_text(bb_truth(bb, "vm2"), "host", "a");

  trouble->end(bb);
  job = client_start(client, "vm2", NULL);
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_int_equal(count_jobs(client), 2);
}

static void a_refused_key_can_be_used_again(Bb *bb, const Trouble *trouble) {
  json_t *parameters, *answer;
  Client *client;

  mount_small(bb);
  bb_start(bb);
  client = bb_connect(bb);
  trouble->begin(bb);
  parameters = bb_start_parameters(bb, "vm1");
  json_object_set_new(parameters, "request_key", json_string("k"));
  client_refused(client, "Start", json_incref(parameters), "StoreFailed");
  trouble->end(bb);
  answer = client_call(client, "Start", parameters);
  assert_true(json_is_true(json_object_get(answer, "created")));
}

static json_t *abort_in_trouble(Bb *bb, const Trouble *trouble, Client *client) {
  json_t *job, *error;

  bb_link_slow(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  trouble->begin(bb);

  /* What cannot be stored is not promised. The abort is requested anyway. */
  error = client_refused(client, "Abort", json_pack("{ss}", "job", "vm1"), "StoreFailed");
  assert_non_null(strstr(text_of(error, "message"), trouble->says));
  return bb_await_phase(bb, text_of(job, "id"), "aborted");
}

static void a_record_that_could_not_be_written_is_written_later(Bb *bb, const Trouble *trouble) {
  g_autofree char *directory = NULL;
  json_t *job;
  int watch;

  mount_small(bb);
  bb_start(bb);
  job = abort_in_trouble(bb, trouble, bb_connect(bb));
  directory = g_build_filename(bb->state_directory, "jobs", NULL);
  watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  assert_true(inotify_add_watch(watch, directory, IN_MOVED_TO) >= 0);
  trouble->end(bb);
  while (strcmp(text_of(bb_record(bb, text_of(job, "id")), "job.phase"), "aborted") != 0) {
    struct pollfd poll_fd = {.fd = watch, .events = POLLIN};
    char events[4096];

    assert_int_equal(poll(&poll_fd, 1, BB_PATIENCE_MS), 1);
    assert_true(read(watch, events, sizeof events) > 0);
  }
  close(watch);
}

static void after_a_kill_both_ends_are_asked_for_the_outcome(Bb *bb, const Trouble *trouble) {
  json_t *job;

  mount_small(bb);
  bb_start(bb);
  job = abort_in_trouble(bb, trouble, bb_connect(bb));
  bb_stop(bb, SIGKILL);
  trouble->end(bb);
  bb_start(bb);
  job = bb_await_event(bb, text_of(job, "id"), "agent_restarted", "");
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_text(job, "result.running_at", "source");
  assert_text(bb_truth(bb, "vm1"), "host", "a");
  assert_events_whole(job);
}

/* Its record cannot be written at all: the job ends anyway, and its record is written once that is possible. */
static void running_migrations_go_on(Bb *bb, const Trouble *trouble) {
  const char *id;
  json_t *job;

  mount_small(bb);
  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  trouble->begin(bb);
  bb_link_fast(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_events_whole(job);
  assert_text(bb_truth(bb, "vm1"), "host", "b");
  assert_text(bb_record(bb, id), "job.phase", "migrating");
  trouble->end(bb);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  job = bb_await_phase(bb, id, "succeeded");
  assert_events_whole(job);
  assert_int_equal(number_of(bb_truth(bb, "vm1"), "serial"), 1);
}

static void in_trouble(void **state) {
  Bb *bb = *state;
  const Row *row = bb->row;

  row->test(bb, row->trouble);
}

static const struct {
  const char *name;
  void (*test)(Bb *bb, const Trouble *trouble);
} tests_of_each[] = {
    {"start is refused and nothing is forgotten", start_is_refused_and_nothing_is_forgotten},
    {"a refused key can be used again", a_refused_key_can_be_used_again},
    {"a record that could not be written is written later",
     a_record_that_could_not_be_written_is_written_later},
    {"after a kill both ends are asked for the outcome", after_a_kill_both_ends_are_asked_for_the_outcome},
    {"running migrations go on", running_migrations_go_on},
};

int main(void) {
  static Row all[G_N_ELEMENTS(troubles) * G_N_ELEMENTS(tests_of_each)];
  static char names[G_N_ELEMENTS(all)][100];
  Tests tests = {0};

  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
    printf("1..0 # SKIP a mount namespace needs root\n");
    return geteuid() == 0 ? 1 : 77;
  }
  for (size_t t = 0; t < G_N_ELEMENTS(troubles); t++)
    for (size_t i = 0; i < G_N_ELEMENTS(tests_of_each); i++) {
      Row *row = &all[t * G_N_ELEMENTS(tests_of_each) + i];

      *row = (Row){&troubles[t], tests_of_each[i].test};
      g_snprintf(names[row - all], sizeof names[0], "%s: %s", troubles[t].name, tests_of_each[i].name);
      tests_add(&tests, names[row - all], in_trouble, row);
    }
  return bb_run(&tests, "full disk");
}

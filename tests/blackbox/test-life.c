/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's own life: its exit, its files, what it keeps and what it drops. */
#include "tests/blackbox/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_clean_end(Bb *bb, int signal_number) {
  gint64 before_us = g_get_monotonic_time();
  int status = bb_stop(bb, signal_number);

  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  /* Far below the 30 s of a hung call, far above what a busy machine takes. */
  assert_true(g_get_monotonic_time() - before_us < 15 * G_USEC_PER_SEC);
}

static void it_exits_on_sigterm_and_removes_its_socket(void **state) {
  Bb *bb = *state;

  bb_start(bb);
  assert_true(g_file_test(bb->socket, G_FILE_TEST_EXISTS));
  assert_clean_end(bb, SIGTERM);
  assert_false(g_file_test(bb->socket, G_FILE_TEST_EXISTS));
  bb_start(bb);
  assert_clean_end(bb, SIGINT);
}

/* libvirt writes to the socket of a killed libvirtd: by default that would kill the agent, too. */
static void a_broken_pipe_does_not_kill_it(void **state) {
  Bb *bb = *state;

  bb_start(bb);
  assert_int_equal(kill(bb->pid, SIGPIPE), 0);
  client_call(bb_connect(bb), "GetNode", NULL);
  assert_clean_end(bb, SIGTERM);
}

static void its_exit_leaves_the_migration_running(void **state) {
  Bb *bb = *state;
  Client *watcher;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  watcher = bb_connect(bb);
  client_send(watcher, "Watch", json_pack("{ss}", "job", text_of(job, "id")), VARLINK_CALL_MORE);
  client_receive(watcher, NULL, NULL);
  assert_clean_end(bb, SIGTERM);
  assert_non_null(json_object_get(bb_truth(bb, "vm1"), "job"));
  assert_text(bb_record(bb, text_of(job, "id")), "job.phase", "migrating");
  bb_link_fast(bb);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
}

static void its_last_status_says_what_keeps_running(void **state) {
  Bb *bb = *state;
  int status_fd;

  bb_start(bb);
  status_fd = bb_listen_to_status(bb);
  assert_clean_end(bb, SIGTERM);
  bb_await_status(status_fd, "STATUS=Stopping; 0 migrations in progress continue in libvirtd");
  close(status_fd);

  bb_start(bb);
  bb_link_slow(bb);
  client_start(bb_connect(bb), "vm1", NULL);
  bb_await(bb, "vm1", bb_has_numbers, NULL);
  status_fd = bb_listen_to_status(bb);
  assert_clean_end(bb, SIGTERM);
  bb_await_status(status_fd, "STOPPING=1\nSTATUS=Stopping; 1 migration in progress continues in libvirtd");
  close(status_fd);
}

static void it_exits_in_time_though_libvirtd_hangs(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  bb_set_host(bb, "a", "hung", json_true());
  client_send(client, "Start", bb_start_parameters(bb, "vm2"), 0);
  assert_clean_end(bb, SIGTERM);
}

static void a_stale_socket_is_replaced(void **state) {
  Bb *bb = *state;

  bb_start(bb);
  bb_stop(bb, SIGKILL);
  assert_true(g_file_test(bb->socket, G_FILE_TEST_EXISTS));
  bb_start(bb);
  client_call(bb_connect(bb), "GetNode", NULL);
}

static void only_the_owner_can_read_records(void **state) {
  Bb *bb = *state;
  g_autofree char *path = NULL;
  struct stat st;
  json_t *job;

  bb_start(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  path = bb_record_path(bb, text_of(job, "id"));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(stat(bb->socket, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0666);
}

static void the_node_describes_itself(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *node;

  bb_configure(bb, "MaxOutgoing=7\nNonsense=1\n");
  bb_start(bb);
  client = bb_connect(bb);
  client_start(client, "vm1", NULL); /* which waits for the connection to libvirtd */
  node = client_call(client, "GetNode", NULL);
  assert_true(json_is_true(json_object_get(node, "libvirt_reachable")));
  assert_text(node, "libvirt_version", "9.0.0");
  assert_text(node, "hypervisor_version", "7.2.0");
  assert_text(node, "libvirt_uri", bb->libvirt_uri);
  assert_int_equal(number_of(node, "max_outgoing"), 7);
  assert_int_equal(json_array_size(json_object_get(node, "warnings")), 1);
  assert_non_null(
      strstr(json_string_value(json_array_get(json_object_get(node, "warnings"), 0)), "Nonsense"));
}

static void the_service_describes_itself(void **state) {
  Bb *bb = *state;
  json_t *answer;
  Client *client;
  g_autoptr(VarlinkInterface) interface = NULL;

  bb_start(bb);
  client = bb_connect(bb);
  client_call(client, "org.varlink.service.GetInfo", NULL);
  answer = client_call(client, "org.varlink.service.GetInterfaceDescription",
                       json_pack("{ss}", "interface", "io.handoffd.Agent"));
  interface = varlink_interface_parse(text_of(answer, "description"), NULL);
  assert_non_null(interface);
  assert_int_equal(varlink_interface_get_n_members(interface),
                   varlink_interface_get_n_members(bb->interface));
  client_refused(client, "org.varlink.service.GetInterfaceDescription",
                 json_pack("{ss}", "interface", "io.handoffd.Other"), "InterfaceNotFound");
}

/* --- retention --- */

static const char *move_there(Bb *bb, Client *client, const char *domain) {
  json_t *job = client_start(client, domain, NULL);

  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  return text_of(job, "id");
}

/* The tick comes about once a second. */
static void await_forgotten(Bb *bb, Client *client, const char *id) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  while (g_get_monotonic_time() < until_us) {
    g_autofree char *error = NULL;

    client_send(client, "Get", json_pack("{ss}", "job", id), 0);
    client_receive(client, &error, NULL);
    if (error) {
      assert_string_equal(error, "NoSuchJob");
      return;
    }
    /* A connection more or less is an event in the daemon's loop: yield to it. */
    client_close(bb_connect(bb));
    g_thread_yield();
  }
  fail_msg("it is not forgotten");
}

static void only_so_many_finished_jobs_are_kept(void **state) {
  Bb *bb = *state;
  g_autofree char *path = NULL;
  const char *ids[4];
  Client *client;

  bb_configure(bb, "KeepFinished=2\n");
  bb_start(bb);
  client = bb_connect(bb);
  ids[0] = move_there(bb, client, "vm1");
  ids[1] = move_there(bb, client, "vm2");
  ids[2] = move_there(bb, client, "vm3");
  ids[3] = move_there(bb, client, "vm4");
  await_forgotten(bb, client, ids[0]);
  await_forgotten(bb, client, ids[1]);
  client_get(client, ids[2]);
  client_get(client, ids[3]);

  /* On disk as well, and for good. */
  bb_stop(bb, SIGTERM);
  path = bb_record_path(bb, ids[1]);
  assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
  bb_start(bb);
  assert_int_equal(json_array_size(json_object_get(client_call(bb_connect(bb), "List", NULL), "jobs")), 2);
}

static void the_last_to_end_is_kept_though_it_was_the_first_to_begin(void **state) {
  Bb *bb = *state;
  const char *slow, *quick;
  Client *client;

  bb_configure(bb, "KeepFinished=1\n");
  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  bb_start(bb);
  client = bb_connect(bb);
  bb_set_link(bb, "bytes_per_s", json_integer(128 << 20));
  slow = text_of(client_start(client, "vm1", NULL), "id");
  quick = move_there(bb, client, "vm2");
  bb_await_phase(bb, slow, "succeeded");
  await_forgotten(bb, client, quick);
  assert_text(client_get(client, slow), "phase", "succeeded");
}

static void with_nothing_kept_the_end_is_still_reported(void **state) {
  Bb *bb = *state;
  const char *id;
  Client *client;
  json_t *answer;

  bb_configure(bb, "KeepFinished=0\nMaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  id = text_of(client_start(client, "vm1", NULL), "id");
  client_start(client, "vm2", NULL);
  answer = client_call(client, "Abort", json_pack("{ss}", "job", "vm2"));
  assert_text(answer, "job.phase", "aborted");
  await_forgotten(bb, client, text_of(answer, "job.id"));
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  await_forgotten(bb, client, id);
}

static void an_unfinished_job_is_never_forgotten(void **state) {
  Bb *bb = *state;
  const char *running;
  Client *client;

  bb_configure(bb, "KeepFinished=0\n");
  bb_start(bb);
  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(1 << 30));
  client = bb_connect(bb);
  running = text_of(client_start(client, "vm1", NULL), "id");
  await_forgotten(bb, client, move_there(bb, client, "vm2"));
  bb_await_phase(bb, running, "migrating");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, it_exits_on_sigterm_and_removes_its_socket);
  TESTS_ADD(&tests, a_broken_pipe_does_not_kill_it);
  TESTS_ADD(&tests, its_exit_leaves_the_migration_running);
  TESTS_ADD(&tests, its_last_status_says_what_keeps_running);
  TESTS_ADD(&tests, it_exits_in_time_though_libvirtd_hangs);
  TESTS_ADD(&tests, a_stale_socket_is_replaced);
  TESTS_ADD(&tests, only_the_owner_can_read_records);
  TESTS_ADD(&tests, the_node_describes_itself);
  TESTS_ADD(&tests, the_service_describes_itself);
  TESTS_ADD(&tests, only_so_many_finished_jobs_are_kept);
  TESTS_ADD(&tests, the_last_to_end_is_kept_though_it_was_the_first_to_begin);
  TESTS_ADD(&tests, with_nothing_kept_the_end_is_still_reported);
  TESTS_ADD(&tests, an_unfinished_job_is_never_forgotten);
  return bb_run(&tests, "life");
}

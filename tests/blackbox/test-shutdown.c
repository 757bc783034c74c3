/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host goes down: logind, which the test plays on a bus of its own, is delayed while something migrates, and no longer. */
#include "tests/blackbox/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define OBJECT    "/org/freedesktop/login1"
#define INTERFACE "org.freedesktop.login1.Manager"

/* The test's logind and its bus. */
typedef struct World {
  pid_t bus_pid;
  sd_bus *bus;
  uint64_t delay_us;
  int lock_fd; /* the other end of the lock that was given; -1: none was */
  unsigned locks;
  char what[64], mode[64], who[64];
} World;

static World world;

static int on_inhibit(sd_bus_message *message, void *user_data, sd_bus_error *ret_error) {
  const char *what, *who, *why, *mode;
  int fds[2], code;

  assert_true(sd_bus_message_read(message, "ssss", &what, &who, &why, &mode) >= 0);
  g_strlcpy(world.what, what, sizeof world.what);
  g_strlcpy(world.who, who, sizeof world.who);
  g_strlcpy(world.mode, mode, sizeof world.mode);
  assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
  if (world.lock_fd >= 0)
    close(world.lock_fd);
  world.lock_fd = fds[0];
  world.locks++;
  code = sd_bus_reply_method_return(message, "h", fds[1]);
  close(fds[1]);
  return code;
}

static int get_delay(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *user_data, sd_bus_error *ret_error) {
  return sd_bus_message_append(reply, "t", world.delay_us);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Inhibit", "ssss", "h", on_inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("InhibitDelayMaxUSec", "t", get_delay, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_SIGNAL("PrepareForShutdown", "b", 0),
    SD_BUS_VTABLE_END,
};

/* --- the bus --- */

static const char bus_config[] =
    "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
    " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
    "<busconfig><type>custom</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>\n"
    "<policy context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow "
    "own=\"*\"/></policy>\n"
    "</busconfig>\n";

/* dbus-daemon prints its address once it listens. */
static void start_bus(Bb *bb) {
  g_autofree char *config = g_build_filename(bb->directory, "bus.conf", NULL);
  g_autofree char *text = g_strdup_printf(bus_config, bb->directory);
  g_autofree char *option = g_strconcat("--config-file=", config, NULL);
  struct pollfd ready = {.events = POLLIN};
  int fds[2];
  char byte;

  assert_true(g_file_set_contents(config, text, -1, NULL));
  assert_int_equal(pipe(fds), 0);
  fflush(NULL);
  world.bus_pid = fork();
  assert_true(world.bus_pid >= 0);
  if (world.bus_pid == 0) {
    g_autofree char *print = g_strdup_printf("--print-address=%d", fds[1]);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("dbus-daemon", "dbus-daemon", option, "--nofork", "--nopidfile", print, NULL);
    _exit(127);
  }
  close(fds[1]);
  ready.fd = fds[0];
  assert_int_equal(poll(&ready, 1, BB_PATIENCE_MS), 1);
  if (read(fds[0], &byte, 1) != 1)
    fail_msg("dbus-daemon does not start: is it installed?");
  close(fds[0]);
}

static void end_bus(void) {
  if (world.bus_pid > 0) {
    kill(world.bus_pid, SIGKILL);
    while (waitpid(world.bus_pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  world.bus_pid = 0;
}

static void start_logind(Bb *bb, uint64_t delay_ms) {
  g_autofree char *address = g_strdup_printf("unix:path=%s/bus", bb->directory);

  world = (World){.delay_us = delay_ms * 1000, .lock_fd = -1};
  start_bus(bb);
  assert_true(sd_bus_new(&world.bus) >= 0);
  assert_true(sd_bus_set_address(world.bus, address) >= 0);
  assert_true(sd_bus_set_bus_client(world.bus, true) >= 0);
  assert_true(sd_bus_start(world.bus) >= 0);
  assert_true(sd_bus_add_object_vtable(world.bus, NULL, OBJECT, INTERFACE, vtable, NULL) >= 0);
  assert_true(sd_bus_request_name(world.bus, "org.freedesktop.login1", 0) >= 0);
}

static void end_logind(void) {
  world.bus = sd_bus_close_unref(world.bus);
  if (world.lock_fd >= 0)
    close(world.lock_fd);
  world.lock_fd = -1;
  end_bus();
}

static bool is_locked(void) {
  struct pollfd poll_fd = {.fd = world.lock_fd};

  return world.lock_fd >= 0 && poll(&poll_fd, 1, 0) == 0;
}

/* Answers calls until the lock is, or is not, held. */
static void await_lock(bool locked) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  while (is_locked() != locked) {
    int code = sd_bus_process(world.bus, NULL);

    assert_true(code >= 0);
    if (code == 0)
      sd_bus_wait(world.bus, 20000);
    if (g_get_monotonic_time() > until_us)
      fail_msg("the lock is not %s", locked ? "taken" : "given back");
  }
}

static void tell_shutdown(bool begins) {
  assert_true(sd_bus_emit_signal(world.bus, OBJECT, INTERFACE, "PrepareForShutdown", "b", (int)begins) >= 0);
  assert_true(sd_bus_flush(world.bus) >= 0);
}

static bool has_warning(json_t *job, gconstpointer text) {
  return find_event(job, "warning", text) != NULL;
}

static bool waits_for_the_host(json_t *job, gconstpointer data) {
  json_t *reason = member_of(job, "pending.reason");

  return reason && strcmp(json_string_value(reason), "HOST_SHUTDOWN") == 0;
}

/* Migrates vm1 and waits until the lock is held. */
static const char *set_out(Bb *bb, uint64_t delay_ms, json_t *policy) {
  const char *id;

  start_logind(bb, delay_ms);
  bb_start(bb);
  bb_link_slow(bb);
  id = text_of(client_start(bb_connect(bb), "vm1", policy), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  await_lock(true);
  return id;
}

/* --- tests --- */

static void a_shutdown_is_delayed_while_something_migrates(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, 5000, NULL);

  assert_int_equal(world.locks, 1);
  assert_string_equal(world.what, "shutdown");
  assert_string_equal(world.mode, "delay");
  assert_string_equal(world.who, "handoffd");
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  await_lock(false);

  /* And again with the next one. */
  bb_link_slow(bb);
  client_start(bb_connect(bb), "vm2", NULL);
  await_lock(true);
  assert_int_equal(world.locks, 2);
}

static void a_migration_that_would_not_end_in_time_is_aborted(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, 1000, NULL);
  json_t *job;

  tell_shutdown(true);
  job = bb_await_phase(bb, id, "aborted");
  assert_text(job, "failure.cause", "HOST_SHUTDOWN");
  assert_text(job, "result.running_at", "source");
  assert_text(bb_truth(bb, "vm1"), "host", "a");
  assert_events_whole(job);
  await_lock(false);
}

static void a_migration_that_ends_in_time_may_finish(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, 600000, NULL);
  int status_fd = bb_listen_to_status(bb);

  tell_shutdown(true);
  bb_await_status(status_fd, "STATUS=the host is shutting down; 1 migrating");
  close(status_fd);
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  await_lock(false);
}

static bool in_post_copy(json_t *job, gconstpointer data) {
  return strcmp(text_of(job, "stage"), "post_copy") == 0;
}

static void post_copy_is_not_aborted(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, 1000, json_pack("{sb}", "allow_post_copy", 1));
  json_t *job;

  client_call(bb_connect(bb), "Complete", json_pack("{ss ss}", "job", id, "by", "post_copy"));
  bb_await(bb, id, in_post_copy, NULL);
  tell_shutdown(true);
  job = bb_await(bb, id, has_warning, "post-copy cannot be aborted");
  assert_text(job, "phase", "migrating");
  assert_true(is_locked());
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  await_lock(false);
}

static void waiting_jobs_wait_until_the_host_is_up(void **state) {
  Bb *bb = *state;
  const char *running, *waiting, *late;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\n");
  running = set_out(bb, 1000, NULL);
  client = bb_connect(bb);
  waiting = text_of(client_start(client, "vm2", NULL), "id");
  tell_shutdown(true);
  bb_await_phase(bb, running, "aborted");
  bb_await(bb, waiting, waits_for_the_host, NULL);
  /* A new job is accepted, because its record survives the shutdown. */
  late = text_of(client_start(client, "vm3", NULL), "id");
  bb_await(bb, late, waits_for_the_host, NULL);

  bb_link_fast(bb);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  bb_await_phase(bb, waiting, "succeeded");
  bb_await_phase(bb, late, "succeeded");
}

static void a_job_in_its_checks_waits_again(void **state) {
  Bb *bb = *state;
  const char *id, *other;

  id = set_out(bb, 600000, NULL);
  bb_set_call(bb, "survey_target", json_pack("{sb}", "hang", 1));
  other = text_of(client_start(bb_connect(bb), "vm2", NULL), "id");
  bb_await_phase(bb, other, "preparing");
  tell_shutdown(true);
  bb_await(bb, other, waits_for_the_host, NULL);
  bb_set_call(bb, "survey_target", NULL);
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
}

static void jobs_start_again_if_the_shutdown_is_cancelled(void **state) {
  Bb *bb = *state;
  const char *running, *waiting;

  bb_configure(bb, "MaxOutgoing=1\n");
  running = set_out(bb, 1000, NULL);
  waiting = text_of(client_start(bb_connect(bb), "vm2", NULL), "id");
  tell_shutdown(true);
  bb_await_phase(bb, running, "aborted");
  bb_await(bb, waiting, waits_for_the_host, NULL);
  bb_link_fast(bb);
  tell_shutdown(false);
  bb_await_phase(bb, waiting, "succeeded");
}

static void a_lost_bus_harms_no_migration(void **state) {
  Bb *bb = *state;
  const char *id = set_out(bb, 1000, NULL);

  end_bus();
  bb_link_fast(bb);
  bb_await_phase(bb, id, "succeeded");
  bb_await_phase(bb, text_of(client_start(bb_connect(bb), "vm2", NULL), "id"), "succeeded");
}

/* --- */

static void with_logind(void **state) {
  Bb *bb = *state;
  CMUnitTestFunction test;

  memcpy(&test, bb->row, sizeof test);
  test(state);
  if (bb->pid)
    bb_stop(bb, SIGTERM);
  end_logind();
}

static const struct {
  const char *name;
  CMUnitTestFunction test;
} rows[] = {
    {"a shutdown is delayed while something migrates", a_shutdown_is_delayed_while_something_migrates},
    {"a migration that would not end in time is aborted", a_migration_that_would_not_end_in_time_is_aborted},
    {"a migration that ends in time may finish", a_migration_that_ends_in_time_may_finish},
    {"post-copy is not aborted", post_copy_is_not_aborted},
    {"waiting jobs wait until the host is up", waiting_jobs_wait_until_the_host_is_up},
    {"a job in its checks waits again", a_job_in_its_checks_waits_again},
    {"jobs start again if the shutdown is cancelled", jobs_start_again_if_the_shutdown_is_cancelled},
    {"a lost bus harms no migration", a_lost_bus_harms_no_migration},
};

int main(void) {
  Tests tests = {0};

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    tests_add(&tests, rows[i].name, with_logind, &rows[i].test);
  return bb_run(&tests, "shutdown");
}

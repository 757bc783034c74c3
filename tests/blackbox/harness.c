/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon for each test.
 *
 * Nothing here sleeps: the daemon says READY=1 on our socket when it serves, its exit makes a pidfd readable, and its
 * state comes in replies and streams. Every wait has a bound. */
#include "tests/blackbox/harness.h"

#include "proto/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The leak checker runs at the end of main(). */
#ifdef BB_SANITIZED
#define BB_LAST_SIGNAL SIGTERM
#else
#define BB_LAST_SIGNAL SIGKILL
#endif

static const char service_interface[] =
    "interface org.varlink.service\n"
    "method GetInfo() -> (vendor: string, product: string, version: string,"
    " url: string, interfaces: []string)\n"
    "method GetInterfaceDescription(interface: string) -> (description: "
    "string)\n"
    "error InterfaceNotFound (interface: string)\n"
    "error MethodNotFound (method: string)\n"
    "error MethodNotImplemented (method: string)\n"
    "error InvalidParameter (parameter: string)\n"
    "error PermissionDenied ()\n"
    "error ExpectedMore ()\n";

/* The default deadline of such a small guest is a few seconds, too short for a busy machine. */
static const char config_head[] = "[Policy]\n"
                                  "completion_timeout_s_per_gib=10000\n"
                                  "[Agent]\n"
                                  "PollInterval=50ms\n"
                                  "WatchInterval=10ms\n";

json_t *bb_keep(Bb *bb, json_t *json) {
  assert_non_null(json);
  g_ptr_array_add(bb->json, json);
  return json;
}

static void json_unref(gpointer data) {
  json_decref(data);
}

static void client_free(gpointer data) {
  Client *client = data;

  varlink_client_free(client->varlink);
  g_queue_clear_full(&client->asked, g_free);
  g_free(client);
}

static json_t *make_world(void) {
  json_t *domains = json_object();

  for (int i = 1; i <= 4; i++) {
    g_autofree char *name = g_strdup_printf("vm%d", i);

    json_object_set_new(
        domains, name,
        json_pack("{ss si si}", "host", "a", "memory_bytes", 16 << 20, "dirty_bytes_per_s", 0));
  }
  return json_pack("{s{s{} s{}} so s{si} s{} si}", "hosts", "a", "b", "domains", domains, "link",
                   "bytes_per_s", 64 << 20, "calls", "keepalive_ms", 30000);
}

static int setup(void **state) {
  Bb *bb = g_new0(Bb, 1);
  g_autoptr(GError) error = NULL;

  bb->row = *state;
  bb->directory = g_dir_make_tmp("handoffd-XXXXXX", &error);
  assert_non_null(bb->directory);
  assert_int_equal(chmod(bb->directory, 0755), 0);
  bb->socket = g_build_filename(bb->directory, "socket", NULL);
  bb->state_directory = g_build_filename(bb->directory, "state", NULL);
  bb->control = g_build_filename(bb->directory, "control.json", NULL);
  bb->config = g_build_filename(bb->directory, "handoffd.conf", NULL);
  bb->log = g_build_filename(bb->directory, "log", NULL);
  bb->libvirt_uri = g_strdup_printf("fake://%s?host=a", bb->control);
  bb->clients = g_ptr_array_new_with_free_func(client_free);
  bb->json = g_ptr_array_new_with_free_func(json_unref);
  bb->world = make_world();
  assert_non_null(bb->world);
  bb->interface = varlink_interface_parse(io_handoffd_Agent_varlink, NULL);
  bb->service = varlink_interface_parse(service_interface, NULL);
  assert_non_null(bb->interface);
  assert_non_null(bb->service);
  bb_configure(bb, config_head);
  bb_publish(bb);
  *state = bb;
  return 0;
}

static void remove_tree(const char *path) {
  g_autoptr(GDir) directory = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);

  for (const char *name; directory && (name = g_dir_read_name(directory));) {
    g_autofree char *child = g_build_filename(path, name, NULL);

    remove_tree(child);
  }
  g_remove(path);
}

void bb_print_log(Bb *bb) {
  g_autofree char *text = NULL;
  g_auto(GStrv) lines = NULL;

  if (!g_file_get_contents(bb->log, &text, NULL, NULL))
    return;
  lines = g_strsplit(text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (**line)
      fprintf(stderr, "# %s\n", *line);
}

/* If a sanitizer or GLib complains in the daemon, the test fails, whatever the replies were. */
static bool log_is_clean(const char *path) {
  static const char *const complaints[] = {"Sanitizer", "runtime error:", "-CRITICAL **", "-WARNING **"};
  g_autofree char *text = NULL;

  if (!g_file_get_contents(path, &text, NULL, NULL))
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS(complaints); i++)
    if (strstr(text, complaints[i]))
      return false;
  return true;
}

static int teardown(void **state) {
  Bb *bb = *state;
  bool clean;

  if (bb->pid)
    bb_stop(bb, BB_LAST_SIGNAL);
  clean = log_is_clean(bb->log);
  if (!clean || g_getenv("BB_LOG"))
    bb_print_log(bb);
  g_ptr_array_unref(bb->clients);
  g_ptr_array_unref(bb->json);
  json_decref(bb->world);
  varlink_interface_free(bb->interface);
  varlink_interface_free(bb->service);
  umount2(bb->state_directory, MNT_DETACH); /* of those tests that mount one there */
  if (!g_getenv("BB_KEEP"))
    remove_tree(bb->directory);
  g_free(bb->directory);
  g_free(bb->socket);
  g_free(bb->state_directory);
  g_free(bb->control);
  g_free(bb->config);
  g_free(bb->log);
  g_free(bb->libvirt_uri);
  g_free(bb);
  return clean ? 0 : -1;
}

int bb_run(Tests *tests, const char *group) {
  for (size_t i = 0; i < tests->count; i++) {
    tests->list[i].setup_func = setup;
    tests->list[i].teardown_func = teardown;
  }
  return tests_run(tests, group);
}

void bb_configure(Bb *bb, const char *text) {
  g_autofree char *before = NULL;
  g_autofree char *all = NULL;

  if (!g_file_get_contents(bb->config, &before, NULL, NULL))
    before = g_strdup("");
  all = g_strconcat(before, text, NULL);
  assert_true(g_file_set_contents(bb->config, all, -1, NULL));
}

/* --- the process --- */

static int bind_notify_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  assert_true(fd >= 0);
  unlink(path);
  g_strlcpy(address.sun_path, path, sizeof address.sun_path);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* Waits until the descriptor is readable, or `until_us`. */
static bool wait_readable(int fd, gint64 until_us) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  gint64 left_us;

  while ((left_us = until_us - g_get_monotonic_time()) > 0)
    if (poll(&poll_fd, 1, (int)(left_us / 1000) + 1) > 0)
      return true;
  return false;
}

static void await_ready(Bb *bb, int notify_fd) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  int pid_fd = (int)syscall(SYS_pidfd_open, bb->pid, 0);
  struct pollfd poll_fds[] = {{.fd = notify_fd, .events = POLLIN}, {.fd = pid_fd, .events = POLLIN}};
  bool ready = false;

  while (!ready && g_get_monotonic_time() < until_us && poll(poll_fds, 2, 1000) >= 0) {
    char message[512] = "";

    if (poll_fds[0].revents & POLLIN) {
      assert_true(recv(notify_fd, message, sizeof message - 1, 0) >= 0);
      ready = strstr(message, "READY=1") != NULL;
    } else if (poll_fds[1].revents & POLLIN) {
      break;
    }
  }
  close(pid_fd);
  close(notify_fd);
  if (!ready) {
    bb_print_log(bb);
    fail_msg("the daemon does not serve");
  }
}

static char *disk_path(Bb *bb) {
  return g_build_filename(bb->directory, "disk-held", NULL);
}

static void run_daemon(Bb *bb, const char *notify_path) {
  const char *program = g_getenv("HANDOFFD_FAKE");
  g_autofree char *clock = g_build_filename(bb->directory, "clock", NULL);
  g_autofree char *disk = disk_path(bb);
  g_autofree char *threads = g_build_filename(bb->directory, "threads", NULL);
  g_autofree char *bus = g_strdup_printf("unix:path=%s/bus", bb->directory);
  int log = open(bb->log, O_WRONLY | O_CREAT | O_APPEND, 0644);

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  setenv("NOTIFY_SOCKET", notify_path, 1);
  /* Not this machine's logind. */
  setenv("DBUS_SYSTEM_BUS_ADDRESS", bus, 1);
  setenv("FAKE_CLOCK", clock, 1);
  setenv("FAKE_CONTROL", bb->control, 1);
  setenv("FAKE_DISK", disk, 1);
  setenv("FAKE_THREADS", threads, 1);
  unsetenv("WATCHDOG_USEC");
  unsetenv("JOURNAL_STREAM");
  unsetenv("LISTEN_FDS");
  execl(program, "handoffd", "--config", bb->config, "--socket", bb->socket, "--state-dir",
        bb->state_directory, "--libvirt-uri", bb->libvirt_uri, NULL);
  _exit(127);
}

/* Changed in place, because the daemon has the file mapped. */
void bb_set_clock(Bb *bb, int64_t offset_s) {
  g_autofree char *path = g_build_filename(bb->directory, "clock", NULL);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, &offset_s, sizeof offset_s, 0), sizeof offset_s);
  close(fd);
}

void bb_hold_disk(Bb *bb) {
  g_autofree char *path = disk_path(bb);

  assert_true(g_file_set_contents(path, "", 0, NULL));
}

void bb_let_disk_go(Bb *bb) {
  g_autofree char *path = disk_path(bb);

  assert_int_equal(unlink(path), 0);
}

int bb_listen_to_status(Bb *bb) {
  g_autofree char *notify_path = g_build_filename(bb->directory, "notify", NULL);

  return bind_notify_socket(notify_path);
}

void bb_await_status(int fd, const char *text) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  char message[512] = "";

  while (!strstr(message, text)) {
    ssize_t n;

    if (!wait_readable(fd, until_us))
      fail_msg("never notified: '%s', last was: '%s'", text, message);
    n = recv(fd, message, sizeof message - 1, 0);
    assert_true(n >= 0);
    message[n] = '\0';
  }
}

void bb_start(Bb *bb) {
  g_autofree char *notify_path = g_build_filename(bb->directory, "notify", NULL);
  int notify_fd;

  if (!g_getenv("HANDOFFD_FAKE"))
    fail_msg("HANDOFFD_FAKE is to name the program handoffd-fake");
  notify_fd = bind_notify_socket(notify_path);
  fflush(NULL);
  bb->pid = fork();
  assert_true(bb->pid >= 0);
  if (bb->pid == 0)
    run_daemon(bb, notify_path);
  await_ready(bb, notify_fd);
}

int bb_stop(Bb *bb, int signal_number) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  int pid_fd = (int)syscall(SYS_pidfd_open, bb->pid, 0);
  bool ended;
  int status = 0;

  assert_true(pid_fd >= 0);
  kill(bb->pid, signal_number);
  ended = wait_readable(pid_fd, until_us);
  if (!ended)
    kill(bb->pid, SIGKILL);
  close(pid_fd);
  while (waitpid(bb->pid, &status, 0) < 0 && errno == EINTR)
    ;
  bb->pid = 0;
  if (!ended)
    fail_msg("the daemon did not end on signal %d", signal_number);
  return status;
}

bool bb_is_alive(Bb *bb) {
  return bb->pid > 0 && waitpid(bb->pid, NULL, WNOHANG) == 0;
}

/* --- the script --- */

void bb_publish(Bb *bb) {
  g_autofree char *temporary = g_strconcat(bb->control, ".new", NULL);

  assert_int_equal(json_dump_file(bb->world, temporary, JSON_INDENT(1)), 0);
  assert_int_equal(rename(temporary, bb->control), 0);
}

static void set_in(json_t *object, const char *key, json_t *value) {
  assert_non_null(object);
  if (value)
    json_object_set_new(object, key, value);
  else
    json_object_del(object, key);
}

void bb_set_link(Bb *bb, const char *key, json_t *value) {
  set_in(json_object_get(bb->world, "link"), key, value);
  bb_publish(bb);
}

void bb_set_host(Bb *bb, const char *host, const char *key, json_t *value) {
  set_in(json_object_get(json_object_get(bb->world, "hosts"), host), key, value);
  bb_publish(bb);
}

void bb_set_domain(Bb *bb, const char *domain, const char *key, json_t *value) {
  set_in(json_object_get(json_object_get(bb->world, "domains"), domain), key, value);
  bb_publish(bb);
}

void bb_add_domain(Bb *bb, const char *domain) {
  json_object_set_new(json_object_get(bb->world, "domains"), domain,
                      json_pack("{ss si si}", "host", "a", "memory_bytes", 16 << 20, "dirty_bytes_per_s", 0));
  bb_publish(bb);
}

void bb_set_call(Bb *bb, const char *call, json_t *knob) {
  set_in(json_object_get(bb->world, "calls"), call, knob);
  bb_publish(bb);
}

void bb_link_slow(Bb *bb) {
  bb_set_link(bb, "bytes_per_s", json_integer(64 << 10));
}

void bb_link_fast(Bb *bb) {
  bb_set_link(bb, "bytes_per_s", json_integer(1 << 30));
}

char *bb_target(Bb *bb, const char *host) {
  return g_strdup_printf("qemu+tcp://%s/system", host);
}

bool bb_was_opened(Bb *bb, const char *uri) {
  g_autofree char *path = g_strconcat(bb->control, ".opened", NULL), *escaped = g_strescape(uri, NULL);
  g_autofree char *line = g_strdup_printf("\n%.4096s\n", escaped), *text = NULL, *all = NULL;

  if (!g_file_get_contents(path, &text, NULL, NULL))
    return false;
  all = g_strconcat("\n", text, NULL);
  return strstr(all, line) != NULL;
}

json_t *bb_truth(Bb *bb, const char *domain) {
  g_autofree char *path = g_strconcat(bb->control, ".state", NULL);
  json_t *root = bb_keep(bb, json_load_file(path, 0, NULL));

  return json_object_get(json_object_get(root, "domains"), domain);
}

/* --- records --- */

char *bb_record_path(Bb *bb, const char *id) {
  return g_strdup_printf("%s/jobs/%s.json", bb->state_directory, id);
}

json_t *bb_record(Bb *bb, const char *id) {
  g_autofree char *path = bb_record_path(bb, id);

  return bb_keep(bb, json_load_file(path, JSON_REJECT_DUPLICATES, NULL));
}

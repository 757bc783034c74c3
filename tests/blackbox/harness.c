/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A daemon of a test's own.
 *
 * Nothing here sleeps: the daemon says READY=1 on a socket of ours when it serves, its end is a pidfd that becomes
 * readable, its state comes by answers and streams. Whatever is waited for has a bound. */
#include "tests/blackbox/harness.h"

#include "proto/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The leak checker looks at the end of main(). */
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

/* By the default a guest as small as these has a deadline of seconds, too few for a busy machine. */
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
  bb->libvirt_uri = bb_target(bb, "a");
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

/* What the daemon said is worth reading when something went wrong; as TAP's comments. */
static void print_log(const char *path) {
  g_autofree char *text = NULL;
  g_auto(GStrv) lines = NULL;

  if (!g_file_get_contents(path, &text, NULL, NULL))
    return;
  lines = g_strsplit(text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (**line)
      fprintf(stderr, "# %s\n", *line);
}

/* What a sanitizer or GLib complains of in the daemon is a failure of the test, whatever the answers were. */
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
    print_log(bb->log);
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
    print_log(bb->log);
    fail_msg("the daemon does not serve");
  }
}

static void run_daemon(Bb *bb, const char *notify_path) {
  const char *program = g_getenv("HANDOFFD_FAKE");
  g_autofree char *clock = g_build_filename(bb->directory, "clock", NULL);
  g_autofree char *bus = g_strdup_printf("unix:path=%s/bus", bb->directory);
  int log = open(bb->log, O_WRONLY | O_CREAT | O_APPEND, 0644);

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  setenv("NOTIFY_SOCKET", notify_path, 1);
  /* This machine's logind is none of ours. */
  setenv("DBUS_SYSTEM_BUS_ADDRESS", bus, 1);
  setenv("FAKE_CLOCK", clock, 1);
  unsetenv("WATCHDOG_USEC");
  unsetenv("JOURNAL_STREAM");
  unsetenv("LISTEN_FDS");
  execl(program, "handoffd", "--config", bb->config, "--socket", bb->socket, "--state-dir",
        bb->state_directory, "--libvirt-uri", bb->libvirt_uri, NULL);
  _exit(127);
}

/* The daemon has the file mapped: it is changed in place. */
void bb_set_clock(Bb *bb, int64_t offset_s) {
  g_autofree char *path = g_build_filename(bb->directory, "clock", NULL);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, &offset_s, sizeof offset_s, 0), sizeof offset_s);
  close(fd);
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
  return g_strdup_printf("fake://%s?host=%s", bb->control, host);
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

/* --- clients --- */

Client *bb_client_for(Bb *bb, VarlinkClient *varlink) {
  Client *client = g_new0(Client, 1);

  client->bb = bb;
  client->varlink = varlink;
  g_ptr_array_add(bb->clients, client);
  return client;
}

Client *bb_connect(Bb *bb) {
  g_autoptr(GError) error = NULL;
  VarlinkClient *varlink = varlink_client_connect(bb->socket, &error);

  if (!varlink)
    fail_msg("connect: %s", error->message);
  return bb_client_for(bb, varlink);
}

void client_close(Client *client) {
  g_ptr_array_remove_fast(client->bb->clients, client);
}

void client_send(Client *client, const char *method, json_t *parameters, VarlinkCallFlags flags) {
  char *full = strchr(method, '.') ? g_strdup(method) : g_strconcat("io.handoffd.Agent.", method, NULL);
  g_autoptr(GError) error = NULL;

  g_queue_push_tail(&client->asked, full);
  if (!varlink_client_send(client->varlink, full, parameters, flags, &error))
    fail_msg("%s: %s", method, error->message);
}

/* Splits "io.handoffd.Agent.Get" at its last dot; NULL: an interface that is not ours to judge. */
static const VarlinkInterface *interface_of(Bb *bb, const char *full, const char **ret_member) {
  const char *dot = strrchr(full, '.');
  g_autofree char *name = g_strndup(full, (gsize)(dot - full));

  *ret_member = dot + 1;
  if (strcmp(name, varlink_interface_get_name(bb->interface)) == 0)
    return bb->interface;
  if (strcmp(name, varlink_interface_get_name(bb->service)) == 0)
    return bb->service;
  return NULL;
}

static void check_answer(Bb *bb, const char *method, const VarlinkReply *reply) {
  const char *member;
  const VarlinkInterface *interface = interface_of(bb, reply->error ? reply->error : method, &member);
  g_autofree char *parameter = NULL;
  json_t *copy;

  assert_non_null(interface);
  copy = json_deep_copy(reply->parameters);
  if (!varlink_interface_check(interface, reply->error ? VARLINK_CHECK_ERROR : VARLINK_CHECK_REPLY, member,
                               copy, &parameter)) {
    g_autofree char *text = json_dumps(reply->parameters, JSON_INDENT(1));

    fail_msg("%s: the answer (%s) is not as the interface says, at %s: %s", method,
             reply->error ? reply->error : "a reply", parameter, text);
  }
  json_decref(copy);
}

json_t *client_receive(Client *client, char **ret_error, bool *ret_continues) {
  const char *method = g_queue_peek_head(&client->asked);
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;
  const char *member;
  json_t *parameters;

  if (!varlink_client_receive(client->varlink, BB_PATIENCE_MS, &reply, &error)) {
    print_log(client->bb->log);
    fail_msg("%s: %s", method ? method : "no call", error->message);
  }
  /* Who is turned away is told so before any call. */
  check_answer(client->bb, method ? method : "", &reply);
  if (!reply.continues)
    g_free(g_queue_pop_head(&client->asked));
  parameters = bb_keep(client->bb, json_incref(reply.parameters));
  if (reply.error && !ret_error) {
    g_autofree char *text = json_dumps(parameters, 0);

    print_log(client->bb->log);
    fail_msg("unexpected error %s %s", reply.error, text);
  }
  if (ret_error) {
    g_free(*ret_error);
    *ret_error = NULL;
    if (reply.error) {
      interface_of(client->bb, reply.error, &member);
      *ret_error = g_strdup(member);
    }
  }
  if (ret_continues)
    *ret_continues = reply.continues;
  return parameters;
}

json_t *client_call(Client *client, const char *method, json_t *parameters) {
  bool continues;
  json_t *answer;

  client_send(client, method, parameters, 0);
  answer = client_receive(client, NULL, &continues);
  assert_false(continues);
  return answer;
}

json_t *client_refused(Client *client, const char *method, json_t *parameters, const char *expected) {
  g_autofree char *error = NULL;
  json_t *answer;

  client_send(client, method, parameters, 0);
  answer = client_receive(client, &error, NULL);
  if (!error)
    fail_msg("%s: no error, though %s was expected", method, expected);
  assert_string_equal(error, expected);
  return answer;
}

void client_expect_end(Client *client) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  assert_false(varlink_client_receive(client->varlink, BB_PATIENCE_MS, &reply, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_DISCONNECTED));
}

/* --- jobs --- */

json_t *bb_start_parameters(Bb *bb, const char *domain) {
  g_autofree char *target = bb_target(bb, "b");

  return json_pack("{ss ss}", "domain", domain, "target", target);
}

json_t *client_start(Client *client, const char *domain, json_t *policy) {
  json_t *parameters = bb_start_parameters(client->bb, domain);
  json_t *answer;

  if (policy)
    json_object_set_new(parameters, "policy", policy);
  answer = client_call(client, "Start", parameters);
  assert_true(json_is_true(json_object_get(answer, "created")));
  return json_object_get(answer, "job");
}

json_t *client_get(Client *client, const char *job) {
  return json_object_get(client_call(client, "Get", json_pack("{ss}", "job", job)), "job");
}

static bool is_final(json_t *job) {
  const char *phase = text_of(job, "phase");

  return strcmp(phase, "succeeded") == 0 || strcmp(phase, "failed") == 0 || strcmp(phase, "aborted") == 0;
}

json_t *bb_await(Bb *bb, const char *id, bool (*done)(json_t *job, gconstpointer data), gconstpointer data) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;
  json_int_t revision = -1, percent = -1;
  Client *client = bb_connect(bb);
  bool continues = true;
  json_t *job = NULL;

  client_send(client, "Watch", json_pack("{ss}", "job", id), VARLINK_CALL_MORE);
  while (continues && g_get_monotonic_time() < until_us) {
    job = json_object_get(client_receive(client, NULL, &continues), "job");
    assert_true(number_of(job, "revision") >= revision);
    revision = number_of(job, "revision");
    if (member_of(job, "progress")) {
      assert_true(number_of(job, "progress.percent") >= percent);
      percent = number_of(job, "progress.percent");
      assert_true(percent < 100 || strcmp(text_of(job, "phase"), "succeeded") == 0);
    }
    assert_int_equal(continues, !is_final(job));
    if (done(job, data)) {
      client_close(client);
      return job;
    }
  }
  print_log(bb->log);
  {
    g_autofree char *text = json_dumps(job, JSON_INDENT(1));

    fail_msg("what was waited for did not come; the last state: %s", text);
  }
  return NULL;
}

bool bb_has_numbers(json_t *job, gconstpointer data) {
  return member_of(job, "progress.memory_processed_bytes") &&
         number_of(job, "progress.memory_processed_bytes") > 0;
}

static bool has_phase(json_t *job, gconstpointer phase) {
  return strcmp(text_of(job, "phase"), phase) == 0;
}

json_t *bb_await_phase(Bb *bb, const char *job, const char *phase) {
  return bb_await(bb, job, has_phase, phase);
}

typedef struct EventWanted {
  const char *kind;
  const char *text;
} EventWanted;

static bool has_event(json_t *job, gconstpointer data) {
  const EventWanted *wanted = data;

  return find_event(job, wanted->kind, wanted->text) != NULL;
}

json_t *bb_await_event(Bb *bb, const char *job, const char *kind, const char *text) {
  return bb_await(bb, job, has_event, &(EventWanted){kind, text});
}

json_t *member_of(json_t *object, const char *path) {
  g_auto(GStrv) names = g_strsplit(path, ".", -1);

  for (char **name = names; object && *name; name++)
    object = json_object_get(object, *name);
  return object;
}

const char *text_of(json_t *object, const char *path) {
  const char *text = json_string_value(member_of(object, path));

  if (!text)
    fail_msg("there is no text at %s", path);
  return text;
}

json_int_t number_of(json_t *object, const char *path) {
  json_t *number = member_of(object, path);

  if (!json_is_integer(number))
    fail_msg("there is no number at %s", path);
  return json_integer_value(number);
}

void assert_text(json_t *object, const char *path, const char *expected) {
  const char *text = json_string_value(member_of(object, path));

  if (!text || strcmp(text, expected) != 0) {
    g_autofree char *all = json_dumps(object, JSON_INDENT(1));

    fail_msg("%s is %s, not %s, in %s", path, text ? text : "absent", expected, all);
  }
}

json_t *find_event(json_t *job, const char *kind, const char *text) {
  json_t *event;
  size_t i;

  json_array_foreach (json_object_get(job, "events"), i, event)
    if (strcmp(text_of(event, "kind"), kind) == 0 && strstr(text_of(event, "message"), text))
      return event;
  return NULL;
}

void assert_events_whole(json_t *job) {
  json_int_t expected = 1;
  json_t *event;
  size_t i;

  json_array_foreach (json_object_get(job, "events"), i, event) {
    assert_int_equal(number_of(event, "seq"), expected);
    expected++;
  }
  assert_true(expected > 1);
}

/* --- other users --- */

Client *bb_connect_as(Bb *bb, uid_t uid, gid_t gid, gid_t group) {
  gid_t groups[128];
  int n = getgroups(G_N_ELEMENTS(groups), groups);
  Client *client;

  assert_true(n >= 0);
  assert_int_equal(setgroups(1, &group), 0);
  assert_int_equal(setegid(gid), 0);
  assert_int_equal(seteuid(uid), 0);
  client = bb_connect(bb);
  assert_int_equal(seteuid(0), 0);
  assert_int_equal(setegid(getgid()), 0);
  assert_int_equal(setgroups((size_t)n, groups), 0);
  return client;
}

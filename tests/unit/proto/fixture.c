/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A server on a context of its own, driven by hand, and raw clients of it. */
#include "fixture.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char description[] = "interface org.example.test\n"
                                  "method Echo(text: string, number: ?int) -> (text: string)\n"
                                  "method Big(size: int) -> (text: string)\n"
                                  "method Keep(text: ?string) -> (text: string)\n"
                                  "method Stream() -> (text: string)\n"
                                  "method Drop() -> ()\n"
                                  "method Flood(n: int) -> (text: string)\n"
                                  "method Unserved() -> ()\n"
                                  "error TooMany (limit: int)\n";

static void note(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Fixture *fixture = user_data;

  fixture->peer = *varlink_call_get_peer(call);
  fixture->peer.groups = NULL;
  g_string_append_printf(fixture->log, "%s ", strrchr(varlink_call_get_method(call), '.') + 1);
}

static void echo(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  note(call, parameters, user_data);
  varlink_call_reply(call, json_pack("{s:O}", "text", json_object_get(parameters, "text")), false);
}

static void big(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  size_t size = (size_t)json_integer_value(json_object_get(parameters, "size"));
  g_autofree char *text = g_strnfill(size, 'x');

  note(call, parameters, user_data);
  varlink_call_reply(call, json_pack("{s:s}", "text", text), false);
}

static void on_closed(VarlinkCall *call, gpointer user_data) {
  Fixture *fixture = user_data;

  assert_false(varlink_call_is_open(call));
  g_string_append(fixture->log, "closed ");
  g_ptr_array_remove(fixture->kept, call);
}

static void on_drained(VarlinkCall *call, gpointer user_data) {
  Fixture *fixture = user_data;

  assert_int_equal(varlink_call_get_queued_bytes(call), 0);
  g_string_append(fixture->log, "drained ");
}

static void keep(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Fixture *fixture = user_data;

  note(call, parameters, user_data);
  varlink_call_set_hooks(call, on_drained, on_closed, fixture);
  g_ptr_array_add(fixture->kept, varlink_call_ref(call));
}

static void drop(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  note(call, parameters, user_data);
}

static void flood(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  json_int_t n = json_integer_value(json_object_get(parameters, "n"));
  g_autofree char *text = g_strnfill(1000, 'x');

  note(call, parameters, user_data);
  for (json_int_t i = 1; i <= n; i++)
    varlink_call_reply(call, json_pack("{s:s}", "text", text), i < n);
}

static bool authorize(const VarlinkPeer *peer, const char *method, gpointer user_data) {
  const Fixture *fixture = user_data;

  assert_int_equal(peer->uid, getuid());
  return !fixture->deny;
}

static VarlinkTrust trust(const VarlinkPeer *peer, gpointer user_data) {
  const Fixture *fixture = user_data;

  assert_int_equal(peer->uid, getuid());
  return fixture->strangers ? VARLINK_STRANGER : VARLINK_TRUSTED;
}

void fixture_start(Fixture *fixture, const VarlinkLimits *limits) {
  static const VarlinkServiceInfo info = {.vendor = "v", .product = "p", .version = "1", .url = "u"};
  static const VarlinkMethod methods[] = {
      {.name = "Echo", .func = echo}, {.name = "Big", .func = big},
      {.name = "Keep", .func = keep}, {.name = "Stream", .func = keep, .streams = true},
      {.name = "Drop", .func = drop}, {.name = "Flood", .func = flood, .streams = true},
  };
  g_autoptr(GError) error = NULL;

  *fixture = (Fixture){0};
  fixture->context = g_main_context_new();
  fixture->directory = g_dir_make_tmp("proto-XXXXXX", NULL);
  fixture->path = g_build_filename(fixture->directory, "socket", NULL);
  fixture->kept = g_ptr_array_new_with_free_func((GDestroyNotify)varlink_call_unref);
  fixture->log = g_string_new(NULL);
  fixture->server = varlink_server_new(fixture->context, &info, limits);
  varlink_server_set_overload_error(fixture->server, TEST_OVERLOAD);
  varlink_server_set_authorize(fixture->server, authorize, fixture);
  varlink_server_set_trust(fixture->server, trust, fixture);
  assert_true(varlink_server_add_interface(fixture->server, description, methods, G_N_ELEMENTS(methods),
                                           fixture, &error));
  assert_true(varlink_server_listen_path(fixture->server, fixture->path, 0600, (gid_t)-1, &error));
}

void fixture_stop(Fixture *fixture) {
  varlink_server_free(fixture->server);
  g_ptr_array_unref(fixture->kept);
  g_string_free(fixture->log, TRUE);
  g_main_context_unref(fixture->context);
  assert_int_equal(rmdir(fixture->directory), 0); /* so the socket is gone as well */
  g_free(fixture->directory);
  g_free(fixture->path);
}

void fixture_pump(Fixture *fixture) {
  unsigned rounds = 0;

  while (g_main_context_iteration(fixture->context, FALSE))
    assert_true(++rounds < 100000); /* or it spins */
}

void fixture_wait(Fixture *fixture) {
  g_main_context_iteration(fixture->context, TRUE);
  fixture_pump(fixture);
}

int fixture_connect(Fixture *fixture) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_true(fd >= 0);
  g_strlcpy(address.sun_path, fixture->path, sizeof address.sun_path);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  fixture_pump(fixture);
  return fd;
}

void fixture_send(Fixture *fixture, int fd, const char *text) {
  g_autofree char *data = g_strdelimit(g_strdup(text), "'", '"');
  size_t length = strlen(data);

  for (size_t i = 0; i < length; i++)
    if (data[i] == '|')
      data[i] = '\0';
  assert_int_equal(send(fd, data, length, MSG_NOSIGNAL), length);
  fixture_pump(fixture);
}

char *fixture_read(Fixture *fixture, int fd) {
  g_autofree char *buffer = g_malloc(65536);
  GString *text = g_string_new(NULL);
  ssize_t n;

  fixture_pump(fixture);
  while ((n = recv(fd, buffer, 65536, 0)) > 0) {
    for (ssize_t i = 0; i < n; i++)
      if (buffer[i] == '\0')
        buffer[i] = '|';
    g_string_append_len(text, buffer, n);
    fixture_pump(fixture);
  }
  if (n == 0 || errno == ECONNRESET)
    g_string_append(text, "<end>");
  else
    assert_int_equal(errno, EAGAIN);
  for (size_t i = 0; i < text->len; i++)
    if (text->str[i] == '"')
      text->str[i] = '\'';
  return g_string_free(text, FALSE);
}

void fixture_expect(Fixture *fixture, int fd, const char *wanted) {
  g_autofree char *got = fixture_read(fixture, fd);

  assert_string_equal(got, wanted);
}

void fixture_exchange(Fixture *fixture, int fd, const char *text, const char *wanted) {
  fixture_send(fixture, fd, text);
  fixture_expect(fixture, fd, wanted);
}

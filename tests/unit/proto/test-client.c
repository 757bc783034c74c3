/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/client: against a socket whose other end the test holds, and once against a real server. */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct Pair {
  VarlinkClient *client;
  int fd; /* the server's end */
} Pair;

static int set_up(void **state) {
  Pair *pair = g_new0(Pair, 1);
  int fds[2];

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  pair->client = varlink_client_new_for_fd(fds[0]);
  pair->fd = fds[1];
  *state = pair;
  return 0;
}

static int tear_down(void **state) {
  Pair *pair = *state;

  varlink_client_free(pair->client);
  if (pair->fd >= 0)
    close(pair->fd);
  g_free(pair);
  return 0;
}

/* '|' stands for a NUL. */
static void give(Pair *pair, const char *text) {
  g_autofree char *data = g_strdelimit(g_strdup(text), "'", '"');
  size_t length = strlen(data);

  for (size_t i = 0; i < length; i++)
    if (data[i] == '|')
      data[i] = '\0';
  assert_int_equal(send(pair->fd, data, length, MSG_NOSIGNAL), length);
}

static void close_server_end(Pair *pair) {
  close(pair->fd);
  pair->fd = -1;
}

static void assert_receives(Pair *pair, const char *key, int value, const char *error_name, bool continues) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (!varlink_client_receive(pair->client, -1, &reply, &error))
    fail_msg("%s", error->message);
  assert_int_equal(g_strcmp0(reply.error, error_name), 0);
  assert_true(json_is_object(reply.parameters));
  if (key)
    assert_int_equal(json_integer_value(json_object_get(reply.parameters, key)), value);
  assert_int_equal(reply.continues, continues);
}

static void assert_fails(Pair *pair, int timeout_ms, VarlinkClientError code) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  assert_false(varlink_client_receive(pair->client, timeout_ms, &reply, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, (int)code));
  assert_null(reply.parameters);
}

static void sends_what_varlink_has(void **state) {
  static const char wanted[] = "{\"method\":\"a.b.C\",\"parameters\":{\"x\":1},\"more\":true}\0"
                               "{\"method\":\"a.b.D\",\"parameters\":{},\"oneway\":true}";
  Pair *pair = *state;
  char buffer[256];

  assert_true(
      varlink_client_send(pair->client, "a.b.C", json_pack("{s:i}", "x", 1), VARLINK_CALL_MORE, NULL));
  assert_true(varlink_client_send(pair->client, "a.b.D", NULL, VARLINK_CALL_ONEWAY, NULL));
  assert_int_equal(recv(pair->fd, buffer, sizeof buffer, 0), sizeof wanted);
  assert_memory_equal(buffer, wanted, sizeof wanted);
}

static void receives_one_after_the_other(void **state) {
  Pair *pair = *state;

  give(
      pair,
      "{'parameters':{'a':1},'continues':true}|{'parameters':{'a':2}}|{'error':'a.b.E','parameters':{'a':3}}|"
      "{'error':'a.b.F'}|{}|");
  assert_receives(pair, "a", 1, NULL, true);
  assert_receives(pair, "a", 2, NULL, false);
  assert_receives(pair, "a", 3, "a.b.E", false);
  assert_receives(pair, NULL, 0, "a.b.F", false);
  assert_receives(pair, NULL, 0, NULL, false);
}

static void keeps_a_half_over_a_timeout(void **state) {
  Pair *pair = *state;

  give(pair, "{'parameters':");
  assert_fails(pair, 0, VARLINK_CLIENT_ERROR_TIMEOUT);
  assert_fails(pair, 1, VARLINK_CLIENT_ERROR_TIMEOUT);
  give(pair, "{'a':7}}|");
  assert_receives(pair, "a", 7, NULL, false);
}

static void names_what_is_no_reply(void **state) {
  Pair *pair = *state;

  give(pair, "nonsense|[]|{'error':7}|{'parameters':{'a':1}}|");
  for (int i = 0; i < 3; i++)
    assert_fails(pair, -1, VARLINK_CLIENT_ERROR_PROTOCOL);
  assert_receives(pair, "a", 1, NULL, false);
}

static void reads_to_the_end_of_a_closed_connection(void **state) {
  Pair *pair = *state;

  give(pair, "{'parameters':{'a':1}}|{'parameters'");
  close_server_end(pair);
  assert_true(varlink_client_send(pair->client, "a.b.C", NULL, 0, NULL));
  assert_receives(pair, "a", 1, NULL, false);
  assert_fails(pair, -1, VARLINK_CLIENT_ERROR_DISCONNECTED);
}

static void oneway_to_nobody_fails(void **state) {
  Pair *pair = *state;
  g_autoptr(GError) error = NULL;

  close_server_end(pair);
  assert_false(varlink_client_send(pair->client, "a.b.C", NULL, VARLINK_CALL_ONEWAY, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_DISCONNECTED));
}

static void on_alarm(int number) {
}

static void a_signal_interrupts(void **state) {
  Pair *pair = *state;
  struct sigaction action = {.sa_handler = on_alarm}, old;
  struct itimerval timer = {.it_value.tv_usec = 2000, .it_interval.tv_usec = 2000};

  assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
  assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
  assert_fails(pair, -1, VARLINK_CLIENT_ERROR_INTERRUPTED);
  timer = (struct itimerval){0};
  assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
  give(pair, "{'parameters':{'a':1}}|");
  assert_receives(pair, "a", 1, NULL, false);
  sigaction(SIGALRM, &old, NULL);
}

static void refuses_what_is_no_method(void **state) {
  Pair *pair = *state;
  g_autoptr(GError) error = NULL;

  assert_false(varlink_client_send(pair->client, "a\"b", json_object(), 0, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_PROTOCOL));
}

#define LARGE ((size_t)4 * 1024 * 1024)

/* Writes all of a large answer before it reads anything. */
static gpointer stubborn_server(gpointer data) {
  int fd = GPOINTER_TO_INT(data);
  g_autofree char *text = g_strnfill(LARGE, 'x');
  g_autofree char *reply = g_strdup_printf("{\"parameters\":{\"text\":\"%s\"}}", text);
  size_t length = strlen(reply) + 1, received = 0;

  for (size_t sent = 0; sent < length;) {
    ssize_t n = send(fd, reply + sent, length - sent, MSG_NOSIGNAL);

    if (n <= 0)
      return NULL;
    sent += (size_t)n;
  }
  while (received == 0 || text[0] != '\0') {
    ssize_t n = recv(fd, text, LARGE, 0);

    if (n <= 0)
      return NULL;
    received += (size_t)n;
    text[0] = text[n - 1];
  }
  return GSIZE_TO_POINTER(received);
}

static void two_large_messages_do_not_block_each_other(void **state) {
  Pair *pair = *state;
  GThread *thread = g_thread_new("server", stubborn_server, GINT_TO_POINTER(pair->fd));
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;
  g_autofree char *text = g_strnfill(LARGE, 'y');

  assert_true(varlink_client_send(pair->client, "a.b.C", json_pack("{s:s}", "text", text), 0, &error));
  assert_true(varlink_client_receive(pair->client, -1, &reply, &error));
  assert_int_equal(json_string_length(json_object_get(reply.parameters, "text")), LARGE);
  assert_true(GPOINTER_TO_SIZE(g_thread_join(thread)) > LARGE);
}

static void connecting_to_nobody(void **state) {
  Fixture fixture;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = NULL;
  g_autofree char *long_path = g_strnfill(200, 'x');

  fixture_start(&fixture, NULL);
  path = g_strdup(fixture.path);
  fixture_stop(&fixture);

  assert_null(varlink_client_connect(path, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_CONNECT));
  assert_non_null(strstr(error->message, path));
  g_clear_error(&error);
  assert_null(varlink_client_connect(long_path, &error));
  assert_true(g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_CONNECT));
}

/* The server runs in a thread of its own here, as it does for the command-line tool. */
static gpointer serve(gpointer data) {
  g_main_loop_run(data);
  return NULL;
}

static void a_call_to_a_real_server(void **state) {
  Fixture fixture;
  g_autoptr(GMainLoop) loop = NULL;
  g_autoptr(VarlinkClient) client = NULL;
  g_autoptr(GError) error = NULL;
  GThread *thread;

  fixture_start(&fixture, NULL);
  loop = g_main_loop_new(fixture.context, FALSE);
  thread = g_thread_new("server", serve, loop);
  client = varlink_client_connect(fixture.path, &error);
  assert_non_null(client);
  for (int i = 0; i < 100; i++) {
    g_auto(VarlinkReply) reply = {0};

    assert_true(varlink_client_call(client, "org.example.test.Echo", json_pack("{s:s}", "text", "hello"),
                                    10000, &reply, &error));
    assert_null(reply.error);
    assert_string_equal(json_string_value(json_object_get(reply.parameters, "text")), "hello");
  }
  g_main_loop_quit(loop);
  g_thread_join(thread);
  fixture_stop(&fixture);
}

#define CLIENT_ROW(name_, function)                                                                          \
  { .name = (name_), .test_func = (function), .setup_func = set_up, .teardown_func = tear_down }

int main(void) {
  static const struct CMUnitTest tests[] = {
      CLIENT_ROW("calls go out as varlink has them", sends_what_varlink_has),
      CLIENT_ROW("replies come one after the other, errors and all", receives_one_after_the_other),
      CLIENT_ROW("half a reply is kept over a timeout", keeps_a_half_over_a_timeout),
      CLIENT_ROW("what is no reply is a protocol error", names_what_is_no_reply),
      CLIENT_ROW("what a server said before it closed is still heard",
                 reads_to_the_end_of_a_closed_connection),
      CLIENT_ROW("a oneway call to a server that is gone fails", oneway_to_nobody_fails),
      CLIENT_ROW("a signal interrupts the wait, which can be taken up again", a_signal_interrupts),
      CLIENT_ROW("a name that is none is not sent", refuses_what_is_no_method),
      CLIENT_ROW("two large messages do not block each other", two_large_messages_do_not_block_each_other),
      ROW("where nobody listens the error says so, with the path", connecting_to_nobody),
      ROW("calls to a server in another thread are answered", a_call_to_a_real_server),
  };

  return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}

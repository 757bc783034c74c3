/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* proto/server: what a client can make grow has an end; sockets that are made and taken over. */
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CALL(method, rest) "{'method':'org.example.test." method "'" rest "}|"
#define ECHO(text)         CALL("Echo", ",'parameters':{'text':'" text "'}")
#define TEXT(text)         "{'parameters':{'text':'" text "'}}|"

static void answer(VarlinkCall *call, const char *text, bool continues) {
  varlink_call_reply(call, json_pack("{s:s}", "text", text), continues);
}

static void connection_limit(const VarlinkLimits *limits) {
  Fixture fixture;
  int fds[4];

  fixture_start(&fixture, limits);
  for (int i = 0; i < 4; i++)
    fds[i] = fixture_connect(&fixture);
  fixture_expect(&fixture, fds[3], "{'error':'" TEST_OVERLOAD "','parameters':{'limit':3}}|<end>");
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 3);
  fixture_exchange(&fixture, fds[2], ECHO("1"), TEXT("1"));

  /* One goes, one may come. */
  close(fds[0]);
  close(fds[3]);
  fds[3] = fixture_connect(&fixture);
  fixture_exchange(&fixture, fds[3], ECHO("1"), TEXT("1"));
  for (int i = 1; i < 4; i++)
    close(fds[i]);
  fixture_stop(&fixture);
}

static void too_many_connections(void **state) {
  connection_limit(&(VarlinkLimits){.of[VARLINK_TRUSTED].max_connections = 3});
}

static void too_many_of_one_uid(void **state) {
  connection_limit(&(VarlinkLimits){.of[VARLINK_TRUSTED].max_connections_per_uid = 3});
}

static void our_client_hears_why(void **state) {
  Fixture fixture;
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(VarlinkClient) client = NULL;
  int fd;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_connections = 1});
  fd = fixture_connect(&fixture);
  client = varlink_client_connect(fixture.path, &error);
  assert_non_null(client);
  fixture_pump(&fixture); /* turned away before it could say anything */
  assert_true(varlink_client_call(client, "org.example.test.Echo", NULL, -1, &reply, &error));
  assert_string_equal(reply.error, TEST_OVERLOAD);
  close(fd);
  fixture_stop(&fixture);
}

static void message_too_long(void **state) {
  Fixture fixture;
  int fd;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_message_bytes = 100});
  fd = fixture_connect(&fixture);
  g_autofree char *call = g_strnfill(101, 'x');
  fixture_exchange(&fixture, fd, ECHO("1"), TEXT("1"));
  fixture_exchange(&fixture, fd, call, "<end>");
  close(fd);
  fixture_stop(&fixture);
}

static void half_a_message(void **state) {
  Fixture fixture;
  int fd, late, idle;

  fixture_start(&fixture, &(VarlinkLimits){.partial_message_timeout_ms = 20});
  idle = fixture_connect(&fixture);
  fd = fixture_connect(&fixture);
  late = fixture_connect(&fixture);
  fixture_exchange(&fixture, fd, ECHO("1") "{'method'", TEXT("1"));
  fixture_send(&fixture, late, "{");
  while (varlink_server_get_n_connections(fixture.server) > 1)
    fixture_wait(&fixture);
  fixture_expect(&fixture, fd, "<end>");
  fixture_expect(&fixture, late, "<end>");
  fixture_exchange(&fixture, idle, ECHO("1"), TEXT("1"));
  close(fd);
  close(late);
  close(idle);
  fixture_stop(&fixture);
}

static void the_clock_stands_while_a_call_is_handled(void **state) {
  Fixture fixture;
  int fd, other;

  fixture_start(&fixture, &(VarlinkLimits){.partial_message_timeout_ms = 20});
  fd = fixture_connect(&fixture);
  other = fixture_connect(&fixture);
  fixture_send(&fixture, fd, CALL("Keep", "") "{'method':");
  fixture_send(&fixture, other, "{");
  while (varlink_server_get_n_connections(fixture.server) > 1)
    fixture_wait(&fixture); /* 20 ms: the other's time */
  fixture_expect(&fixture, fd, "");
  answer(fixture.kept->pdata[0], "kept", false);
  fixture_exchange(&fixture, fd, "'org.example.test.Echo','parameters':{'text':'1'}}|",
                   TEXT("kept") TEXT("1"));
  close(fd);
  close(other);
  fixture_stop(&fixture);
}

/* Calls whose answers nobody reads: as many are handled as the limit and the kernel's buffer hold. */
static void slow_reader_of_answers(void **state) {
  enum { SENT = 200, SIZE = 10000 };
  Fixture fixture;
  g_autoptr(GString) calls = g_string_new(NULL);
  g_autofree char *first = NULL;
  size_t handled, n = 0;
  int fd, other;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_queued_bytes = 100000});
  fd = fixture_connect(&fixture);
  other = fixture_connect(&fixture);
  for (int i = 0; i < SENT; i++)
    g_string_append(calls, CALL("Big", ",'parameters':{'size':10000}"));
  fixture_send(&fixture, fd, calls->str);
  handled = fixture.log->len / strlen("Big ");
  assert_true(handled > 10);
  assert_true(handled < SENT);
  fixture_exchange(&fixture, other, ECHO("1"), TEXT("1"));

  first = fixture_read(&fixture, fd);
  for (const char *at = first; (at = strchr(at, '|')); at++)
    n++;
  assert_int_equal(n, SENT);
  assert_int_equal(strlen(first), SENT * (strlen(TEXT("")) + SIZE));
  close(fd);
  close(other);
  fixture_stop(&fixture);
}

static void slow_reader_who_hangs_up(void **state) {
  Fixture fixture;
  g_autoptr(GString) calls = g_string_new(NULL);
  int fd;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_queued_bytes = 100000});
  fd = fixture_connect(&fixture);
  for (int i = 0; i < 200; i++)
    g_string_append(calls, CALL("Big", ",'parameters':{'size':10000}"));
  fixture_send(&fixture, fd, calls->str);
  close(fd);
  fixture_pump(&fixture);
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 0);
  fixture_stop(&fixture);
}

static void a_large_answer_is_cut_and_whole(void **state) {
  Fixture fixture;
  g_autofree char *text = NULL;
  int fd;

  fixture_start(&fixture, NULL);
  fd = fixture_connect(&fixture);
  fixture_send(&fixture, fd, CALL("Big", ",'parameters':{'size':5000000}") ECHO("1"));
  text = fixture_read(&fixture, fd);
  assert_int_equal(strlen(text), strlen(TEXT("")) + 5000000 + strlen(TEXT("1")));
  assert_true(g_str_has_suffix(text, "x'}}|" TEXT("1")));
  close(fd);
  fixture_stop(&fixture);
}

static void garbage_after_calls(void **state) {
  Fixture fixture;
  g_autofree char *text = NULL;
  int fd;

  fixture_start(&fixture, NULL);
  fd = fixture_connect(&fixture);
  fixture_send(&fixture, fd, ECHO("1") CALL("Big", ",'parameters':{'size':1000000}") "garbage|" ECHO("2"));
  text = fixture_read(&fixture, fd);
  assert_int_equal(strlen(text), strlen(TEXT("1")) + strlen(TEXT("")) + 1000000 + strlen("<end>"));
  assert_true(g_str_has_suffix(text, "x'}}|<end>"));
  close(fd);
  fixture_stop(&fixture);
}

static void a_stream_knows_its_queue(void **state) {
  Fixture fixture;
  g_autofree char *text = g_strnfill(50000, 'x');
  g_autofree char *read = NULL;
  VarlinkCall *call;
  unsigned n = 0;
  int fd;

  fixture_start(&fixture, NULL);
  fd = fixture_connect(&fixture);
  fixture_send(&fixture, fd, CALL("Stream", ",'more':true"));
  call = fixture.kept->pdata[0];
  while (varlink_call_get_queued_bytes(call) == 0) {
    answer(call, text, true);
    assert_true(++n < 1000);
  }
  fixture_pump(&fixture);
  assert_string_equal(fixture.log->str, "Stream ");
  read = fixture_read(&fixture, fd);
  assert_string_equal(fixture.log->str, "Stream drained ");
  assert_int_equal(varlink_call_get_queued_bytes(call), 0);
  assert_true(varlink_call_is_open(call));
  close(fd);
  fixture_pump(&fixture);
  assert_string_equal(fixture.log->str, "Stream drained closed ");
  fixture_stop(&fixture);
}

static void a_stream_that_never_looks(void **state) {
  Fixture fixture;
  g_autofree char *text = NULL;
  int fd;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_queued_bytes = 100000});
  fd = fixture_connect(&fixture);
  fixture_send(&fixture, fd, CALL("Flood", ",'more':true,'parameters':{'n':100000}"));
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 0);
  text = fixture_read(&fixture, fd);
  assert_true(g_str_has_suffix(text, "<end>"));
  close(fd);
  fixture_stop(&fixture);
}

/* --- two classes of peers --- */

/* A connection keeps so small a buffer for its next call. */
#define KEPT 1024

static int connect_stranger(Fixture *fixture) {
  int fd;

  fixture->strangers = true;
  fd = fixture_connect(fixture);
  fixture->strangers = false;
  return fd;
}

static void strangers_have_places_of_their_own(void **state) {
  Fixture fixture;
  int strangers[3], trusted[3];

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_connections_per_uid = 3,
                                           .of[VARLINK_STRANGER].max_connections_per_uid = 2});
  for (int i = 0; i < 3; i++)
    strangers[i] = connect_stranger(&fixture);
  fixture_expect(&fixture, strangers[2], "{'error':'" TEST_OVERLOAD "','parameters':{'limit':2}}|<end>");
  for (int i = 0; i < 3; i++)
    trusted[i] = fixture_connect(&fixture);
  for (int i = 0; i < 3; i++)
    fixture_exchange(&fixture, trusted[i], ECHO("1"), TEXT("1"));
  fixture_exchange(&fixture, strangers[1], ECHO("1"), TEXT("1"));
  for (int i = 0; i < 3; i++) {
    close(strangers[i]);
    close(trusted[i]);
  }
  fixture_pump(&fixture);
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 0);
  fixture_stop(&fixture);
}

static void a_stranger_may_send_less(void **state) {
  Fixture fixture;
  g_autofree char *text = g_strnfill(200, 'x');
  g_autofree char *call =
      g_strconcat("{'method':'org.example.test.Echo','parameters':{'text':'", text, "'}}|", NULL);
  g_autofree char *answer_text = g_strconcat("{'parameters':{'text':'", text, "'}}|", NULL);
  int stranger, trusted;

  fixture_start(&fixture,
                &(VarlinkLimits){.of[VARLINK_STRANGER] = {.max_message_bytes = 100, .linger_ms = 20}});
  stranger = connect_stranger(&fixture);
  trusted = fixture_connect(&fixture);
  fixture_exchange(&fixture, stranger, ECHO("1"), TEXT("1"));
  fixture_exchange(&fixture, trusted, call, answer_text);
  fixture_send(&fixture, stranger, call);
  fixture_send(&fixture, stranger, ECHO("2"));

  /* It is not told at once, and nothing of it is read or kept. */
  fixture_expect(&fixture, stranger, "");
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 2);
  assert_int_equal(varlink_server_get_buffered_bytes(fixture.server, VARLINK_STRANGER), 0);
  while (varlink_server_get_n_connections(fixture.server) > 1)
    fixture_wait(&fixture);
  fixture_expect(&fixture, stranger, "<end>");
  fixture_exchange(&fixture, trusted, ECHO("3"), TEXT("3"));
  close(stranger);
  close(trusted);
  fixture_stop(&fixture);
}

static void who_is_about_to_be_disconnected_may_leave(void **state) {
  Fixture fixture;
  int stranger;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_STRANGER].linger_ms = 1000000});
  stranger = connect_stranger(&fixture);
  fixture_send(&fixture, stranger, "no call|");
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 1);
  close(stranger);
  fixture_pump(&fixture);
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 0);
  fixture_stop(&fixture);
}

/* Sends as far as the server takes it, from `at` on. */
static size_t send_on(Fixture *fixture, int fd, const char *data, size_t at, size_t size) {
  ssize_t n;

  while (at < size && (n = send(fd, data + at, size - at, MSG_NOSIGNAL)) > 0) {
    at += (size_t)n;
    fixture_pump(fixture);
  }
  return at;
}

static void long_messages_share_the_room(void **state) {
  enum { CLIENTS = 20, SIZE = 150000, ROOM = 400000, SMALL = 4096 };
  g_autofree char *text = g_strnfill(SIZE, 'x');
  g_autofree char *call =
      g_strconcat("{\"method\":\"org.example.test.Echo\",\"parameters\":{\"text\":\"", text, "\"}}", NULL);
  size_t length = strlen(call) + 1, sent[CLIENTS] = {0}, n_answers = 0, most = 0;
  bool answered[CLIENTS] = {false};
  Fixture fixture;
  int fds[CLIENTS], other;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_input_bytes = ROOM});
  other = fixture_connect(&fixture);
  for (int i = 0; i < CLIENTS; i++) {
    fds[i] = fixture_connect(&fixture);
    sent[i] = send_on(&fixture, fds[i], call, 0, SIZE); /* the end is missing */
  }
  most = varlink_server_get_buffered_bytes(fixture.server, VARLINK_TRUSTED);
  assert_true(most >= ROOM);
  assert_true(most <= ROOM + 2 * SIZE + CLIENTS * SMALL);
  fixture_exchange(&fixture, other, ECHO("1"), TEXT("1"));

  /* Then all go on: each is answered. */
  for (unsigned round = 0; n_answers < CLIENTS; round++) {
    assert_true(round < 1000);
    for (int i = 0; i < CLIENTS; i++) {
      g_autofree char *got = NULL;

      sent[i] = send_on(&fixture, fds[i], call, sent[i], length);
      got = fixture_read(&fixture, fds[i]);
      if (*got) {
        assert_int_equal(strlen(got), strlen(TEXT("")) + SIZE);
        assert_false(answered[i]);
        answered[i] = true;
        n_answers++;
      }
      most = MAX(most, varlink_server_get_buffered_bytes(fixture.server, VARLINK_TRUSTED));
    }
  }
  assert_true(most <= ROOM + 3 * SIZE + CLIENTS * SMALL);
  assert_true(varlink_server_get_buffered_bytes(fixture.server, VARLINK_TRUSTED) <= CLIENTS * KEPT);
  for (int i = 0; i < CLIENTS; i++)
    close(fds[i]);
  close(other);
  fixture_stop(&fixture);
}

static void who_leaves_most_unread_loses_it(void **state) {
  enum { ROOM = 4000000 };
  Fixture fixture;
  g_autofree char *of_a = NULL, *of_b = NULL, *of_c = NULL;
  int a, b, c;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_output_bytes = ROOM});
  a = fixture_connect(&fixture);
  b = fixture_connect(&fixture);
  c = fixture_connect(&fixture);
  fixture_send(&fixture, a, CALL("Big", ",'parameters':{'size':3000000}"));
  fixture_send(&fixture, b, CALL("Big", ",'parameters':{'size':1000000}"));
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 3);
  fixture_send(&fixture, c, CALL("Big", ",'parameters':{'size':2000000}"));
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 2);
  assert_true(varlink_server_get_buffered_bytes(fixture.server, VARLINK_TRUSTED) <= ROOM);
  of_b = fixture_read(&fixture, b);
  of_c = fixture_read(&fixture, c);
  of_a = fixture_read(&fixture, a);
  assert_int_equal(strlen(of_b), strlen(TEXT("")) + 1000000);
  assert_int_equal(strlen(of_c), strlen(TEXT("")) + 2000000);
  assert_true(g_str_has_suffix(of_a, "<end>"));
  assert_true(varlink_server_get_buffered_bytes(fixture.server, VARLINK_TRUSTED) <= 2 * KEPT);
  close(a);
  close(b);
  close(c);
  fixture_stop(&fixture);
}

static gboolean count_round(gpointer data) {
  ++*(unsigned *)data;
  return G_SOURCE_CONTINUE;
}

/* Each round of theirs is over after a moment, and the loop's other sources have their turn. */
static void many_calls_take_many_rounds(void **state) {
  enum { CLIENTS = 40, CALLS = 20 };
  static const char keep_call[] = "{\"method\":\"org.example.test.Keep\",\"oneway\":true}";
  static const char drop_call[] = "{\"method\":\"org.example.test.Drop\",\"oneway\":true}";
  Fixture fixture;
  GSource *source = g_idle_source_new();
  unsigned rounds = 0, after = 0;
  int fds[CLIENTS], stranger;

  fixture_start(&fixture, &(VarlinkLimits){.of[VARLINK_TRUSTED].max_round_us = 1});
  g_source_set_priority(source, G_PRIORITY_DEFAULT);
  g_source_set_callback(source, count_round, &rounds, NULL);
  stranger = connect_stranger(&fixture);
  for (int i = 0; i < CLIENTS; i++)
    fds[i] = fixture_connect(&fixture);
  for (int i = 0; i < CLIENTS; i++)
    for (int k = 0; k < CALLS; k++)
      assert_int_equal(send(fds[i], keep_call, sizeof keep_call, MSG_NOSIGNAL), sizeof keep_call);
  assert_int_equal(send(stranger, drop_call, sizeof drop_call, MSG_NOSIGNAL), sizeof drop_call);
  g_source_attach(source, fixture.context);
  while (fixture.kept->len < CLIENTS) {
    g_main_context_iteration(fixture.context, FALSE);
    if (after == 0 && strstr(fixture.log->str, "Drop"))
      after = fixture.kept->len;
    assert_true(rounds < 10000);
  }
  g_source_destroy(source);
  g_source_unref(source);
  assert_true(rounds >= CLIENTS / 8);
  assert_in_range(after, 1, CLIENTS / 2); /* the stranger did not wait for all of them */
  close(stranger);
  for (int i = 0; i < CLIENTS; i++)
    close(fds[i]);
  fixture_stop(&fixture);
}

static void out_of_descriptors(void **state) {
  struct rlimit old, tight;
  Fixture fixture;
  int spare, waiting;
  unsigned rounds = 0;

  fixture_start(&fixture, NULL);
  waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  spare = dup(waiting);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  tight = old;
  tight.rlim_cur = (rlim_t)spare + 1; /* the lowest free descriptor would be above it */
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);

  struct sockaddr_un address = {.sun_family = AF_UNIX};
  g_strlcpy(address.sun_path, fixture.path, sizeof address.sun_path);
  assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof address), 0);

  /* A few rounds, and then it is quiet. */
  while (g_main_context_iteration(fixture.context, FALSE))
    assert_true(++rounds < 10);
  assert_int_equal(varlink_server_get_n_connections(fixture.server), 0);

  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  while (varlink_server_get_n_connections(fixture.server) == 0)
    fixture_wait(&fixture);
  fixture_exchange(&fixture, waiting, ECHO("1"), TEXT("1"));
  close(spare);
  close(waiting);
  fixture_stop(&fixture);
}

static VarlinkServer *another_server(Fixture *fixture) {
  static const VarlinkServiceInfo info = {0};

  return varlink_server_new(fixture->context, &info, NULL);
}

static void sockets_on_paths(void **state) {
  Fixture fixture;
  g_autoptr(VarlinkServer) other = NULL;
  g_autoptr(GError) error = NULL;
  g_autofree char *file = NULL;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat status;
  int fd;

  fixture_start(&fixture, NULL);
  file = g_build_filename(fixture.directory, "file", NULL);
  other = another_server(&fixture);

  assert_int_equal(lstat(fixture.path, &status), 0);
  assert_int_equal(status.st_mode & 07777, 0600);
  assert_false(varlink_server_listen_path(other, fixture.path, 0600, (gid_t)-1, &error));
  assert_non_null(strstr(error->message, "another server is listening there"));
  g_clear_error(&error);

  assert_true(g_file_set_contents(file, "precious", -1, NULL));
  assert_false(varlink_server_listen_path(other, file, 0600, (gid_t)-1, &error));
  assert_int_equal(lstat(file, &status), 0);
  assert_true(S_ISREG(status.st_mode));
  unlink(file);
  g_clear_error(&error);

  /* What a server that crashed leaves behind. */
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  g_strlcpy(address.sun_path, file, sizeof address.sun_path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  close(fd);
  assert_true(varlink_server_listen_path(other, file, 0666, getgid(), &error));
  assert_int_equal(lstat(file, &status), 0);
  assert_int_equal(status.st_mode & 07777, 0666);
  assert_int_equal(status.st_gid, getgid());
  assert_false(varlink_server_listen_path(other, "/nonexistent/directory/socket", 0600, (gid_t)-1, &error));
  fixture_stop(&(Fixture){.context = g_main_context_ref(fixture.context),
                          .kept = g_ptr_array_new(),
                          .log = g_string_new(NULL),
                          .server = g_steal_pointer(&other),
                          .directory = g_dir_make_tmp("proto-XXXXXX", NULL)});
  assert_int_not_equal(lstat(file, &status), 0); /* gone with its server */
  fixture_stop(&fixture);
}

static void sockets_given(void **state) {
  Fixture fixture;
  g_autofree char *path = NULL;
  g_autoptr(GError) error = NULL;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd, pair[2];

  fixture_start(&fixture, NULL);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  assert_false(varlink_server_listen_fd(fixture.server, pair[0], &error));
  assert_int_equal(fcntl(pair[0], F_GETFD), -1); /* taken all the same */
  close(pair[1]);

  path = g_build_filename(fixture.directory, "given", NULL);
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  g_strlcpy(address.sun_path, path, sizeof address.sun_path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 10), 0);
  g_clear_error(&error);
  assert_true(varlink_server_listen_fd(fixture.server, fd, &error));
  g_free(fixture.path);
  fixture.path = g_strdup(path);
  fd = fixture_connect(&fixture);
  fixture_exchange(&fixture, fd, ECHO("1"), TEXT("1"));
  close(fd);
  varlink_server_free(g_steal_pointer(&fixture.server));
  assert_int_equal(unlink(path), 0); /* a given socket stays where it is */
  fixture_stop(&fixture);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      ROW("one connection too many is told the limit, and the next may come when one goes",
          too_many_connections),
      ROW("so is one too many of one user", too_many_of_one_uid),
      ROW("a client that is turned away before it called hears why", our_client_hears_why),
      ROW("a message that is too long ends its connection", message_too_long),
      ROW("half a message and then silence ends its connection, silence alone does not", half_a_message),
      ROW("a message's clock stands still while its connection is not read",
          the_clock_stands_while_a_call_is_handled),
      ROW("calls wait while their answers are not read, and none is lost", slow_reader_of_answers),
      ROW("a client that read nothing and hangs up is forgotten", slow_reader_who_hangs_up),
      ROW("an answer larger than any buffer arrives whole", a_large_answer_is_cut_and_whole),
      ROW("calls before what is none are answered, however slowly that is read", garbage_after_calls),
      ROW("a stream knows what waits, and is told when it has gone out", a_stream_knows_its_queue),
      ROW("a stream that never looks at its queue ends at the limit", a_stream_that_never_looks),
      ROW("strangers cannot take the places of those who are trusted", strangers_have_places_of_their_own),
      ROW("a stranger's message may be shorter, and a longer one ends its connection after a while",
          a_stranger_may_send_less),
      ROW("who is about to be disconnected may leave", who_is_about_to_be_disconnected_may_leave),
      ROW("all that was received has one limit; long messages get through one after the other, small ones at "
          "once",
          long_messages_share_the_room),
      ROW("all answers that are unread have one limit, and who leaves most loses them",
          who_leaves_most_unread_loses_it),
      ROW("many calls take many rounds, and strangers have theirs", many_calls_take_many_rounds),
      ROW("without descriptors accepting pauses and comes back", out_of_descriptors),
      ROW("a stale socket is replaced, a live one and a file are not, ours is removed", sockets_on_paths),
      ROW("a socket that is given is served and left in place", sockets_given),
  };

  return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bad input: each case gets its named error or loses its connection, and the daemon keeps serving. */
#include "tests/blackbox/harness.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_serves(Bb *bb) {
  Client *client = bb_connect(bb);

  assert_true(bb_is_alive(bb));
  client_call(client, "GetNode", NULL);
  client_close(client);
}

/* Sends until everything is sent or the other side accepts no more. */
static bool send_all(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

typedef struct Raw {
  const char *name;
  const char *data;
  size_t size;
  const char *error; /* NULL: the connection ends without an answer */
  const char *at, *text;
} Raw;

#define RAW(string) string, sizeof(string) - 1

static const Raw raws[] = {
    {"no JSON", RAW("hello\0"), NULL},
    {"JSON that breaks off", RAW("{\"method\":\"io.handoffd.Agent.GetNode\"\0"), NULL},
    {"JSON that is no object", RAW("[1]\0"), NULL},
    {"a name twice", RAW("{\"method\":\"a.b.C\",\"method\":\"a.b.D\"}\0"), NULL},
    {"invalid UTF-8", RAW("{\"method\":\"\xff\xfe\"}\0"), NULL},
    {"no method", RAW("{\"parameters\":{}}\0"), NULL},
    {"parameters that are not an object",
     RAW("{\"method\":\"io.handoffd.Agent.GetNode\",\"parameters\":[]}\0"), NULL},
    {"an integer that overflows",
     RAW("{\"method\":\"io.handoffd.Agent.Get\",\"parameters\":{\"job\":99999999999999999999}}\0"),
     "InvalidParameter", "parameter", "job"},
    {"unknown interface", RAW("{\"method\":\"com.example.Nothing.Do\"}\0"), "InterfaceNotFound", "interface",
     "com.example.Nothing"},
    {"unknown method", RAW("{\"method\":\"io.handoffd.Agent.Fly\"}\0"), "MethodNotFound", "method",
     "io.handoffd.Agent.Fly"},
    {"unknown field",
     RAW("{\"method\":\"io.handoffd.Agent.Get\",\"parameters\":{\"job\":\"x\",\"jbo\":1}}\0"),
     "InvalidParameter", "parameter", "jbo"},
    {"a stream without more", RAW("{\"method\":\"io.handoffd.Agent.Watch\",\"parameters\":{}}\0"),
     "ExpectedMore", NULL, NULL},
    {"an unknown phase",
     RAW("{\"method\":\"io.handoffd.Agent.List\",\"parameters\":{\"phases\":[\"pending\",\"lost\"]}}\0"),
     "InvalidParameter", "parameter", "phases[1]"},
    {"unknown job", RAW("{\"method\":\"io.handoffd.Agent.Get\",\"parameters\":{\"job\":\"0123\"}}\0"),
     "NoSuchJob", "job", "0123"},
    {"an invalid name of a job",
     RAW("{\"method\":\"io.handoffd.Agent.Abort\",\"parameters\":{\"job\":\"\"}}\0"), "NoSuchJob", "job", ""},
};

static void test_raw(void **state) {
  Bb *bb = *state;
  const Raw *raw = bb->row;
  g_autofree char *error = NULL;
  Client *client;
  json_t *answer;

  bb_start(bb);
  client = bb_connect(bb);
  assert_true(send_all(varlink_client_get_fd(client->varlink), raw->data, raw->size));
  if (raw->error) {
    g_queue_push_tail(&client->asked, g_strdup("io.handoffd.Agent.Raw"));
    answer = client_receive(client, &error, NULL);
    assert_string_equal(error, raw->error);
    if (raw->at)
      assert_text(answer, raw->at, raw->text);
    client_call(client, "GetNode", NULL);
  } else {
    client_expect_end(client);
  }
  assert_serves(bb);
}

static void a_flood_of_nuls(void **state) {
  Bb *bb = *state;
  static const char nuls[1 << 20];
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  (void)send_all(varlink_client_get_fd(client->varlink), nuls, sizeof nuls);
  client_expect_end(client);
  assert_serves(bb);
}

static void a_message_of_17_mib(void **state) {
  Bb *bb = *state;
  g_autofree char *data = g_strnfill(17 << 20, 'x');
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  assert_false(send_all(varlink_client_get_fd(client->varlink), data, 17 << 20));
  assert_serves(bb);
}

static void half_a_message_does_not_block_other_clients(void **state) {
  enum { SILENT = 50 };
  static const char half[] = "{\"method\":\"io.handoffd.Agent.GetN";
  static const char rest[] = "ode\"}";
  Client *clients[SILENT];
  Bb *bb = *state;

  bb_start(bb);
  for (int i = 0; i < SILENT; i++) {
    clients[i] = bb_connect(bb);
    assert_true(send_all(varlink_client_get_fd(clients[i]->varlink), half, sizeof half - 1));
  }
  assert_serves(bb);

  /* The other half may come late. */
  assert_true(send_all(varlink_client_get_fd(clients[7]->varlink), rest, sizeof rest));
  g_queue_push_tail(&clients[7]->asked, g_strdup("io.handoffd.Agent.GetNode"));
  client_receive(clients[7], NULL, NULL);
}

static void a_message_sent_byte_by_byte_is_answered(void **state) {
  static const char message[] = "{\"method\":\"io.handoffd.Agent.GetNode\"}";
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  for (size_t i = 0; i < sizeof message; i++)
    assert_true(send_all(varlink_client_get_fd(client->varlink), message + i, 1));
  g_queue_push_tail(&client->asked, g_strdup("io.handoffd.Agent.GetNode"));
  client_receive(client, NULL, NULL);
}

static void pipelined_calls_are_answered_in_order(void **state) {
  enum { CALLS = 500 };
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  for (int i = 0; i < CALLS; i++) {
    g_autofree char *job = g_strdup_printf("job %d", i);

    client_send(client, "Get", json_pack("{ss}", "job", job), 0);
  }
  for (int i = 0; i < CALLS; i++) {
    g_autofree char *job = g_strdup_printf("job %d", i);
    g_autofree char *error = NULL;
    json_t *answer = client_receive(client, &error, NULL);

    assert_string_equal(error, "NoSuchJob");
    assert_text(answer, "job", job);
  }
}

static void a_client_that_never_reads_its_replies_delays_nobody(void **state) {
  static const char call[] = "{\"method\":\"io.handoffd.Agent.GetNode\"}";
  Bb *bb = *state;
  Client *client;
  int fd;

  bb_start(bb);
  client = bb_connect(bb);
  fd = varlink_client_get_fd(client->varlink);
  /* Until the daemon stops reading, because it cannot send its replies. */
  for (int full = 0; full < 3;) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    if (send(fd, call, sizeof call, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      assert_int_equal(errno, EAGAIN);
      full += poll(&poll_fd, 1, 50) == 0;
    }
  }
  assert_serves(bb);
}

static void a_oneway_call_is_executed_and_not_answered(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  client_send(client, "Abort", json_pack("{ss}", "job", "vm1"), VARLINK_CALL_ONEWAY);
  g_free(g_queue_pop_tail(&client->asked));
  client_call(client, "GetNode", NULL);
  bb_await_phase(bb, text_of(job, "id"), "aborted");
}

/* --- connections --- */

static int connect_raw(Bb *bb) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_true(fd >= 0);
  g_strlcpy(address.sun_path, bb->socket, sizeof address.sun_path);
  assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

/* 1,024 connections of one user are served; the others get an error, and lose only their connection. */
static void five_thousand_connections(void **state) {
  enum { CONNECTIONS = 5000, SERVED = 1024 };
  struct rlimit limit = {CONNECTIONS + 100, CONNECTIONS + 100};
  Bb *bb = *state;
  Client *clients[CONNECTIONS], *early;
  int refused = 0;

  if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
    fail_msg("RLIMIT_NOFILE cannot be raised to %d", CONNECTIONS + 100);
  bb_start(bb);
  early = bb_connect(bb);
  client_call(early, "GetNode", NULL);
  for (int i = 0; i < CONNECTIONS; i++)
    clients[i] = bb_client_for(bb, varlink_client_new_for_fd(connect_raw(bb)));

  for (int i = 0; i < CONNECTIONS; i++) {
    g_autofree char *error = NULL;
    json_t *answer;

    client_send(clients[i], "GetNode", NULL, 0);
    answer = client_receive(clients[i], &error, NULL);
    if (error) {
      assert_string_equal(error, "TooManyConnections");
      assert_int_equal(number_of(answer, "limit"), SERVED);
      refused++;
    }
  }
  assert_int_equal(refused, CONNECTIONS + 1 - SERVED);
  client_call(early, "GetNode", NULL);
  for (int i = 0; i < SERVED - 1; i++)
    client_call(clients[i], "GetNode", NULL);

  /* Clients that disconnect make room. */
  for (int i = 0; i < CONNECTIONS; i++)
    client_close(clients[i]);
  client_call(early, "GetNode", NULL);
  assert_serves(bb);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, test_raw, raws);
  TESTS_ADD(&tests, a_flood_of_nuls);
  TESTS_ADD(&tests, a_message_of_17_mib);
  TESTS_ADD(&tests, half_a_message_does_not_block_other_clients);
  TESTS_ADD(&tests, a_message_sent_byte_by_byte_is_answered);
  TESTS_ADD(&tests, pipelined_calls_are_answered_in_order);
  TESTS_ADD(&tests, a_client_that_never_reads_its_replies_delays_nobody);
  TESTS_ADD(&tests, a_oneway_call_is_executed_and_not_answered);
  TESTS_ADD(&tests, five_thousand_connections);
  return bb_run(&tests, "bad input");
}

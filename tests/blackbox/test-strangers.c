/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strangers who send what they can: what they get, what it costs, and that others are still served. */
#include "tests/blackbox/harness.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

#define STRANGER_BYTES KIB(64)
#define TRUSTED_BYTES  KIB(256)
#define OF_ONE_USER    16
#define OF_ALL         128
#define USERS          36

static uid_t nobody_uid;

/* A separate user for each number. */
static Client *connect_stranger(Bb *bb, unsigned number) {
  uid_t uid = nobody_uid - number;

  return bb_connect_as(bb, uid, uid, uid);
}

static int fd_of(Client *client) {
  return varlink_client_get_fd(client->varlink);
}

/* As much as the socket takes now. */
static size_t send_some(Client *client, const char *data, size_t size) {
  ssize_t n = send(fd_of(client), data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

  return n > 0 ? (size_t)n : 0;
}

/* False: the daemon has closed the connection. */
static bool send_all(Client *client, const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = send(fd_of(client), data, size, MSG_NOSIGNAL);

    if (n <= 0)
      return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

/* A GetInfo call of so many bytes, with an unknown parameter. */
static GString *call_of(size_t bytes) {
  GString *call = g_string_new("{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"a\":\"");

  while (call->len < bytes - 3)
    g_string_append_c(call, 'x');
  g_string_append(call, "\"}}");
  return call;
}

static long status_of(Bb *bb, const char *key) {
  g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)bb->pid);
  g_autofree char *line = g_strconcat("\n", key, ":", NULL);
  g_autofree char *text = NULL;
  const char *at;

  assert_true(g_file_get_contents(path, &text, NULL, NULL));
  at = strstr(text, line);
  assert_non_null(at);
  return strtol(at + strlen(line), NULL, 10);
}

/* A sanitizer's shadow and quarantine are not the daemon's memory. */
static void assert_kib_at_most(long kib, size_t bytes) {
#ifndef BB_SANITIZED
  if (kib > (long)(bytes / 1024))
    fail_msg("%ld KiB, and at most %zu were expected", kib, bytes / 1024);
#endif
}

/* Memory is freed a moment later. */
static void await_rss(Bb *bb, long kib) {
#ifndef BB_SANITIZED
  gint64 until_us = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

  while (status_of(bb, "VmRSS") > kib) {
    struct pollfd nothing = {.fd = -1};

    if (g_get_monotonic_time() > until_us)
      fail_msg("%ld KiB stay, and at most %ld were expected", status_of(bb, "VmRSS"), kib);
    poll(&nothing, 1, 50);
  }
#endif
}

static void assert_info(Client *client) {
  assert_text(client_call(client, "org.varlink.service.GetInfo", NULL), "product", "handoffd");
}

static void assert_answered(Client *client, const GString *call) {
  g_autofree char *error = NULL;

  assert_true(send_all(client, call->str, call->len + 1));
  g_queue_push_tail(&client->asked, g_strdup("org.varlink.service.GetInfo"));
  client_receive(client, &error, NULL);
  assert_non_null(error);
  assert_string_equal(error, "InvalidParameter");
}

static void assert_ended(Client *client) {
  struct pollfd poll_fd = {.fd = fd_of(client), .events = POLLIN};
  char byte;

  assert_int_equal(poll(&poll_fd, 1, BB_PATIENCE_MS), 1);
  assert_true(recv(fd_of(client), &byte, 1, 0) <= 0);
}

static void messages_have_a_maximum_length(void **state) {
  Bb *bb = *state;
  g_autoptr(GString) most = call_of(STRANGER_BYTES), more = call_of(STRANGER_BYTES + 1);
  g_autoptr(GString) most_of_ours = call_of(TRUSTED_BYTES), more_of_ours = call_of(TRUSTED_BYTES + 1);
  Client *stranger, *root;

  bb_start(bb);
  stranger = connect_stranger(bb, 0);
  assert_answered(stranger, most);
  (void)send_all(stranger, more->str, more->len + 1);
  assert_ended(stranger);

  root = bb_connect(bb);
  assert_answered(root, more);
  assert_answered(root, most_of_ours);
  (void)send_all(root, more_of_ours->str, more_of_ours->len + 1);
  assert_ended(root);
}

/* Well-formed input that takes a hundred times its length in memory. */
static void messages_that_would_blow_up_the_parser_are_refused(void **state) {
  static const struct {
    const char *unit, *end;
    unsigned n;
  } rows[] = {{"{},", "", 50000}, {"[],", "", 50000}, {"1,", "", 100000}, {"[", "]", 1000}};
  Bb *bb = *state;

  bb_start(bb);
  for (size_t i = 0; i < LENGTH(rows); i++) {
    g_autoptr(GString) call =
        g_string_new("{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"a\":[");
    Client *root = bb_connect(bb);

    for (unsigned n = 0; n < rows[i].n; n++)
      g_string_append(call, rows[i].unit);
    g_string_append_c(call, '0');
    for (unsigned n = 0; n < rows[i].n; n++)
      g_string_append(call, rows[i].end);
    g_string_append(call, "]}}");
    (void)send_all(root, call->str, call->len + 1);
    assert_ended(root);
  }
  assert_info(bb_connect(bb));
}

static void strangers_have_few_slots_and_none_of_roots(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  for (unsigned i = 0; i < OF_ONE_USER; i++)
    assert_info(connect_stranger(bb, 0));
  client_refused(connect_stranger(bb, 0), "GetNode", NULL, "TooManyConnections");
  assert_info(connect_stranger(bb, 1));
  for (unsigned i = OF_ONE_USER + 1; i < OF_ALL; i++)
    assert_info(connect_stranger(bb, 2 + i / OF_ONE_USER));
  client = connect_stranger(bb, 50);
  assert_int_equal(number_of(client_refused(client, "GetNode", NULL, "TooManyConnections"), "limit"), OF_ALL);
  for (unsigned i = 0; i < 2 * OF_ONE_USER; i++)
    assert_info(bb_connect(bb));
}

static void a_member_of_the_group_is_not_a_stranger(void **state) {
  Bb *bb = *state;
  g_autoptr(GString) call = call_of(TRUSTED_BYTES);

  bb_configure(bb, "Group=daemon\n");
  bb_start(bb);
  assert_answered(bb_connect_as(bb, nobody_uid, nobody_uid, 1), call);
  (void)send_all(connect_stranger(bb, 0), call->str, call->len + 1);
  assert_info(bb_connect(bb));
}

/* From as many clients as allowed: unfinished messages, as long as allowed. */
static void unfinished_messages_share_one_limit(void **state) {
  enum { OURS = 600 };
  Bb *bb = *state;
  struct rlimit limit = {OURS + 500, OURS + 500};
  g_autoptr(GString) call = call_of(TRUSTED_BYTES);
  Client *ours[OURS], *strangers[OF_ALL], *root, *reader;
  long before;

  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  bb_start(bb);
  root = bb_connect(bb);
  reader = connect_stranger(bb, 50);
  for (int i = 0; i < OF_ALL - 1; i++)
    strangers[i] = connect_stranger(bb, (unsigned)i / (OF_ONE_USER - 1));
  for (int i = 0; i < OURS; i++)
    ours[i] = bb_connect(bb);
  assert_info(root);
  before = status_of(bb, "VmRSS");

  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < OURS; i++)
      send_some(ours[i], call->str, round < 3 ? KIB(60) : KIB(50));
    for (int i = 0; i < OF_ALL - 1; i++)
      send_some(strangers[i], call->str, KIB(15));
    assert_info(root);
    assert_info(reader);
  }
  assert_kib_at_most(status_of(bb, "VmHWM") - before, MIB(16) + MIB(8) + MIB(24));

  for (int i = 0; i < OURS; i++)
    client_close(ours[i]);
  for (int i = 0; i < OF_ALL - 1; i++)
    client_close(strangers[i]);
  /* They are gone once their slots are free. */
  for (int i = 0; i < OF_ALL - 1; i++)
    assert_info(strangers[i] = connect_stranger(bb, (unsigned)i / (OF_ONE_USER - 1)));
  await_rss(bb, before + 8 * 1024);
}

/* As in the original report: 36 connections, 16 MiB each. */
static void thirty_six_clients_with_sixteen_mib_each(void **state) {
  Bb *bb = *state;
  g_autoptr(GString) call =
      g_string_new("{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"a\":[{}");
  Client *strangers[USERS], *reader, *root;
  size_t sent[USERS] = {0};
  bool over[USERS] = {false};
  int left = USERS;
  long before;

  while (call->len < MIB(16) - 10)
    g_string_append(call, ",{}");
  g_string_append(call, "]}}");
  bb_start(bb);
  root = bb_connect(bb);
  reader = connect_stranger(bb, 50);
  for (int i = 0; i < USERS; i++)
    strangers[i] = connect_stranger(bb, (unsigned)i);
  assert_info(root);
  before = status_of(bb, "VmRSS");
  while (left > 0) {
    for (int i = 0; i < USERS; i++) {
      ssize_t n = over[i] ? 0
                          : send(fd_of(strangers[i]), call->str + sent[i], call->len + 1 - sent[i],
                                 MSG_DONTWAIT | MSG_NOSIGNAL);

      if (n > 0)
        sent[i] += (size_t)n;
      if (!over[i] && (sent[i] == call->len + 1 || (n < 0 && errno != EAGAIN))) {
        over[i] = true;
        left--;
      }
    }
    assert_info(reader);
    assert_info(root);
  }
  assert_kib_at_most(status_of(bb, "VmHWM"), MIB(128));
  await_rss(bb, before + 8 * 1024);
}

/* The main thread writes each line; so the journal gets some, and a count of the others. */
static void refusals_do_not_flood_the_journal(void **state) {
  Bb *bb = *state;
  g_autofree char *log = NULL;
  unsigned lines = 0;

  bb_start(bb);
  for (int user = 0; user < 2; user++) {
    Client *stranger = connect_stranger(bb, (unsigned)user);

    for (int i = 0; i < 500; i++)
      client_refused(stranger, "Abort", json_pack("{ss}", "job", "vm1"), "PermissionDenied");
  }
  assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
  for (const char *at = log; (at = strstr(at, "may not call")); at++)
    lines++;
  assert_int_equal(lines, 20);
}

/* More than a connection may have queued: each follows once there is room. */
static void a_watcher_of_many_jobs_hears_of_each(void **state) {
  enum { JOBS = 500 };
  Bb *bb = *state;
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  Client *root, *watcher;

  bb_configure(bb, "PublicRead=all\nMaxOutgoing=1\n");
  for (int i = 0; i < JOBS; i++) {
    g_autofree char *name = g_strdup_printf("many%d", i);

    json_object_set_new(json_object_get(bb->world, "domains"), name,
                        json_pack("{ss si}", "host", "a", "memory_bytes", 16 << 20));
  }
  bb_link_slow(bb);
  bb_start(bb);
  root = bb_connect(bb);
  for (int i = 0; i < JOBS; i++) {
    g_autofree char *name = g_strdup_printf("many%d", i);

    client_start(root, name, NULL);
  }
  watcher = connect_stranger(bb, 0);
  client_send(watcher, "Watch", NULL, VARLINK_CALL_MORE);
  assert_info(connect_stranger(bb, 0)); /* it has been dealt with, and nothing of it was read */
  while (g_hash_table_size(seen) < JOBS) {
    json_t *job = json_object_get(client_receive(watcher, NULL, NULL), "job");

    g_hash_table_add(seen, (gpointer)(uintptr_t)text_of(job, "id"));
  }
}

int main(void) {
  Tests tests = {0};
  struct passwd *nobody = getpwnam("nobody");

  if (geteuid() != 0 || !nobody) {
    printf("1..0 # SKIP needs root and the user nobody\n");
    return geteuid() == 0 ? 1 : 77;
  }
  nobody_uid = nobody->pw_uid;
  TESTS_ADD(&tests, messages_have_a_maximum_length);
  TESTS_ADD(&tests, messages_that_would_blow_up_the_parser_are_refused);
  TESTS_ADD(&tests, strangers_have_few_slots_and_none_of_roots);
  TESTS_ADD(&tests, a_member_of_the_group_is_not_a_stranger);
  TESTS_ADD(&tests, unfinished_messages_share_one_limit);
  TESTS_ADD(&tests, thirty_six_clients_with_sixteen_mib_each);
  TESTS_ADD(&tests, refusals_do_not_flood_the_journal);
  TESTS_ADD(&tests, a_watcher_of_many_jobs_hears_of_each);
  return bb_run(&tests, "strangers");
}

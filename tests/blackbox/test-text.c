/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text from outside: a caller's text with control characters is refused; a libvirtd's text loses them before anybody reads it, on
 * a terminal, in the log or as a status. */
#include "tests/blackbox/harness.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- what callers send --- */

static const struct Call {
  const char *name;
  const char *method;
  const char *parameters;
  const char *at;
} calls[] = {
    {"a newline in a domain", "Start", "{\"domain\":\"vm1\\nx\",\"target\":\"qemu+tcp://b/system\"}",
     "domain"},
    {"a newline in a target", "Start", "{\"domain\":\"vm1\",\"target\":\"qemu+tcp://b/system\\nSTATUS=x\"}",
     "target"},
    {"a tab in the URI of the stream", "Start",
     "{\"domain\":\"vm1\",\"target\":\"qemu+tcp://b/system\",\"migrate_uri\":\"tcp://b\\t\"}", "migrate_uri"},
    {"a carriage return in the name of a policy", "Start",
     "{\"domain\":\"vm1\",\"target\":\"qemu+tcp://b/system\",\"policy_name\":\"\\r\"}", "policy_name"},
    {"an escape in a reason", "Cordon", "{\"reason\":\"\\u001b[2J\"}", "reason"},
    {"DEL in a reason", "Cordon", "{\"reason\":\"a\\u007f\"}", "reason"},
    {"C1 in a reason", "Cordon", "{\"reason\":\"a\\u009b2J\"}", "reason"},
    {"a line separator in a reason", "Cordon", "{\"reason\":\"a\\u2028b\"}", "reason"},
    {"a paragraph separator in a reason", "Cordon", "{\"reason\":\"a\\u2029b\"}", "reason"},
    {"a newline in a job", "Get", "{\"job\":\"\\n\"}", "job"},
    {"a newline in List", "List", "{\"domain\":\"a\\nb\"}", "domain"},
    {"a newline in Check", "Check", "{\"domain\":\"a\\nb\",\"target\":\"b\"}", "domain"},
    {"a newline in a source", "Prepare", "{\"domain\":\"vm1\",\"source\":\"b\\n\"}", "source"},
    {"a newline in a lease", "Release", "{\"lease\":\"b\\n\"}", "lease"},
    {"a newline in the second target of a drain", "Drain",
     "{\"targets\":[\"qemu+tcp://b/system\",\"qemu+tcp://c/system\\n\"]}", "targets[1]"},
};

static void is_refused_by_its_place(void **state) {
  Bb *bb = *state;
  const struct Call *row = bb->row;
  g_autofree char *error = NULL;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_send(client, row->method, json_loads(row->parameters, 0, NULL),
              strcmp(row->method, "Drain") == 0 ? VARLINK_CALL_MORE : 0);
  assert_text(client_receive(client, &error, NULL), "parameter", row->at);
  assert_string_equal(error, "InvalidParameter");
  assert_null(json_object_get(client_call(client, "GetNode", NULL), "cordon"));
}

static void text_in_any_language_is_accepted(void **state) {
  Bb *bb = *state;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  client_call(client, "Cordon", json_pack("{ss}", "reason", "Wartung: Lüfter 3 \u2713 \u00a0\u3042"));
  assert_text(client_call(client, "GetNode", NULL), "cordon.reason", "Wartung: Lüfter 3 \u2713 \u00a0\u3042");
}

/* --- what a libvirtd says --- */

#define EVIL                                                                                                 \
  "vm\nhandoffd: error: forged\033]0;forged\007\xc2\x9b"                                                     \
  "2J\xe2\x80\xa8"                                                                                           \
  "end"
#define HARMLESS "vm handoffd: error: forged ]0;forged  2J end"

static const char evil_uuid[] = "6e4b1f0a-52d8-4ea4-9a3c-3f36a2b9d1c7";

static char *handoffctl(Bb *bb, const char *verb, const char *argument) {
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, verb, argument, NULL};
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  int status;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                           &text, NULL, &status, &error));
  return text;
}

/* No forged line, and nothing that a terminal would obey. */
static void assert_plain(const char *text) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

  assert_true(g_utf8_validate(text, -1, NULL));
  for (char **line = lines; *line; line++) {
    if (g_str_has_prefix(*line, "handoffd: error: forged"))
      fail_msg("a forged line: %s", *line);
    for (const char *p = *line; *p; p = g_utf8_next_char(p))
      if (g_unichar_iscntrl(g_utf8_get_char(p)) || g_utf8_get_char(p) == 0x2028)
        fail_msg("the character %04x: %s", g_utf8_get_char(p), g_strescape(*line, NULL));
  }
}

static void a_name_forges_nothing(void **state) {
  static const char *const verbs[] = {"show", "list", "watch", "evaluate", "report"};
  Bb *bb = *state;
  g_autofree char *log = NULL;
  Client *client;
  json_t *job;

  bb_add_domain(bb, EVIL);
  bb_set_domain(bb, EVIL, "uuid", json_string(evil_uuid));
  bb_set_domain(bb, EVIL, "xml", json_string("<domain><vcpu>1</vcpu></domain>"));
  bb_set_domain(bb, EVIL, "next_xml", json_string("<domain><vcpu>2</vcpu></domain>"));
  bb_start(bb);
  client = bb_connect(bb);
  job = client_start(client, evil_uuid, NULL);
  assert_text(job, "domain.name", HARMLESS);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  for (size_t i = 0; i < LENGTH(verbs); i++) {
    bool of_job = i != 1 && i != 3;
    g_autofree char *text = handoffctl(bb, verbs[i], of_job ? text_of(job, "id") : i == 1 ? "--all" : NULL);

    assert_plain(text);
    if (of_job && !strstr(text, "vm handoffd"))
      fail_msg("%s does not show it: %s", verbs[i], text);
  }
  assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
  assert_non_null(strstr(log, HARMLESS));
  assert_plain(log);
}

/* handoffctl strips what the agent passes on unchanged. */
static void raw_text_is_shown_plain(void **state) {
  Bb *bb = *state;
  g_autofree char *text = NULL;

  bb_add_domain(bb, EVIL);
  bb_set_domain(bb, EVIL, "xml", json_string("<domain><vcpu>1</vcpu></domain>"));
  bb_set_domain(bb, EVIL, "next_xml", json_string("<domain><vcpu>2</vcpu></domain>"));
  bb_start(bb);
  text = handoffctl(bb, "evaluate", NULL);
  assert_plain(text);
  assert_non_null(strstr(text, "vm handoffd"));
}

static void a_libvirt_error_forges_nothing(void **state) {
  Bb *bb = *state;
  g_autofree char *shown = NULL, *log = NULL;
  json_t *job;

  bb_start(bb);
  bb_set_call(bb, "migrate", json_pack("{ss ss}", "fail", "DENIED", "message", EVIL));
  job = client_start(bb_connect(bb), "vm1", NULL);
  job = bb_await_phase(bb, text_of(job, "id"), "failed");
  assert_non_null(strstr(text_of(job, "failure.message"), HARMLESS));
  shown = handoffctl(bb, "show", text_of(job, "id"));
  assert_non_null(strstr(shown, "forged"));
  assert_plain(shown);
  assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
  assert_plain(log);
}

/* --- what the service manager is told --- */

/* Reads until a status has the text. Each message is one assignment. */
static void await_plain_status(int fd, const char *text) {
  char message[4096] = "";

  while (!strstr(message, text)) {
    ssize_t n = recv(fd, message, sizeof message - 1, 0);

    assert_true(n > 0);
    message[n] = '\0';
    if (strchr(message, '\n'))
      fail_msg("a message of several lines: %s", message);
    assert_plain(message);
  }
}

static int listen_to_status(Bb *bb) {
  struct timeval patience = {.tv_sec = BB_PATIENCE_MS / 1000};
  int fd = bb_listen_to_status(bb);

  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  return fd;
}

/* The target does not answer about this job's domain, and its URI becomes part of the status. */
static void let_the_target_hang(Bb *bb, Client *client, const char *job) {
  bb_await(bb, job, bb_has_numbers, NULL);
  bb_set_call(bb, "b.domain_status", json_pack("{sb}", "hang", 1));
  bb_set_call(bb, "migrate", json_pack("{si}", "detach_after_ms", 1));
  client_call(client, "Abort", json_pack("{ss}", "job", job));
}

static void start_for_hangs(Bb *bb) {
  /* A hung call hangs until the test ends it. */
  json_object_set_new(bb->world, "keepalive_ms", json_integer(10 * BB_PATIENCE_MS));
  bb_link_slow(bb);
  bb_start(bb);
}

static void a_hung_uri_forges_no_status(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;
  int fd;

  bb_configure(bb, "[Target far]\nLibvirtURI=qemu+ssh://b/system?keyfile=/x\033]0;forged\007\xc2\x9b"
                   "2J\n");
  start_for_hangs(bb);
  client = bb_connect(bb);
  job = client_call(client, "Start", json_pack("{ss ss}", "domain", "vm1", "target", "far"));
  fd = listen_to_status(bb);
  let_the_target_hang(bb, client, text_of(job, "job.id"));
  await_plain_status(fd, "keyfile=/x ]0;forged  2J");
  close(fd);
}

static void a_newline_from_a_caller_gets_nowhere(void **state) {
  static const char uri[] = "qemu+tcp://b/system?x=\nSTATUS=forged";
  Bb *bb = *state;
  g_autofree char *error = NULL;
  json_t *answer;
  Client *client;
  int fd;

  start_for_hangs(bb);
  client = bb_connect(bb);
  fd = listen_to_status(bb);
  client_send(client, "Start", json_pack("{ss ss}", "domain", "vm1", "target", uri), 0);
  answer = client_receive(client, &error, NULL);
  if (!error) {
    let_the_target_hang(bb, client, text_of(answer, "job.id"));
    await_plain_status(fd, "to libvirtd hang");
  }
  assert_string_equal(error ? error : "", "InvalidParameter");
  assert_false(bb_was_opened(bb, uri));
  close(fd);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, is_refused_by_its_place, calls);
  TESTS_ADD(&tests, text_in_any_language_is_accepted);
  TESTS_ADD(&tests, a_name_forges_nothing);
  TESTS_ADD(&tests, raw_text_is_shown_plain);
  TESTS_ADD(&tests, a_libvirt_error_forges_nothing);
  TESTS_ADD(&tests, a_hung_uri_forges_no_status);
  TESTS_ADD(&tests, a_newline_from_a_caller_gets_nowhere);
  return bb_run(&tests, "text");
}

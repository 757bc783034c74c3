/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which places a caller may name: every call that takes a URI refuses a hostile one before libvirt sees it. */
#include "tests/blackbox/harness.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The unit test of core/uri.c has many more; these are the ones that would let somebody in. */
static const char *const hostile[] = {
    "qemu+unix:///system?name=qemu%2Bext%3A%2F%2Fx%2Fsystem%3Fcommand%3D%2Ftmp%2Fx",
    "qemu+tcp://b/system?name=qemu%2Bext%3A%2F%2Fx%2Fsystem%3Fcommand%3D%2Ftmp%2Fx",
    "qemu+tcp://b/system?name=test:///etc/passwd",
    "qemu:///embed?root=/tmp/x",
    "qemu+tcp://b/embed?root=/tmp/x",
    "test:///tmp/x.xml",
    "test:///default",
    "qemu+ext://b/system?command=/tmp/x",
    "qemu+ext://b/system",
    "QEMU+EXT://b/system?command=/tmp/x",
    "qemu+ssh://b/system?command=/tmp/x",
    "qemu+ssh://b/system?netcat=/tmp/x",
    "qemu+ssh://b/system?%6eetcat=/tmp/x",
    "qemu+ssh://b/system?proxy=netcat",
    "qemu+ssh://b/system?keyfile=/tmp/x",
    "qemu+ssh://b/system?known_hosts=/dev/null",
    "qemu+ssh://b/system?no_verify=1",
    "qemu+libssh2://b/system?known_hosts=/dev/null",
    "qemu+tls://b/system?pkipath=/tmp/x",
    "qemu+tls://b/system?no_verify=1",
    "qemu+unix:///system?socket=/tmp/x",
    "qemu+unix:///system?mode=direct",
    "qemu+tcp://b/system?mode=direct",
    "qemu:///system",
    "qemu:///session",
    "qemu+tcp://b/session",
    "qemu+tcp://b/system/../embed",
    "qemu+tcp://b//system",
    "qemu+tcp://b/system#x",
    "qemu+tcp://b/system?",
    "QEMU+TCP://b/system",
    "qemu+tcp://-oProxyCommand=x/system",
    "qemu+ssh://-oProxyCommand=x/system",
    "qemu+ssh://-lroot@b/system",
    "qemu+ssh://root:secret@b/system",
    "qemu+tcp://root@b/system",
    "qemu+tcp://b%0a/system",
    "qemu+tcp://b%00/system",
    "qemu+tcp://[fe80::1%25eth0]/system",
    "qemu+tcp://0x7f.1/system",
    "qemu+tcp://b:0/system",
    "xen+tcp://b/system",
    "fake:///tmp/x?host=b",
    "://",
};

static const struct Way {
  const char *name;
  const char *method;
  const char *key;
  bool array, more;
} ways[] = {
    {"Start names no hostile target", "Start", "target", false, false},
    {"Check names no hostile target", "Check", "target", false, false},
    {"Forecast names no hostile target", "Forecast", "target", false, false},
    {"Prepare names no hostile source", "Prepare", "source", false, false},
    {"Drain names no hostile target", "Drain", "targets", true, true},
};

static json_t *parameters_of(const struct Way *way, const char *uri) {
  json_t *parameters = json_pack("{ss}", way->key, uri);

  if (way->array)
    json_object_set_new(parameters, way->key, json_pack("[s]", uri));
  else
    json_object_set_new(parameters, "domain", json_string("vm1"));
  return parameters;
}

/* Calls, and expects the error of this name. */
static json_t *refused(Client *client, const struct Way *way, const char *uri, const char *expected) {
  g_autofree char *error = NULL;
  json_t *answer;

  client_send(client, way->method, parameters_of(way, uri), way->more ? VARLINK_CALL_MORE : 0);
  answer = client_receive(client, &error, NULL);
  if (g_strcmp0(error, expected) != 0)
    fail_msg("%s of %s: expected %s, it was %s", way->method, uri, expected, error ? error : "taken");
  return answer;
}

/* Waits until the agent has opened a good URI: by then it would have opened the earlier ones, too. */
static void assert_that_good_ones_are_opened(Bb *bb, Client *client) {
  g_autofree char *target = bb_target(bb, "b");

  client_call(client, "Check", json_pack("{ss ss}", "domain", "vm1", "target", target));
  assert_true(bb_was_opened(bb, target));
}

static void a_hostile_uri_is_refused_before_any_connection(void **state) {
  Bb *bb = *state;
  const struct Way *way = bb->row;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  for (size_t i = 0; i < LENGTH(hostile); i++)
    assert_text(refused(client, way, hostile[i], "NoSuchTarget"), "target", hostile[i]);
  assert_that_good_ones_are_opened(bb, client);
  for (size_t i = 0; i < LENGTH(hostile); i++)
    if (bb_was_opened(bb, hostile[i]))
      fail_msg("libvirt was asked for %s", hostile[i]);
}

static void an_overlong_uri_is_not_echoed(void **state) {
  Bb *bb = *state;
  const struct Way *way = bb->row;
  g_autofree char *label = g_strnfill(100000, 'a'), *uri = g_strconcat("qemu+tcp://", label, "/system", NULL);
  json_t *error;

  bb_start(bb);
  error = refused(bb_connect(bb), way, uri, "NoSuchTarget");
  assert_true(strlen(text_of(error, "target")) < 300);
  assert_false(bb_was_opened(bb, uri));
}

static const struct Stream {
  const char *name;
  const char *uri;
  bool good;
} streams[] = {
    {"a port of the stream", "tcp://10.0.0.2:49152", true},
    {"the stream by RDMA", "rdma://b", true},
    {"the stream to IPv6", "tcp://[fd00::2]:49152", true},
    {"the stream to a socket", "unix:///tmp/x", false},
    {"the stream to a program", "exec:/tmp/x", false},
    {"the stream to a descriptor", "fd:3", false},
    {"the stream with parameters", "tcp://b?x=y", false},
    {"the stream with a path", "tcp://b/x", false},
    {"the stream in the old way", "tcp:b:49152", false},
    {"the stream to an option", "tcp://-x", false},
    {"the stream to something that is not a URI", "10.0.0.2", false},
    {"the stream to an empty URI", "", false},
};

static void the_stream_goes_only_where_allowed(void **state) {
  Bb *bb = *state;
  const struct Stream *row = bb->row;
  json_t *parameters, *error;
  Client *client;

  bb_start(bb);
  client = bb_connect(bb);
  parameters = bb_start_parameters(bb, "vm1");
  json_object_set_new(parameters, "migrate_uri", json_string(row->uri));
  if (row->good) {
    assert_text(client_call(client, "Start", parameters), "job.target.migrate_uri", row->uri);
    return;
  }
  error = client_refused(client, "Start", parameters, "NoSuchTarget");
  assert_text(error, "target", row->uri);
  assert_non_null(strstr(text_of(error, "message"), "migrate_uri"));
  assert_int_equal(json_array_size(json_object_get(client_call(client, "List", NULL), "jobs")), 0);
}

/* What only the owner of the node may write is still accepted. */
static void a_configured_target_may_be_anything(void **state) {
  static const char uri[] = "qemu+ssh://b/system?keyfile=/root/key&no_verify=1#x";
  Bb *bb = *state;
  g_autofree char *section = g_strdup_printf("[Target far]\nLibvirtURI=%s\nMigrateURI=unix:///run/x\n", uri);
  json_t *job;
  Client *client;

  bb_configure(bb, section);
  bb_start(bb);
  client = bb_connect(bb);
  job = json_object_get(client_call(client, "Start", json_pack("{ss ss}", "domain", "vm1", "target", "far")),
                        "job");
  assert_text(job, "target.libvirt_uri", uri);
  assert_text(job, "target.migrate_uri", "unix:///run/x");
  bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_true(bb_was_opened(bb, uri));
  /* Named by its URI, it counts as a caller's. */
  client_refused(client, "Start", json_pack("{ss ss}", "domain", "vm2", "target", uri), "NoSuchTarget");
}

/* --- AllowTargets= --- */

static const char configured[] = "[Target near]\nLibvirtURI=qemu+tcp://b/system\n"
                                 "[Target far]\nLibvirtURI=qemu+ssh://10.9.9.9/system?no_verify=1\n"
                                 "[Agent]\n";

static const struct Allowed {
  const char *name;
  const char *allow;
  const char *text;
  bool expected;
} alloweds[] = {
    {"no list: a URI", "", "qemu+tcp://b/system", true},
    {"no list: a target", "", "far", true},
    {"a target on the list", "near", "near", true},
    {"a target that is not on it", "near", "far", false},
    {"a URI where only a target is listed", "near", "qemu+tcp://b/system", false},
    {"only targets", "*", "far", true},
    {"no URI where only targets are allowed", "*", "qemu+tcp://b/system", false},
    {"a URI that matches", "qemu+tcp://?/system", "qemu+tcp://b/system", true},
    {"a URI that does not", "qemu+tls://*/system", "qemu+tcp://b/system", false},
    {"a target whose URI matches", "qemu+tcp://?/system", "near", true},
    {"a target whose URI only its owner may write", "10.0.0.0/8 qemu+ssh://*/system*", "far", false},
    {"an address of a network", "near, 10.0.0.0/8", "qemu+tcp://10.1.2.3/system", true},
    {"an address of another", "near, 10.0.0.0/8", "qemu+tcp://11.1.2.3/system", false},
    {"a name, where a network is allowed", "0.0.0.0/0", "qemu+tcp://b/system", false},
    {"nothing, where the list is invalid", "10.0.0.0/99", "qemu+tcp://b/system", false},
    {"no target, where the list is invalid", "10.0.0.0/99", "near", false},
};

static void allow(Bb *bb, const char *text) {
  g_autofree char *line = g_strdup_printf("AllowTargets=%s\n", text);

  bb_configure(bb, configured);
  bb_configure(bb, line);
}

/* Whatever else it answers. */
static bool is_let_in(Client *client, const struct Way *way, const char *text) {
  g_autofree char *error = NULL;

  client_send(client, way->method, parameters_of(way, text), way->more ? VARLINK_CALL_MORE : 0);
  client_receive(client, &error, NULL);
  assert_string_not_equal(error ? error : "", "NoSuchTarget");
  return g_strcmp0(error, "TargetNotAllowed") != 0;
}

/* The last call cordons the node. */
static void every_method_applies_allow_targets(void **state) {
  Bb *bb = *state;
  const struct Allowed *row = bb->row;

  allow(bb, row->allow);
  bb_start(bb);
  for (size_t i = 0; i < LENGTH(ways); i++)
    if (is_let_in(bb_connect(bb), &ways[i], row->text) != row->expected)
      fail_msg("%s of %s, where \"%s\" is allowed", ways[i].method, row->text, row->allow);
  if (!row->expected)
    assert_false(bb_was_opened(bb, row->text));
}

static const struct AllowedStream {
  const char *name;
  const char *allow;
  const char *target, *migrate_uri;
  bool expected;
} allowed_streams[] = {
    {"a stream to the target's own host", "near", "near", "tcp://b:49152", true},
    {"a stream to another host", "near", "near", "tcp://c", false},
    {"a stream to an allowed network", "near 10.0.0.0/8", "near", "tcp://10.1.2.3", true},
    {"a stream outside an allowed network", "near 10.0.0.0/8", "near", "tcp://11.1.2.3", false},
    {"a stream that matches a pattern", "near tcp://?.example.org:*", "near", "tcp://c.example.org:49152",
     true},
    {"a stream and a pattern for libvirt URIs", "near qemu+tcp://*/system", "near", "tcp://c", false},
};

static void allow_targets_applies_to_the_stream(void **state) {
  Bb *bb = *state;
  const struct AllowedStream *row = bb->row;
  json_t *parameters =
      json_pack("{ss ss ss}", "domain", "vm1", "target", row->target, "migrate_uri", row->migrate_uri);
  Client *client;

  allow(bb, row->allow);
  bb_start(bb);
  client = bb_connect(bb);
  if (row->expected)
    assert_text(client_call(client, "Start", parameters), "job.target.migrate_uri", row->migrate_uri);
  else
    assert_text(client_refused(client, "Start", parameters, "TargetNotAllowed"), "target", row->migrate_uri);
}

static bool is_allowed_now(Bb *bb, const char *target) {
  Client *client = bb_connect(bb);
  bool allowed = is_let_in(client, &ways[1], target);

  client_close(client);
  return allowed;
}

static bool log_says(Bb *bb, const char *text) {
  g_autofree char *log = NULL;

  return g_file_get_contents(bb->log, &log, NULL, NULL) && strstr(log, text);
}

static void reload(Bb *bb, const char *added, const char *said) {
  gint64 until_us = g_get_monotonic_time() + BB_PATIENCE_MS * 1000;

  bb_configure(bb, added);
  assert_int_equal(truncate(bb->log, 0), 0);
  assert_int_equal(kill(bb->pid, SIGHUP), 0);
  while (!log_says(bb, said)) {
    assert_true(g_get_monotonic_time() < until_us);
    g_usleep(10000);
  }
}

static void a_reload_changes_allow_targets_and_keeps_accepted_jobs(void **state) {
  Bb *bb = *state;
  const char *job;

  allow(bb, "near");
  bb_start(bb);
  bb_link_slow(bb);
  job = text_of(client_call(bb_connect(bb), "Start", json_pack("{ss ss}", "domain", "vm1", "target", "near")),
                "job.id");
  bb_await_phase(bb, job, "migrating");
  assert_false(is_allowed_now(bb, "far"));
  reload(bb, "AllowTargets=far\n", "configuration reloaded");
  assert_true(is_allowed_now(bb, "far"));
  assert_false(is_allowed_now(bb, "near"));
  /* A bad list changes nothing. */
  reload(bb, "AllowTargets=10.0.0.0/99\n", "keeping all of the old configuration");
  assert_true(is_allowed_now(bb, "far"));
  assert_false(is_allowed_now(bb, "near"));
  reload(bb, "AllowTargets=near\n", "keeping all of the old configuration");
  bb_link_fast(bb);
  bb_await_phase(bb, job, "succeeded");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, a_hostile_uri_is_refused_before_any_connection, ways);
  for (size_t i = 0; i < LENGTH(ways); i++) {
    g_autofree char *name = g_strdup_printf("%s refuses what is too long", ways[i].method);

    tests_add(&tests, g_intern_string(name), an_overlong_uri_is_not_echoed, &ways[i]);
  }
  TESTS_ADD_ROWS(&tests, the_stream_goes_only_where_allowed, streams);
  TESTS_ADD(&tests, a_configured_target_may_be_anything);
  TESTS_ADD_ROWS(&tests, every_method_applies_allow_targets, alloweds);
  TESTS_ADD_ROWS(&tests, allow_targets_applies_to_the_stream, allowed_streams);
  TESTS_ADD(&tests, a_reload_changes_allow_targets_and_keeps_accepted_jobs);
  return bb_run(&tests, "targets");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a caller may name as a place: a hostile URI is refused by every call that takes one, before libvirt hears of it. */
#include "tests/blackbox/harness.h"

#include <string.h>

/* The unit test of core/uri.c has many more; here are those by which somebody would get in. */
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

/* A caller that is told no, by this name. */
static json_t *refused(Client *client, const struct Way *way, const char *uri, const char *expected) {
  g_autofree char *error = NULL;
  json_t *answer;

  client_send(client, way->method, parameters_of(way, uri), way->more ? VARLINK_CALL_MORE : 0);
  answer = client_receive(client, &error, NULL);
  if (g_strcmp0(error, expected) != 0)
    fail_msg("%s of %s: expected %s, it was %s", way->method, uri, expected, error ? error : "taken");
  return answer;
}

/* The agent has gone on, and asked for what it may: whatever it was told before it has asked for by now. */
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

static void what_is_too_long_is_not_told_back(void **state) {
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
    {"the stream by no URI", "10.0.0.2", false},
    {"the stream by nothing", "", false},
};

static void the_stream_goes_where_it_may(void **state) {
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

/* What only the owner of the node may write is as it was. */
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
  /* By its URI it is a caller's. */
  client_refused(client, "Start", json_pack("{ss ss}", "domain", "vm2", "target", uri), "NoSuchTarget");
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, a_hostile_uri_is_refused_before_any_connection, ways);
  for (size_t i = 0; i < LENGTH(ways); i++) {
    g_autofree char *name = g_strdup_printf("%s refuses what is too long", ways[i].method);

    tests_add(&tests, g_intern_string(name), what_is_too_long_is_not_told_back, &ways[i]);
  }
  TESTS_ADD_ROWS(&tests, the_stream_goes_where_it_may, streams);
  TESTS_ADD(&tests, a_configured_target_may_be_anything);
  return bb_run(&tests, "targets");
}

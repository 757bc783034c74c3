/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call that a libvirtd does not answer is reported to everybody who looks, and so is its end. */
#include "tests/blackbox/harness.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

/* A hung call hangs until the test ends it, however slow the machine is. */
static void start(Bb *bb) {
  json_object_set_new(bb->world, "keepalive_ms", json_integer(10 * BB_PATIENCE_MS));
  bb_publish(bb);
  bb_start(bb);
}

static json_t *hanging_of(json_t *object) {
  return json_object_get(object, "hanging");
}

static bool hangs(json_t *job, gconstpointer data) {
  return json_array_size(hanging_of(job)) > 0;
}

static bool hangs_no_more(json_t *job, gconstpointer data) {
  return !hanging_of(job);
}

/* There is no notification of this change, so poll. */
static json_t *await_node(Client *client, bool hanging) {
  for (int waited_ms = 0; waited_ms < BB_PATIENCE_MS; waited_ms += 20) {
    json_t *node = client_call(client, "GetNode", NULL);

    if ((hanging_of(node) != NULL) == hanging)
      return node;
    g_usleep(20 * 1000);
  }
  fail_msg("the node %s of a call that hangs", hanging ? "does not tell" : "tells for ever");
  return NULL;
}

static void nothing(Bb *bb, Client *client) {
}
static void its_abort_is_asked_for(Bb *bb, Client *client) {
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
}
static void its_outcome_is_open(Bb *bb, Client *client) {
  bb_set_call(bb, "migrate", json_pack("{si}", "detach_after_ms", 1));
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
}

static const struct Told {
  const char *name;
  const char *knob;
  void (*provoke)(Bb *bb, Client *client);
  const char *call;
  bool target; /* whose libvirtd it is */
  bool ends;   /* the job, as soon as it is answered */
} told[] = {
    {"hung job statistics are reported", "job_stats", nothing, "reading the migration's statistics", false},
    {"a hung abort is reported", "abort_job", its_abort_is_asked_for, "aborting the migration", false, true},
    {"a target that does not answer is reported", "b.domain_status", its_outcome_is_open,
     "reading the domain's state", true, true},
};

static char *show(Bb *bb) {
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, "show", "vm1", NULL};
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  int status;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, NULL,
                           &status, &error));
  assert_true(g_spawn_check_wait_status(status, NULL));
  return text;
}

static void a_hung_call_is_reported_everywhere(void **state) {
  Bb *bb = *state;
  const struct Told *row = bb->row;
  g_autofree char *target = bb_target(bb, "b"), *shown = NULL, *log = NULL;
  const char *uri = row->target ? target : bb->libvirt_uri, *id;
  gint64 began_usec = g_get_real_time();
  json_t *job, *call;
  Client *client;
  int fd;

  start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  id = text_of(client_start(client, "vm1", NULL), "id");
  bb_await(bb, id, bb_has_numbers, NULL);
  fd = bb_listen_to_status(bb);
  bb_set_call(bb, row->knob, json_pack("{sb}", "hang", 1));
  row->provoke(bb, client);

  job = bb_await(bb, id, hangs, NULL);
  call = json_array_get(hanging_of(job), 0);
  assert_text(call, "call", row->call);
  assert_text(call, "libvirt_uri", uri);
  assert_text(call, "domain", text_of(job, "domain.uuid"));
  assert_true(number_of(call, "since_usec_realtime") >= began_usec);
  assert_true(number_of(call, "since_usec_realtime") <= g_get_real_time() - 4 * G_USEC_PER_SEC);
  bb_await_event(bb, id, "warning", row->call);
  bb_await_status(fd, "to libvirtd hang");
  assert_text(json_array_get(hanging_of(await_node(client, true)), 0), "call", row->call);
  assert_null(strstr(text_of(client_call(client, "GetMetrics", NULL), "text"),
                     "\nhandoffd_libvirt_calls_hanging 0\n"));
  shown = show(bb);
  assert_non_null(strstr(shown, row->call));
  assert_non_null(strstr(shown, ": no answer from libvirtd at "));
  assert_true(g_file_get_contents(bb->log, &log, NULL, NULL));
  assert_non_null(strstr(log, row->call));

  /* And its end. */
  bb_set_call(bb, row->knob, NULL);
  if (row->ends) {
    bb_await_phase(bb, id, "aborted");
  } else {
    bb_await(bb, id, hangs_no_more, NULL);
    bb_await_event(bb, id, "warning", "answered after");
  }
  bb_set_call(bb, "migrate", NULL);
  bb_link_fast(bb);
  await_node(client, false);
  close(fd);
}

static void a_hung_call_outlives_its_job_in_the_report(void **state) {
  Bb *bb = *state;
  Client *client;
  json_t *job;

  start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  bb_set_call(bb, "job_stats", json_pack("{sb}", "hang", 1));
  bb_await(bb, text_of(job, "id"), hangs, NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", "vm1"));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_null(hanging_of(job));
  assert_text(json_array_get(hanging_of(await_node(client, true)), 0), "call",
              "reading the migration's statistics");
  bb_set_call(bb, "job_stats", NULL);
  await_node(client, false);
}

static void a_hung_call_without_a_job_is_shown_to_those_who_may_read_jobs(void **state) {
  Bb *bb = *state;
  struct passwd *nobody = getpwnam("nobody");
  Client *client, *starter;
  json_t *call;

  start(bb);
  client = bb_connect(bb);
  starter = bb_connect(bb);
  bb_set_call(bb, "domain_facts", json_pack("{sb}", "hang", 1));
  client_send(starter, "Start", bb_start_parameters(bb, "vm1"), 0);
  call = json_array_get(hanging_of(await_node(client, true)), 0);
  assert_text(call, "call", "looking up the domain");
  assert_text(call, "domain", "vm1");
  if (geteuid() == 0 && nobody)
    assert_null(hanging_of(
        client_call(bb_connect_as(bb, nobody->pw_uid, nobody->pw_gid, nobody->pw_gid), "GetNode", NULL)));
  bb_set_call(bb, "domain_facts", NULL);
  await_node(client, false);
}

int main(void) {
  Tests tests = {0};

  if (!g_getenv("HANDOFFCTL")) {
    fprintf(stderr, "HANDOFFCTL is to name the program\n");
    return 1;
  }
  TESTS_ADD_ROWS(&tests, a_hung_call_is_reported_everywhere, told);
  TESTS_ADD(&tests, a_hung_call_outlives_its_job_in_the_report);
  TESTS_ADD(&tests, a_hung_call_without_a_job_is_shown_to_those_who_may_read_jobs);
  return bb_run(&tests, "late");
}

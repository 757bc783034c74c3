/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every job keeps its caller, and shows it. */
#include "tests/blackbox/drain.h"
#include "tests/blackbox/lease.h"

#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char own_name[] = "who-asks";

static void assert_is_me(json_t *job) {
  assert_int_equal(number_of(job, "caller.uid"), getuid());
  assert_int_equal(number_of(job, "caller.gid"), getgid());
  assert_int_equal(number_of(job, "caller.pid"), getpid());
  assert_text(job, "caller.comm", own_name);
}

static void restart(Bb *bb) {
  bb_stop(bb, SIGKILL);
  bb_start(bb);
}

static char *show(Bb *bb, const char *job) {
  const char *argv[] = {g_getenv("HANDOFFCTL"), "--socket", bb->socket, "show", job, NULL};
  g_autoptr(GError) error = NULL;
  char *text = NULL;
  int status;

  assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, NULL,
                           &status, &error));
  return text;
}

static void a_started_job_keeps_its_caller(void **state) {
  Bb *bb = *state;
  g_autofree char *shown = NULL, *said = NULL;
  json_t *job;

  assert_int_equal(prctl(PR_SET_NAME, own_name), 0);
  bb_start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  assert_is_me(job);
  assert_is_me(json_object_get(bb_record(bb, text_of(job, "id")), "job"));
  bb_await_phase(bb, text_of(job, "id"), "migrating");
  restart(bb);
  assert_is_me(client_get(bb_connect(bb), text_of(job, "id")));
  shown = show(bb, text_of(job, "id"));
  said = g_strdup_printf("requested by uid %u, gid %u, pid %d, ", (unsigned)getuid(), (unsigned)getgid(),
                         (int)getpid());
  assert_non_null(strstr(shown, said));
  bb_link_fast(bb);
  assert_is_me(bb_await_phase(bb, text_of(job, "id"), "succeeded"));
}

static void a_repeated_start_keeps_the_first_caller(void **state) {
  Bb *bb = *state;
  const struct passwd *nobody = getpwnam("nobody");
  g_autofree char *group = g_strdup_printf("Group=%s\n", "nogroup");
  json_t *parameters = bb_start_parameters(bb, "vm1"), *job, *again;
  Client *other;

  assert_non_null(nobody);
  json_object_set_new(parameters, "request_key", json_string("k"));
  bb_configure(bb, group);
  bb_start(bb);
  bb_link_slow(bb);
  other = bb_connect_as(bb, nobody->pw_uid, nobody->pw_gid, nobody->pw_gid);
  job = json_object_get(client_call(other, "Start", json_incref(parameters)), "job");
  assert_int_equal(number_of(job, "caller.uid"), nobody->pw_uid);
  assert_int_equal(number_of(job, "caller.gid"), nobody->pw_gid);
  again = json_object_get(client_call(bb_connect(bb), "Start", parameters), "job");
  assert_text(again, "id", text_of(job, "id"));
  assert_int_equal(number_of(again, "caller.uid"), nobody->pw_uid);
}

static void a_lease_keeps_its_caller(void **state) {
  Bb *bb = *state;
  json_t *job;

  assert_int_equal(prctl(PR_SET_NAME, own_name), 0);
  job = prepare(bb, lease_start(bb), "vm9");
  assert_is_me(job);
  restart(bb);
  assert_is_me(client_get(bb_connect(bb), text_of(job, "id")));
}

static void an_unannounced_arrival_has_no_caller(void **state) {
  Bb *bb = *state;
  Client *client = lease_start(bb);

  migrate(bb, "vm9");
  assert_null(member_of(bb_await_phase(bb, text_of(await_job(client), "id"), "succeeded"), "caller"));
}

static bool is_of_drain(json_t *job, const char *drain) {
  return g_strcmp0(json_string_value(json_object_get(job, "drain")), drain) == 0;
}

/* Jobs started after a restart have the same caller. */
static void the_jobs_of_a_drain_have_its_caller(void **state) {
  static const char *const guests[] = {"vm1", "vm2", "vm3", "vm4"};
  Bb *bb = *state;
  Follow follow;
  Client *client;
  const char *drain;

  assert_int_equal(prctl(PR_SET_NAME, own_name), 0);
  bb_configure(bb, "MaxOutgoing=1\n");
  bb_start(bb);
  bb_link_slow(bb);
  follow = follow_call(bb, "Drain", drain_parameters(bb, "b", NULL, NULL));
  follow_next(&follow);
  drain = text_of(follow.status, "id");
  restart(bb);
  bb_link_fast(bb);
  follow = follow_call(bb, "WatchDrain", NULL);
  while (!follow.over)
    follow_next(&follow);
  client = bb_connect(bb);
  for (size_t i = 0; i < LENGTH(guests); i++) {
    json_t *job = client_get(client, guests[i]);

    assert_true(is_of_drain(job, drain));
    assert_is_me(job);
  }
}

static void an_abort_names_its_caller(void **state) {
  Bb *bb = *state;
  json_t *job;
  Client *client;

  assert_int_equal(prctl(PR_SET_NAME, own_name), 0);
  bb_start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  job = client_start(client, "vm1", NULL);
  client_call(client, "Abort", json_pack("{ss}", "job", text_of(job, "id")));
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_non_null(find_event(job, "abort_requested", own_name));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD(&tests, a_started_job_keeps_its_caller);
  TESTS_ADD(&tests, a_repeated_start_keeps_the_first_caller);
  TESTS_ADD(&tests, a_lease_keeps_its_caller);
  TESTS_ADD(&tests, an_unannounced_arrival_has_no_caller);
  TESTS_ADD(&tests, the_jobs_of_a_drain_have_its_caller);
  TESTS_ADD(&tests, an_abort_names_its_caller);
  return bb_run(&tests, "caller");
}

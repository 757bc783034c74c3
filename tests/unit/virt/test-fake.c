/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake keeps what its header promises, for tests lean on it. */
#include "tests/fake/fake-driver.h"
#include "tests/unit/virt/cmocka-all.h"

#include <glib/gstdio.h>
#include <string.h>

#define HOSTS "\"hosts\":{\"a\":{},\"b\":{}}"
/* 64 MiB at 640 MiB/s: a pass takes 0.1 s. */
#define LINK  "\"link\":{\"bytes_per_s\":671088640}"
#define VM    "\"domains\":{\"vm\":{\"host\":\"a\",\"memory_bytes\":67108864,\"dirty_bytes_per_s\":1048576}}"
#define PLAIN "{" HOSTS "," LINK "," VM "}"
/* Writes all of its memory faster than the link takes it. */
#define BUSY                                                                                                 \
  "{" HOSTS "," LINK ",\"domains\":{\"vm\":{\"host\":\"a\",\"memory_bytes\":67108864,"                       \
  "\"working_set_bytes\":67108864,\"dirty_bytes_per_s\":6710886400}}}"

typedef struct Fixture {
  char *directory, *path, *uri_a, *uri_b;
  MigDriver *driver;
  MigConn *a, *b;
  MigMigrateRequest request;
  MigPolicy goals;
  GError *error;
  gint done, iterations;
} Fixture;

static void control(Fixture *fixture, const char *text) {
  assert_true(g_file_set_contents(fixture->path, text, -1, NULL));
}

static void on_event(const MigVirtEvent *event, gpointer user_data) {
  Fixture *fixture = user_data;

  if (event->kind == MIG_VIRT_EVENT_JOB_DONE)
    g_atomic_int_inc(&fixture->done);
  if (event->kind == MIG_VIRT_EVENT_ITERATION)
    g_atomic_int_inc(&fixture->iterations);
}

static void begin(Fixture *fixture) {
  g_auto(MigDomainFacts) facts = {0};

  fixture->driver = fake_driver_new();
  fixture->a = fixture->driver->ops->open(fixture->driver, fixture->uri_a, 1000, on_event, fixture, NULL);
  fixture->b = fixture->driver->ops->open(fixture->driver, fixture->uri_b, 1000, NULL, NULL, NULL);
  assert_non_null(fixture->a);
  assert_non_null(fixture->b);
  if (fixture->driver->ops->domain_facts(fixture->a, "vm", &facts, NULL))
    g_strlcpy(fixture->request.uuid, facts.uuid, sizeof fixture->request.uuid);
}

static void end(Fixture *fixture) {
  fixture->driver->ops->close(fixture->a);
  fixture->driver->ops->close(fixture->b);
  mig_driver_free(fixture->driver);
}

static int setup(void **state) {
  Fixture *fixture = g_new0(Fixture, 1);

  fixture->directory = g_dir_make_tmp("virt-fake-XXXXXX", NULL);
  fixture->path = g_build_filename(fixture->directory, "control.json", NULL);
  fixture->uri_a = g_strdup_printf("fake://%s?host=a", fixture->path);
  fixture->uri_b = g_strdup_printf("fake://%s?host=b", fixture->path);
  fixture->request.target_uri = fixture->uri_b;
  fixture->request.policy = &fixture->goals;
  mig_policy_init(&fixture->goals);
  control(fixture, PLAIN);
  begin(fixture);
  *state = fixture;
  return 0;
}

static int teardown(void **state) {
  Fixture *fixture = *state;
  g_autofree char *saved = g_strdup_printf("%s.state", fixture->path);

  end(fixture);
  g_clear_error(&fixture->error);
  g_unlink(saved);
  g_unlink(fixture->path);
  g_rmdir(fixture->directory);
  g_free(fixture->directory);
  g_free(fixture->path);
  g_free(fixture->uri_a);
  g_free(fixture->uri_b);
  g_free(fixture);
  return 0;
}

static bool migrate(Fixture *fixture) {
  g_clear_error(&fixture->error);
  return fixture->driver->ops->migrate(fixture->a, &fixture->request, &fixture->error);
}

static gpointer migrate_thread(gpointer data) {
  return GINT_TO_POINTER(migrate(data));
}

static MigEndState state_at(Fixture *fixture, MigConn *conn) {
  MigDomainStatus status = {.state = MIG_END_UNKNOWN};

  fixture->driver->ops->domain_status(conn, fixture->request.uuid, &status, NULL);
  return status.state;
}

static bool active(Fixture *fixture) {
  MigSample sample = {0};

  return fixture->driver->ops->job_stats(fixture->a, fixture->request.uuid, NULL, &sample, NULL) &&
         sample.active;
}

static void wait_active(Fixture *fixture, bool want) {
  for (int i = 0; i < 1000 && active(fixture) != want; i++)
    g_usleep(5000);
  assert_int_equal(active(fixture), want);
}

static void a_domain_moves_and_its_numbers_are_the_models(void **state) {
  Fixture *fixture = *state;
  MigFinalStats final;

  assert_true(migrate(fixture));
  assert_int_equal(state_at(fixture, fixture->a), MIG_END_ABSENT);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_RUNNING);
  assert_true(fixture->driver->ops->final_stats(fixture->b, fixture->request.uuid, &final, NULL));
  assert_in_range(final.total_time_ms, 110, 140);
  assert_in_range(final.downtime_ms, 20, 25);
  for (int i = 0; i < 500 && !g_atomic_int_get(&fixture->done); i++)
    g_usleep(5000);
  assert_int_equal(g_atomic_int_get(&fixture->done), 1);
  assert_int_equal(g_atomic_int_get(&fixture->iterations), 2);
}

static void a_migration_goes_on_while_the_process_is_gone(void **state) {
  Fixture *fixture = *state;
  GThread *thread;
  gint64 begun = g_get_monotonic_time();
  MigFinalStats final;

  control(fixture, "{" HOSTS "," VM ",\"link\":{\"bytes_per_s\":134217728},"
                   "\"calls\":{\"migrate\":{\"detach_after_ms\":50}}}");
  thread = g_thread_new("migrate", migrate_thread, fixture);
  assert_false(GPOINTER_TO_INT(g_thread_join(thread)));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_true(active(fixture));
  end(fixture);
  g_usleep(100000);
  begin(fixture);
  assert_true(active(fixture));
  wait_active(fixture, false);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_RUNNING);
  assert_true(fixture->driver->ops->final_stats(fixture->b, fixture->request.uuid, &final, NULL));
  /* 64 MiB at 128 MiB/s, from the first start on. */
  assert_in_range(final.total_time_ms, 500, 600);
  assert_in_range((g_get_monotonic_time() - begun) / 1000, 500, 5000);
}

static void what_does_not_converge_goes_on_until_it_is_aborted(void **state) {
  Fixture *fixture = *state;
  GThread *thread;

  control(fixture, BUSY);
  mig_policy_set(&fixture->goals, MIG_POLICY_MAX_DOWNTIME_MS, 10, NULL, 0);
  thread = g_thread_new("migrate", migrate_thread, fixture);
  while (g_atomic_int_get(&fixture->iterations) < 4)
    g_usleep(5000);
  assert_true(active(fixture));
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_PAUSED_MIGRATION);
  assert_true(fixture->driver->ops->abort_job(fixture->a, fixture->request.uuid, NULL, NULL));
  assert_false(GPOINTER_TO_INT(g_thread_join(thread)));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_ABORTED);
  assert_int_equal(state_at(fixture, fixture->a), MIG_END_RUNNING);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_ABSENT);
}

static void post_copy_survives_a_cut_link_by_a_resume(void **state) {
  Fixture *fixture = *state;
  GThread *thread;

  control(fixture, BUSY);
  mig_policy_set(&fixture->goals, MIG_POLICY_ALLOW_POST_COPY, 1, NULL, 0);
  mig_policy_set(&fixture->goals, MIG_POLICY_MAX_DOWNTIME_MS, 10, NULL, 0);
  thread = g_thread_new("migrate", migrate_thread, fixture);
  wait_active(fixture, true);
  while (g_atomic_int_get(&fixture->iterations) < 1)
    g_usleep(1000);
  control(fixture,
          "{" HOSTS "," VM ",\"link\":{\"bytes_per_s\":671088640,\"cut\":true},\"keepalive_ms\":200}");
  assert_true(fixture->driver->ops->start_post_copy(fixture->a, fixture->request.uuid, NULL, NULL));
  assert_false(fixture->driver->ops->abort_job(fixture->a, fixture->request.uuid, NULL, NULL));
  assert_false(GPOINTER_TO_INT(g_thread_join(thread)));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_int_equal(state_at(fixture, fixture->a), MIG_END_PAUSED_POSTCOPY_FAILED);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_RUNNING_POSTCOPY_FAILED);

  control(fixture, PLAIN);
  fixture->request.resume_post_copy = true;
  assert_true(migrate(fixture));
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_RUNNING);
}

static void a_hang_ends_when_the_knob_is_taken_away(void **state) {
  Fixture *fixture = *state;
  g_auto(MigHostFacts) facts = {0};
  gint64 begun = g_get_monotonic_time();

  control(fixture, "{" HOSTS "," VM ",\"calls\":{\"a.host_facts\":{\"hang\":true}},\"keepalive_ms\":150}");
  assert_true(fixture->driver->ops->host_facts(fixture->b, &facts, NULL));
  mig_host_facts_clear(&facts);
  assert_false(fixture->driver->ops->host_facts(fixture->a, &facts, &fixture->error));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_in_range((g_get_monotonic_time() - begun) / 1000, 140, 2000);
  assert_false(fixture->driver->ops->is_alive(fixture->a));
}

static void knobs_fail_calls_so_many_times(void **state) {
  Fixture *fixture = *state;
  MigSample sample;

  control(fixture,
          "{" HOSTS "," VM ",\"calls\":{\"job_stats\":{\"fail\":\"BUSY\",\"message\":\"no\",\"times\":2}}}");
  for (int i = 0; i < 2; i++) {
    assert_false(
        fixture->driver->ops->job_stats(fixture->a, fixture->request.uuid, NULL, &sample, &fixture->error));
    assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_BUSY);
    assert_string_equal(fixture->error->message, "no");
    g_clear_error(&fixture->error);
  }
  assert_true(fixture->driver->ops->job_stats(fixture->a, fixture->request.uuid, NULL, &sample, NULL));
}

static void a_migration_may_report_failure_though_the_domain_moved(void **state) {
  Fixture *fixture = *state;

  control(fixture, "{" HOSTS "," LINK "," VM ",\"calls\":{\"migrate\":{\"fail_after\":\"UNREACHABLE\"}}}");
  assert_false(migrate(fixture));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_RUNNING);
}

static void the_guest_may_crash_in_flight(void **state) {
  Fixture *fixture = *state;
  GThread *thread;

  control(fixture, "{" HOSTS "," VM ",\"link\":{\"bytes_per_s\":1048576}}");
  thread = g_thread_new("migrate", migrate_thread, fixture);
  wait_active(fixture, true);
  control(fixture, "{" HOSTS ",\"domains\":{\"vm\":{\"host\":\"a\",\"state\":\"inactive\"}}}");
  assert_false(GPOINTER_TO_INT(g_thread_join(thread)));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_NOT_RUNNING);
  assert_int_equal(state_at(fixture, fixture->a), MIG_END_INACTIVE);
}

static void an_unreachable_host_refuses_and_breaks_connections(void **state) {
  Fixture *fixture = *state;
  MigDomainStatus status;

  control(fixture, "{\"hosts\":{\"a\":{},\"b\":{\"reachable\":false}}," VM "}");
  assert_null(fixture->driver->ops->open(fixture->driver, fixture->uri_b, 100, NULL, NULL, &fixture->error));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
  assert_false(fixture->driver->ops->domain_status(fixture->b, fixture->request.uuid, &status, NULL));
  assert_false(migrate(fixture));
  assert_int_equal(fixture->error->code, MIG_VIRT_ERROR_UNREACHABLE);
}

static void an_end_may_say_what_the_test_wants(void **state) {
  Fixture *fixture = *state;

  for (int each = 0; each < MIG_END_STATE_COUNT; each++) {
    g_autofree char *text =
        g_strdup_printf("{" HOSTS ",\"domains\":{\"vm\":{\"host\":\"a\",\"states\":{\"b\":\"%s\"}}}}",
                        mig_end_state_name((MigEndState)each));

    control(fixture, text);
    assert_int_equal(state_at(fixture, fixture->b), each);
  }
}

static void somebody_else_may_migrate_it_and_may_cancel(void **state) {
  Fixture *fixture = *state;
  MigDomainStatus status = {0};

  control(fixture, "{" HOSTS ",\"link\":{\"bytes_per_s\":1048576},\"domains\":{\"vm\":{\"host\":\"a\","
                   "\"migrate_to\":\"b\"}}}");
  wait_active(fixture, true);
  assert_true(fixture->driver->ops->domain_status(fixture->b, fixture->request.uuid, &status, NULL));
  assert_int_equal(status.state, MIG_END_PAUSED_MIGRATION);
  assert_true(status.job_active);
  assert_false(status.job_outgoing);
  control(fixture, "{" HOSTS "," LINK "," VM "}");
  wait_active(fixture, false);
  assert_int_equal(state_at(fixture, fixture->a), MIG_END_RUNNING);
  assert_int_equal(state_at(fixture, fixture->b), MIG_END_ABSENT);
  control(fixture, "{" HOSTS "," LINK ",\"domains\":{\"vm\":{\"host\":\"a\",\"migrate_to\":\"b\","
                   "\"dirty_bytes_per_s\":0}}}");
  for (int i = 0; i < 1000 && state_at(fixture, fixture->b) != MIG_END_RUNNING; i++)
    g_usleep(5000);
  assert_true(fixture->driver->ops->domain_status(fixture->b, fixture->request.uuid, &status, NULL));
  assert_true(status.migrated);
}

static void the_active_domains_are_those_that_are_there(void **state) {
  Fixture *fixture = *state;
  g_autoptr(GPtrArray) here = NULL, there = NULL;

  control(fixture, "{" HOSTS "," LINK ",\"domains\":{\"vm2\":{\"host\":\"a\",\"state\":\"paused\"},"
                   "\"vm\":{\"host\":\"a\"},\"off\":{\"host\":\"a\",\"state\":\"inactive\"}}}");
  here = fixture->driver->ops->list_active(fixture->a, &fixture->error);
  there = fixture->driver->ops->list_active(fixture->b, &fixture->error);
  assert_null(fixture->error);
  assert_int_equal(here->len, 2);
  assert_string_equal(((MigActiveDomain *)here->pdata[0])->name, "vm");
  assert_string_equal(((MigActiveDomain *)here->pdata[0])->uuid, fixture->request.uuid);
  assert_string_equal(((MigActiveDomain *)here->pdata[1])->name, "vm2");
  assert_int_equal(there->len, 0);
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      ROW(a_domain_moves_and_its_numbers_are_the_models),
      ROW(a_migration_goes_on_while_the_process_is_gone),
      ROW(what_does_not_converge_goes_on_until_it_is_aborted),
      ROW(post_copy_survives_a_cut_link_by_a_resume),
      ROW(a_hang_ends_when_the_knob_is_taken_away),
      ROW(knobs_fail_calls_so_many_times),
      ROW(a_migration_may_report_failure_though_the_domain_moved),
      ROW(the_guest_may_crash_in_flight),
      ROW(an_unreachable_host_refuses_and_breaks_connections),
      ROW(an_end_may_say_what_the_test_wants),
      ROW(somebody_else_may_migrate_it_and_may_cancel),
      ROW(the_active_domains_are_those_that_are_there),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What core's queue does not know: targets and their limits, and every reason in words. */
#include "agent/job/queue.h"

#include "tests/unit/core/rows.h"

#define NOW_MS UINT64_C(100000)

enum { JOBS_MAX = 8 };

typedef struct Fixture {
  Config *config;
  JobQueue *queue;
  Job *jobs[JOBS_MAX];
  unsigned n_jobs;
} Fixture;

static int setup(void **state) {
  Fixture *fixture = g_new0(Fixture, 1);

  fixture->config = config_new();
  fixture->config->max_outgoing = 2;
  *state = fixture;
  return 0;
}

static int teardown(void **state) {
  Fixture *fixture = *state;

  for (unsigned i = 0; i < fixture->n_jobs; i++) {
    job_queue_remove(fixture->queue, fixture->jobs[i]);
    job_free(fixture->jobs[i]);
  }
  job_queue_free(fixture->queue);
  config_free(fixture->config);
  g_free(fixture);
  return 0;
}

static void add_target(Fixture *fixture, const char *name, const char *uri, unsigned max_outgoing) {
  ConfigTarget *target = g_new0(ConfigTarget, 1);

  target->name = g_strdup(name);
  target->libvirt_uri = g_strdup(uri);
  target->max_outgoing = max_outgoing;
  g_ptr_array_add(fixture->config->targets, target);
}

static Job *push(Fixture *fixture, const char *target_name, const char *uri) {
  Job *job = job_new();

  if (!fixture->queue)
    fixture->queue = job_queue_new(fixture->config);
  job->seq = fixture->n_jobs + 1;
  job->created_usec = 1700000000000000 + (int64_t)job->seq;
  job->domain_name = g_strdup("vm");
  job->target_name = g_strdup(target_name);
  job->target_uri = g_strdup(uri);
  fixture->jobs[fixture->n_jobs++] = job;
  job_queue_push(fixture->queue, job, NOW_MS);
  return job;
}

static void assert_turn(Fixture *fixture, uint64_t now_ms, MigTurn turn, const Job *job) {
  Job *next = NULL;

  assert_int_equal(job_queue_next(fixture->queue, now_ms, &next), turn);
  assert_ptr_equal(next, job);
}

static void assert_reason(Fixture *fixture, const Job *job, uint64_t now_ms, const char *reason,
                          const char *message) {
  JobPending pending;

  job_queue_explain(fixture->queue, job, now_ms, &pending);
  assert_string_equal(pending.reason, reason);
  assert_string_equal(job_queue_reason(fixture->queue, job), reason);
  if (!strstr(pending.message, message))
    fail_msg("it is told: %s", pending.message);
  g_free(pending.message);
}

static void hold(Fixture *fixture, Job *job, MigHold what, const char *text, uint64_t now_ms) {
  g_autoptr(GError) error = g_error_new_literal(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, text);

  job_queue_hold(fixture->queue, job, what, "TARGET_UNREACHABLE", MIG_CAUSE_TARGET_UNREACHABLE, error,
                 now_ms);
}

static void the_limit_of_the_node_is_told(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, NULL, "test:///b"), *two = push(fixture, NULL, "test:///c");
  Job *three = push(fixture, "d", "test:///d");

  assert_reason(fixture, three, NOW_MS, "NEXT", "next in the queue");
  assert_turn(fixture, NOW_MS, MIG_TURN_START, one);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, two);
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  assert_reason(fixture, three, NOW_MS, "OUTGOING_LIMIT", "2 of at most 2 migrations out of this node");
  assert_int_equal(job_queue_count_running(fixture->queue), 2);
  assert_int_equal(job_queue_position(three), 1);
  assert_ptr_equal(job_queue_first(fixture->queue), three);
  assert_null(job_queue_after(three));
}

static const struct Limit {
  const char *name;
  unsigned max_per_target;
  struct {
    const char *name, *uri;
    unsigned max_outgoing;
  } targets[2];
  unsigned expected; /* 0: none */
  const char *rule;
} limits[] = {
    {"no limit for a target", 0, {{"b", "test:///b", 0}}, 0, NULL},
    {"a limit for each target", 1, {{"b", "test:///b", 0}}, 1, "MaxPerTarget="},
    {"a target that has its own", 1, {{"b", "test:///b", 2}}, 2, "MaxOutgoing= of its [Target]"},
    {"a stricter one of its own", 3, {{"b", "test:///b", 1}}, 1, "MaxOutgoing= of its [Target]"},
    {"the own one of another", 0, {{"c", "test:///c", 1}}, 0, NULL},
    {"two names of one host: the stricter",
     0,
     {{"b", "test:///b", 2}, {"b2", "test:///b", 1}},
     1,
     "MaxOutgoing="},
};

static void limit(void **state) {
  Fixture *fixture;
  const struct Limit *row = *state;

  setup((void **)&fixture);
  fixture->config->max_outgoing = 8;
  fixture->config->max_per_target = row->max_per_target;
  for (size_t i = 0; i < LENGTH(row->targets) && row->targets[i].name; i++)
    add_target(fixture, row->targets[i].name, row->targets[i].uri, row->targets[i].max_outgoing);
  for (int i = 0; i < 4; i++)
    push(fixture, i % 2 ? "b" : NULL, "test:///b");
  for (unsigned i = 0; i < (row->expected ? row->expected : 4); i++)
    assert_turn(fixture, NOW_MS, MIG_TURN_START, fixture->jobs[i]);
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  if (row->expected) {
    assert_reason(fixture, fixture->jobs[3], NOW_MS, "TARGET_LIMIT", row->rule);
    job_queue_remove(fixture->queue, fixture->jobs[0]);
    assert_turn(fixture, NOW_MS, MIG_TURN_START, fixture->jobs[row->expected]);
  }
  teardown((void **)&fixture);
}

static void a_target_that_is_away_is_told_to_all_that_go_there(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, "b", "test:///b"), *two = push(fixture, "b", "test:///b");
  Job *other = push(fixture, "c", "test:///c");

  assert_turn(fixture, NOW_MS, MIG_TURN_START, one);
  hold(fixture, one, MIG_HOLD_TARGET, "no route to b", NOW_MS);
  assert_reason(fixture, two, NOW_MS + 200, "TARGET_UNREACHABLE",
                "no route to b (checked 1 time; next check in 1 s)");
  assert_reason(fixture, other, NOW_MS, "NEXT", "");
  assert_turn(fixture, NOW_MS + MIG_RETRY_MIN_MS, MIG_TURN_START, other);
  assert_turn(fixture, NOW_MS + MIG_RETRY_MIN_MS, MIG_TURN_PROBE, one);
  hold(fixture, one, MIG_HOLD_TARGET, "still none", NOW_MS + MIG_RETRY_MIN_MS);
  assert_reason(fixture, two, NOW_MS + MIG_RETRY_MIN_MS, "TARGET_UNREACHABLE",
                "still none (checked 2 times; next check in 2 s)");

  /* It is back: nothing of it is told any more. */
  assert_turn(fixture, NOW_MS + 10000, MIG_TURN_PROBE, one);
  assert_true(job_queue_passed(fixture->queue, one, NOW_MS + 10000));
  assert_reason(fixture, two, NOW_MS + 10000, "OUTGOING_LIMIT", "");
}

static void a_condition_of_one_job_is_told_to_it_alone(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, "b", "test:///b"), *two = push(fixture, "b", "test:///b");
  g_autoptr(GError) error = g_error_new_literal(MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                                                "b has 1 GiB of memory left, and 2 are needed");

  assert_turn(fixture, NOW_MS, MIG_TURN_START, one);
  job_queue_hold(fixture->queue, one, MIG_HOLD_JOB, "TARGET_MEMORY", MIG_CAUSE_REFUSED, error, NOW_MS);
  assert_reason(fixture, one, NOW_MS, "TARGET_MEMORY", "1 GiB of memory left");
  assert_reason(fixture, two, NOW_MS, "NEXT", "");
}

static void a_closed_gate_is_told(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, "b", "test:///b");

  job_queue_set_gate(fixture->queue, MIG_ADMISSION_NODE, "SOURCE_UNREACHABLE", "no libvirtd");
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  assert_reason(fixture, one, NOW_MS, "SOURCE_UNREACHABLE", "no libvirtd");
  job_queue_set_gate(fixture->queue, MIG_ADMISSION_START, NULL, NULL);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, one);
}

static void after_a_restart_places_are_taken_first(void **state) {
  Fixture *fixture = *state;
  Job *jobs[4];

  for (int i = 0; i < 4; i++) {
    jobs[i] = push(fixture, "b", "test:///b");
    job_queue_remove(fixture->queue, jobs[i]);
  }
  job_queue_enter(fixture->queue, jobs[0]);
  assert_true(job_queue_try_enter(fixture->queue, jobs[1]));
  assert_false(job_queue_try_enter(fixture->queue, jobs[2]));
  job_queue_enter(fixture->queue, jobs[3]); /* it may be moving */
  assert_int_equal(job_queue_count_running(fixture->queue), 3);
}

static void a_changed_priority_counts(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, "b", "test:///b"), *two = push(fixture, "c", "test:///c");
  char message[100];

  mig_policy_set(&two->policy, MIG_POLICY_PRIORITY, MIG_PRIORITY_CRITICAL, message, sizeof message);
  assert_int_equal(job_queue_position(one), 1);
  job_queue_update(fixture->queue, two);
  assert_int_equal(job_queue_position(one), 2);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, two);
}

static void another_configuration_holds_for_those_that_wait(void **state) {
  Fixture *fixture = *state;
  Job *one = push(fixture, "b", "test:///b"), *two = push(fixture, "b", "test:///b");
  Job *three = push(fixture, "b", "test:///b");

  fixture->config->max_outgoing = 1;
  job_queue_apply_config(fixture->queue);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, one);
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  fixture->config->max_outgoing = 8;
  add_target(fixture, "b", "test:///b", 2);
  job_queue_apply_config(fixture->queue);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, two);
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  assert_reason(fixture, three, NOW_MS, "TARGET_LIMIT",
                "2 of at most 2 migrations to b are running (MaxOutgoing= of");
  /* A limit that is lower than what runs takes nothing away. */
  fixture->config->max_outgoing = 1;
  job_queue_apply_config(fixture->queue);
  assert_int_equal(job_queue_count_running(fixture->queue), 2);
  job_queue_remove(fixture->queue, one);
  assert_turn(fixture, NOW_MS, MIG_TURN_NONE, NULL);
  assert_reason(fixture, three, NOW_MS, "OUTGOING_LIMIT", "1 of at most 1");
  job_queue_remove(fixture->queue, two);
  assert_turn(fixture, NOW_MS, MIG_TURN_START, three);
}

#define ADD(function)                                                                                        \
  do {                                                                                                       \
    tests_add(&tests, #function, function, NULL);                                                            \
    tests.list[tests.count - 1].setup_func = setup;                                                          \
    tests.list[tests.count - 1].teardown_func = teardown;                                                    \
  } while (0)

int main(void) {
  Tests tests = {0};

  ADD(the_limit_of_the_node_is_told);
  TESTS_ADD_ROWS(&tests, limit, limits);
  ADD(a_target_that_is_away_is_told_to_all_that_go_there);
  ADD(a_condition_of_one_job_is_told_to_it_alone);
  ADD(a_closed_gate_is_told);
  ADD(after_a_restart_places_are_taken_first);
  ADD(a_changed_priority_counts);
  ADD(another_configuration_holds_for_those_that_wait);
  return tests_run(&tests, "queue");
}

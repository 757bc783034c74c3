/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time of day is set far forward or back: no wait and no retention time of the agent depends on it. */
#include "tests/blackbox/harness.h"

#include <signal.h>

#define DAY_S   INT64_C(86400)
#define HOUR_US (INT64_C(3600) * G_USEC_PER_SEC)

typedef struct Row {
  const char *name;
  void (*test)(Bb *bb, int64_t step_s);
  int64_t step_s;
} Row;

static int64_t now_usec(Bb *bb, Client *client) {
  json_t *job = client_start(client, "vm4", NULL);

  return number_of(job, "created_usec_realtime");
}

/* The clock is right until a test sets it. */
static void start(Bb *bb) {
  bb_set_clock(bb, 0);
  bb_start(bb);
}

/* Sets it, and makes sure that the daemon sees it. */
static void step(Bb *bb, int64_t step_s) {
  int64_t said_usec;

  bb_set_clock(bb, step_s);
  said_usec = now_usec(bb, bb_connect(bb));
  assert_true(llabs(said_usec - g_get_real_time() - step_s * G_USEC_PER_SEC) < HOUR_US);
}

static bool has_event_after(json_t *job, gconstpointer seq) {
  return number_of(job, "revision") > *(const json_int_t *)seq;
}

static void a_waiting_job_keeps_waiting(Bb *bb, int64_t step_s) {
  const char *running, *waiting;
  Client *client;

  bb_configure(bb, "MaxOutgoing=1\nPendingTimeout=1h\n");
  start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  running = text_of(client_start(client, "vm1", NULL), "id");
  waiting = text_of(client_start(client, "vm2", NULL), "id");
  bb_await(bb, running, bb_has_numbers, NULL);
  step(bb, step_s);
  /* More than one tick of the daemon. */
  for (int i = 0; i < 3; i++) {
    json_int_t revision = number_of(client_get(client, running), "revision");

    bb_await(bb, running, has_event_after, &revision);
  }
  assert_text(client_get(client, waiting), "phase", "pending");
  bb_link_fast(bb);
  bb_await_phase(bb, running, "succeeded");
  bb_await_phase(bb, waiting, "succeeded");
}

static void a_waiting_job_times_out(Bb *bb, int64_t step_s) {
  const char *running, *waiting;
  Client *client;
  json_t *job;

  bb_configure(bb, "MaxOutgoing=1\nPendingTimeout=3s\n");
  start(bb);
  bb_link_slow(bb);
  client = bb_connect(bb);
  running = text_of(client_start(client, "vm1", NULL), "id");
  bb_await_phase(bb, running, "migrating");
  waiting = text_of(client_start(client, "vm2", NULL), "id");
  step(bb, step_s);
  job = bb_await_phase(bb, waiting, "failed");
  assert_text(job, "failure.cause", "PENDING_TIMEOUT");
}

static void a_deadline_holds(Bb *bb, int64_t step_s) {
  gint64 began_us;
  json_t *job;

  bb_set_domain(bb, "vm1", "memory_bytes", json_integer(256 << 20));
  start(bb);
  bb_link_slow(bb);
  began_us = g_get_monotonic_time();
  /* A quarter of a GiB: three seconds. */
  job = client_start(bb_connect(bb), "vm1", json_pack("{si}", "completion_timeout_s_per_gib", 12));
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  step(bb, step_s);
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "aborted");
  assert_text(job, "failure.cause", "DEADLINE");
  assert_true(g_get_monotonic_time() - began_us >= 2900000);
}

static void a_move_without_a_deadline_goes_on(Bb *bb, int64_t step_s) {
  json_int_t revision;
  json_t *job;

  start(bb);
  bb_link_slow(bb);
  job = client_start(bb_connect(bb), "vm1", NULL);
  bb_await(bb, text_of(job, "id"), bb_has_numbers, NULL);
  step(bb, step_s);
  revision = number_of(client_get(bb_connect(bb), "vm1"), "revision");
  bb_stop(bb, SIGKILL);
  bb_start(bb);
  /* A watcher sees no step back. */
  job = bb_await_phase(bb, text_of(job, "id"), "migrating");
  assert_true(number_of(job, "revision") > revision);
  bb_link_fast(bb);
  job = bb_await_phase(bb, text_of(job, "id"), "succeeded");
  assert_events_whole(job);
}

static void finished_jobs_are_kept(Bb *bb, int64_t step_s) {
  const char *id, *next;
  Client *client;

  bb_configure(bb, "KeepFinishedSec=1h\n");
  start(bb);
  client = bb_connect(bb);
  id = text_of(client_start(client, "vm1", NULL), "id");
  bb_await_phase(bb, id, "succeeded");
  step(bb, step_s);
  /* The time of a whole migration, with all its ticks. */
  bb_set_link(bb, "bytes_per_s", json_integer(16 << 20));
  next = text_of(client_start(client, "vm2", NULL), "id");
  bb_await_phase(bb, next, "succeeded");
  client_get(client, id);
  bb_stop(bb, SIGTERM);
  bb_start(bb);
  next = text_of(client_start(bb_connect(bb), "vm3", NULL), "id");
  bb_await_phase(bb, next, "succeeded");
  assert_text(client_get(bb_connect(bb), id), "phase", "succeeded");
}

static const Row rows[] = {
    {"a day forward: a waiting job keeps waiting", a_waiting_job_keeps_waiting, DAY_S},
    {"a day back: a waiting job keeps waiting", a_waiting_job_keeps_waiting, -DAY_S},
    {"a day forward: a waiting job gives up in time", a_waiting_job_times_out, DAY_S},
    {"a day back: a waiting job gives up in time", a_waiting_job_times_out, -DAY_S},
    {"a day forward: a deadline holds, after a restart, too", a_deadline_holds, DAY_S},
    {"a day back: a deadline holds, after a restart, too", a_deadline_holds, -DAY_S},
    {"a day forward: a migration goes on, after a restart, too", a_move_without_a_deadline_goes_on, DAY_S},
    {"a day back: a migration goes on, after a restart, too", a_move_without_a_deadline_goes_on, -DAY_S},
    {"a day forward: finished jobs are kept", finished_jobs_are_kept, DAY_S},
    {"a day back: finished jobs are kept", finished_jobs_are_kept, -DAY_S},
};

static void test_row(void **state) {
  Bb *bb = *state;
  const Row *row = bb->row;

  row->test(bb, row->step_s);
}

int main(void) {
  Tests tests = {0};

  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
    tests_add(&tests, rows[i].name, test_row, (void *)(uintptr_t)&rows[i]);
  return bb_run(&tests, "clock");
}

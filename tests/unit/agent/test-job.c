/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One job: its events, its phases, its first cause. */
#include "agent/job/job.h"

#include "tests/unit/core/rows.h"

static const JobEvent *event_at(const Job *job, guint i) {
  return job->events->pdata[i];
}

static void a_new_job_is_pending_and_has_an_id_of_its_own(void **state) {
  g_autoptr(Job) one = job_new();
  g_autoptr(Job) other = job_new();

  assert_int_equal(strlen(one->id), JOB_ID_SIZE - 1);
  assert_int_equal(strspn(one->id, "0123456789abcdef"), JOB_ID_SIZE - 1);
  assert_string_not_equal(one->id, other->id);
  assert_int_equal(one->phase, MIG_PHASE_PENDING);
  assert_false(job_is_final(one));
  assert_false(one->durable);
  assert_int_equal(mig_policy_get(&one->policy, MIG_POLICY_MAX_DOWNTIME_MS), 300);
}

static void events_are_counted_and_raise_the_revision(void **state) {
  g_autoptr(Job) job = job_new();
  uint64_t revision = job->revision;

  job_add_event(job, "accepted", MIG_CAUSE_NONE, "to %s", "b");
  job_add_event(job, "warning", MIG_CAUSE_DEADLINE, "x");
  assert_int_equal(job->events->len, 2);
  assert_int_equal(event_at(job, 0)->seq, 1);
  assert_int_equal(event_at(job, 1)->seq, 2);
  assert_string_equal(event_at(job, 0)->message, "to b");
  assert_int_equal(event_at(job, 1)->cause, MIG_CAUSE_DEADLINE);
  assert_true(job->revision > revision);
}

static void of_too_many_events_the_first_and_the_newest_stay(void **state) {
  g_autoptr(Job) job = job_new();

  for (int i = 1; i <= JOB_EVENTS_MAX + 50; i++)
    job_add_event(job, "warning", MIG_CAUSE_NONE, "%d", i);
  assert_int_equal(job->events->len, JOB_EVENTS_MAX);
  assert_int_equal(event_at(job, 0)->seq, 1);
  assert_int_equal(event_at(job, 1)->seq, 52);
  assert_int_equal(event_at(job, JOB_EVENTS_MAX - 1)->seq, JOB_EVENTS_MAX + 50);
}

static void the_first_cause_is_kept(void **state) {
  g_autoptr(Job) job = job_new();

  assert_true(job_note_failure(job, MIG_CAUSE_DEADLINE, NULL, "after %d s", 7));
  job->phase = MIG_PHASE_RECOVERING;
  assert_false(job_note_failure(job, MIG_CAUSE_LINK_LOST, NULL, "later"));
  assert_int_equal(job->failure.cause, MIG_CAUSE_DEADLINE);
  assert_int_equal(job->failure.phase, MIG_PHASE_PENDING);
  assert_string_equal(job->failure.message, "after 7 s");
  job_clear_failure(job);
  assert_int_equal(job->failure.cause, MIG_CAUSE_NONE);
  assert_true(job_note_failure(job, MIG_CAUSE_LINK_LOST, NULL, "again"));
}

static void what_libvirt_said_is_kept_with_its_code(void **state) {
  g_autoptr(Job) job = job_new();
  g_autoptr(GError) plain = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_DENIED, "no");

  job_note_failure(job, MIG_CAUSE_REFUSED, plain, "no");
  assert_null(job->failure.libvirt_message);
}

static void the_end_closes_a_job(void **state) {
  g_autoptr(Job) job = job_new();

  job_set_phase(job, MIG_PHASE_PREPARING, "p");
  job_set_phase(job, MIG_PHASE_MIGRATING, "m");
  job->stage = MIG_STAGE_PRE_COPY;
  job->next_action = g_strdup("waits");
  assert_int_equal(job->finished_usec, 0);
  job_set_phase(job, MIG_PHASE_SUCCEEDED, "s");
  assert_true(job_is_final(job));
  assert_int_equal(job->stage, MIG_STAGE_NONE);
  assert_null(job->next_action);
  assert_true(job->finished_usec >= job->created_usec);
  assert_string_equal(event_at(job, 2)->kind, "phase");
  assert_int_equal(event_at(job, 2)->phase, MIG_PHASE_SUCCEEDED);
}

#define ADD(function) tests_add(&tests, #function, function, NULL)

int main(void) {
  Tests tests = {0};

  ADD(a_new_job_is_pending_and_has_an_id_of_its_own);
  ADD(events_are_counted_and_raise_the_revision);
  ADD(of_too_many_events_the_first_and_the_newest_stay);
  ADD(the_first_cause_is_kept);
  ADD(what_libvirt_said_is_kept_with_its_code);
  ADD(the_end_closes_a_job);
  return tests_run(&tests, "job");
}

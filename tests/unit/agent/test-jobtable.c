/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding jobs, whose turn is next, which are forgotten. */
#include "agent/job/jobtable.h"

#include "tests/unit/core/rows.h"

/* An accepted job of a domain, with an id of one's choice. */
static Job *put(JobTable *table, const char *id, const char *domain, MigPhase phase) {
  Job *job = job_new();

  g_snprintf(job->id, sizeof job->id, "%-32s", id);
  for (char *p = job->id; *p; p++)
    *p = *p == ' ' ? '0' : *p;
  job->domain_name = g_strdup(domain);
  g_snprintf(job->domain_uuid, sizeof job->domain_uuid, "00000000-0000-4000-8000-%012x", g_str_hash(domain));
  job->target_uri = g_strdup("test:///b");
  job->phase = phase;
  job->durable = true;
  job_table_add(table, job);
  return job;
}

static void by_id_prefix_name_and_uuid(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *job = put(table, "abcdef", "vm1", MIG_PHASE_MIGRATING);
  g_autofree char *upper = g_ascii_strup(job->domain_uuid, -1);
  Job *found = NULL;

  const char *const texts[] = {job->id, "abcd", "abcdef000", "vm1", job->domain_uuid, upper};

  for (size_t i = 0; i < LENGTH(texts); i++) {
    found = NULL;
    assert_int_equal(job_table_find(table, texts[i], &found, NULL), JOB_LOOKUP_FOUND);
    assert_ptr_equal(found, job);
  }
  assert_int_equal(job_table_find(table, "abc", &found, NULL), JOB_LOOKUP_NONE);
  assert_int_equal(job_table_find(table, "", &found, NULL), JOB_LOOKUP_NONE);
  assert_int_equal(job_table_find(table, "bcdef", &found, NULL), JOB_LOOKUP_NONE);
  assert_int_equal(job_table_find(table, "vm", &found, NULL), JOB_LOOKUP_NONE);
}

static void a_prefix_of_two_is_ambiguous(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *one = put(table, "abcd1", "vm1", MIG_PHASE_SUCCEEDED);
  Job *two = put(table, "abcd2", "vm2", MIG_PHASE_PENDING);
  g_autoptr(GPtrArray) candidates = NULL;
  Job *found = NULL;

  put(table, "ffff", "vm3", MIG_PHASE_PENDING);
  assert_int_equal(job_table_find(table, "abcd", &found, &candidates), JOB_LOOKUP_AMBIGUOUS);
  assert_int_equal(candidates->len, 2);
  assert_ptr_equal(candidates->pdata[0], one);
  assert_ptr_equal(candidates->pdata[1], two);
  assert_int_equal(job_table_find(table, "abcd", &found, NULL), JOB_LOOKUP_AMBIGUOUS);
  assert_int_equal(job_table_find(table, "abcd2", &found, NULL), JOB_LOOKUP_FOUND);
  assert_ptr_equal(found, two);
}

static void of_a_domain_the_unfinished_job_else_the_newest(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *old = put(table, "1111", "vm1", MIG_PHASE_FAILED);
  Job *newer = put(table, "2222", "vm1", MIG_PHASE_SUCCEEDED);
  Job *found = NULL;

  assert_int_equal(job_table_find(table, "vm1", &found, NULL), JOB_LOOKUP_FOUND);
  assert_ptr_equal(found, newer);
  assert_null(job_table_find_active(table, old->domain_uuid));
  old->phase = MIG_PHASE_MIGRATING;
  assert_int_equal(job_table_find(table, "vm1", &found, NULL), JOB_LOOKUP_FOUND);
  assert_ptr_equal(found, old);
  assert_ptr_equal(job_table_find_active(table, old->domain_uuid), old);
}

static void a_domain_that_is_named_like_an_id_is_found_by_its_name(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *found = NULL, *named;

  put(table, "abcd1", "vm1", MIG_PHASE_PENDING);
  named = put(table, "9999", "abcd", MIG_PHASE_PENDING);
  assert_int_equal(job_table_find(table, "abcd", &found, NULL), JOB_LOOKUP_FOUND);
  assert_ptr_equal(found, named);
}

static void what_is_not_durable_is_not_found(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *job = put(table, "abcd", "vm1", MIG_PHASE_PENDING);
  Job *found = NULL;

  job->durable = false;
  assert_int_equal(job_table_find(table, job->id, &found, NULL), JOB_LOOKUP_NONE);
  assert_int_equal(job_table_find(table, "vm1", &found, NULL), JOB_LOOKUP_NONE);
  assert_int_equal(job_table_find(table, "abcd", &found, NULL), JOB_LOOKUP_NONE);
  /* But its domain is taken, and its id is. */
  assert_ptr_equal(job_table_find_active(table, job->domain_uuid), job);
  assert_ptr_equal(job_table_find_id(table, job->id), job);
}

static void by_request_key(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *job = job_new();

  job->domain_name = g_strdup("vm1");
  job->request_key = g_strdup("k");
  job_table_add(table, job);
  assert_ptr_equal(job_table_find_request_key(table, "k"), job);
  assert_null(job_table_find_request_key(table, "K"));
  job_table_remove(table, job);
  assert_null(job_table_find_request_key(table, "k"));
}

static void counts_follow_the_phases(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *job = put(table, "1", "vm1", MIG_PHASE_PENDING);

  put(table, "2", "vm2", MIG_PHASE_RECOVERING);
  put(table, "3", "vm3", MIG_PHASE_ABORTED);
  assert_int_equal(job_table_count_pending(table), 1);
  assert_int_equal(job_table_count_unfinished(table), 2);
  assert_int_equal(job_table_count_final(table), 1);
  job->phase = MIG_PHASE_PREPARING;
  job_table_note_phase(table, MIG_PHASE_PENDING, MIG_PHASE_PREPARING);
  assert_int_equal(job_table_count_pending(table), 0);
  assert_int_equal(job_table_count_unfinished(table), 2);
  job_table_remove(table, job);
  assert_int_equal(job_table_count_unfinished(table), 1);
}

static void records_read_in_any_order_are_in_theirs(void **state) {
  static const uint64_t seqs[] = {7, 2, 9, 4, 1};
  static const uint64_t sorted[] = {1, 2, 4, 7, 9, 10};
  g_autoptr(JobTable) table = job_table_new();

  for (size_t i = 0; i < LENGTH(seqs); i++) {
    Job *job = job_new();

    job->seq = seqs[i];
    job->domain_name = g_strdup("vm");
    job_table_add(table, job);
  }
  put(table, "new", "vm", MIG_PHASE_PENDING);
  for (size_t i = 0; i < LENGTH(sorted); i++)
    assert_int_equal(((Job *)job_table_all(table)->pdata[i])->seq, sorted[i]);
}

static Job *put_ended(JobTable *table, const char *id, int64_t finished_ms) {
  Job *job = put(table, id, id, MIG_PHASE_SUCCEEDED);

  job->finished_ms = finished_ms;
  return job;
}

static void the_first_to_end_is_forgotten_first(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *slow = put_ended(table, "slow", 300);
  Job *quick = put_ended(table, "quick", 100);

  put(table, "running", "r", MIG_PHASE_MIGRATING);
  assert_null(job_table_find_expired(table, 2, 0));
  assert_ptr_equal(job_table_find_expired(table, 1, 0), quick);
  job_table_remove(table, quick);
  assert_null(job_table_find_expired(table, 1, 0));
  assert_ptr_equal(job_table_find_expired(table, 0, 0), slow);
  job_table_remove(table, slow);
  assert_null(job_table_find_expired(table, 0, INT64_MAX));
}

static void what_ended_long_ago_is_forgotten(void **state) {
  g_autoptr(JobTable) table = job_table_new();
  Job *old;

  put_ended(table, "new", 500);
  old = put_ended(table, "old", 100);
  assert_null(job_table_find_expired(table, 10, 100));
  assert_ptr_equal(job_table_find_expired(table, 10, 101), old);
}

#define ADD(function) tests_add(&tests, #function, function, NULL)

int main(void) {
  Tests tests = {0};

  ADD(by_id_prefix_name_and_uuid);
  ADD(a_prefix_of_two_is_ambiguous);
  ADD(of_a_domain_the_unfinished_job_else_the_newest);
  ADD(a_domain_that_is_named_like_an_id_is_found_by_its_name);
  ADD(what_is_not_durable_is_not_found);
  ADD(by_request_key);
  ADD(counts_follow_the_phases);
  ADD(records_read_in_any_order_are_in_theirs);
  ADD(the_first_to_end_is_forgotten_first);
  ADD(what_ended_long_ago_is_forgotten);
  return tests_run(&tests, "jobtable");
}

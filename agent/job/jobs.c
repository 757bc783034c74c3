/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All jobs: their records, and the observers of their changes. */
#include "agent/job/jobs.h"

#include "agent/base/clock.h"
#include "agent/job/jobrecord.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"

/* Delay before a failed write is retried. */
#define RECORD_RETRY_MS 5000

/* --- observers --- */

void jobs_observe(Jobs *jobs, JobObserverFunc func, gpointer user_data) {
  g_return_if_fail(jobs->n_observers < JOB_OBSERVERS_MAX);
  jobs->observers[jobs->n_observers].func = func;
  jobs->observers[jobs->n_observers++].user_data = user_data;
}

void jobs_tell(Jobs *jobs, Job *job, JobChange change) {
  for (unsigned i = 0; i < jobs->n_observers; i++)
    jobs->observers[i].func(job, change, jobs->observers[i].user_data);
}

/* --- records --- */

void jobs_note_save_failure(Jobs *jobs, const char *id, const GError *error) {
  const LogField fields[] = {{NAMES_FIELD_JOB_ID, id}};

  Job *job = job_table_find_id(jobs->table, id);

  if (!jobs->store_failing)
    log_message(LOG_ERR, NAMES_MESSAGE_STORE_FAILED, fields, G_N_ELEMENTS(fields),
                "cannot write the record of job %s to stable storage; retrying: %s", id, error->message);
  jobs->store_failing = true;
  if (job)
    job->record_due_ms = clock_now_ms() + RECORD_RETRY_MS;
}

Job *jobs_take_saved(Jobs *jobs, const char *id, const GError *error) {
  if (error)
    jobs_note_save_failure(jobs, id, error);
  return job_table_find_id(jobs->table, id);
}

static void on_saved(const char *id, const GError *error, gpointer user_data) {
  Jobs *jobs = user_data;

  if (error)
    jobs_note_save_failure(jobs, id, error);
  else
    jobs->store_failing = false;
}

void jobs_save(Jobs *jobs, Job *job, StoreDoneFunc done, gpointer user_data) {
  job->record_due_ms = 0;
  store_write(jobs->store, job->id, job_to_record(job, jobs->boot_id), done ? done : on_saved,
              done ? user_data : jobs);
}

void jobs_announce(Jobs *jobs, Job *job) {
  job->revision++;
  jobs_tell(jobs, job, JOB_CHANGE_STATE);
}

void jobs_state_changed(Jobs *jobs, Job *job) {
  jobs_announce(jobs, job);
  jobs_save(jobs, job, NULL, NULL);
}

void jobs_enter_phase(Jobs *jobs, Job *job, MigPhase phase, const char *message) {
  MigPhase from = job->phase;

  job_set_phase(job, phase, "%s", message);
  job_table_note_phase(jobs->table, from, phase);
  jobs_tell(jobs, job, JOB_CHANGE_PHASE);
}

static void forget_old(Jobs *jobs) {
  int64_t before = (int64_t)clock_now_ms() - (int64_t)jobs->config->keep_finished_s * 1000;
  Job *job;

  while ((job = job_table_find_expired(jobs->table, jobs->config->keep_finished, before))) {
    jobs_tell(jobs, job, JOB_CHANGE_FORGOTTEN);
    store_remove(jobs->store, job->id);
    recorder_forget(jobs, job);
    job_table_remove(jobs->table, job);
  }
}

void jobs_tick(Jobs *jobs) {
  const GPtrArray *all = job_table_all(jobs->table);
  uint64_t now_ms = clock_now_ms();

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (job->record_due_ms > 0 && now_ms >= job->record_due_ms)
      jobs_save(jobs, job, NULL, NULL);
  }
  forget_old(jobs);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the history of each migration.
 *
 * Theory of Operation. The history of a running migration is in memory, in job->readings.history. It is written at doubling intervals, and
 * at least every WRITE_MAX_MS, so that a kill costs half of a short chart at worst, and seconds of a long one. When the job ends,
 * it is written for the last time and leaves memory: a finished job costs a file, which is read on request. Nothing here
 * can harm a job: a failure is logged once, and the report is incomplete. */
#include "agent/job/recorder.h"

#include "agent/job/log.h"

#include <gio/gio.h>

#define WRITE_MIN_MS 1000
#define WRITE_MAX_MS 10000

/* Readings this many polls apart, and at least this long, have a gap between them. */
#define GAP_POLLS  3
#define GAP_MIN_MS 3000

static uint64_t gap_ms(const Jobs *jobs) {
  return MAX((uint64_t)jobs->config->poll_interval_ms * GAP_POLLS, GAP_MIN_MS);
}

static void say(Jobs *jobs, const char *id, const GError *error, const char *what) {
  const LogField fields[] = {{NAMES_FIELD_JOB_ID, id}};

  log_message(LOG_WARNING, NAMES_MESSAGE_HISTORY_LOST, fields, G_N_ELEMENTS(fields),
              "the history of job %s %s; the job continues, but its report will be incomplete: %s", id, what,
              error->message);
}

static void on_written(const char *id, const GError *error, gpointer user_data) {
  Jobs *jobs = user_data;

  if (error && !jobs->histories_failing)
    say(jobs, id, error, "cannot be written");
  jobs->histories_failing = error != NULL;
}

/* --- the start of the agent --- */

typedef struct Sweep {
  const Jobs *jobs;
  const char *state_directory;
} Sweep;

/* A record that this agent cannot read may be readable by a newer one. */
static bool is_kept(const char *id, gpointer user_data) {
  const Sweep *sweep = user_data;
  g_autofree char *name = g_strconcat(id, ".json", NULL);
  g_autofree char *path = g_build_filename(sweep->state_directory, "jobs", name, NULL);

  return job_table_find_id(sweep->jobs->table, id) || g_file_test(path, G_FILE_TEST_EXISTS);
}

static void take_up(Jobs *jobs, Job *job) {
  g_autoptr(GError) error = NULL;

  if ((job->phase != MIG_PHASE_MIGRATING && job->phase != MIG_PHASE_RECOVERING) || job->started_ms == 0)
    return;
  job->readings.history = history_store_load(jobs->histories, job->id, &error);
  if (error)
    say(jobs, job->id, error, "cannot be read");
}

void recorder_open(Jobs *jobs, const char *state_directory) {
  const HistoryStoreHooks hooks = {on_written, jobs};
  const GPtrArray *all = job_table_all(jobs->table);
  Sweep sweep = {jobs, state_directory};
  g_autoptr(GError) error = NULL;

  jobs->histories = history_store_open(state_directory, jobs->context, gap_ms(jobs), &hooks, &error);
  if (!jobs->histories) {
    log_message(LOG_WARNING, NAMES_MESSAGE_HISTORY_LOST, NULL, 0,
                "cannot keep histories; reports will lack data from before this start of the agent: %s",
                error->message);
    return;
  }
  history_store_sweep(jobs->histories, is_kept, &sweep);
  for (guint i = 0; i < all->len; i++)
    take_up(jobs, all->pdata[i]);
}

/* --- while it migrates, and at its end --- */

static void write_history(Jobs *jobs, Job *job, bool last) {
  history_store_write(jobs->histories, job->id, history_to_text(job->readings.history, job->id), last);
}

void recorder_note(Jobs *jobs, Job *job) {
  uint64_t now_ms = job->sample.now_ms, elapsed_ms;

  if (job->started_ms == 0 || now_ms < job->started_ms)
    return;
  elapsed_ms = now_ms - job->started_ms;
  if (!job->readings.history)
    job->readings.history = history_new(gap_ms(jobs));
  history_add(job->readings.history, &job->sample, elapsed_ms, job->stage);
  if (job->readings.due_ms == 0)
    job->readings.due_ms = now_ms + WRITE_MIN_MS;
  if (now_ms < job->readings.due_ms)
    return;
  write_history(jobs, job, false);
  job->readings.due_ms = now_ms + CLAMP(elapsed_ms, WRITE_MIN_MS, WRITE_MAX_MS);
}

void recorder_end(Jobs *jobs, Job *job) {
  if (!job->readings.history)
    return;
  write_history(jobs, job, true);
  g_clear_pointer(&job->readings.history, history_free);
}

void recorder_forget(Jobs *jobs, Job *job) {
  g_clear_pointer(&job->readings.history, history_free);
  job->readings.due_ms = 0;
  history_store_remove(jobs->histories, job->id);
}

/* --- for clients --- */

typedef struct HistoryRead {
  Jobs *jobs;
  RecorderReplyFunc func;
  gpointer user_data;
  GDestroyNotify free_user_data;
} HistoryRead;

static void history_read_free(gpointer data) {
  HistoryRead *read = data;

  read->free_user_data(read->user_data);
  g_free(read);
}

static void on_read(const char *id, History *history, const GError *error, gpointer user_data) {
  const HistoryRead *read = user_data;

  if (error)
    say(read->jobs, id, error, "cannot be read");
  read->func(id, history_to_json(history), read->user_data);
  history_free(history);
}

bool recorder_get(Jobs *jobs, const Job *job, RecorderReplyFunc func, gpointer user_data,
                  GDestroyNotify free_user_data) {
  HistoryRead *read;

  /* A running migration has it in memory; a job that never started has none. */
  if (job->readings.history || job->started_usec == 0 || !jobs->histories) {
    func(job->id, history_to_json(job->readings.history), user_data);
    free_user_data(user_data);
    return true;
  }
  read = g_new0(HistoryRead, 1);
  *read = (HistoryRead){jobs, func, user_data, free_user_data};
  if (history_store_read(jobs->histories, job->id, on_read, read, history_read_free))
    return true;
  g_free(read);
  return false;
}

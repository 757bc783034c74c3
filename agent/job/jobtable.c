/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All jobs that the agent keeps, and lookups. */
#include "agent/job/jobtable.h"

#include <string.h>

#define PREFIX_MIN 4

struct JobTable {
  GPtrArray *all; /* Job, by seq; owned */
  GHashTable *by_id;
  GHashTable *by_request_key;
  uint64_t last_seq;
  unsigned count[MIG_PHASE_COUNT];
};

JobTable *job_table_new(void) {
  JobTable *table = g_new0(JobTable, 1);

  table->all = g_ptr_array_new_with_free_func((GDestroyNotify)job_free);
  table->by_id = g_hash_table_new(g_str_hash, g_str_equal);
  table->by_request_key = g_hash_table_new(g_str_hash, g_str_equal);
  return table;
}

void job_table_free(JobTable *table) {
  if (!table)
    return;
  g_hash_table_unref(table->by_id);
  g_hash_table_unref(table->by_request_key);
  g_ptr_array_unref(table->all);
  g_free(table);
}

/* New jobs come last; records are read in any order, perhaps ten thousand of them. */
static guint place_of(const JobTable *table, uint64_t seq) {
  guint low = 0, high = table->all->len;

  if (high == 0 || ((const Job *)table->all->pdata[high - 1])->seq <= seq)
    return high;
  while (low < high) {
    guint middle = low + (high - low) / 2;

    if (((const Job *)table->all->pdata[middle])->seq <= seq)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void job_table_add(JobTable *table, Job *job) {
  if (job->seq == 0)
    job->seq = table->last_seq + 1;
  table->last_seq = MAX(table->last_seq, job->seq);

  g_ptr_array_insert(table->all, (gint)place_of(table, job->seq), job);
  g_hash_table_insert(table->by_id, job->id, job);
  if (job->request_key)
    g_hash_table_insert(table->by_request_key, job->request_key, job);
  table->count[job->phase]++;
}

void job_table_remove(JobTable *table, Job *job) {
  table->count[job->phase]--;
  g_hash_table_remove(table->by_id, job->id);
  if (job->request_key)
    g_hash_table_remove(table->by_request_key, job->request_key);
  g_ptr_array_remove(table->all, job);
}

Job *job_table_find_id(JobTable *table, const char *id) {
  return g_hash_table_lookup(table->by_id, id);
}

Job *job_table_find_request_key(JobTable *table, const char *request_key) {
  return g_hash_table_lookup(table->by_request_key, request_key);
}

Job *job_table_find_active(JobTable *table, const char *domain_uuid) {
  for (guint i = table->all->len; i > 0; i--) {
    Job *job = table->all->pdata[i - 1];

    if (!job_is_final(job) && strcmp(job->domain_uuid, domain_uuid) == 0)
      return job;
  }
  return NULL;
}

static Job *find_by_domain(const JobTable *table, const char *text) {
  Job *newest = NULL;

  for (guint i = table->all->len; i > 0; i--) {
    Job *job = table->all->pdata[i - 1];

    if (!job->durable ||
        (strcmp(job->domain_name, text) != 0 && g_ascii_strcasecmp(job->domain_uuid, text) != 0))
      continue;
    if (!job_is_final(job))
      return job;
    if (!newest)
      newest = job;
  }
  return newest;
}

JobLookup job_table_find(JobTable *table, const char *text, Job **ret_job, GPtrArray **ret_candidates) {
  g_autoptr(GPtrArray) candidates = NULL;
  Job *job = job_table_find_id(table, text);

  if (!job || !job->durable)
    job = find_by_domain(table, text);
  if (job) {
    *ret_job = job;
    return JOB_LOOKUP_FOUND;
  }
  if (strlen(text) < PREFIX_MIN)
    return JOB_LOOKUP_NONE;

  candidates = g_ptr_array_new();
  for (guint i = 0; i < table->all->len; i++) {
    job = table->all->pdata[i];
    if (job->durable && g_str_has_prefix(job->id, text))
      g_ptr_array_add(candidates, job);
  }
  if (candidates->len == 0)
    return JOB_LOOKUP_NONE;
  if (candidates->len > 1) {
    if (ret_candidates)
      *ret_candidates = g_steal_pointer(&candidates);
    return JOB_LOOKUP_AMBIGUOUS;
  }
  *ret_job = candidates->pdata[0];
  return JOB_LOOKUP_FOUND;
}

const GPtrArray *job_table_all(const JobTable *table) {
  return table->all;
}

unsigned job_table_count_unfinished(const JobTable *table) {
  return table->all->len - job_table_count_final(table);
}

unsigned job_table_count_pending(const JobTable *table) {
  return table->count[MIG_PHASE_PENDING];
}

unsigned job_table_count_final(const JobTable *table) {
  return table->count[MIG_PHASE_SUCCEEDED] + table->count[MIG_PHASE_FAILED] + table->count[MIG_PHASE_ABORTED];
}

void job_table_note_phase(JobTable *table, MigPhase from, MigPhase to) {
  table->count[from]--;
  table->count[to]++;
}

Job *job_table_find_expired(const JobTable *table, unsigned keep, int64_t finished_before_ms) {
  Job *first = NULL;

  for (guint i = 0; i < table->all->len; i++) {
    Job *job = table->all->pdata[i];

    if (job_is_final(job) && (!first || job->finished_ms < first->finished_ms))
      first = job;
  }
  if (first && (job_table_count_final(table) > keep || first->finished_ms < finished_before_ms))
    return first;
  return NULL;
}

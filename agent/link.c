/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What earlier moves tell of the link to a target. The job records are the memory: nothing else is kept. */
#include "agent/link.h"

#include <string.h>

/* Of so many newest moves the fastest counts: a slower one may have shared the link. */
#define MOVES 3
/* A smaller one says more of its setup than of the link. */
#define TRANSFERRED_MIN_BYTES (32 * MIG_MIB_BYTES)

/* What the monitor saw, also if the move came to nothing; one that was too short for that by its total. */
static uint64_t rate_of(const Job *job) {
  if (!job_is_final(job) || mig_policy_get(&job->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S) > 0)
    return 0;
  if (job->link_bytes_per_s > 0)
    return job->link_bytes_per_s;
  if (job->phase != MIG_PHASE_SUCCEEDED || !job->have_total_time || !job->have_transferred ||
      job->total_time_ms == 0 || job->transferred_bytes < TRANSFERRED_MIN_BYTES)
    return 0;
  return (uint64_t)((double)job->transferred_bytes * 1000.0 / (double)job->total_time_ms);
}

uint64_t link_bandwidth_bytes_per_s(const Agent *agent, const char *target_uri) {
  const GPtrArray *all = job_table_all(agent->jobs);
  unsigned seen = 0;
  uint64_t best = 0;

  for (guint i = all->len; i > 0 && seen < MOVES; i--) {
    const Job *job = all->pdata[i - 1];
    uint64_t rate = strcmp(job->target_uri, target_uri) == 0 ? rate_of(job) : 0;

    if (rate == 0)
      continue;
    seen++;
    best = MAX(best, rate);
  }
  return best;
}

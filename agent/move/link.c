/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What earlier migrations tell about the link to a target. It is read from the job records; nothing else is kept. */
#include "agent/move/link.h"

#include <string.h>

/* Of this many newest migrations the fastest rate counts, since a slower one may have shared the link; and the median
 * downtime. */
#define MOVES 3
/* A smaller one tells more about its setup than about the link. */
#define TRANSFERRED_MIN_BYTES (32 * MIG_MIB_BYTES)

/* The rate that the monitor saw, even if the migration failed; for one too short for that, the average. */
static uint64_t rate_of(const Job *job) {
  if (!job_is_final(job) || mig_policy_get(&job->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S) > 0)
    return 0;
  if (job->link_bytes_per_s > 0)
    return job->link_bytes_per_s;
  if (job->share_bytes_per_s > 0)
    return 0;
  if (job->phase != MIG_PHASE_SUCCEEDED || !job->result.have_libvirt_time || !job->result.have_transferred ||
      job->result.libvirt_time_ms == 0 || job->result.transferred_bytes < TRANSFERRED_MIN_BYTES)
    return 0;
  return (uint64_t)((double)job->result.transferred_bytes * 1000.0 / (double)job->result.libvirt_time_ms);
}

/* A longer downtime came from a pause, or from a guest with a high dirty rate. */
#define SWITCH_MAX_MS 300

static uint64_t switch_of(const Job *job) {
  return job->phase == MIG_PHASE_SUCCEEDED && job->result.have_libvirt_downtime &&
                 job->result.libvirt_downtime_ms <= SWITCH_MAX_MS
             ? job->result.libvirt_downtime_ms
             : 0;
}

/* The median of three, the smaller of two. */
static uint64_t middle(const uint64_t *values, unsigned n) {
  if (n < MOVES)
    return n == 0 ? 0 : n == 1 ? values[0] : MIN(values[0], values[1]);
  return MAX(MIN(values[0], values[1]), MIN(MAX(values[0], values[1]), values[2]));
}

/* A caller may also have given the URI of a configured target. */
static uint64_t configured(const Config *config, const char *target_uri) {
  for (guint i = 0; i < config->targets->len; i++) {
    const ConfigTarget *target = config->targets->pdata[i];

    if (target->link_bytes_per_s > 0 && g_strcmp0(target->libvirt_uri, target_uri) == 0)
      return target->link_bytes_per_s;
  }
  return config->link_bytes_per_s;
}

void link_recall(const Mover *mover, const char *target_uri, MigLinkFacts *ret_facts) {
  const GPtrArray *all = job_table_all(mover->jobs->table);
  unsigned rates = 0, switches = 0;
  uint64_t switch_ms[MOVES];
  MigLinkFacts facts = {0};

  for (guint i = all->len; i > 0 && (rates < MOVES || switches < MOVES); i--) {
    const Job *job = all->pdata[i - 1];
    bool there = strcmp(job->target_uri, target_uri) == 0;
    uint64_t rate = there && rates < MOVES ? rate_of(job) : 0;
    uint64_t downtime_ms = there && switches < MOVES ? switch_of(job) : 0;

    if (rate > 0) {
      rates++;
      facts.bandwidth_bytes_per_s = MAX(facts.bandwidth_bytes_per_s, rate);
    }
    if (downtime_ms > 0)
      switch_ms[switches++] = downtime_ms;
  }
  facts.switch_ms = middle(switch_ms, switches);
  if (configured(mover->config, target_uri) > 0)
    facts.bandwidth_bytes_per_s = configured(mover->config, target_uri);
  *ret_facts = facts;
}

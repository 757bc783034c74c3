/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bandwidth limits of a migration, as set in libvirt. */
#include "agent/move/run-private.h"

#include "agent/base/clock.h"

/* Retry interval after libvirt refused the limits. */
#define LIMITS_AGAIN_MS 2000

void limits_set(JobRun *run, uint64_t bytes_per_s, uint64_t post_copy_bytes_per_s) {
  bool post_copy = run->job->have_plan && run->job->plan.post_copy;

  worker_set_bandwidth(run->worker, bytes_per_s, post_copy, post_copy_bytes_per_s);
}

void limits_set_own(JobRun *run) {
  const MigPolicy *policy = &run->job->policy;

  limits_set(run, mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S),
             mig_policy_get(policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S));
}

void limits_lift_share(JobRun *run) {
  if (run->monitoring)
    mig_monitor_set_share(&run->monitor, 0);
  limits_set_own(run);
}

/* The job's policy demands the limits: retries until libvirt accepts them. False: the failure was already reported. */
bool limits_note_set(JobRun *run, const GError *error) {
  bool news = !error || !run->limits_refused;

  if (!error)
    run->job->share_bytes_per_s = 0;
  run->limits_refused = error != NULL;
  run->limits_due_ms = error ? clock_now_ms() + LIMITS_AGAIN_MS : 0;
  return news;
}

/* libvirt reports the migration as running, and no share of MaxBandwidth= determines the limits. */
static bool may_set_limits(const JobRun *run) {
  return run->job->phase == MIG_PHASE_MIGRATING && run->go_given && !run->silent && !run->bandwidth.in &&
         !run->job->abort_requested;
}

void limits_tick(JobRun *run, uint64_t now_ms) {
  if (run->limits_due_ms == 0 || now_ms < run->limits_due_ms || !may_set_limits(run))
    return;
  run->limits_due_ms = 0;
  limits_set_own(run);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of MaxBandwidth= each running migration may use.
 *
 * Theory of Operation. core/shares.c divides the bandwidth and decides the next step; this file carries it out. A run joins
 * once its checks have passed, waits until its share is free (then run_begin()), and leaves when it is freed. Every change of
 * the members, of their needs, and of what libvirt accepts leads to bandwidth_step(), which asks the workers to set limits;
 * bandwidth_note_set() takes the result.
 *
 * libvirt applies one limit to the memory stream and one to each copied disk, which is mirrored at the same time, and it can
 * later change only the stream's. So a migration that copies disks counts as that many streams, and keeps a fixed share, that
 * of one slot, from start to end.
 *
 * Two timeouts bound the waiting: after PATIENCE_MS a run accepts less than its full share; after PrepareTimeout= without
 * any share the job goes back to the queue (run_tick()). Main thread only. */
#include "agent/move/bandwidth.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/lifecycle.h"
#include "agent/move/run-private.h"

#include <inttypes.h>

#define PATIENCE_MS 3000
/* Retry interval after libvirt refused a limit. */
#define AGAIN_MS 2000

/* Its memory gets across at the dirty rate times this. */
#define NEED_OVER_DIRTY 1.25
/* This part of the deadline is for the first pass. */
#define NEED_OF_DEADLINE 0.5

/* A migration does not start with less than this part of an equal share. */
#define WORTH_PART 4

struct Bandwidth {
  const Config *config;
  GPtrArray *members; /* MigShare, in a JobRun; in the order of joining */
};

Bandwidth *bandwidth_new(const Config *config) {
  Bandwidth *bandwidth = g_new0(Bandwidth, 1);

  bandwidth->config = config;
  bandwidth->members = g_ptr_array_new();
  return bandwidth;
}

void bandwidth_free(Bandwidth *bandwidth) {
  if (!bandwidth)
    return;
  g_ptr_array_unref(bandwidth->members);
  g_free(bandwidth);
}

static JobRun *run_of(const MigShare *share) {
  return (JobRun *)((char *)(uintptr_t)share - G_STRUCT_OFFSET(JobRun, bandwidth.share));
}

static MigShares shares_of(const Bandwidth *bandwidth) {
  uint64_t cap = bandwidth->config->max_bandwidth_bytes_per_s;
  unsigned at_most = MAX(bandwidth->config->max_outgoing, 1);

  return (MigShares){.cap = cap,
                     .min = cap / at_most / WORTH_PART,
                     .at_most = at_most,
                     .members = (MigShare **)bandwidth->members->pdata,
                     .n = bandwidth->members->len};
}

/* --- the current state of the members --- */

static uint64_t policy_limit(const Job *job) {
  uint64_t post_copy = mig_policy_get(&job->policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);

  if (job->stage == MIG_STAGE_POST_COPY && post_copy > 0)
    return post_copy;
  return mig_policy_get(&job->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
}

/* What it needs to keep up with its guest and meet its deadline. In post-copy it needs nothing. */
static uint64_t need_of(const JobRun *run, uint64_t cap) {
  const Job *job = run->job;
  uint64_t s_per_gib = mig_policy_get(&job->policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  uint64_t dirty = run->bandwidth.dirty, limit = policy_limit(job) * run->bandwidth.share.streams;
  uint64_t in_time = s_per_gib > 0 ? (uint64_t)((double)(MIG_GIB_BYTES / s_per_gib) / NEED_OF_DEADLINE) : 0;

  if (job->stage == MIG_STAGE_POST_COPY)
    return 0;
  /* What it cannot get anyway is not taken from the others. */
  if (dirty > cap || (limit > 0 && dirty > limit))
    dirty = 0;
  return MIN(MAX((uint64_t)(NEED_OVER_DIRTY * (double)dirty), in_time), cap);
}

static bool is_steerable(const JobRun *run, uint64_t now_ms) {
  return run->bandwidth.seen && !run->silent && run->job->phase == MIG_PHASE_MIGRATING &&
         !run->job->abort_requested && now_ms >= run->bandwidth.again_ms;
}

static void refresh(JobRun *run, uint64_t cap, uint64_t now_ms) {
  BandwidthMember *member = &run->bandwidth;

  /* A resume of the stream may have set another limit in QEMU. */
  if (run->job->phase == MIG_PHASE_RECOVERING) {
    member->was_held_up = true;
  } else if (member->was_held_up && member->share.asked == 0) {
    member->was_held_up = false;
    member->share.unsure = member->share.given > 0;
  }
  member->share.ceiling = policy_limit(run->job) * member->share.streams;
  member->share.need = need_of(run, cap);
  member->share.steerable = is_steerable(run, now_ms);
  member->share.patient = member->share.fixed || now_ms < member->since_ms + PATIENCE_MS;
}

/* --- members --- */

static void add(JobRun *run) {
  run->bandwidth.in = true;
  g_ptr_array_add(run->mover->bandwidth->members, &run->bandwidth.share);
}

void bandwidth_join(JobRun *run, unsigned disks) {
  g_autofree char *text = NULL;
  bool copies = disks > 0 && mig_policy_get(&run->job->policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE;

  if (run->mover->config->max_bandwidth_bytes_per_s == 0) {
    run_begin(run);
    return;
  }
  run->bandwidth.share = (MigShare){.streams = copies ? disks + 1 : 1, .fixed = copies};
  run->bandwidth.dirty = run->probe.curve.n > 0 ? (uint64_t)mig_dirty_curve_lower(&run->probe.curve, 1.0) : 0;
  run->bandwidth.since_ms = clock_now_ms();
  add(run);
  bandwidth_step(run->mover);
  if (!bandwidth_waits(run))
    return;
  text = g_strdup_printf("waits up to %u s for a share of MaxBandwidth=, then returns to the queue",
                         run->mover->config->prepare_timeout_ms / 1000);
  job_set_next_action(run->job, text);
  jobs_announce(run->mover->jobs, run->job);
}

void bandwidth_adopt(JobRun *run) {
  const Bandwidth *bandwidth = run->mover->bandwidth;
  MigShares shares = shares_of(bandwidth);
  Job *job = run->job;

  if (bandwidth->config->max_bandwidth_bytes_per_s == 0)
    return;
  run->bandwidth.share = (MigShare){
      .streams = 1, .fixed = mig_policy_get(&job->policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE};
  mig_share_adopt(&shares, &run->bandwidth.share, job->share_bytes_per_s);
  add(run);
}

void bandwidth_leave(JobRun *run) {
  if (!run->bandwidth.in)
    return;
  run->bandwidth.in = false;
  g_ptr_array_remove(run->mover->bandwidth->members, &run->bandwidth.share);
}

/* From now on only their own limits apply. */
static void dissolve(Mover *mover) {
  g_autoptr(GPtrArray) members = g_steal_pointer(&mover->bandwidth->members);

  mover->bandwidth->members = g_ptr_array_new();
  for (guint i = 0; i < members->len; i++) {
    JobRun *run = run_of(members->pdata[i]);
    bool waits = bandwidth_waits(run);

    run->bandwidth.in = false;
    if (waits) {
      run->job->share_bytes_per_s = 0;
      run_begin(run);
    } else {
      limits_lift_share(run);
    }
  }
}

/* Some are already running, with only their own limits. */
static void assemble(Mover *mover) {
  const GPtrArray *all = job_table_all(mover->jobs->table);

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (job->run && (job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING) &&
        !job->run->bandwidth.in)
      bandwidth_adopt(job->run);
  }
}

void bandwidth_apply_config(Mover *mover) {
  if (mover->config->max_bandwidth_bytes_per_s == 0)
    dissolve(mover);
  else
    assemble(mover);
  bandwidth_step(mover);
}

bool bandwidth_waits(const JobRun *run) {
  return run->bandwidth.in && run->bandwidth.share.given == 0;
}

/* --- limits --- */

/* In post-copy one stream has the whole share: there is no post-copy with copied disks. */
static uint64_t post_copy_limit(const JobRun *run) {
  uint64_t own = mig_policy_get(&run->job->policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);
  uint64_t share = mig_share_per_stream(&run->bandwidth.share);

  return own > 0 ? MIN(own, share) : share;
}

void bandwidth_limit(const JobRun *run, MigPolicy *policy) {
  if (!run->bandwidth.in || run->bandwidth.share.given == 0)
    return;
  policy->values[MIG_POLICY_BANDWIDTH_BYTES_PER_S] = mig_share_per_stream(&run->bandwidth.share);
  policy->values[MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S] = post_copy_limit(run);
}

static void note_given(JobRun *run) {
  run->job->share_bytes_per_s = run->bandwidth.share.given;
  if (run->monitoring)
    mig_monitor_set_share(&run->monitor, mig_share_per_stream(&run->bandwidth.share));
}

bool bandwidth_retune(JobRun *run) {
  BandwidthMember *member = &run->bandwidth;

  if (!member->in)
    return false;
  /* The post-copy limit may change even if the share does not. */
  if (member->share.given > 0 && !member->share.fixed)
    member->share.unsure = true;
  bandwidth_step(run->mover);
  return true;
}

void bandwidth_note_sample(JobRun *run, const MigSample *sample) {
  BandwidthMember *member = &run->bandwidth;
  uint64_t dirty;

  if (!member->in || !sample->valid || !sample->active || sample->memory_total_bytes == 0)
    return;
  member->seen = true;
  /* Only of a guest that is not throttled; in steps, since each change affects all members. */
  dirty = sample->dirty_rate_bytes_per_s;
  if (sample->throttle_pct == 0 && dirty > 0 && (dirty > member->dirty / 4 * 5 || dirty < member->dirty / 2))
    member->dirty = dirty;
}

/* --- steps --- */

static double in_mib(uint64_t bytes) {
  return (double)bytes / (double)MIG_MIB_BYTES;
}

static void ask_for(JobRun *run) {
  const MigShare *share = &run->bandwidth.share;
  uint64_t own = mig_policy_get(&run->job->policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);

  limits_set(run, share->asked, own > 0 ? MIN(own, share->asked) : share->asked);
}

static void begin(JobRun *run) {
  const Bandwidth *bandwidth = run->mover->bandwidth;

  job_set_next_action(run->job, NULL);
  note_given(run);
  job_add_event(run->job, "decision", MIG_CAUSE_NONE,
                "has %.0f MiB/s of MaxBandwidth=%.0fM, shared by %u migration%s",
                in_mib(run->bandwidth.share.given), in_mib(bandwidth->config->max_bandwidth_bytes_per_s),
                bandwidth->members->len, bandwidth->members->len == 1 ? "" : "s");
  run_begin(run);
}

void bandwidth_step(Mover *mover) {
  Bandwidth *bandwidth = mover->bandwidth;
  MigShares shares = shares_of(bandwidth);
  uint64_t now_ms = clock_now_ms();
  MigShareStep step;

  if (shares.n == 0)
    return;
  for (size_t i = 0; i < shares.n; i++)
    refresh(run_of(shares.members[i]), shares.cap, now_ms);
  mig_shares_divide(&shares);
  while ((step = mig_shares_next(&shares)).kind != MIG_SHARE_STEP_NONE) {
    if (step.kind == MIG_SHARE_STEP_BEGIN)
      begin(run_of(step.share));
    else
      ask_for(run_of(step.share));
  }
}

static void note_refused(JobRun *run, const GError *error) {
  Job *job = run->job;

  run->bandwidth.again_ms = clock_now_ms() + AGAIN_MS;
  if (run->bandwidth.refused)
    return;
  run->bandwidth.refused = true;
  job_add_event(job, "warning", MIG_CAUSE_NONE,
                "could not set its share of MaxBandwidth=, retrying; %.0f MiB/s still count as in use: %s",
                in_mib(run->bandwidth.share.given), error->message);
  log_job(job, LOG_WARNING, NULL, "could not set its share of MaxBandwidth=, retrying: %s", error->message);
  jobs_state_changed(run->mover->jobs, job);
}

void bandwidth_note_set(JobRun *run, const GError *error) {
  uint64_t before = run->job->share_bytes_per_s;

  if (!run->bandwidth.in)
    return;
  mig_share_done(&run->bandwidth.share, error == NULL);
  note_given(run);
  if (error) {
    note_refused(run, error);
  } else {
    run->bandwidth.refused = false;
    if (before != run->bandwidth.share.given) {
      job_add_event(run->job, "action", MIG_CAUSE_NONE, "now has %.0f MiB/s of MaxBandwidth=, had %.0f",
                    in_mib(run->bandwidth.share.given), in_mib(before));
      jobs_state_changed(run->mover->jobs, run->job);
    }
  }
  bandwidth_step(run->mover);
}

char *bandwidth_explain_lack(const Mover *mover) {
  const Bandwidth *bandwidth = mover->bandwidth;
  MigShares shares = shares_of(bandwidth);
  unsigned running = job_queue_count_running(mover->jobs->queue);
  unsigned checking = running > shares.n ? running - (unsigned)shares.n : 0;

  if (shares.cap == 0 || running == 0 || mig_shares_have_room(&shares, checking + 1))
    return NULL;
  return g_strdup_printf(
      "the %u running migration%s leave%s too little of MaxBandwidth=%.0fM (%.0f MiB/s allocated): "
      "another would get less than %.0f MiB/s",
      running, running == 1 ? "" : "s", running == 1 ? "s" : "", in_mib(shares.cap),
      in_mib(mig_shares_given(&shares)), in_mib(MAX(shares.min, MIG_MIB_BYTES)));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches one running migration: deadline, progress, stage, percentage. */
#include "libmigrate/core/monitor.h"

#include "libmigrate/core/choose.h"
#include "libmigrate/core/message.h"
#include "libmigrate/core/table.h"

#include <math.h>
#include <string.h>

/* Theory of operation
 *
 * A step takes one sample and answers with at most one action. Three clocks judge a migration:
 *
 * The *deadline* runs from the start of the migration and needs no statistics: a libvirtd that does not answer must not make
 * a migration immortal.
 *
 * *Flow*: has any data moved? If none has for the progress timeout, the link is at fault (LINK_STALLED).
 *
 * *Progress*: does what remains shrink? memory_remaining_bytes is a sawtooth: it falls during a pass over the memory and
 * jumps, at the start of the next one, to what the guest dirtied meanwhile. Compared from sample to sample, each tooth looks
 * like progress (so a hopeless migration never ends) and each jump like a relapse (so a good one is aborted). So it is
 * compared pass by pass:
 *  - within a pass, which may take hours, progress is a new low of this pass;
 *  - at the start of a pass its dirty set is compared with the smallest one so far. It counts if it is smaller by 4 % (less is
 *    noise; a slow gain adds up, since the mark stays where it was). After three passes without that (a single burst of the
 *    guest is not a trend) and the progress timeout, the migration is going nowhere.
 * Disks are copied first, and there a new low is progress. When all of them were copied once, libvirt goes on to the memory
 * and keeps the copies up to date; a guest that writes on leaves them a little behind for ever. That is neither progress
 * nor flow, but part of the pause to come.
 *
 * Flow and progress are measured on a clock of observation that stands still while no statistics can be read: unknown is not
 * failed. In post-copy nothing is aborted: the guest is at the target and cannot come back. */

/* A pass counts as progress if its dirty set is below this share of the best one. */
#define PROGRESS_SHARE 0.96
/* How many passes must start without progress before it is held against the migration. */
#define STALE_PASSES 3
/* Time constant of the smoothed bandwidth. */
#define BANDWIDTH_TAU_MS 2000.0
/* The first pass's share of the percentage. What follows it cannot be predicted here. */
#define FIRST_PASS_PCT 90.0

static const char *const action_names[] = {
    [MIG_ACTION_NONE] = "none",
    [MIG_ACTION_ABORT] = "abort",
    [MIG_ACTION_SET_DOWNTIME] = "set_downtime",
    [MIG_ACTION_START_POST_COPY] = "start_post_copy",
    [MIG_ACTION_PAUSE] = "pause",
};
TABLE_COVERS(action_names, MIG_ACTION_COUNT);

const char *mig_action_name(MigActionKind kind) {
  return table_name(action_names, MIG_ACTION_COUNT, (int)kind);
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Seconds per GiB times bytes, in ms. Whole GiB and the rest apart: exact, and nothing overflows. */
static uint64_t timeout_ms(uint64_t s_per_gib, uint64_t bytes) {
  uint64_t ms_per_gib, whole, rest;
  if (__builtin_mul_overflow(s_per_gib, 1000u, &ms_per_gib) ||
      __builtin_mul_overflow(ms_per_gib, bytes / MIG_GIB_BYTES, &whole) ||
      __builtin_mul_overflow(ms_per_gib, bytes % MIG_GIB_BYTES, &rest))
    return UINT64_MAX;
  return add_saturating(whole, rest / MIG_GIB_BYTES);
}

void mig_monitor_init(MigMonitor *monitor, const MigPolicy *policy, uint64_t start_ms, uint64_t memory_bytes,
                      uint64_t disk_bytes) {
  *monitor = (MigMonitor){
      .policy = *policy,
      .start_ms = start_ms,
      .memory_bytes = memory_bytes,
      .disk_bytes = disk_bytes,
      .open = {.auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
               .post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY)},
      .downtime_ms = mig_downtime_limit_ms(mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS)),
  };
}

void mig_monitor_set_plan(MigMonitor *monitor, const MigPlan *plan) {
  monitor->open.auto_converge = plan->auto_converge;
  monitor->open.post_copy = plan->post_copy;
  monitor->downtime_ms = plan->downtime_ms;
  monitor->curve = plan->probe.curve;
  monitor->cpu_share = plan->probe.cpu_share;
  monitor->switch_ms = plan->switch_ms;
  monitor->link_bytes_per_s = plan->bandwidth_bytes_per_s;
  monitor->throttle_initial_pct = plan->throttle_initial_pct;
  monitor->throttle_increment_pct = plan->throttle_increment_pct;
}

void mig_monitor_get_steering(const MigMonitor *monitor, MigSteering *ret_steering) {
  memset(ret_steering, 0, sizeof(*ret_steering));
  ret_steering->downtime_ms = monitor->downtime_ms;
  ret_steering->pausing = monitor->way == MIG_WAY_PAUSE;
  for (int way = 0; way < MIG_WAY_COUNT; way++)
    if (monitor->open.refused[way])
      ret_steering->refused |= 1u << way;
}

void mig_monitor_take_up(MigMonitor *monitor, const MigSteering *steering) {
  if (steering->downtime_ms > 0)
    monitor->downtime_ms = steering->downtime_ms;
  monitor->most_downtime_ms = UINT64_MAX;
  monitor->way = steering->pausing ? MIG_WAY_PAUSE : MIG_WAY_PRE_COPY;
  for (int way = 0; way < MIG_WAY_COUNT; way++)
    monitor->open.refused[way] = (steering->refused & (1u << way)) != 0;
}

const MigForecast *mig_monitor_forecast(const MigMonitor *monitor) {
  return monitor->have_forecast ? &monitor->forecast : NULL;
}

/* A change that someone just made to help gets time to work. */
static void start_afresh(MigMonitor *monitor) {
  monitor->stale_passes = 0;
  monitor->memory.at_ms = monitor->observed_ms;
  monitor->passes_seen = 0;
}

void mig_monitor_set_policy(MigMonitor *monitor, const MigPolicy *policy) {
  static const MigPolicyKey fresh_start[] = {MIG_POLICY_BANDWIDTH_BYTES_PER_S, MIG_POLICY_MAX_DOWNTIME_MS};
  for (size_t i = 0; i < TABLE_LENGTH(fresh_start); i++)
    if (mig_policy_get(policy, fresh_start[i]) != mig_policy_get(&monitor->policy, fresh_start[i]))
      start_afresh(monitor);
  monitor->policy = *policy;
  monitor->looked_ms = 0;
}

void mig_monitor_set_share(MigMonitor *monitor, uint64_t bytes_per_s) {
  if (bytes_per_s == monitor->share_bytes_per_s)
    return;
  monitor->share_bytes_per_s = bytes_per_s;
  monitor->looked_ms = 0;
  start_afresh(monitor);
}

uint64_t mig_monitor_limit_bytes_per_s(const MigMonitor *monitor) {
  uint64_t own = mig_policy_get(&monitor->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  uint64_t share = monitor->share_bytes_per_s;
  return own == 0 || (share > 0 && share < own) ? share : own;
}

/* Deliberately no minimum: the deadline is what was requested, and a guest of 64 MiB with 5 s/GiB has 320 ms. */
uint64_t mig_monitor_deadline_ms(const MigMonitor *monitor) {
  uint64_t memory_s = mig_policy_get(&monitor->policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  uint64_t disk_s = mig_policy_get(&monitor->policy, MIG_POLICY_DISK_TIMEOUT_S_PER_GIB);
  uint64_t memory = monitor->memory_bytes ? monitor->memory_bytes : monitor->last.memory_total_bytes;
  uint64_t disk = mig_policy_get(&monitor->policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE
                      ? monitor->disk_bytes
                      : 0;
  /* An unknown size gives no deadline rather than one that has passed. And "0: none" for disks means that copying
   * them may take any time, not no time. */
  if (memory_s == 0 || memory == 0 || (disk > 0 && disk_s == 0))
    return UINT64_MAX;
  return add_saturating(monitor->start_ms,
                        add_saturating(timeout_ms(memory_s, memory), timeout_ms(disk_s, disk)));
}

uint64_t mig_monitor_link_bytes_per_s(const MigMonitor *monitor) {
  return monitor->peak_bytes_per_s;
}

unsigned mig_monitor_percent(const MigMonitor *monitor) {
  return (unsigned)monitor->percent;
}

MigStage mig_monitor_stage(const MigMonitor *monitor) {
  return monitor->stage;
}

static double done_share(uint64_t total, uint64_t remaining) {
  return total > 0 && remaining < total ? 1.0 - (double)remaining / (double)total : 0.0;
}

/* Memory and disks weighted by their bytes. Memory: the first pass is nine tenths; after that, how small the dirty
 * set has become; in post-copy, which has a single pass, how much remains. */
static void update_percent(MigMonitor *monitor, const MigSample *sample) {
  double memory_weight = (double)larger(monitor->memory_bytes, sample->memory_total_bytes);
  double disk_weight = (double)sample->disk_total_bytes;
  double memory = 0, disk = 100.0 * done_share(sample->disk_total_bytes, sample->disk_remaining_bytes);
  if (memory_weight + disk_weight <= 0)
    return;

  double now_done = done_share(sample->memory_total_bytes, sample->memory_remaining_bytes);
  if (sample->post_copy)
    memory = 100.0 * now_done;
  else if (sample->iteration <= 1)
    memory = FIRST_PASS_PCT * now_done;
  else if (monitor->memory.seen)
    memory = FIRST_PASS_PCT + (100.0 - FIRST_PASS_PCT) * done_share(sample->memory_total_bytes,
                                                                    monitor->memory.best_remaining_bytes);
  else
    memory = FIRST_PASS_PCT; /* the agent took over midway */

  double percent = (memory_weight * memory + disk_weight * disk) / (memory_weight + disk_weight);
  uint64_t whole = percent >= 99.0 ? 99 : percent > 0 ? (uint64_t)percent : 0;
  monitor->percent = larger(monitor->percent, whole);
}

/* What was dirty when the pass of this sample started. The sample was taken some time later, so add what was sent
 * since: all that was sent since the last sample, minus what that one still had to send. If more than one pass
 * started in between, their mean. */
static uint64_t dirty_set(const MigSample *last, const MigSample *sample) {
  uint64_t passes = since(sample->iteration, last->iteration);
  uint64_t sent = since(gone_bytes(sample), gone_bytes(last));
  uint64_t set = add_saturating(sample->memory_remaining_bytes, since(sent, last->memory_remaining_bytes));
  return passes > 1 ? set / passes : set;
}

/* Returns true if a pass over the memory has just started. */
static bool observe(MigMonitor *monitor, const MigSample *sample) {
  const MigSample *last = &monitor->last;
  bool first = !monitor->have_last;
  if (monitor->counting)
    monitor->observed_ms = add_saturating(monitor->observed_ms, since(sample->now_ms, last->now_ms));
  uint64_t now = monitor->observed_ms;

  if (first) {
    monitor->memory.at_ms = monitor->disk.at_ms = monitor->last_flow_ms = monitor->iteration_low_ms = now;
    monitor->iteration_low_bytes = sample->memory_remaining_bytes;
  }
  /* libvirt copies the disks first. Once memory flows, their mirrors only follow the guest, which does not show that the stream is alive. */
  bool disks_first = monitor->flow_begin_ms == 0 && sample->memory_processed_bytes == 0;
  if (sample->memory_processed_bytes != last->memory_processed_bytes ||
      (disks_first && sample->disk_processed_bytes != last->disk_processed_bytes))
    monitor->last_flow_ms = now;

  bool pass_began = !first && sample->iteration != last->iteration;
  bool first_pass = sample->iteration <= 1;
  choose_observe(monitor, sample, first);
  if (pass_began || sample->memory_remaining_bytes < monitor->iteration_low_bytes ||
      (first_pass && last->memory_total_bytes == 0)) {
    monitor->iteration_low_bytes = sample->memory_remaining_bytes;
    monitor->iteration_low_ms = now;
    if (first_pass)
      monitor->memory.at_ms = now;
  }
  if (pass_began && sample->iteration > last->iteration && !first_pass) {
    uint64_t set = dirty_set(last, sample);
    if (!monitor->memory.seen ||
        (double)set < PROGRESS_SHARE * (double)monitor->memory.best_remaining_bytes) {
      monitor->memory = (MigProgressMark){.seen = true, .best_remaining_bytes = set, .at_ms = now};
      monitor->stale_passes = 0;
    } else if (monitor->stale_passes < STALE_PASSES) {
      monitor->stale_passes++;
    }
  }
  /* QEMU is still throttling the guest: the effect shows in the next passes. */
  if (!first && sample->throttle_pct > last->throttle_pct) {
    monitor->memory.at_ms = now;
    monitor->stale_passes = 0;
  }

  if (disks_first && sample->disk_total_bytes > 0 &&
      (!monitor->disk.seen || sample->disk_remaining_bytes < monitor->disk.best_remaining_bytes))
    monitor->disk =
        (MigProgressMark){.seen = true, .best_remaining_bytes = sample->disk_remaining_bytes, .at_ms = now};

  monitor->post_copy |= sample->post_copy;
  /* A sample does not show that the guest is stopped: a decided pause sets that stage. */
  monitor->stage = monitor->post_copy              ? MIG_STAGE_POST_COPY
                   : monitor->way == MIG_WAY_PAUSE ? MIG_STAGE_STOP_AND_COPY
                   : sample->throttle_pct > 0      ? MIG_STAGE_AUTO_CONVERGE
                                                   : MIG_STAGE_PRE_COPY;
  update_percent(monitor, sample);
  monitor->last = *sample;
  monitor->have_last = true;
  return pass_began;
}

static bool abort_for(MigMonitor *monitor, MigCause cause, uint64_t waited_ms, MigAction *ret_action) {
  monitor->abort_asked = true;
  ret_action->kind = MIG_ACTION_ABORT;
  ret_action->cause = cause;
  message_abort(monitor, cause, waited_ms, ret_action->message, sizeof(ret_action->message));
  return true;
}

static bool check_progress(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  uint64_t limit_ms, now = monitor->observed_ms;
  uint64_t timeout_s = mig_policy_get(&monitor->policy, MIG_POLICY_PROGRESS_TIMEOUT_S);
  if (timeout_s == 0)
    return false;
  if (__builtin_mul_overflow(timeout_s, 1000u, &limit_ms))
    return false;

  uint64_t no_flow = since(now, monitor->last_flow_ms);
  if (no_flow >= limit_ms)
    return abort_for(monitor, MIG_CAUSE_LINK_STALLED, no_flow, ret_action);

  uint64_t no_low = since(now, larger(monitor->iteration_low_ms, monitor->disk.at_ms));
  if (no_low >= limit_ms)
    return abort_for(monitor, MIG_CAUSE_NO_PROGRESS, no_low, ret_action);

  uint64_t no_better = since(now, larger(monitor->memory.at_ms, monitor->disk.at_ms));
  if (pass_began && monitor->stale_passes >= STALE_PASSES && no_better >= limit_ms)
    return abort_for(monitor, MIG_CAUSE_NO_PROGRESS, no_better, ret_action);
  return false;
}

static void no_action(MigAction *ret_action) {
  ret_action->kind = MIG_ACTION_NONE;
  ret_action->cause = MIG_CAUSE_NONE;
  ret_action->downtime_ms = 0;
  ret_action->message[0] = 0;
}

/* In post-copy there is nothing left to abort. */
static bool check_deadline(MigMonitor *monitor, uint64_t now_ms, MigAction *ret_action) {
  if (monitor->abort_asked || monitor->post_copy || now_ms < mig_monitor_deadline_ms(monitor))
    return false;
  return abort_for(monitor, MIG_CAUSE_DEADLINE, since(now_ms, monitor->start_ms), ret_action);
}

void mig_monitor_tick(MigMonitor *monitor, uint64_t now_ms, MigAction *ret_action) {
  no_action(ret_action);
  if (!monitor->ended)
    check_deadline(monitor, now_ms, ret_action);
}

void mig_monitor_step(MigMonitor *monitor, const MigSample *sample, MigAction *ret_action) {
  no_action(ret_action);
  bool readable = sample->valid && sample->active, pass_began = false;
  if (readable)
    pass_began = observe(monitor, sample);
  monitor->counting = readable;

  /* The migration has ended: nothing is left to abort, and settle.c finds the outcome. */
  monitor->ended = sample->valid && !sample->active && monitor->have_last;
  if (monitor->ended || check_deadline(monitor, sample->now_ms, ret_action))
    return;
  if (!readable || monitor->abort_asked || monitor->post_copy)
    return;
  if (check_progress(monitor, pass_began, ret_action))
    return;
  choose_way(monitor, pass_began, ret_action);
}

uint64_t mig_bandwidth_update(MigBandwidth *bandwidth, uint64_t now_ms, uint64_t processed_bytes) {
  /* The first reading, or the counter or the clock restarted: take a new base and keep the rate. Until the first byte
   * the job is being set up, which says nothing about the link. */
  if (!bandwidth->seen || processed_bytes < bandwidth->processed_bytes || now_ms < bandwidth->at_ms ||
      (!bandwidth->have_rate && bandwidth->processed_bytes == 0)) {
    bandwidth->seen = true;
    bandwidth->at_ms = now_ms;
    bandwidth->processed_bytes = processed_bytes;
  } else if (now_ms > bandwidth->at_ms) {
    /* An exponential average over unevenly spaced readings. Only 1 − e^(−t/τ) of the time t since the start is in it:
     * each reading is weighted by its share of that, so that the first seconds are a plain mean. */
    double dt = (double)(now_ms - bandwidth->at_ms);
    double rate = (double)(processed_bytes - bandwidth->processed_bytes) * 1000.0 / dt;
    bandwidth->known = 1.0 - (1.0 - bandwidth->known) * exp(-dt / BANDWIDTH_TAU_MS);
    bandwidth->bytes_per_s +=
        (1.0 - exp(-dt / BANDWIDTH_TAU_MS)) / bandwidth->known * (rate - bandwidth->bytes_per_s);
    bandwidth->have_rate = true;
    bandwidth->at_ms = now_ms;
    bandwidth->processed_bytes = processed_bytes;
  }
  /* Integers on the wire are signed. */
  if (!(bandwidth->bytes_per_s > 0))
    return 0;
  return bandwidth->bytes_per_s >= (double)INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)bandwidth->bytes_per_s;
}

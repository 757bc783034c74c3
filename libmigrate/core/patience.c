/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long the monitor goes on although no way that it likes is open. */
#include "libmigrate/core/patience.h"

#include "libmigrate/core/choose.h"

/* Theory of operation
 *
 * A forecast says what the guest does if it goes on as it did. It may not: it works in bursts, it is near the link's pace, or
 * near its goal, where a few percent decide; and of the first pass nobody knows which pages are still to come. Giving up
 * throws away all that was sent, post-copy puts a guest on two hosts, and a pause stops it. Each is worth some waiting, and
 * none past the deadline. */

/* How many passes must have been seen to start before a migration is called hopeless: the third one has started. */
#define CONFIRM_PASSES       2
#define CHANGING_PATIENCE_MS 60000
/* A dirty rate of up to this share of the bandwidth is near it: probes and pass sizes are accurate within 10 %. */
#define NEAR_LINK 1.25
/* ... and from this share on, it is hopeless. */
#define HOPELESS_LINK 1.5
/* So much of the first pass a guest must have been as busy as it was measured. Post-copy is then little later than at once. */
#define KNOWN_SHARE 0.15
/* Share of the deadline after which a pause is no longer postponed. */
#define DEADLINE_SHARE 0.5
/* The deadline is near when this share of it is over: what ends by then can wait. */
#define SPARE_SHARE 0.8
/* A pass gains if it is smaller than the previous one by this share. */
#define GAIN 0.005
/* ... and a floor of up to this many times the goal is at it. */
#define NEAR_GOAL 1.1
/* A floor of this many times the goal is far from it. */
#define FAR 4.0
/* See is_stale(). monitor.c counts only up to its own limit. */
#define NEAR_STALE_PASSES 3

static bool works_in_bursts(const MigGuestLoad *load) {
  return load->seen && load->least_share + CHOOSE_LOAD_NOISE < CHOOSE_CALM_SHARE * load->most_share;
}

/* The guest changed its behaviour not long ago, and may again. */
bool patience_may_change(const MigMonitor *monitor) {
  uint64_t now_ms = monitor->last.now_ms;
  return (monitor->curve.changes > 0 && since(now_ms, monitor->changed_ms) < CHANGING_PATIENCE_MS) ||
         (works_in_bursts(&monitor->load) && since(now_ms, monitor->load.calm_ms) < CHANGING_PATIENCE_MS);
}

/* However little: passes that shrink may get small enough in time. */
bool patience_gains(const MigMonitor *monitor) {
  return (double)monitor->pass_bytes < (1 - GAIN) * (double)monitor->prior_pass_bytes;
}

/* It dirties about as much as the link carries: an error of a few percent decides whether it converges. */
static bool is_near_link(const MigMonitor *monitor) {
  return mig_dirty_curve_lower(&monitor->curve, 1.0) < NEAR_LINK * choose_bandwidth(monitor);
}

bool patience_deadline_is_near(const MigMonitor *monitor) {
  uint64_t all_ms = since(mig_monitor_deadline_ms(monitor), monitor->start_ms);
  return (double)since(monitor->last.now_ms, monitor->start_ms) > SPARE_SHARE * (double)all_ms;
}

/* A guest that works in bursts may soon be calm, and one near the link's bandwidth may converge against the forecast:
 * neither needs a pause then. Wait for that as long as the pause is worth, and never until the deadline is near. */
bool patience_before_pause(MigMonitor *monitor, const MigWayForecast *pause) {
  uint64_t now_ms = monitor->last.now_ms, deadline_ms = mig_monitor_deadline_ms(monitor);
  bool may_converge =
      is_near_link(monitor) && (monitor->passes_seen < CONFIRM_PASSES || patience_gains(monitor));
  if (!patience_may_change(monitor) && !may_converge)
    return false;
  if (monitor->pause_wanted_ms == 0)
    monitor->pause_wanted_ms = now_ms;
  if ((double)since(now_ms, monitor->pause_wanted_ms) >= MIG_PAUSE_WEIGHT * pause->pause_s * 1000.0)
    return false;
  return deadline_ms == UINT64_MAX ||
         pause->total_s * 1000.0 <= DEADLINE_SHARE * (double)since(deadline_ms, monitor->start_ms);
}

/* So far above the goal that a few percent per pass cannot matter. */
static bool is_far(const MigMonitor *monitor) {
  double goal_s = (double)mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  return monitor->forecast.floor_s > FAR * goal_s;
}

/* Near its goal, a guest gets some more passes to gain something worthwhile. */
static bool is_stale(const MigMonitor *monitor) {
  return !patience_gains(monitor) && (is_far(monitor) || monitor->stale_passes >= NEAR_STALE_PASSES);
}

/* As it is, it goes nowhere. */
bool patience_is_stuck(const MigMonitor *monitor) {
  return (monitor->passes_seen >= CONFIRM_PASSES || monitor->open.throttle_useless) && is_stale(monitor);
}

/* An error of a few percent decides whether it fits. */
bool patience_is_at_goal(const MigMonitor *monitor) {
  double goal_s = (double)choose_goal_limit_ms(monitor, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  return monitor->forecast.floor_s < NEAR_GOAL * goal_s &&
         since(monitor->last.now_ms, monitor->worth_until_ms) < CHANGING_PATIENCE_MS &&
         !patience_deadline_is_near(monitor);
}

/* It was measured before the start, and is as busy now: what it dirties leaves no doubt, and shows no calm second. */
static bool is_known_hopeless(const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  const MigGuestLoad *load = &monitor->load;
  return monitor->curve.n > 0 && monitor->pace.written.have_rate && load->seen && is_far(monitor) &&
         load->least_share >= CHOOSE_CALM_SHARE * monitor->cpu_share &&
         mig_dirty_curve_lower(&monitor->curve, 1.0) >= HOPELESS_LINK * choose_bandwidth(monitor) &&
         (double)last->memory_remaining_bytes <= (1 - KNOWN_SHARE) * (double)last->memory_total_bytes;
}

/* In the first pass little is known: what the guest does next, and how many zeroes are still to come. And the more of it is
 * sent by pre-copy, the shorter is the guest on two hosts. So it is waited for, while post-copy is in time then. But what
 * a hopeless guest dirties is sent twice for nothing. */
static bool can_wait_for_pass(const MigMonitor *monitor) {
  const MigWayForecast *post_copy = &monitor->forecast.ways[MIG_WAY_POST_COPY];
  double deadline_s = (double)since(mig_monitor_deadline_ms(monitor), monitor->start_ms) / 1000.0;
  double again_s = (double)choose_dirtied_in_pass(monitor) / choose_bandwidth(monitor);
  return monitor->last.iteration <= 1 && !is_known_hopeless(monitor) &&
         post_copy->total_s + again_s < SPARE_SHARE * deadline_s;
}

/* Pre-copy may yet end: of a guest that works in bursts, or gains, or is near its goal. */
static bool can_wait_for_change(const MigMonitor *monitor) {
  const MigWayForecast *post_copy = &monitor->forecast.ways[MIG_WAY_POST_COPY];
  double deadline_s = (double)since(mig_monitor_deadline_ms(monitor), monitor->start_ms) / 1000.0;
  return (patience_may_change(monitor) || !is_stale(monitor) || patience_is_at_goal(monitor)) &&
         post_copy->total_s < SPARE_SHARE * deadline_s;
}

bool patience_before_post_copy(const MigMonitor *monitor) {
  return can_wait_for_pass(monitor) || can_wait_for_change(monitor);
}

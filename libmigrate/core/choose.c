/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's choice of a way. */
#include "libmigrate/core/choose.h"

#include "libmigrate/core/message.h"
#include "libmigrate/core/throttle.h"

#include <math.h>

/* Theory of operation
 *
 * Each pass that starts adds one point to the dirtying curve: how long the previous pass took, and what the guest dirtied in
 * that time. Together with the points probed before the start, that is often enough to foresee in the first pass how the
 * migration will go. So the ways are compared whenever a pass starts, and about once a second in between, and the cheapest
 * open one is followed:
 *
 *   pre_copy       the downtime limit is set to where the switchover should happen, at the start of a pass only
 *   auto_converge  enabled at the start. A new throttle starts a new curve, and the limit is set to the goal
 *   pause          the downtime limit is raised to what the pause will take, within max_pause_ms: QEMU stops the guest
 *                  after the first pass that fits, so a wrong forecast makes it late and never too long
 *   post_copy      only while data is moving
 *   none           the migration is aborted with NOT_CONVERGING, as soon as two passes have confirmed it
 *
 * max_throttle_pct rules out whatever would outlast QEMU's next step, if that step is above it (throttle.c).
 *
 * A guest that was seen to change may change again: it gets CHANGING_PATIENCE_MS after the last change before it is called
 * hopeless. A change shows in the curve. Since the curve gets only one point per pass, and passes are long, it also shows in
 * how busy the guest's CPUs are: a guest that works in bursts has calm seconds, in which it dirties little. */

#define LOOK_EVERY_MS 1000
/* How many passes must have been seen to start before a migration is called hopeless: the third one has started. */
#define CONFIRM_PASSES       2
#define CHANGING_PATIENCE_MS 60000
/* A dirty rate of up to this share of the bandwidth is near it: probes and pass sizes are accurate within 10 %. */
#define NEAR_LINK 1.25
/* Share of the deadline after which a pause is no longer postponed. */
#define DEADLINE_SHARE 0.5
/* A pass gains if it is smaller than the previous one by this share. */
#define GAIN 0.005
/* A floor of this many times the goal is far from it. */
#define FAR 4.0
/* See is_stale(). monitor.c counts only up to its own limit. */
#define NEAR_STALE_PASSES 3
/* A limit that is off by less than this is left alone. */
#define LIMIT_SLACK 0.25
/* The limit is set once the end is this near. */
#define NEAR_PASSES 5
/* This many passes after a limit was set, the end is overdue. */
#define OVERDUE_PASSES 8
/* Post-copy must show within this time, or it counts as refused. */
#define POST_COPY_RUNG_MS 10000
/* QEMU starts to throttle by this pass or not at all; and within this many passes once the guest turned out to need
 * it. */
#define THROTTLE_BY_PASS   6
#define THROTTLE_PASSES    3
#define THROTTLE_PASSES_MS 4000
/* When to request a limit again that libvirt refused. */
#define LIMIT_RETRY_MS 5000
/* Since QEMU's last look at the dirty log, on top of the downtime itself; also how long a requested post-copy takes
 * to show. */
#define SWITCHING_MS 1000
/* After this long without data, do not put the guest at the mercy of the link. */
#define LINK_QUIET_MS 300
/* A link is healthy if this share of the mean has flowed since the previous reading, which must be no older than
 * this. */
#define HEALTHY_SHARE 0.7

/* Smoothed, but not above a limit that was set since. */
static double bandwidth_of(const MigMonitor *monitor) {
  double bandwidth = (double)monitor->last.bandwidth_bytes_per_s;
  uint64_t limit = mig_monitor_limit_bytes_per_s(monitor);
  return limit > 0 && bandwidth > (double)limit ? (double)limit : bandwidth;
}

static MigStanding standing_of(const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  uint64_t deadline_ms = mig_monitor_deadline_ms(monitor);
  return (MigStanding){
      .memory_bytes = (double)last->memory_total_bytes,
      .remaining_bytes = (double)last->memory_remaining_bytes,
      .pass_bytes = (double)monitor->pass_bytes,
      .pass_s = (double)since(last->now_ms, monitor->pass_start_ms) / 1000.0,
      .first_pass = last->iteration <= 1,
      .bandwidth_bytes_per_s = bandwidth_of(monitor),
      .elapsed_s = (double)since(last->now_ms, monitor->start_ms) / 1000.0,
      .deadline_s = deadline_ms == UINT64_MAX ? 0 : (double)since(deadline_ms, monitor->start_ms) / 1000.0,
      .throttle_pct = (unsigned)last->throttle_pct,
      .last_throttle = throttle_is_last(monitor),
      .high_passes = monitor->throttle_counts,
      .counted_s = (double)since(monitor->pass_start_ms, monitor->throttle_counted_ms) / 1000.0,
      .cpu_share = monitor->cpu_share,
      .switch_s = (double)monitor->switch_ms / 1000.0,
  };
}

static bool flows(const MigMonitor *monitor) {
  return since(monitor->observed_ms, monitor->last_flow_ms) < LINK_QUIET_MS;
}

/* Data has flowed as before up to the last reading: a failing link shows there first. */
static bool is_link_healthy(const MigMonitor *monitor) {
  return flows(monitor) && monitor->recent_bytes_per_s >= HEALTHY_SHARE * bandwidth_of(monitor);
}

static void follow(MigMonitor *monitor, MigWay way) {
  monitor->way = way;
  monitor->way_since_ms = monitor->last.now_ms;
  monitor->way_iteration = monitor->last.iteration;
}

static uint64_t limit_ms_of(const MigWayForecast *way, uint64_t goal_ms) {
  uint64_t ms = (uint64_t)ceil(way->downtime_s * 1000.0);
  return ms < 1 ? 1 : ms > goal_ms ? goal_ms : ms;
}

static bool was_limit_refused(const MigMonitor *monitor) {
  return monitor->limit_refused && since(monitor->last.now_ms, monitor->limit_refused_ms) < LIMIT_RETRY_MS;
}

static void ask_for_limit(MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, MigAction *ret_action) {
  monitor->prior_downtime_ms = monitor->downtime_ms;
  monitor->prior_most_downtime_ms = monitor->most_downtime_ms;
  monitor->downtime_ms = limit_ms;
  monitor->most_downtime_ms = 0;
  monitor->limit_iteration = monitor->last.iteration;
  monitor->limit_asked_ms = monitor->last.now_ms;
  monitor->switching_iteration = 0;
  ret_action->kind = kind;
  ret_action->downtime_ms = limit_ms;
}

static bool set_limit(MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, MigAction *ret_action) {
  double now_ms = (double)monitor->downtime_ms;
  if (limit_ms == monitor->downtime_ms ||
      (fabs((double)limit_ms - now_ms) <= LIMIT_SLACK * now_ms && !throttle_is_imminent(monitor)))
    return false;
  if (kind == MIG_ACTION_SET_DOWNTIME && was_limit_refused(monitor))
    return false;
  message_way(monitor, kind, limit_ms, ret_action->message, sizeof(ret_action->message));
  ask_for_limit(monitor, kind, limit_ms, ret_action);
  return true;
}

/* The limit to finish by pre-copy. It only rises: a lower one would at best save what drowns in the switchover, and
 * at worst chase the guest for ever. It is doubled when the expected end is overdue. */
static uint64_t pre_copy_limit_ms(const MigMonitor *monitor) {
  const MigWayForecast *way = &monitor->forecast.ways[MIG_WAY_PRE_COPY];
  uint64_t goal_ms = mig_downtime_limit_ms(mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS));
  uint64_t limit_ms = limit_ms_of(way, goal_ms), now_ms = monitor->downtime_ms;
  if (since(monitor->last.iteration, monitor->limit_iteration) > OVERDUE_PASSES && 2 * now_ms > limit_ms)
    limit_ms = 2 * now_ms < goal_ms ? 2 * now_ms : goal_ms;
  return limit_ms > now_ms ? limit_ms : now_ms;
}

static bool take_pre_copy(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  if (monitor->way == MIG_WAY_PAUSE)
    return false; /* its limit does no harm to a guest that needs less */
  if (monitor->way != MIG_WAY_PRE_COPY)
    follow(monitor, MIG_WAY_PRE_COPY);
  if (monitor->last.memory_remaining_bytes == 0)
    return false; /* it is switching over */
  /* Nothing new is known in the middle of a pass; and an end many passes away is too uncertain. */
  return pass_began && monitor->forecast.ways[MIG_WAY_PRE_COPY].passes <= NEAR_PASSES &&
         set_limit(monitor, MIG_ACTION_SET_DOWNTIME, pre_copy_limit_ms(monitor), ret_action);
}

static bool works_in_bursts(const MigGuestLoad *load) {
  return load->seen && load->least_share + CHOOSE_LOAD_NOISE < CHOOSE_CALM_SHARE * load->most_share;
}

/* The guest changed its behaviour not long ago, and may again. */
static bool may_change(const MigMonitor *monitor) {
  uint64_t now_ms = monitor->last.now_ms;
  return (monitor->curve.changes > 0 && since(now_ms, monitor->changed_ms) < CHANGING_PATIENCE_MS) ||
         (works_in_bursts(&monitor->load) && since(now_ms, monitor->load.calm_ms) < CHANGING_PATIENCE_MS);
}

/* However little: passes that shrink may get small enough in time. */
static bool gains(const MigMonitor *monitor) {
  return (double)monitor->pass_bytes < (1 - GAIN) * (double)monitor->prior_pass_bytes;
}

/* It dirties about as much as the link carries: an error of a few percent decides whether it converges. */
static bool is_near_link(const MigMonitor *monitor) {
  return mig_dirty_curve_lower(&monitor->curve, 1.0) < NEAR_LINK * bandwidth_of(monitor);
}

/* A guest that works in bursts may soon be calm, and one near the link's bandwidth may converge against the forecast:
 * neither needs a pause then. Wait for that as long as the pause is worth, and never until the deadline is near. */
static bool may_do_without(MigMonitor *monitor, const MigWayForecast *pause) {
  uint64_t now_ms = monitor->last.now_ms, deadline_ms = mig_monitor_deadline_ms(monitor);
  bool may_converge = is_near_link(monitor) && (monitor->passes_seen < CONFIRM_PASSES || gains(monitor));
  if (!may_change(monitor) && !may_converge)
    return false;
  if (monitor->pause_wanted_ms == 0)
    monitor->pause_wanted_ms = now_ms;
  if ((double)since(now_ms, monitor->pause_wanted_ms) >= MIG_PAUSE_WEIGHT * pause->pause_s * 1000.0)
    return false;
  return deadline_ms == UINT64_MAX ||
         pause->total_s * 1000.0 <= DEADLINE_SHARE * (double)since(deadline_ms, monitor->start_ms);
}

/* QEMU throttles a guest that twice dirties more than half of what was sent. */
static bool should_have_throttled(const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  return last->throttle_pct == 0 && last->iteration >= THROTTLE_BY_PASS &&
         since(last->iteration, monitor->way_iteration) >= THROTTLE_PASSES &&
         since(last->now_ms, monitor->way_since_ms) >= THROTTLE_PASSES_MS;
}

/* QEMU throttles by itself. A throttled guest gains most if it ends soon. One that is not throttled yet may not need
 * it, and must not be stopped for longer than any other guest. If QEMU should have throttled and did not, the way
 * counts as refused. */
static bool take_auto_converge(MigMonitor *monitor, MigAction *ret_action) {
  uint64_t goal_ms = mig_downtime_limit_ms(mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS));
  if (monitor->way != MIG_WAY_AUTO_CONVERGE)
    follow(monitor, MIG_WAY_AUTO_CONVERGE);
  if (should_have_throttled(monitor)) {
    monitor->open.refused[MIG_WAY_AUTO_CONVERGE] = true;
    follow(monitor, MIG_WAY_PRE_COPY);
    return choose_way(monitor, true, ret_action);
  }
  return monitor->last.throttle_pct > 0 && goal_ms > monitor->downtime_ms &&
         set_limit(monitor, MIG_ACTION_SET_DOWNTIME, goal_ms, ret_action);
}

static bool take_pause(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  uint64_t goal_ms = mig_downtime_limit_ms(mig_policy_get(&monitor->policy, MIG_POLICY_MAX_PAUSE_MS));
  const MigWayForecast *way = &monitor->forecast.ways[MIG_WAY_PAUSE];
  uint64_t limit_ms = limit_ms_of(way, goal_ms);
  bool now = throttle_is_imminent(monitor);
  if ((!pass_began && !now) || (monitor->way == MIG_WAY_PAUSE && limit_ms <= monitor->downtime_ms))
    return false;
  if (monitor->way != MIG_WAY_PAUSE && !now && may_do_without(monitor, way))
    return false;
  if (!set_limit(monitor, MIG_ACTION_PAUSE, limit_ms, ret_action))
    return false;
  follow(monitor, MIG_WAY_PAUSE);
  return true;
}

static bool take_post_copy(MigMonitor *monitor, MigAction *ret_action) {
  if (monitor->way == MIG_WAY_POST_COPY) {
    if (since(monitor->last.now_ms, monitor->way_since_ms) >= POST_COPY_RUNG_MS)
      mig_monitor_note_refused(monitor, MIG_ACTION_START_POST_COPY);
    return false;
  }
  if (!is_link_healthy(monitor))
    return false;
  message_way(monitor, MIG_ACTION_START_POST_COPY, 0, ret_action->message, sizeof(ret_action->message));
  ret_action->kind = MIG_ACTION_START_POST_COPY;
  follow(monitor, MIG_WAY_POST_COPY);
  return true;
}

/* Auto-converge is enabled, and QEMU may yet throttle, or throttle further. */
static bool throttle_may_help(const MigMonitor *monitor) {
  if (!monitor->open.auto_converge || throttle_is_last(monitor))
    return false;
  if (monitor->last.throttle_pct == 0)
    return monitor->last.iteration < THROTTLE_BY_PASS;
  return throttle_next_pct(monitor) > monitor->last.throttle_pct;
}

/* So far above the goal that a few percent per pass cannot matter. */
static bool is_far(const MigMonitor *monitor) {
  double goal_s = (double)mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  return monitor->forecast.floor_s > FAR * goal_s;
}

/* Near its goal, a guest gets some more passes to gain something worthwhile. */
static bool is_stale(const MigMonitor *monitor) {
  return !gains(monitor) && (is_far(monitor) || monitor->stale_passes >= NEAR_STALE_PASSES);
}

static bool is_hopeless(const MigMonitor *monitor) {
  return monitor->passes_seen >= CONFIRM_PASSES && is_stale(monitor) && !throttle_may_help(monitor) &&
         flows(monitor) && !may_change(monitor);
}

static bool give_up(MigMonitor *monitor, MigAction *ret_action) {
  monitor->abort_asked = true;
  ret_action->kind = MIG_ACTION_ABORT;
  ret_action->cause = MIG_CAUSE_NOT_CONVERGING;
  message_way(monitor, MIG_ACTION_ABORT, 0, ret_action->message, sizeof(ret_action->message));
  return true;
}

static bool time_to_look(const MigMonitor *monitor, bool pass_began) {
  const MigSample *last = &monitor->last;
  if (monitor->flow_begin_ms == 0 || last->disk_remaining_bytes > 0)
    return false;
  if (since(last->now_ms, monitor->flow_begin_ms) < CHOOSE_SETTLE_MS)
    return false;
  return pass_began || throttle_is_imminent(monitor) ||
         since(last->now_ms, monitor->looked_ms) >= LOOK_EVERY_MS;
}

/* A tightened goal applies at once, whatever else is known. A guest that is to be paused may be stopped for as long
 * as a pause may take. A refused limit may be in force all the same, since an error is not always an answer. */
static bool keep_goal(MigMonitor *monitor, MigAction *ret_action) {
  uint64_t most_ms = mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS);
  uint64_t pause_ms = mig_policy_get(&monitor->policy, MIG_POLICY_MAX_PAUSE_MS);
  if (monitor->way == MIG_WAY_PAUSE && pause_ms > most_ms)
    most_ms = pause_ms;
  uint64_t goal_ms = mig_downtime_limit_ms(most_ms);
  uint64_t in_force_ms =
      monitor->downtime_ms > monitor->most_downtime_ms ? monitor->downtime_ms : monitor->most_downtime_ms;
  if (in_force_ms <= goal_ms || was_limit_refused(monitor))
    return false;
  uint64_t limit_ms = monitor->downtime_ms < goal_ms ? monitor->downtime_ms : goal_ms;
  message_goal(in_force_ms, limit_ms, ret_action->message, sizeof(ret_action->message));
  ask_for_limit(monitor, MIG_ACTION_SET_DOWNTIME, limit_ms, ret_action);
  return true;
}

/* What remains fits the limit, since QEMU's last look or since the limit was requested: QEMU is about to stop the
 * guest, or has. If more passes start, it has not. */
static bool may_be_switching(MigMonitor *monitor) {
  uint64_t room_ms = monitor->downtime_ms + SWITCHING_MS, now_ms = monitor->last.now_ms;
  bool fits = (double)monitor->last.memory_remaining_bytes * 1000.0 <=
              (double)monitor->downtime_ms * bandwidth_of(monitor);
  if (!fits || (since(now_ms, monitor->pass_start_ms) >= room_ms &&
                since(now_ms, monitor->limit_asked_ms) >= room_ms)) {
    monitor->switching_iteration = 0;
    return false;
  }
  if (monitor->switching_iteration == 0)
    monitor->switching_iteration = monitor->last.iteration;
  return monitor->last.iteration <= monitor->switching_iteration + 1;
}

/* The guest is throttled by more than is permitted: QEMU took an unexpected step, or a goal was tightened. The only
 * way to lower a throttle is to end pre-copy. */
static bool end_throttle(MigMonitor *monitor, bool switching, MigAction *ret_action) {
  const MigSample *last = &monitor->last;
  bool post_copy = mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_POST_COPY) && monitor->open.post_copy &&
                   !monitor->open.refused[MIG_WAY_POST_COPY];
  if (monitor->over_cap_ms == 0)
    monitor->over_cap_ms = last->now_ms;
  if ((switching && since(last->now_ms, monitor->over_cap_ms) < monitor->downtime_ms + SWITCHING_MS) ||
      (monitor->way == MIG_WAY_POST_COPY && since(last->now_ms, monitor->way_since_ms) < SWITCHING_MS))
    return true;
  if (post_copy && monitor->way != MIG_WAY_POST_COPY && is_link_healthy(monitor)) {
    ret_action->kind = MIG_ACTION_START_POST_COPY;
    follow(monitor, MIG_WAY_POST_COPY);
  } else {
    monitor->abort_asked = true;
    ret_action->kind = MIG_ACTION_ABORT;
    ret_action->cause = MIG_CAUSE_NOT_CONVERGING;
  }
  message_over_cap(monitor, ret_action->kind, throttle_cap_pct(monitor), ret_action->message,
                   sizeof(ret_action->message));
  return true;
}

bool choose_way(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  bool switching = may_be_switching(monitor);
  if (throttle_is_over(monitor) && !monitor->stopped)
    return end_throttle(monitor, switching, ret_action);
  monitor->over_cap_ms = 0;
  if (keep_goal(monitor, ret_action))
    return true;
  if (!time_to_look(monitor, pass_began) || (throttle_is_imminent(monitor) && switching))
    return false;
  MigStanding standing = standing_of(monitor);
  monitor->looked_ms = monitor->last.now_ms;
  mig_forecast(&monitor->curve, &standing, &monitor->policy, &monitor->open, &monitor->forecast);
  monitor->have_forecast = monitor->forecast.ways[MIG_WAY_PRE_COPY].bar != MIG_WAY_UNKNOWN;
  if (!monitor->have_forecast)
    return false;

  switch (monitor->forecast.best) {
  case MIG_WAY_PRE_COPY:
    return take_pre_copy(monitor, pass_began, ret_action);
  case MIG_WAY_AUTO_CONVERGE:
    return take_auto_converge(monitor, ret_action);
  case MIG_WAY_PAUSE:
    return take_pause(monitor, pass_began, ret_action);
  case MIG_WAY_POST_COPY:
    return take_post_copy(monitor, ret_action);
  case MIG_WAY_COUNT:
    break;
  }
  /* At the last permitted throttle there is no second pass: QEMU would throttle further. */
  return (throttle_is_imminent(monitor) || (pass_began && is_hopeless(monitor))) &&
         give_up(monitor, ret_action);
}

void mig_monitor_note_taken(MigMonitor *monitor, MigActionKind kind) {
  monitor->stopped |= kind == MIG_ACTION_PAUSE;
  if (kind == MIG_ACTION_PAUSE)
    follow(monitor, MIG_WAY_PAUSE);
  else if (kind == MIG_ACTION_START_POST_COPY)
    follow(monitor, MIG_WAY_POST_COPY);
}

void mig_monitor_note_refused(MigMonitor *monitor, MigActionKind kind) {
  switch (kind) {
  case MIG_ACTION_START_POST_COPY:
    monitor->open.refused[MIG_WAY_POST_COPY] = true;
    break;
  case MIG_ACTION_PAUSE:
    monitor->open.refused[MIG_WAY_PAUSE] = true;
    monitor->stopped = false;
    break;
  case MIG_ACTION_SET_DOWNTIME:
    monitor->most_downtime_ms = monitor->downtime_ms > monitor->prior_most_downtime_ms
                                    ? monitor->downtime_ms
                                    : monitor->prior_most_downtime_ms;
    monitor->downtime_ms = monitor->prior_downtime_ms;
    monitor->limit_refused = true;
    monitor->limit_refused_ms = monitor->last.now_ms;
    return;
  case MIG_ACTION_NONE:
  case MIG_ACTION_ABORT:
  case MIG_ACTION_COUNT:
    return;
  }
  follow(monitor, MIG_WAY_PRE_COPY);
  monitor->looked_ms = 0;
}

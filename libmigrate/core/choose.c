/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's choice of a way. */
#include "libmigrate/core/choose.h"

#include "libmigrate/core/forecast-private.h"
#include "libmigrate/core/message.h"
#include "libmigrate/core/patience.h"
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
 *   post_copy      only where pre-copy is not open, while data is moving, and not in the first pass unless it would be late then
 *                  or the guest is known to be hopeless
 *   none           when two passes have confirmed it, QEMU may stop the guest at any pass that fits the goal; if none comes,
 *                  the migration is aborted with NOT_CONVERGING
 *
 * max_throttle_pct rules out whatever would outlast QEMU's next step, if that step is above it (throttle.c).
 *
 * Three rates are kept apart. What is on the wire, which is reported and limited. How fast the stream goes through memory now,
 * pages of zeroes and all, which says when the first pass ends. And how fast it goes through what the guest has written
 * to, by which everything after that is reckoned.
 *
 * A guest that was seen to change may change again: patience.c. A change shows in the curve. Since the curve gets only one
 * point per pass, and passes are long, it also shows in how busy the busiest vCPU is: a guest that works in bursts has calm
 * seconds, in which it dirties little. */

#define LOOK_EVERY_MS 1000
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

double choose_bandwidth(const MigMonitor *monitor) {
  double known = (double)monitor->link_bytes_per_s, limit = (double)mig_monitor_limit_bytes_per_s(monitor);
  double bandwidth = monitor->pace.written.bytes_per_s;
  if (!monitor->pace.written.have_rate) {
    bandwidth = monitor->pace.all.have_rate ? monitor->pace.all.bytes_per_s
                                            : (double)monitor->last.bandwidth_bytes_per_s;
    bandwidth = known > 0 && bandwidth > known ? known : bandwidth;
  }
  /* Not above a limit that was set since. */
  return limit > 0 && bandwidth > limit ? limit : bandwidth;
}

uint64_t choose_dirtied_in_pass(const MigMonitor *monitor) {
  double bandwidth = choose_bandwidth(monitor);
  double pass_s = bandwidth > 0 ? (double)monitor->pass_bytes / bandwidth : 0;
  double bytes = mig_dirty_curve_lower(&monitor->curve, pass_s);
  return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Of the current pass: the first one goes on as it goes now. */
static double rest_s_of(const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  double all = monitor->pace.all.bytes_per_s, bandwidth = choose_bandwidth(monitor);
  double rate = last->iteration <= 1 && all > bandwidth ? all : bandwidth;
  return rate > 0 ? (double)last->memory_remaining_bytes / rate : 0;
}

static MigStanding standing_of(const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  uint64_t deadline_ms = mig_monitor_deadline_ms(monitor);
  double bandwidth = choose_bandwidth(monitor), rest_s = rest_s_of(monitor);
  return (MigStanding){
      .memory_bytes = (double)last->memory_total_bytes,
      .remaining_bytes = (double)last->memory_remaining_bytes,
      .pass_bytes = (double)monitor->pass_bytes,
      .pass_wire_bytes =
          (double)since(last->memory_processed_bytes, monitor->pass_processed) + rest_s * bandwidth,
      .rest_s = rest_s,
      .disk_s = bandwidth > 0 ? (double)monitor->disk_owed_bytes / bandwidth : 0,
      .sync_s = forecast_sync_s((double)last->memory_total_bytes),
      .pass_s = (double)since(last->now_ms, monitor->pass_start_ms) / 1000.0,
      .first_pass = last->iteration <= 1,
      .bandwidth_bytes_per_s = bandwidth,
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
  return flows(monitor) && monitor->recent_bytes_per_s >= HEALTHY_SHARE * choose_bandwidth(monitor);
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

/* What a goal leaves for memory. */
uint64_t choose_goal_limit_ms(const MigMonitor *monitor, MigPolicyKey key) {
  MigStanding standing = standing_of(monitor);
  double limit_s = forecast_limit_s(&monitor->policy, key, &standing);
  return limit_s > 0.001 ? (uint64_t)(limit_s * 1000.0 + 0.5) : 1;
}

static bool is_overdue(const MigMonitor *monitor) {
  return since(monitor->last.iteration, monitor->limit_iteration) > OVERDUE_PASSES;
}

/* The limit to finish by pre-copy. It only rises: a lower one would at best save what drowns in the switchover, and
 * at worst chase the guest for ever. It is doubled when the expected end is overdue. */
static uint64_t pre_copy_limit_ms(const MigMonitor *monitor) {
  const MigWayForecast *way = &monitor->forecast.ways[MIG_WAY_PRE_COPY];
  uint64_t goal_ms = choose_goal_limit_ms(monitor, MIG_POLICY_MAX_DOWNTIME_MS);
  uint64_t limit_ms = limit_ms_of(way, goal_ms), now_ms = monitor->downtime_ms;
  if (is_overdue(monitor) && 2 * now_ms > limit_ms)
    limit_ms = 2 * now_ms < goal_ms ? 2 * now_ms : goal_ms;
  return limit_ms > now_ms ? limit_ms : now_ms;
}

/* Waiting for a shorter pause gains nothing: QEMU may stop the guest as soon as it fits the goal. */
static bool take_goal(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  uint64_t goal_ms = choose_goal_limit_ms(monitor, MIG_POLICY_MAX_DOWNTIME_MS);
  if (!pass_began || monitor->way != MIG_WAY_PRE_COPY || goal_ms <= monitor->downtime_ms ||
      was_limit_refused(monitor))
    return false;
  message_waits(monitor, goal_ms, ret_action->message, sizeof(ret_action->message));
  ask_for_limit(monitor, MIG_ACTION_SET_DOWNTIME, goal_ms, ret_action);
  return true;
}

static bool take_pre_copy(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  /* The limit of a pause does no harm to a guest that needs less. */
  if (monitor->way == MIG_WAY_PAUSE &&
      monitor->downtime_ms >= choose_goal_limit_ms(monitor, MIG_POLICY_MAX_DOWNTIME_MS))
    return false;
  if (monitor->way != MIG_WAY_PRE_COPY)
    follow(monitor, MIG_WAY_PRE_COPY);
  if (monitor->last.memory_remaining_bytes == 0)
    return false; /* it is switching over */
  if (patience_deadline_is_near(monitor))
    return take_goal(monitor, pass_began, ret_action);
  /* Nothing new is known in the middle of a pass; and an end many passes away is too uncertain, unless passes that should
   * have become shorter did not. */
  if (monitor->forecast.ways[MIG_WAY_PRE_COPY].passes > NEAR_PASSES)
    return is_overdue(monitor) && patience_is_stuck(monitor) && take_goal(monitor, pass_began, ret_action);
  return pass_began && set_limit(monitor, MIG_ACTION_SET_DOWNTIME, pre_copy_limit_ms(monitor), ret_action);
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
  uint64_t goal_ms = choose_goal_limit_ms(monitor, MIG_POLICY_MAX_DOWNTIME_MS);
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
  uint64_t goal_ms = choose_goal_limit_ms(monitor, MIG_POLICY_MAX_PAUSE_MS);
  const MigWayForecast *way = &monitor->forecast.ways[MIG_WAY_PAUSE];
  uint64_t limit_ms = limit_ms_of(way, goal_ms);
  bool now = throttle_is_imminent(monitor);
  if ((!pass_began && !now) || (monitor->way == MIG_WAY_PAUSE && limit_ms <= monitor->downtime_ms))
    return false;
  if (monitor->way != MIG_WAY_PAUSE && !now && patience_before_pause(monitor, way))
    return false;
  if (!set_limit(monitor, MIG_ACTION_PAUSE, limit_ms, ret_action))
    return false;
  follow(monitor, MIG_WAY_PAUSE);
  return true;
}

static bool take_post_copy(MigMonitor *monitor, bool pass_began, MigAction *ret_action) {
  if (monitor->way == MIG_WAY_POST_COPY) {
    if (since(monitor->last.now_ms, monitor->way_since_ms) >= POST_COPY_RUNG_MS)
      mig_monitor_note_refused(monitor, MIG_ACTION_START_POST_COPY);
    return false;
  }
  if (!is_link_healthy(monitor))
    return false;
  if (patience_before_post_copy(monitor))
    return patience_is_stuck(monitor) && take_goal(monitor, pass_began, ret_action);
  message_way(monitor, MIG_ACTION_START_POST_COPY, 0, ret_action->message, sizeof(ret_action->message));
  ret_action->kind = MIG_ACTION_START_POST_COPY;
  follow(monitor, MIG_WAY_POST_COPY);
  return true;
}

/* Auto-converge is enabled, and QEMU may yet throttle, or throttle further. */
static bool throttle_may_help(const MigMonitor *monitor) {
  if (!monitor->open.auto_converge || monitor->open.throttle_useless || throttle_is_last(monitor))
    return false;
  if (monitor->last.throttle_pct == 0)
    return monitor->last.iteration < THROTTLE_BY_PASS;
  return throttle_next_pct(monitor) > monitor->last.throttle_pct;
}

static bool is_hopeless(const MigMonitor *monitor) {
  bool worth = monitor->last.now_ms < monitor->worth_until_ms && !patience_deadline_is_near(monitor);
  return patience_is_stuck(monitor) && !worth && !patience_is_at_goal(monitor) &&
         !throttle_may_help(monitor) && flows(monitor) && !patience_may_change(monitor);
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
  if (monitor->flow_begin_ms == 0)
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
              (double)monitor->downtime_ms * choose_bandwidth(monitor);
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
    return take_post_copy(monitor, pass_began, ret_action);
  case MIG_WAY_COUNT:
    break;
  }
  /* At the last permitted throttle there is no second pass: QEMU would throttle further. */
  if (throttle_is_imminent(monitor) || (pass_began && is_hopeless(monitor)))
    return give_up(monitor, ret_action);
  return patience_is_stuck(monitor) && take_goal(monitor, pass_began, ret_action);
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

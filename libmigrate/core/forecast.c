/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a migration will go. */
#include "libmigrate/core/forecast-private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Theory of operation
 *
 * In pass k, pre-copy sends the R(k) bytes that the guest dirtied during pass k−1. At bandwidth B the pass takes
 * R(k)/B seconds, so
 *
 *   R(k+1) = f(R(k) / B)
 *
 * where f is the dirtying curve. The whole forecast is a walk along that map: the migration can finish at the end of
 * any pass; it has then taken the sum of the passes so far, and stops the guest for R(k)/B. The map stops shrinking
 * at the fixed point F = f(F/B): F/B is the shortest pause that pre-copy can reach. (The model is that of Clark et
 * al., NSDI 2005, "writable working set", with f in place of a constant rate.)
 *
 * The ways:
 *   pre-copy       ends at the pass whose R/B fits max_downtime_ms; later, if that is nearly free (see choose_pass).
 *   auto-converge  the same walk with the guest throttled by p: f(τ) becomes f(τ (1−p)). QEMU starts to throttle at the
 *                  end of the second pass that dirtied more than half of what it sent. p is the smallest that shrinks
 *                  passes to TARGET_RATIO in time.
 *   pause          ends at the first pass whose R/B fits max_pause_ms.
 *   post-copy      sends once what remains and what was dirtied meanwhile, with the guest running at the target.
 *
 * Stop-and-copy has a fixed part for device state and the switchover, SWITCH_S; post-copy's is longer,
 * POST_COPY_SWITCH_S. */

/* Measured with an idle guest of 256 MiB, QEMU 7.2 under TCG: 43 to 65 ms of silence over 20 migrations, 68 to 103 on
 * a busy machine. */
#define SWITCH_S 0.065
/* What a limit must leave for it. A longer silence overlaps with the switchover: a limit of 255 ms made 276 to 297. */
#define LIMIT_MARGIN_S 0.045
/* The same guest in post-copy: 86 to 122 ms over ten migrations, since the first pages it needs arrive one by one. */
#define POST_COPY_SWITCH_S 0.1
/* Extra time, as a share of the total, that a shorter pause may cost without being asked for: a few seconds at most,
 * since the walk ends at the floor. With less, a guest near the link's bandwidth was stopped for twice as long as by
 * peers that only wait. */
#define NEARLY_FREE 0.10
/* Reading the dirty log, between two passes and at the switchover, per GiB of memory. For terabytes it takes longer than
 * a short pass, and QEMU, which measures the link meanwhile, takes it for slow and does not switch over. */
#define SYNC_S_PER_GIB 20e-6
/* A shorter pause is not worth a pass: it drowns in the switchover. */
#define WORTHLESS_S 0.012
/* A pass that shrinks by less than this has reached the floor. */
#define FLOOR_RATIO 0.98
/* QEMU's throttle-trigger-threshold; a guest that has not met it within this many passes will not. */
#define HIGH_RATIO      0.5
#define HIGH_COUNTS     2
#define COUNT_EVERY_S   1.0
#define HIGH_PASSES_MAX 6
/* The amount that is dirty in the middle of a pass is known within this. */
#define NOW_MARGIN 0.1
/* What auto-converge aims at: each pass less than half of the previous one. */
#define TARGET_RATIO 0.45
/* Share of its work that a guest loses in post-copy while pages are missing, if it writes at least as fast as the
 * link carries; for a slower one the share falls with the square of its rate. Measured at 200 MiB/s on a link of 46:
 * 0.29 for a guest that writes its working set in turn. One that writes at random loses nearly all. */
#define POST_COPY_LOSS 0.6
/* The price of post-copy's risk, a guest on two hosts: in seconds per second of it, and once. */
#define POST_COPY_RISK      0.3
#define POST_COPY_RISK_ONCE 1.0
#define PASSES_MAX          200

/* --- the walk along the map --- */

/* The ends of future passes: when, and what the guest has dirtied by then. */
typedef struct Walk {
  const MigDirtyCurve *curve;
  double bandwidth;
  double speed;  /* of the guest: 1 − throttle */
  double memory; /* upper bound */
  double sync_s; /* between two passes */
  double at_s;   /* end of the pass, from now */
  double bytes;  /* dirty then */
  double sent;   /* from now until then */
  unsigned passes;
} Walk;

static double dirtied(const Walk *walk, double s) {
  double bytes = mig_dirty_curve_lower(walk->curve, s * walk->speed);
  return bytes < walk->memory ? bytes : walk->memory;
}

double forecast_sync_s(double memory_bytes) {
  return SYNC_S_PER_GIB * memory_bytes / (double)MIG_GIB_BYTES;
}

static double rest_s(const MigStanding *standing) {
  return standing->rest_s > 0 ? standing->rest_s
                              : standing->remaining_bytes / standing->bandwidth_bytes_per_s;
}

static double pass_wire(const MigStanding *standing) {
  return standing->pass_wire_bytes > 0 ? standing->pass_wire_bytes : standing->pass_bytes;
}

/* To the end of the current pass. */
static Walk walk_start(const MigDirtyCurve *curve, const MigStanding *standing, double speed) {
  Walk walk = {
      .curve = curve,
      .bandwidth = standing->bandwidth_bytes_per_s,
      .speed = speed,
      .memory = standing->memory_bytes,
      .sync_s = standing->sync_s,
  };
  walk.at_s = rest_s(standing);
  walk.sent = standing->remaining_bytes;
  walk.bytes = dirtied(&walk, standing->pass_s + walk.at_s);
  walk.passes = 1;
  return walk;
}

static void walk_pass(Walk *walk) {
  double s = walk->bytes / walk->bandwidth + walk->sync_s;
  walk->sent += walk->bytes;
  walk->at_s += s;
  walk->bytes = dirtied(walk, s);
  walk->passes++;
}

static double pause_of(const Walk *walk) {
  return walk->bytes / walk->bandwidth;
}

static bool at_floor(const Walk *walk) {
  Walk next = *walk;
  walk_pass(&next);
  return next.bytes >= FLOOR_RATIO * walk->bytes;
}

/* Once more, QEMU reads the dirty log with the guest stopped. */
static double switch_s(const MigStanding *standing) {
  return (standing->switch_s > 0 ? standing->switch_s : SWITCH_S) + standing->sync_s;
}

static MigWayForecast end_at(const Walk *walk, const MigStanding *standing) {
  double silence_s = pause_of(walk) + standing->disk_s + switch_s(standing);
  return (MigWayForecast){
      .bar = MIG_WAY_OPEN,
      .total_s = standing->elapsed_s + walk->at_s + silence_s,
      .pause_s = silence_s,
      .lost_s = silence_s,
      .bytes = walk->sent + walk->bytes,
      .passes = walk->passes,
      .downtime_s = pause_of(walk),
  };
}

/* Walks to the end of the first pass at which the pause fits. False: none does, and it stops at the floor. */
static bool walk_until(Walk *walk, double limit_s) {
  while (walk->passes < PASSES_MAX && pause_of(walk) > limit_s) {
    if (at_floor(walk))
      return false;
    walk_pass(walk);
  }
  return pause_of(walk) <= limit_s;
}

static bool is_late(const MigWayForecast *way, const MigStanding *standing) {
  return standing->deadline_s > 0 && way->total_s > standing->deadline_s;
}

/* After the first end that fits, each further pass costs its own time and saves part of the pause, so its net cost is
 * what the guest dirties anew. Go on while that stays nearly free. */
static MigWayForecast choose_pass(const Walk *first, const MigStanding *standing) {
  MigWayForecast best = end_at(first, standing);
  double limit_s = best.total_s * (1 + NEARLY_FREE);
  double previous_s = pause_of(first);
  Walk walk = *first;
  while (walk.passes < PASSES_MAX && pause_of(&walk) > fmax(WORTHLESS_S, walk.sync_s) && !at_floor(&walk)) {
    walk_pass(&walk);
    MigWayForecast end = end_at(&walk, standing);
    if (end.total_s > limit_s || is_late(&end, standing))
      break;
    /* Between this end's pause and the previous one's, so that QEMU switches here and not earlier. */
    end.downtime_s = sqrt(fmax(end.downtime_s, 0.002) * previous_s);
    previous_s = pause_of(&walk);
    best = end;
  }
  best.downtime_s = fmax(best.downtime_s, WORTHLESS_S);
  return best;
}

/* --- the ways --- */

uint64_t mig_downtime_limit_ms(uint64_t goal_ms) {
  uint64_t margin_ms = (uint64_t)(LIMIT_MARGIN_S * 1000);
  return goal_ms > 2 * margin_ms ? goal_ms - margin_ms : (goal_ms + 1) / 2;
}

/* The part of a goal that is left for sending memory: it also has to do for what the disks' copy is behind, and for the
 * dirty log. */
double forecast_limit_s(const MigPolicy *policy, MigPolicyKey key, const MigStanding *standing) {
  return (double)mig_downtime_limit_ms(mig_policy_get(policy, key)) / 1000.0 - standing->disk_s -
         standing->sync_s;
}

static MigWayBar bar_for(const MigWayForecast *way, const MigStanding *standing, double limit_s) {
  if (way->downtime_s > limit_s)
    return MIG_WAY_PAUSE_TOO_LONG;
  return is_late(way, standing) ? MIG_WAY_TOO_LATE : MIG_WAY_OPEN;
}

static void set_error(MigWayForecast *way, const MigDirtyCurve *curve, const MigStanding *standing) {
  /* The gap between the bounds of f at the next pass, as time on the link; plus 5 % of what is still to be sent, for
   * the link itself. */
  double s = rest_s(standing) + standing->pass_s;
  double gap = mig_dirty_curve_upper(curve, s) - mig_dirty_curve_lower(curve, s);
  if (!isfinite(gap) || gap > standing->memory_bytes)
    gap = standing->memory_bytes;
  way->error_s = (gap + 0.05 * way->bytes) / standing->bandwidth_bytes_per_s;
}

static MigWayForecast forecast_pre_copy(const MigDirtyCurve *curve, const MigStanding *standing,
                                        const MigPolicy *policy, double *ret_floor_s) {
  double limit_s = forecast_limit_s(policy, MIG_POLICY_MAX_DOWNTIME_MS, standing);
  Walk walk = walk_start(curve, standing, 1.0);
  Walk floor = walk;
  walk_until(&floor, 0.001);
  *ret_floor_s = pause_of(&floor);
  if (!walk_until(&walk, limit_s)) {
    MigWayForecast never = end_at(&walk, standing);
    never.bar = *ret_floor_s <= limit_s + standing->disk_s + walk.sync_s ? MIG_WAY_PAUSE_TOO_LONG
                                                                         : MIG_WAY_NEVER_ENDS;
    return never;
  }
  /* A throttled guest gains most if it ends soon. */
  MigWayForecast way = standing->throttle_pct > 0 ? end_at(&walk, standing) : choose_pass(&walk, standing);
  if (standing->throttle_pct > 0)
    way.downtime_s = limit_s;
  way.bar = bar_for(&way, standing, fmax(limit_s, WORTHLESS_S));
  way.downtime_s += walk.sync_s;
  return way;
}

double forecast_speed(double cpu_share, unsigned throttle_pct) {
  double share = cpu_share > 0 && cpu_share < 1 ? cpu_share : 1.0;
  double left = (100.0 - throttle_pct) / 100.0 / share;
  return left < 1 ? left : 1;
}

/* QEMU throttles by letting each vCPU run for 10 ms and then stopping it for as long as the percentage requires. */
double forecast_stall_s(unsigned throttle_pct) {
  return throttle_pct < 100 ? 0.010 * throttle_pct / (100.0 - throttle_pct) : INFINITY;
}

unsigned mig_throttle_cap_pct(const MigPolicy *policy) {
  double goal_s = (double)mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  unsigned pct = (unsigned)mig_policy_get(policy, MIG_POLICY_MAX_THROTTLE_PCT);
  while (pct > 0 && forecast_stall_s(pct) > goal_s)
    pct--;
  return pct;
}

/* Includes the strongest permitted throttle. */
static unsigned next_throttle(unsigned pct, unsigned max_pct) {
  unsigned next = pct < 95 ? pct + 5 - pct % 5 : pct + 1;
  return pct < max_pct && next > max_pct ? max_pct : next;
}

/* QEMU throttles once two passes have dirtied more than half of what they sent. Earlier passes are not known. False:
 * it will not, in so many passes. */
static bool walk_to_throttle(Walk *walk, double sent, unsigned passes) {
  unsigned high = walk->bytes > HIGH_RATIO * sent;
  while (high < 2 && walk->passes < passes) {
    sent = walk->bytes;
    walk_pass(walk);
    high += walk->bytes > HIGH_RATIO * sent;
  }
  return high >= 2;
}

/* Will QEMU raise its throttle before this many more passes have ended, the current one included? It counts passes
 * that dirtied more than half of what they sent, at most once a second; `period_s` of that second passed before this
 * pass began. The last pass does not matter: the guest is stopped then. */
static bool steps_within(Walk walk, double sent, unsigned high, double period_s, unsigned passes) {
  double period_sent = 0, period_dirty = 0;
  for (; passes > 1; passes--) {
    period_s += sent / walk.bandwidth;
    period_sent += sent;
    period_dirty += walk.bytes;
    if (period_s > COUNT_EVERY_S) {
      high += period_dirty > HIGH_RATIO * period_sent;
      period_s = period_sent = period_dirty = 0;
    }
    if (high >= HIGH_COUNTS)
      return true;
    sent = walk.bytes;
    walk_pass(&walk);
  }
  return false;
}

/* The smallest throttle that shrinks passes well and meets the deadline, or else the strongest permitted one; and how
 * it goes. */
static MigWayForecast forecast_auto_converge(const MigDirtyCurve *curve, const MigStanding *standing,
                                             const MigPolicy *policy, const MigWayForecast *pre_copy) {
  double limit_s = forecast_limit_s(policy, MIG_POLICY_MAX_DOWNTIME_MS, standing);
  unsigned max_pct = mig_throttle_cap_pct(policy);
  MigWayForecast last = {.bar = MIG_WAY_NEVER_ENDS};
  Walk before = walk_start(curve, standing, 1.0);
  bool ends = pre_copy->bar == MIG_WAY_OPEN && pre_copy->passes < HIGH_PASSES_MAX;
  unsigned passes = ends ? pre_copy->passes : HIGH_PASSES_MAX;
  if (standing->throttle_pct == 0 && !walk_to_throttle(&before, pass_wire(standing), passes))
    return *pre_copy; /* QEMU would leave the guest alone, so it goes like pre-copy */
  unsigned first_pct = standing->throttle_pct > 0 ? standing->throttle_pct : LEAST_THROTTLE_PCT;
  for (unsigned pct = first_pct; pct <= max_pct; pct = next_throttle(pct, max_pct)) {
    Walk walk = before;
    walk.speed = forecast_speed(standing->cpu_share, pct) /
                 forecast_speed(standing->cpu_share, standing->throttle_pct);
    Walk next = walk;
    walk_pass(&next);
    if (!walk_until(&walk, limit_s))
      continue;
    last = end_at(&walk, standing);
    last.downtime_s = limit_s;
    last.throttle_pct = pct;
    last.pause_s = fmax(last.pause_s, forecast_stall_s(pct));
    last.lost_s += (last.total_s - standing->elapsed_s - before.at_s) * (1 - walk.speed);
    last.bar = bar_for(&last, standing, fmax(limit_s, WORTHLESS_S));
    if (last.bar == MIG_WAY_OPEN && pct == max_pct && max_pct < MOST_THROTTLE_PCT &&
        pct > standing->throttle_pct && steps_within(next, before.bytes, 0, 0, last.passes - before.passes))
      last.bar = MIG_WAY_CAPPED;
    if (next.bytes <= TARGET_RATIO * before.bytes && last.bar == MIG_WAY_OPEN)
      break;
  }
  return last;
}

/* QEMU may raise its throttle whenever it reads the dirty log, and it reads it whenever what remains fits the limit:
 * so the limit must fit all that is dirty now. */
static MigWayForecast forecast_pause_now(const MigDirtyCurve *curve, const MigStanding *standing,
                                         double limit_s) {
  Walk now = walk_start(curve, standing, 1.0);
  now.bytes = fmin(standing->remaining_bytes + dirtied(&now, standing->pass_s), now.memory);
  now.at_s = now.sent = 0;
  MigWayForecast way = end_at(&now, standing);
  way.downtime_s = way.downtime_s * (1 + NOW_MARGIN) + WORTHLESS_S;
  way.bar = bar_for(&way, standing, limit_s);
  /* The dirty memory sets the pause, whatever the limit: a larger limit costs nothing, and there is no second try. */
  way.downtime_s = fmax(way.downtime_s, fmin(2 * way.downtime_s + 0.1, limit_s));
  return way;
}

static MigWayForecast forecast_pause(const MigDirtyCurve *curve, const MigStanding *standing,
                                     const MigPolicy *policy) {
  double limit_s = forecast_limit_s(policy, MIG_POLICY_MAX_PAUSE_MS, standing);
  if (standing->last_throttle && standing->high_passes > 0)
    return forecast_pause_now(curve, standing, limit_s);
  Walk walk = walk_start(curve, standing, 1.0);
  bool fits = walk_until(&walk, limit_s);
  MigWayForecast way = end_at(&walk, standing);
  /* Leave room for a slightly larger pass if the goal permits. Not more: QEMU stops the guest as soon as it fits, so
   * the limit becomes the pause. */
  way.downtime_s = fmin(way.downtime_s * 1.04 + 0.005, fmax(limit_s, way.downtime_s));
  way.bar = fits ? bar_for(&way, standing, limit_s) : MIG_WAY_PAUSE_TOO_LONG;
  way.downtime_s += walk.sync_s;
  return way;
}

static MigWayForecast forecast_post_copy(const MigDirtyCurve *curve, const MigStanding *standing) {
  Walk now = walk_start(curve, standing, 1.0);
  /* The guest has dirtied again part of what this pass has sent. */
  double sent = standing->pass_bytes - standing->remaining_bytes;
  double again = dirtied(&now, standing->pass_s);
  if (standing->first_pass && standing->memory_bytes > 0)
    again *= sent / standing->memory_bytes;
  double bytes = fmin(standing->remaining_bytes + again, standing->memory_bytes);
  double s = rest_s(standing) + (bytes - standing->remaining_bytes) / standing->bandwidth_bytes_per_s;
  double pressure = dirtied(&now, 1.0) / standing->bandwidth_bytes_per_s;
  double loss = POST_COPY_LOSS * fmin(1.0, pressure * pressure);
  MigWayForecast way = {
      .total_s = standing->elapsed_s + s + switch_s(standing),
      .pause_s = fmax(POST_COPY_SWITCH_S, switch_s(standing)),
      .lost_s = switch_s(standing) + loss * s,
      .bytes = bytes,
  };
  way.bar = is_late(&way, standing) ? MIG_WAY_TOO_LATE : MIG_WAY_OPEN;
  return way;
}

double mig_way_cost(const MigWayForecast *way) {
  return way->total_s + MIG_PAUSE_WEIGHT * way->pause_s + way->lost_s;
}

static double cost_of(const MigForecast *forecast, MigWay way, const MigStanding *standing) {
  const MigWayForecast *w = &forecast->ways[way];
  double cost = mig_way_cost(w);
  if (way == MIG_WAY_POST_COPY)
    cost += POST_COPY_RISK_ONCE + POST_COPY_RISK * (w->total_s - standing->elapsed_s);
  return cost;
}

/* At the last permitted throttle, nothing may outlast QEMU's next step except post-copy, which ends the throttle. */
static void apply_cap(MigForecast *forecast, const MigDirtyCurve *curve, const MigStanding *standing) {
  Walk walk = walk_start(curve, standing, 1.0);
  for (int way = 0; standing->last_throttle && way < MIG_WAY_COUNT; way++) {
    MigWayForecast *w = &forecast->ways[way];
    if (way != MIG_WAY_POST_COPY && w->bar == MIG_WAY_OPEN &&
        steps_within(walk, pass_wire(standing), standing->high_passes, standing->counted_s, w->passes))
      w->bar = MIG_WAY_CAPPED;
  }
}

/* What the policy, the start or libvirt rules out stays closed, whatever the numbers say. */
static void apply_permissions(MigForecast *forecast, const MigPolicy *policy, const MigWaysOpen *open) {
  MigWayForecast *ways = forecast->ways;
  if (!mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE))
    ways[MIG_WAY_AUTO_CONVERGE].bar = MIG_WAY_NOT_PERMITTED;
  else if (!open->auto_converge)
    ways[MIG_WAY_AUTO_CONVERGE].bar = MIG_WAY_NOT_STARTED_FOR;
  else if (open->throttle_useless)
    ways[MIG_WAY_AUTO_CONVERGE].bar = MIG_WAY_USELESS;
  if (mig_policy_get(policy, MIG_POLICY_MAX_PAUSE_MS) == 0)
    ways[MIG_WAY_PAUSE].bar = MIG_WAY_NOT_PERMITTED;
  if (!mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY))
    ways[MIG_WAY_POST_COPY].bar = MIG_WAY_NOT_PERMITTED;
  else if (!open->post_copy)
    ways[MIG_WAY_POST_COPY].bar = MIG_WAY_NOT_STARTED_FOR;
  for (int way = 0; way < MIG_WAY_COUNT; way++)
    if (open->refused[way] && ways[way].bar != MIG_WAY_NOT_PERMITTED)
      ways[way].bar = MIG_WAY_REFUSED;
}

void mig_forecast(const MigDirtyCurve *curve, const MigStanding *standing, const MigPolicy *policy,
                  const MigWaysOpen *open, MigForecast *ret_forecast) {
  *ret_forecast = (MigForecast){.best = MIG_WAY_COUNT};
  if (!(standing->bandwidth_bytes_per_s > 0) || curve->n == 0) {
    for (int way = 0; way < MIG_WAY_COUNT; way++)
      ret_forecast->ways[way].bar = MIG_WAY_UNKNOWN;
    return;
  }
  ret_forecast->ways[MIG_WAY_PRE_COPY] = forecast_pre_copy(curve, standing, policy, &ret_forecast->floor_s);
  ret_forecast->ways[MIG_WAY_AUTO_CONVERGE] =
      forecast_auto_converge(curve, standing, policy, &ret_forecast->ways[MIG_WAY_PRE_COPY]);
  ret_forecast->ways[MIG_WAY_PAUSE] = forecast_pause(curve, standing, policy);
  ret_forecast->ways[MIG_WAY_POST_COPY] = forecast_post_copy(curve, standing);
  apply_cap(ret_forecast, curve, standing);
  apply_permissions(ret_forecast, policy, open);
  for (int way = 0; way < MIG_WAY_COUNT; way++) {
    set_error(&ret_forecast->ways[way], curve, standing);
    /* Post-copy is for a guest that cannot be moved otherwise: it is lost if the link is, and pre-copy risks nothing. */
    if (ret_forecast->ways[way].bar != MIG_WAY_OPEN ||
        (way == MIG_WAY_POST_COPY && ret_forecast->ways[MIG_WAY_PRE_COPY].bar == MIG_WAY_OPEN))
      continue;
    if (ret_forecast->best == MIG_WAY_COUNT ||
        cost_of(ret_forecast, (MigWay)way, standing) < cost_of(ret_forecast, ret_forecast->best, standing))
      ret_forecast->best = (MigWay)way;
  }
}

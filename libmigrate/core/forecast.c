/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a migration will go. */
#include "libmigrate/core/forecast.h"

#include "libmigrate/core/table.h"

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
/* From the libvirt call to the first byte. */
#define SETUP_S 0.3
/* Extra time, as a share of the total, that a shorter pause may cost without being asked for: a few seconds at most,
 * since the walk ends at the floor. With less, a guest near the link's bandwidth was stopped for twice as long as by
 * peers that only wait. */
#define NEARLY_FREE 0.10
/* A shorter pause is not worth a pass: it drowns in the switchover. */
#define WORTHLESS_S 0.012
/* A pass that shrinks by less than this has reached the floor. */
#define FLOOR_RATIO 0.98
/* QEMU's own first throttle, and its steps. */
#define LEAST_THROTTLE_PCT 20
#define OWN_INCREMENT_PCT  10
/* QEMU's throttle-trigger-threshold; a guest that has not met it within this many passes will not. */
#define HIGH_RATIO      0.5
#define HIGH_COUNTS     2
#define COUNT_EVERY_S   1.0
#define HIGH_PASSES_MAX 6
/* The amount that is dirty in the middle of a pass is known within this. */
#define NOW_MARGIN 0.1
/* QEMU's max-cpu-throttle. */
#define MOST_THROTTLE_PCT 99
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
/* For contradictions, see mig_dirty_curve_observe(). */
#define TOLERANCE   0.4
#define NOISE_BYTES (512.0 * 1024)

static const char *const way_names[] = {
    [MIG_WAY_PRE_COPY] = "pre_copy",
    [MIG_WAY_AUTO_CONVERGE] = "auto_converge",
    [MIG_WAY_PAUSE] = "pause",
    [MIG_WAY_POST_COPY] = "post_copy",
};
TABLE_COVERS(way_names, MIG_WAY_COUNT);

static const char *const bar_names[] = {
    [MIG_WAY_OPEN] = "open",
    [MIG_WAY_NOT_PERMITTED] = "not permitted",
    [MIG_WAY_NOT_STARTED_FOR] = "not enabled at the start",
    [MIG_WAY_REFUSED] = "tried without success",
    [MIG_WAY_NEVER_ENDS] = "would not converge",
    [MIG_WAY_PAUSE_TOO_LONG] = "pause too long",
    [MIG_WAY_TOO_LATE] = "would miss the deadline",
    [MIG_WAY_CAPPED] = "max_throttle_pct too low",
    [MIG_WAY_UNKNOWN] = "not known yet",
};
TABLE_COVERS(bar_names, MIG_WAY_BAR_COUNT);

const char *mig_way_name(MigWay way) {
  return table_name(way_names, MIG_WAY_COUNT, (int)way);
}

const char *mig_way_bar_name(MigWayBar bar) {
  return table_name(bar_names, MIG_WAY_BAR_COUNT, (int)bar);
}

/* --- the dirtying curve --- */

/* The first point at or beyond s; n: none. */
static unsigned find_point(const MigDirtyCurve *curve, double s) {
  unsigned i = 0;
  while (i < curve->n && curve->points[i].s < s)
    i++;
  return i;
}

static double chord(double s, MigDirtyPoint from, MigDirtyPoint to) {
  return to.s > from.s ? from.bytes + (to.bytes - from.bytes) * (s - from.s) / (to.s - from.s) : to.bytes;
}

double mig_dirty_curve_lower(const MigDirtyCurve *curve, double s) {
  const MigDirtyPoint origin = {0, 0};
  unsigned i = find_point(curve, s);
  if (curve->n == 0 || s <= 0)
    return 0;
  if (i == curve->n)
    return curve->points[i - 1].bytes;
  return chord(s, i > 0 ? curve->points[i - 1] : origin, curve->points[i]);
}

/* A concave curve lies below the extension of the chord that ends before s. It never falls, so it also lies below the
 * point after s. It lies below the backward extension of the chord after s, too; but noise in two points makes that
 * steep, and a steady guest would look like a changed one. */
double mig_dirty_curve_upper(const MigDirtyCurve *curve, double s) {
  const MigDirtyPoint origin = {0, 0};
  unsigned i = find_point(curve, s);
  double bound = INFINITY;
  if (curve->n == 0 || s <= 0)
    return 0;
  if (i > 0)
    bound = chord(s, i > 1 ? curve->points[i - 2] : origin, curve->points[i - 1]);
  if (i < curve->n && curve->points[i].bytes < bound)
    bound = curve->points[i].bytes;
  double lower = mig_dirty_curve_lower(curve, s);
  return bound > lower ? bound : lower;
}

static bool contradicts(const MigDirtyCurve *curve, double s, double bytes) {
  double lower = mig_dirty_curve_lower(curve, s), upper = mig_dirty_curve_upper(curve, s);
  return bytes + NOISE_BYTES < (1 - TOLERANCE) * lower || bytes > (1 + TOLERANCE) * upper + NOISE_BYTES;
}

/* Keep the points rising: the newest one corrects older points that it shows to be too high or too low. */
static void keep_rising(MigDirtyCurve *curve, MigDirtyPoint newest) {
  for (unsigned i = 0; i < curve->n; i++) {
    MigDirtyPoint *point = &curve->points[i];
    if ((point->s > newest.s && point->bytes < newest.bytes) ||
        (point->s < newest.s && point->bytes > newest.bytes))
      point->bytes = newest.bytes;
  }
}

static void remove_point(MigDirtyCurve *curve, unsigned i) {
  memmove(&curve->points[i], &curve->points[i + 1], (curve->n - i - 1) * sizeof(curve->points[0]));
  curve->n--;
}

/* The first point at nearly the same time; n: none. */
static unsigned find_near(const MigDirtyCurve *curve, double s) {
  unsigned i = 0;
  while (i < curve->n && fabs(curve->points[i].s - s) > 0.25 * s)
    i++;
  return i;
}

static void insert_point(MigDirtyCurve *curve, MigDirtyPoint point) {
  /* Points at nearly the same time are merged: the newer one weighs as much as all before it. The mean may then be
   * near the next point. */
  for (unsigned i; (i = find_near(curve, point.s)) < curve->n; remove_point(curve, i)) {
    point.s = (point.s + curve->points[i].s) / 2;
    point.bytes = (point.bytes + curve->points[i].bytes) / 2;
  }
  keep_rising(curve, point);
  if (curve->n == MIG_DIRTY_POINTS) /* the second longest tells least: its neighbours enclose it */
    remove_point(curve, MIG_DIRTY_POINTS - 2);
  unsigned at = find_point(curve, point.s);
  memmove(&curve->points[at + 1], &curve->points[at], (curve->n - at) * sizeof(curve->points[0]));
  curve->points[at] = point;
  curve->n++;
}

void mig_dirty_curve_restart(MigDirtyCurve *curve) {
  curve->n = 0;
  curve->observations = 0;
}

bool mig_dirty_curve_observe(MigDirtyCurve *curve, double s, double bytes) {
  bool same = true;
  if (!(s > 0) || !(bytes >= 0) || !isfinite(s) || !isfinite(bytes))
    return true;
  if (curve->n > 0 && contradicts(curve, s, bytes)) {
    mig_dirty_curve_restart(curve);
    curve->changes++;
    same = false;
  }
  insert_point(curve, (MigDirtyPoint){.s = s, .bytes = bytes});
  curve->observations++;
  return same;
}

/* --- the walk along the map --- */

/* The ends of future passes: when, and what the guest has dirtied by then. */
typedef struct Walk {
  const MigDirtyCurve *curve;
  double bandwidth;
  double speed;  /* of the guest: 1 − throttle */
  double memory; /* upper bound */
  double at_s;   /* end of the pass, from now */
  double bytes;  /* dirty then */
  double sent;   /* from now until then */
  unsigned passes;
} Walk;

static double dirtied(const Walk *walk, double s) {
  double bytes = mig_dirty_curve_lower(walk->curve, s * walk->speed);
  return bytes < walk->memory ? bytes : walk->memory;
}

/* To the end of the current pass. */
static Walk walk_start(const MigDirtyCurve *curve, const MigStanding *standing, double speed) {
  Walk walk = {
      .curve = curve,
      .bandwidth = standing->bandwidth_bytes_per_s,
      .speed = speed,
      .memory = standing->memory_bytes,
  };
  walk.at_s = standing->remaining_bytes / walk.bandwidth;
  walk.sent = standing->remaining_bytes;
  walk.bytes = dirtied(&walk, standing->pass_s + walk.at_s);
  walk.passes = 1;
  return walk;
}

static void walk_pass(Walk *walk) {
  double s = walk->bytes / walk->bandwidth;
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

static double switch_s(const MigStanding *standing) {
  return standing->switch_s > 0 ? standing->switch_s : SWITCH_S;
}

static MigWayForecast end_at(const Walk *walk, const MigStanding *standing) {
  double silence_s = pause_of(walk) + switch_s(standing);
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
  while (walk.passes < PASSES_MAX && pause_of(&walk) > WORTHLESS_S && !at_floor(&walk)) {
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

/* The part of a goal that is left for sending memory. */
static double limit_s_of(const MigPolicy *policy, MigPolicyKey key) {
  return (double)mig_downtime_limit_ms(mig_policy_get(policy, key)) / 1000.0;
}

static MigWayBar bar_for(const MigWayForecast *way, const MigStanding *standing, double limit_s) {
  if (way->downtime_s > limit_s)
    return MIG_WAY_PAUSE_TOO_LONG;
  return is_late(way, standing) ? MIG_WAY_TOO_LATE : MIG_WAY_OPEN;
}

static void set_error(MigWayForecast *way, const MigDirtyCurve *curve, const MigStanding *standing) {
  /* The gap between the bounds of f at the next pass, as time on the link; plus 5 % of what is still to be sent, for
   * the link itself. */
  double s = standing->remaining_bytes / standing->bandwidth_bytes_per_s + standing->pass_s;
  double gap = mig_dirty_curve_upper(curve, s) - mig_dirty_curve_lower(curve, s);
  if (!isfinite(gap) || gap > standing->memory_bytes)
    gap = standing->memory_bytes;
  way->error_s = (gap + 0.05 * way->bytes) / standing->bandwidth_bytes_per_s;
}

static MigWayForecast forecast_pre_copy(const MigDirtyCurve *curve, const MigStanding *standing,
                                        const MigPolicy *policy, double *ret_floor_s) {
  double limit_s = limit_s_of(policy, MIG_POLICY_MAX_DOWNTIME_MS);
  Walk walk = walk_start(curve, standing, 1.0);
  Walk floor = walk;
  walk_until(&floor, 0.001);
  *ret_floor_s = pause_of(&floor);
  if (!walk_until(&walk, limit_s)) {
    MigWayForecast never = end_at(&walk, standing);
    never.bar = MIG_WAY_NEVER_ENDS;
    return never;
  }
  /* A throttled guest gains most if it ends soon. */
  MigWayForecast way = standing->throttle_pct > 0 ? end_at(&walk, standing) : choose_pass(&walk, standing);
  if (standing->throttle_pct > 0)
    way.downtime_s = limit_s;
  way.bar = bar_for(&way, standing, fmax(limit_s, WORTHLESS_S));
  return way;
}

/* How fast a throttled guest runs: one that is mostly idle is not slowed down until it gets less CPU than it uses. */
static double speed_at(const MigStanding *standing, unsigned throttle_pct) {
  double share = standing->cpu_share > 0 && standing->cpu_share < 1 ? standing->cpu_share : 1.0;
  double left = (100.0 - throttle_pct) / 100.0 / share;
  return left < 1 ? left : 1;
}

/* QEMU throttles by letting each vCPU run for 10 ms and then stopping it for as long as the percentage requires. */
static double stall_s(unsigned throttle_pct) {
  return throttle_pct < 100 ? 0.010 * throttle_pct / (100.0 - throttle_pct) : INFINITY;
}

/* Includes the strongest permitted throttle. */
static unsigned next_throttle(unsigned pct, unsigned max_pct) {
  unsigned next = pct < 95 ? pct + 5 - pct % 5 : pct + 1;
  return pct < max_pct && next > max_pct ? max_pct : next;
}

/* QEMU throttles once two passes have dirtied more than half of what they sent. Earlier passes are not known. False:
 * it will not. */
static bool walk_to_throttle(Walk *walk, double sent) {
  unsigned high = walk->bytes > HIGH_RATIO * sent;
  while (high < 2 && walk->passes < HIGH_PASSES_MAX) {
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
  double limit_s = limit_s_of(policy, MIG_POLICY_MAX_DOWNTIME_MS);
  unsigned max_pct = (unsigned)mig_policy_get(policy, MIG_POLICY_MAX_THROTTLE_PCT);
  MigWayForecast last = {.bar = MIG_WAY_NEVER_ENDS};
  Walk before = walk_start(curve, standing, 1.0);
  if (standing->throttle_pct == 0 && !walk_to_throttle(&before, standing->pass_bytes))
    return *pre_copy; /* QEMU would leave the guest alone, so it goes like pre-copy */
  unsigned first_pct = standing->throttle_pct > 0 ? standing->throttle_pct : LEAST_THROTTLE_PCT;
  for (unsigned pct = first_pct; pct <= max_pct; pct = next_throttle(pct, max_pct)) {
    Walk walk = before;
    walk.speed = speed_at(standing, pct) / speed_at(standing, standing->throttle_pct);
    Walk next = walk;
    walk_pass(&next);
    if (!walk_until(&walk, limit_s))
      continue;
    last = end_at(&walk, standing);
    last.downtime_s = limit_s;
    last.throttle_pct = pct;
    last.pause_s = fmax(last.pause_s, stall_s(pct));
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
  double limit_s = limit_s_of(policy, MIG_POLICY_MAX_PAUSE_MS);
  if (standing->last_throttle && standing->high_passes > 0)
    return forecast_pause_now(curve, standing, limit_s);
  Walk walk = walk_start(curve, standing, 1.0);
  bool fits = walk_until(&walk, limit_s);
  MigWayForecast way = end_at(&walk, standing);
  /* Leave room for a slightly larger pass if the goal permits. Not more: QEMU stops the guest as soon as it fits, so
   * the limit becomes the pause. */
  way.downtime_s = fmin(way.downtime_s * 1.04 + 0.005, fmax(limit_s, way.downtime_s));
  way.bar = fits ? bar_for(&way, standing, limit_s) : MIG_WAY_PAUSE_TOO_LONG;
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
  double s = bytes / standing->bandwidth_bytes_per_s;
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
        steps_within(walk, standing->pass_bytes, standing->high_passes, standing->counted_s, w->passes))
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
    if (ret_forecast->ways[way].bar != MIG_WAY_OPEN)
      continue;
    if (ret_forecast->best == MIG_WAY_COUNT ||
        cost_of(ret_forecast, (MigWay)way, standing) < cost_of(ret_forecast, ret_forecast->best, standing))
      ret_forecast->best = (MigWay)way;
  }
}

/* --- the start --- */

/* The first downtime limit: low, since the monitor raises it as soon as another pass does not pay. */
#define FIRST_DOWNTIME_MS 20
/* A one-second probe says little about what the guest dirties in a minute: assume four times as much in five times
 * the time. */
#define GUESS_TIMES 5
#define GUESS_BYTES 4

static MigDirtyCurve with_guess(const MigDirtyCurve *curve, double memory_bytes) {
  MigDirtyCurve guess = *curve;
  if (guess.observations == 1) {
    MigDirtyPoint only = guess.points[0];
    insert_point(&guess, (MigDirtyPoint){.s = GUESS_TIMES * only.s,
                                         .bytes = fmin(GUESS_BYTES * only.bytes, memory_bytes)});
  }
  return guess;
}

/* Each stop of the throttle is a silence, so the first throttle keeps within max_downtime_ms: a guest that works in
 * bursts may need no more. From there QEMU climbs step by step. */
static unsigned first_throttle(unsigned pct, const MigPolicy *policy) {
  double goal_s = (double)mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  while (pct > LEAST_THROTTLE_PCT && stall_s(pct) > goal_s)
    pct--;
  return pct;
}

/* QEMU's steps must land exactly on the strongest permitted throttle. A computed start is raised for that if its
 * stops stay within the goal, and lowered otherwise. QEMU's own defaults are kept where they land on it as well. */
static void land_on_cap(MigPlan *plan, const MigPolicy *policy) {
  unsigned cap = (unsigned)mig_policy_get(policy, MIG_POLICY_MAX_THROTTLE_PCT);
  unsigned initial = plan->throttle_initial_pct ? plan->throttle_initial_pct : LEAST_THROTTLE_PCT;
  unsigned increment = plan->throttle_increment_pct ? plan->throttle_increment_pct : OWN_INCREMENT_PCT;
  if (cap >= MOST_THROTTLE_PCT)
    return;
  initial = initial < cap ? initial : cap;
  unsigned off = (cap - initial) % increment;
  if (off > 0)
    initial =
        first_throttle(initial + off, policy) == initial + off ? initial + off : initial + off - increment;
  if (off == 0 && plan->throttle_initial_pct == 0 && initial == LEAST_THROTTLE_PCT)
    return;
  plan->throttle_initial_pct = initial;
  plan->throttle_increment_pct = increment;
}

void mig_plan(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link, const MigPolicy *policy,
              MigPlan *ret_plan) {
  uint64_t limit_ms = mig_downtime_limit_ms(mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS));
  uint64_t s_per_gib = mig_policy_get(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  uint64_t limit = mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  bool allow_auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE);
  const MigWaysOpen open = {.auto_converge = true, .post_copy = true};
  MigDirtyCurve guess = with_guess(&probe->curve, (double)memory_bytes);
  double bandwidth = (double)link->bandwidth_bytes_per_s;
  if (limit > 0 && (bandwidth <= 0 || (double)limit < bandwidth))
    bandwidth = (double)limit;
  MigStanding standing = {
      .memory_bytes = (double)memory_bytes,
      .remaining_bytes = (double)memory_bytes,
      .pass_bytes = (double)memory_bytes,
      .first_pass = true,
      .bandwidth_bytes_per_s = bandwidth,
      .elapsed_s = SETUP_S,
      .switch_s = (double)link->switch_ms / 1000.0,
      .cpu_share = probe->cpu_share,
      .deadline_s = (double)s_per_gib * (double)memory_bytes / (double)MIG_GIB_BYTES,
  };
  MigPlan plan = {
      .probe = *probe,
      .switch_ms = link->switch_ms,
      .bandwidth_bytes_per_s = (uint64_t)bandwidth,
      .post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY),
      .downtime_ms = limit_ms < FIRST_DOWNTIME_MS ? limit_ms : FIRST_DOWNTIME_MS,
  };
  mig_forecast(&guess, &standing, policy, &open, &plan.forecast);

  /* QEMU throttles by its own rule, even a guest that would converge, or that post-copy would migrate without that
   * cost: enable it only where it is the chosen way, or where no way is known. */
  const MigWayForecast *throttled = &plan.forecast.ways[MIG_WAY_AUTO_CONVERGE];
  plan.auto_converge = allow_auto_converge &&
                       (plan.forecast.best == MIG_WAY_AUTO_CONVERGE || plan.forecast.best == MIG_WAY_COUNT);
  if (plan.auto_converge && throttled->bar == MIG_WAY_OPEN) {
    plan.throttle_initial_pct = first_throttle(throttled->throttle_pct, policy);
    plan.throttle_increment_pct = plan.throttle_initial_pct >= 90 ? 1 : 5;
  }
  if (plan.auto_converge)
    land_on_cap(&plan, policy);
  *ret_plan = plan;
}

/* --- in words --- */

static void describe_way(const MigWayForecast *way, const char *name, char *ret_text, size_t size) {
  if (way->bar == MIG_WAY_OPEN)
    snprintf(ret_text, size, "%s: %.1f s in total, guest silent for %.0f ms", name, way->total_s,
             way->pause_s * 1000);
  else
    snprintf(ret_text, size, "%s: %s", name, mig_way_bar_name(way->bar));
}

void mig_forecast_describe(const MigForecast *forecast, char *ret_text, size_t size) {
  const char *separator = "";
  size_t used = 0;
  if (size > 0)
    ret_text[0] = '\0';
  for (int i = 0; i < MIG_WAY_COUNT && used < size; i++) {
    char text[120];
    if (forecast->ways[i].bar == MIG_WAY_NOT_PERMITTED)
      continue;
    describe_way(&forecast->ways[i], mig_way_name((MigWay)i), text, sizeof(text));
    int n = snprintf(ret_text + used, size - used, "%s%s", separator, text);
    used += n > 0 ? (size_t)n : 0;
    separator = "; ";
  }
}

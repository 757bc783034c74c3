/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a migration is started with. */
#include "libmigrate/core/forecast-private.h"

#include <math.h>

/* From the libvirt call to the first byte. */
#define SETUP_S 0.3
/* The first downtime limit: low, since the monitor raises it as soon as another pass does not pay. */
#define FIRST_DOWNTIME_MS 20
/* ... unless reading the dirty log takes more than this share of the goal: then QEMU may find no later pass that fits. */
#define SYNC_SHARE 0.2
/* A one-second probe says little about what the guest dirties in a minute: assume four times as much in five times
 * the time. */
#define GUESS_TIMES 5
#define GUESS_BYTES 4

static MigDirtyCurve with_guess(const MigDirtyCurve *curve, double memory_bytes) {
  MigDirtyCurve guess = *curve;
  if (guess.observations == 1) {
    MigDirtyPoint only = guess.points[0];
    forecast_insert_point(&guess, (MigDirtyPoint){.s = GUESS_TIMES * only.s,
                                                  .bytes = fmin(GUESS_BYTES * only.bytes, memory_bytes)});
  }
  return guess;
}

/* Each stop of the throttle is a silence, so the first throttle keeps within max_downtime_ms: a guest that works in
 * bursts may need no more. From there QEMU climbs step by step. */
static unsigned first_throttle(unsigned pct, const MigPolicy *policy) {
  double goal_s = (double)mig_policy_get(policy, MIG_POLICY_MAX_DOWNTIME_MS) / 1000.0;
  while (pct > LEAST_THROTTLE_PCT && forecast_stall_s(pct) > goal_s)
    pct--;
  return pct;
}

/* QEMU's steps must land exactly on the strongest permitted throttle. A computed start is raised for that if its
 * stops stay within the goal, and lowered otherwise. QEMU's own defaults are kept where they land on it as well. */
static void land_on_cap(MigPlan *plan, const MigPolicy *policy) {
  unsigned cap = mig_throttle_cap_pct(policy);
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
  uint64_t s_per_gib = mig_policy_get(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  uint64_t limit = mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  bool allow_auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE);
  const MigWaysOpen open = {.auto_converge = true, .post_copy = true};
  MigDirtyCurve guess = with_guess(&probe->curve, (double)memory_bytes);
  /* Pages that the guest never touched are zero, and sent as such. */
  double to_send =
      (double)(probe->resident_bytes > 0 && probe->resident_bytes < memory_bytes ? probe->resident_bytes
                                                                                 : memory_bytes);
  double bandwidth = (double)link->bandwidth_bytes_per_s;
  if (limit > 0 && (bandwidth <= 0 || (double)limit < bandwidth))
    bandwidth = (double)limit;
  MigStanding standing = {
      .memory_bytes = (double)memory_bytes,
      .remaining_bytes = to_send,
      .pass_bytes = to_send,
      .first_pass = true,
      .sync_s = forecast_sync_s((double)memory_bytes),
      .bandwidth_bytes_per_s = bandwidth,
      .elapsed_s = SETUP_S,
      .switch_s = (double)link->switch_ms / 1000.0,
      .cpu_share = probe->cpu_share,
      .deadline_s = (double)s_per_gib * (double)memory_bytes / (double)MIG_GIB_BYTES,
  };
  double limit_s = forecast_limit_s(policy, MIG_POLICY_MAX_DOWNTIME_MS, &standing);
  uint64_t limit_ms = limit_s > 0.001 ? (uint64_t)(limit_s * 1000.0 + 0.5) : 1;
  bool slow_sync = standing.sync_s > SYNC_SHARE * limit_s;
  MigPlan plan = {
      .probe = *probe,
      .switch_ms = link->switch_ms,
      .bandwidth_bytes_per_s = (uint64_t)bandwidth,
      .post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY),
      .downtime_ms = limit_ms < FIRST_DOWNTIME_MS || slow_sync ? limit_ms : FIRST_DOWNTIME_MS,
  };
  mig_forecast(&guess, &standing, policy, &open, &plan.forecast);

  /* QEMU throttles by its own rule, even a guest that would converge, or that post-copy would migrate without that
   * cost: enable it only where it is the chosen way, or where no way is known. Or where QEMU would leave the guest alone:
   * should the link carry less than was assumed, and only then, it begins. */
  const MigWayForecast *throttled = &plan.forecast.ways[MIG_WAY_AUTO_CONVERGE];
  bool spare = plan.forecast.best == MIG_WAY_PRE_COPY && throttled->throttle_pct == 0 && !plan.post_copy &&
               standing.sync_s < limit_s;
  plan.auto_converge = allow_auto_converge && (plan.forecast.best == MIG_WAY_AUTO_CONVERGE ||
                                               plan.forecast.best == MIG_WAY_COUNT || spare);
  if (plan.auto_converge && throttled->bar == MIG_WAY_OPEN && throttled->throttle_pct > 0) {
    plan.throttle_initial_pct = first_throttle(throttled->throttle_pct, policy);
    plan.throttle_increment_pct = plan.throttle_initial_pct >= 90 ? 1 : 5;
  }
  if (plan.auto_converge)
    land_on_cap(&plan, policy);
  *ret_plan = plan;
}

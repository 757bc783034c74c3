/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ours: the very monitor and plan of the daemon, as a strategy. */
#include "tests/sim/engine.h"

static void handoffd_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                           StrategyStart *ret_start) {
  MigMonitor *monitor = state;
  MigProbe probe = {0};
  MigPlan plan;

  if (guest->probe_dirty_bytes_per_s != UINT64_MAX) {
    mig_dirty_curve_observe(&probe.curve, 1.0, (double)guest->probe_dirty_bytes_per_s);
    probe.cpu_share = guest->probe_cpu_share;
  }
  mig_plan(&probe, guest->memory_bytes, &(MigLinkFacts){.bandwidth_bytes_per_s = guest->link_bytes_per_s},
           policy, &plan);
  plan.post_copy = plan.post_copy && !guest->passthrough;
  mig_monitor_init(monitor, policy, now_ms, guest->memory_bytes, guest->disk_bytes);
  mig_monitor_set_plan(monitor, &plan);
  *ret_start = (StrategyStart){
      .post_copy = plan.post_copy,
      .auto_converge = plan.auto_converge,
      .throttle_initial_pct = plan.throttle_initial_pct,
      .throttle_increment_pct = plan.throttle_increment_pct,
      .downtime_ms = plan.downtime_ms,
  };
}

static void handoffd_step(void *state, const MigSample *sample, MigAction *ret_action) {
  mig_monitor_step(state, sample, ret_action);
}

static void handoffd_tick(void *state, uint64_t now_ms, MigAction *ret_action) {
  mig_monitor_tick(state, now_ms, ret_action);
}

static void handoffd_refused(void *state, MigActionKind kind, uint64_t now_ms) {
  mig_monitor_note_refused(state, kind);
}

const Strategy strategy_handoffd = {
    .name = "handoffd",
    .source = "libmigrate/core: what the daemon runs",
    .poll_ms = 400,
    .state_size = sizeof(MigMonitor),
    .start = handoffd_start,
    .step = handoffd_step,
    .tick = handoffd_tick,
    .refused = handoffd_refused,
};

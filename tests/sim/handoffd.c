/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Our own monitor behind the seam, as agent/run.c and agent/worker.c drive it. */
#include "tests/sim/engine.h"

static void start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                  StrategyStart *ret_start) {
  MigMonitor *monitor = state;
  mig_monitor_init(monitor, policy, now_ms, guest->memory_bytes, guest->disk_bytes);
  *ret_start = (StrategyStart){
      .post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY) != 0 && !guest->passthrough,
      .auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE) != 0,
  };
}

static void step(void *state, const MigSample *sample, MigAction *ret_action) {
  mig_monitor_step(state, sample, ret_action);
}

const Strategy strategy_handoffd = {
    .name = "handoffd",
    .source = "libmigrate/core/monitor.c; PollInterval= of handoffd.conf(5)",
    .poll_ms = 400,
    .state_size = sizeof(MigMonitor),
    .start = start,
    .step = step,
};

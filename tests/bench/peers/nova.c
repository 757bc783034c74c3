/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OpenStack Nova: downtime that rises with time, and an end at the completion timeout. */
#include "tests/bench/peers/steering.h"

/* Source: openstack/nova, nova/virt/libvirt/migration.py (downtime_steps, update_downtime,
 * should_trigger_timeout_action) and driver.py (_live_migration_monitor); nova/conf/libvirt.py for the
 * defaults.
 *
 * Defaults: live_migration_downtime 500 ms in live_migration_downtime_steps 10, one each
 * live_migration_downtime_delay 75 s per GiB: from 50 ms by 45 ms to 500 ms; live_migration_completion_timeout
 * 800 s per GiB; live_migration_timeout_action abort. A guest counts for at least 2 GiB. Looks each 500 ms and
 * never at the dirty rate.
 *
 * Switches: live_migration_permit_post_copy and live_migration_permit_auto_converge; with both, Nova drops
 * auto-converge. Downtime and completion timeout are taken from a policy that names them. force_complete is
 * post-copy where permitted, else a pause. */

enum {
  POLL_MS = 500,
  DOWNTIME_MS = 500,
  STEPS = 10,
  DELAY_S_PER_GIB = 75,
  COMPLETION_S_PER_GIB = 800,
  LEAST_GIB = 2,
};

typedef struct Nova {
  bool force_complete;
  bool post_copy;
  uint64_t start_ms;
  uint64_t completion_s; /* 0: none */
  uint64_t delay_s;
  uint64_t downtime_ms; /* at the last step */
  uint64_t current_ms;
  bool ended; /* paused or aborted */
} Nova;

static void nova_start(Nova *nova, bool force_complete, const MigPolicy *policy, const StrategyGuest *guest,
                       uint64_t now_ms, StrategyStart *ret_start) {
  double gib = (double)guest->memory_bytes / (double)MIG_GIB_BYTES;
  gib = (gib > LEAST_GIB ? gib : LEAST_GIB) + (double)guest->disk_bytes / (double)MIG_GIB_BYTES;
  uint64_t completion = policy_or(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, COMPLETION_S_PER_GIB);
  *nova = (Nova){
      .force_complete = force_complete,
      .post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY),
      .start_ms = now_ms,
      .completion_s = (uint64_t)((double)completion * gib),
      .delay_s = (uint64_t)(DELAY_S_PER_GIB * gib),
      .downtime_ms = policy_or(policy, MIG_POLICY_MAX_DOWNTIME_MS, DOWNTIME_MS),
  };
  *ret_start = (StrategyStart){
      .post_copy = nova->post_copy,
      .auto_converge = !nova->post_copy && mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
  };
}

static void nova_abort_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                             uint64_t now_ms, StrategyStart *ret_start) {
  nova_start(state, false, policy, guest, now_ms, ret_start);
}

static void nova_force_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                             uint64_t now_ms, StrategyStart *ret_start) {
  nova_start(state, true, policy, guest, now_ms, ret_start);
}

/* What the limit should be by now; 0: as QEMU has it. The first step is at 0 s, and counts once that is past. */
static uint64_t downtime_at(const Nova *nova, uint64_t elapsed_s) {
  uint64_t wanted_ms = 0;
  double base = (double)nova->downtime_ms / STEPS, rise = ((double)nova->downtime_ms - base) / STEPS;
  for (unsigned i = 0; i <= STEPS; i++)
    if (elapsed_s > nova->delay_s * i)
      wanted_ms = (uint64_t)(base + rise * i);
  return wanted_ms;
}

static void nova_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Nova *nova = state;
  uint64_t elapsed_s = elapsed_ms(nova->start_ms, sample) / 1000;
  act_none(ret_action);
  if (!steerable(sample) || nova->ended)
    return;

  if (nova->completion_s != 0 && elapsed_s > nova->completion_s) {
    nova->ended = !nova->force_complete || !nova->post_copy; /* post-copy is asked for until it runs */
    if (!nova->force_complete)
      act_abort(ret_action, MIG_CAUSE_DEADLINE, "not complete after %u s", (unsigned)nova->completion_s);
    else if (nova->post_copy)
      act_post_copy(ret_action, "the completion timeout has passed");
    else
      act_pause(ret_action, "the completion timeout has passed");
    return;
  }

  uint64_t wanted_ms = downtime_at(nova, elapsed_s);
  if (wanted_ms != 0 && wanted_ms != nova->current_ms) {
    nova->current_ms = wanted_ms;
    act_downtime(ret_action, wanted_ms, "the next step's time has come");
  }
}

const Strategy nova_abort_strategy = {
    .name = "nova-abort",
    .source = "Nova virt/libvirt/migration.py, live_migration_timeout_action=abort",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Nova),
    .start = nova_abort_start,
    .step = nova_step,
};

const Strategy nova_force_strategy = {
    .name = "nova-force",
    .source = "Nova virt/libvirt/migration.py, live_migration_timeout_action=force_complete",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Nova),
    .start = nova_force_start,
    .step = nova_step,
};

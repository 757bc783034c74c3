/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* oVirt: schedules of downtimes by the count of iterations that were noticed. */
#include "tests/bench/peers/steering.h"

/* Source: oVirt/vdsm, lib/vdsm/virt/migration.py (MonitorThread: monitor_migration, _next_action);
 * oVirt/ovirt-engine, MigrationPolicies in packaging/dbscripts/upgrade/pre_upgrade/0000_config.sql and
 * ConvergenceSchedule.java (the last items have no limit).
 *
 * Defaults: looks each 10 s (migration_monitor_interval); an iteration is counted if more remains than at the
 * look before. An item is due when the count is *beyond* its limit. With a schedule there is neither a
 * deadline nor a progress timeout.
 *
 * Switches: a policy's autoConvergence, on by default, is allow_auto_converge here; post-copy needs
 * allow_post_copy, without which its action is passed over. The compression that goes with "Suspend workload if
 * needed" is left to the policy of the race: it is not part of the steering. */

enum { POLL_MS = 10000, FIRST_DOWNTIME_MS = 100 };

typedef struct Item {
  int limit; /* -1: none; due at the next iteration */
  MigActionKind action;
  uint64_t downtime_ms;
} Item;

#define ITEMS 8

static const Item minimal[ITEMS] = {
    {1, MIG_ACTION_SET_DOWNTIME, 150}, {2, MIG_ACTION_SET_DOWNTIME, 200}, {3, MIG_ACTION_SET_DOWNTIME, 300},
    {4, MIG_ACTION_SET_DOWNTIME, 400}, {6, MIG_ACTION_SET_DOWNTIME, 500}, {-1, MIG_ACTION_ABORT, 0},
};

static const Item suspend[ITEMS] = {
    {1, MIG_ACTION_SET_DOWNTIME, 150}, {2, MIG_ACTION_SET_DOWNTIME, 200}, {3, MIG_ACTION_SET_DOWNTIME, 300},
    {4, MIG_ACTION_SET_DOWNTIME, 400}, {6, MIG_ACTION_SET_DOWNTIME, 500}, {-1, MIG_ACTION_SET_DOWNTIME, 5000},
    {-1, MIG_ACTION_ABORT, 0},
};

static const Item post_copy[ITEMS] = {
    {1, MIG_ACTION_SET_DOWNTIME, 150},
    {2, MIG_ACTION_SET_DOWNTIME, 200},
    {-1, MIG_ACTION_START_POST_COPY, 0},
    {-1, MIG_ACTION_ABORT, 0},
};

typedef struct Ovirt {
  const Item *next; /* ended by one without an action */
  bool permit_post_copy;
  bool have_last;
  uint64_t last_bytes;
  int iterations;
} Ovirt;

static void ovirt_start(Ovirt *ovirt, const Item *schedule, const MigPolicy *policy,
                        StrategyStart *ret_start) {
  *ovirt = (Ovirt){.next = schedule, .permit_post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY)};
  *ret_start = (StrategyStart){
      .post_copy = ovirt->permit_post_copy && schedule == post_copy,
      .auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
      .downtime_ms = FIRST_DOWNTIME_MS,
  };
}

static void ovirt_minimal_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                                uint64_t now_ms, StrategyStart *ret_start) {
  ovirt_start(state, minimal, policy, ret_start);
}

static void ovirt_suspend_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                                uint64_t now_ms, StrategyStart *ret_start) {
  ovirt_start(state, suspend, policy, ret_start);
}

static void ovirt_post_copy_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                                  uint64_t now_ms, StrategyStart *ret_start) {
  ovirt_start(state, post_copy, policy, ret_start);
}

static void ovirt_do(Ovirt *ovirt, MigAction *ret_action) {
  const Item *item = ovirt->next++;
  switch (item->action) {
  case MIG_ACTION_SET_DOWNTIME:
    act_downtime(ret_action, item->downtime_ms, "the schedule's next item");
    break;
  case MIG_ACTION_START_POST_COPY:
    if (ovirt->permit_post_copy)
      act_post_copy(ret_action, "the schedule's next item");
    break;
  default:
    act_abort(ret_action, MIG_CAUSE_NOT_CONVERGING, "the schedule ends after %d iterations",
              ovirt->iterations);
    break;
  }
}

static void ovirt_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Ovirt *ovirt = state;
  act_none(ret_action);
  if (!steerable(sample))
    return;
  uint64_t remaining = remaining_bytes(sample);
  if (ovirt->have_last && remaining > ovirt->last_bytes) {
    ovirt->iterations++;
    if (ovirt->next->action != MIG_ACTION_NONE && ovirt->iterations > ovirt->next->limit)
      ovirt_do(ovirt, ret_action);
  }
  ovirt->have_last = true;
  ovirt->last_bytes = remaining;
}

const Strategy ovirt_minimal_strategy = {
    .name = "ovirt-minimal",
    .source = "oVirt MigrationPolicies, \"Minimal downtime\"",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Ovirt),
    .start = ovirt_minimal_start,
    .step = ovirt_step,
};

const Strategy ovirt_suspend_strategy = {
    .name = "ovirt-suspend",
    .source = "oVirt MigrationPolicies, \"Suspend workload if needed\"",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Ovirt),
    .start = ovirt_suspend_start,
    .step = ovirt_step,
};

const Strategy ovirt_post_copy_strategy = {
    .name = "ovirt-post-copy",
    .source = "oVirt MigrationPolicies, \"Post-copy migration\"",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Ovirt),
    .start = ovirt_post_copy_start,
    .step = ovirt_step,
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* virsh's ways, for the comparison with the lab: plain, --postcopy-after-precopy, --timeout N --timeout-suspend. */
#include "tests/sim/virsh.h"

typedef struct Virsh {
  uint64_t suspend_after_ms; /* 0: never */
  bool post_copy;
  bool done;
} Virsh;

static void start_plain(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                        StrategyStart *ret_start) {
  *ret_start = (StrategyStart){0};
}

static void start_post_copy(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                            StrategyStart *ret_start) {
  Virsh *virsh = state;
  virsh->post_copy = true;
  *ret_start = (StrategyStart){.post_copy = true};
}

static void start_suspend(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                          StrategyStart *ret_start) {
  Virsh *virsh = state;
  virsh->suspend_after_ms = VIRSH_SUSPEND_AFTER_MS;
  *ret_start = (StrategyStart){0};
}

static void step(void *state, const MigSample *sample, MigAction *ret_action) {
  Virsh *virsh = state;
  *ret_action = (MigAction){.kind = MIG_ACTION_NONE};
  if (virsh->done)
    return;
  /* virsh waits for the event of the iteration after the first: virshMigrateIteration() */
  if (virsh->post_copy && sample->valid && sample->iteration >= 2)
    ret_action->kind = MIG_ACTION_START_POST_COPY;
  if (virsh->suspend_after_ms > 0 && sample->now_ms > virsh->suspend_after_ms)
    ret_action->kind = MIG_ACTION_PAUSE;
  virsh->done = ret_action->kind != MIG_ACTION_NONE;
}

#define VIRSH "tools/virsh-domain.c of libvirt 9.0.0"

/* It looks at its timeout each 500 ms (virshWatchJob()); events reach it at once, which a short poll stands for. */
const Strategy strategy_virsh = {"virsh", VIRSH, 500, sizeof(Virsh), start_plain, step};
const Strategy strategy_virsh_post_copy = {
    "virsh --postcopy-after-precopy", VIRSH, 10, sizeof(Virsh), start_post_copy, step};
const Strategy strategy_virsh_suspend = {
    "virsh --timeout 4 --timeout-suspend", VIRSH, 500, sizeof(Virsh), start_suspend, step};

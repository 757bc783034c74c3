/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Proxmox VE: auto-converge always, and a downtime that doubles. */
#include "tests/bench/peers/steering.h"

/* Source: proxmox/qemu-server, src/PVE/QemuMigrate.pm (phase2, increase_migrate_downtime) and
 * set_migration_caps for the capabilities.
 *
 * Defaults: migrate_downtime 0.1 s; looks each second, and each 100 ms once less remains than was sent for each
 * look so far. Each time that more remains than before (or nothing) is counted; the sixth doubles the
 * downtime, up to QEMU's 2000 s. No deadline, no post-copy, no pause; six failures in a row to read the numbers
 * end it.
 *
 * Switches: none; auto-converge is always on, so it takes part only where the policy permits that. The downtime is
 * taken from a policy that names it. Its xbzrle is left to the policy of the race. */

enum {
  POLL_MS = 100,
  SLOW_MS = 1000,
  DOWNTIME_MS = 100,
  RISES = 5,
  FAILURES = 5,
};
static const uint64_t largest_downtime_ms = 2000000;

typedef struct Proxmox {
  uint64_t sleep_ms, next_ms;
  uint64_t looks;
  unsigned failures, rises;
  uint64_t sent_bytes;
  uint64_t last_remaining_bytes;
  uint64_t downtime_ms;
} Proxmox;

static void proxmox_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                          StrategyStart *ret_start) {
  Proxmox *proxmox = state;
  *proxmox = (Proxmox){
      .sleep_ms = SLOW_MS,
      .next_ms = now_ms + SLOW_MS,
      .downtime_ms = policy_or(policy, MIG_POLICY_MAX_DOWNTIME_MS, DOWNTIME_MS),
  };
  *ret_start = (StrategyStart){.auto_converge = true, .downtime_ms = proxmox->downtime_ms};
}

static void proxmox_failed(Proxmox *proxmox, MigAction *ret_action) {
  proxmox->next_ms += SLOW_MS;
  if (++proxmox->failures > FAILURES)
    act_abort(ret_action, MIG_CAUSE_SOURCE_UNREACHABLE, "too many failures to read the numbers");
}

static void proxmox_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Proxmox *proxmox = state;
  act_none(ret_action);
  if (sample->now_ms < proxmox->next_ms)
    return;
  uint64_t sent_per_look = proxmox->sent_bytes / ++proxmox->looks;
  proxmox->next_ms = sample->now_ms + proxmox->sleep_ms;
  if (!sample->valid) {
    proxmox_failed(proxmox, ret_action);
    return;
  }
  if (!steerable(sample)) {
    proxmox->next_ms += SLOW_MS;
    return;
  }
  proxmox->failures = 0;
  if (sample->memory_processed_bytes == proxmox->sent_bytes)
    return;
  proxmox->sent_bytes = sample->memory_processed_bytes;

  uint64_t remaining = sample->memory_remaining_bytes;
  if (remaining < sent_per_look)
    proxmox->sleep_ms = POLL_MS;
  if ((proxmox->last_remaining_bytes > 0 && remaining > proxmox->last_remaining_bytes) || remaining == 0)
    proxmox->rises++;
  proxmox->last_remaining_bytes = remaining;
  if (proxmox->rises > RISES) {
    proxmox->rises = 0;
    if (proxmox->downtime_ms < largest_downtime_ms) {
      proxmox->downtime_ms *= 2;
      if (proxmox->downtime_ms > largest_downtime_ms)
        proxmox->downtime_ms = largest_downtime_ms;
      act_downtime(ret_action, proxmox->downtime_ms, "more remained than before, six times");
    }
  }
}

const Strategy proxmox_strategy = {
    .name = "proxmox",
    .source = "Proxmox VE qemu-server, QemuMigrate.pm",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Proxmox),
    .start = proxmox_start,
    .step = proxmox_step,
};

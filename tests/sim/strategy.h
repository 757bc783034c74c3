/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A way to steer a migration, as the simulator and the lab's race see it: ours and the peers' behind one seam. */
#pragma once

#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"

/* What is known before the start. */
typedef struct StrategyGuest {
  uint64_t memory_bytes;
  uint64_t disk_bytes;
  uint64_t probe_dirty_bytes_per_s; /* of a probe of one second before the start; UINT64_MAX: none was made */
  double probe_cpu_share;           /* of its CPUs that the guest used meanwhile, 0 to 1; 0: not known */
  uint64_t link_bytes_per_s;        /* as configured or learned; 0: not known */
  bool passthrough;
} StrategyGuest;

/* What it wants of the start; all zero: plain pre-copy with QEMU's 300 ms. */
typedef struct StrategyStart {
  bool post_copy; /* may be switched to on the way */
  bool auto_converge;
  unsigned throttle_initial_pct;   /* 0: QEMU's 20 */
  unsigned throttle_increment_pct; /* 0: QEMU's 10 */
  uint64_t downtime_ms;            /* 0: QEMU's 300 */
} StrategyStart;

typedef struct Strategy {
  const char *name;
  const char *source; /* where its rules and defaults are from */
  unsigned poll_ms;
  size_t state_size;
  void (*start)(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                StrategyStart *ret_start);
  void (*step)(void *state, const MigSample *sample, MigAction *ret_action);
  /* Time goes on, whether there are readings or not; some times a second. May be NULL. */
  void (*tick)(void *state, uint64_t now_ms, MigAction *ret_action);
  /* libvirt refused what step() asked for. May be NULL. */
  void (*refused)(void *state, MigActionKind kind, uint64_t now_ms);
} Strategy;

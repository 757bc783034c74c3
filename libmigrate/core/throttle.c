/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QEMU's throttle: its next step, and how close that is. */
#include "libmigrate/core/throttle.h"

/* Theory of operation
 *
 * QEMU throttles the guest by itself (migration_trigger_throttle() in its migration/ram.c). It reads the dirty log as a pass
 * starts, if a second or more has passed since it last did, and compares what was dirtied with half of what was sent. The
 * second time it was more, QEMU takes a step: first to cpu-throttle-initial, then by cpu-throttle-increment, up to its own
 * max-cpu-throttle of 99 %. A pass in between that dirtied less does not reset the count.
 *
 * No libvirt sets that maximum, and none can lower or end a throttle on a running migration. So max_throttle_pct is enforced
 * from outside: mig_plan() makes the steps land on it, and at the last permitted one the migration must end before the next.
 * QEMU does not report its count, so it is estimated here, too high rather than too low: from each pass that started, by what
 * it sent and what it left. Two counts are more than a second apart, and readings much less: so the first count at the last
 * step is seen before the second. */

#define OWN_INITIAL_PCT   20
#define OWN_INCREMENT_PCT 10
#define MOST_PCT          99
/* QEMU's throttle-trigger-threshold is 0.5; leave room for measuring errors. */
#define HIGH_RATIO      0.45
#define COUNT_EVERY_MS  1000
#define STEP_AFTER_HIGH 1 /* counts, after which the next one may be the step */

static uint64_t since(uint64_t now, uint64_t then) {
  return now > then ? now - then : 0;
}

unsigned throttle_cap_pct(const MigMonitor *monitor) {
  if (!mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_AUTO_CONVERGE))
    return 0;
  return mig_throttle_cap_pct(&monitor->policy);
}

unsigned throttle_next_pct(const MigMonitor *monitor) {
  unsigned now = (unsigned)monitor->last.throttle_pct;
  unsigned initial = monitor->throttle_initial_pct ? monitor->throttle_initial_pct : OWN_INITIAL_PCT;
  unsigned increment = monitor->throttle_increment_pct ? monitor->throttle_increment_pct : OWN_INCREMENT_PCT;
  unsigned next = now == 0 ? initial : now + increment;
  if (!monitor->open.auto_converge)
    return now;
  return next < MOST_PCT ? next : MOST_PCT;
}

bool throttle_is_over(const MigMonitor *monitor) {
  return monitor->open.auto_converge && monitor->last.throttle_pct > throttle_cap_pct(monitor);
}

bool throttle_is_last(const MigMonitor *monitor) {
  return throttle_next_pct(monitor) > throttle_cap_pct(monitor);
}

bool throttle_is_imminent(const MigMonitor *monitor) {
  return throttle_is_last(monitor) && monitor->throttle_counts >= STEP_AFTER_HIGH;
}

void throttle_note_step(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t passes) {
  /* After a gap in the readings, QEMU may have counted since the step. */
  monitor->throttle_counts = passes > 1 && since(now_ms, earliest_ms) > COUNT_EVERY_MS;
  monitor->throttle_counted_ms = earliest_ms;
}

void throttle_note_pass(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t sent,
                        uint64_t dirty) {
  if (since(now_ms, monitor->throttle_counted_ms) <= COUNT_EVERY_MS)
    return;
  monitor->throttle_counted_ms = earliest_ms;
  if ((double)dirty > HIGH_RATIO * (double)sent)
    monitor->throttle_counts++;
}

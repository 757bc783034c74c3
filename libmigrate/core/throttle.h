/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: how far QEMU slows the guest down, and when it will go further. */
#pragma once

#include "libmigrate/core/monitor.h"

/* What is permitted, in percent; 0: no throttle is. */
unsigned throttle_cap_pct(const MigMonitor *monitor);

/* What QEMU's next step makes of it; what it is, where there is no further one. */
unsigned throttle_next_pct(const MigMonitor *monitor);

/* The guest is slowed down by more than is permitted. */
bool throttle_is_over(const MigMonitor *monitor);

/* QEMU's next step would be above what is permitted. */
bool throttle_is_last(const MigMonitor *monitor);

/* That step may come with the end of the pass under way. */
bool throttle_is_imminent(const MigMonitor *monitor);

/* Another throttle is in force since a sample after `earliest_ms`; `passes` have begun meanwhile. */
void throttle_note_step(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t passes);

/* A pass has begun between these two times. The one before it sent so many bytes, and so many were dirtied in that time. */
void throttle_note_pass(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t sent,
                        uint64_t dirty);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: how far QEMU throttles the guest, and when it will go further. */
#pragma once

#include "libmigrate/core/monitor.h"

/* The permitted throttle in percent; 0: none. */
unsigned throttle_cap_pct(const MigMonitor *monitor);

/* The throttle after QEMU's next step; the current one if there is no further step. */
unsigned throttle_next_pct(const MigMonitor *monitor);

/* The guest is throttled by more than is permitted. */
bool throttle_is_over(const MigMonitor *monitor);

/* QEMU's next step would exceed what is permitted. */
bool throttle_is_last(const MigMonitor *monitor);

/* That step may come at the end of the current pass. */
bool throttle_is_imminent(const MigMonitor *monitor);

/* The throttle has changed, some time after `earliest_ms`; `passes` have started meanwhile. */
void throttle_note_step(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t passes);

/* A pass started between these two times. The previous one sent `sent` bytes, while the guest dirtied `dirty` bytes. */
void throttle_note_pass(MigMonitor *monitor, uint64_t earliest_ms, uint64_t now_ms, uint64_t sent,
                        uint64_t dirty);

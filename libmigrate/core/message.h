/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the monitor's decisions in words, with the numbers behind them. */
#pragma once

#include "libmigrate/core/monitor.h"

/* Why the migration is aborted, what was seen, and what would help. */
void message_abort(const MigMonitor *monitor, MigCause cause, uint64_t waited_ms, char *ret_text,
                   size_t size);

/* What the last forecast chose, what it will take, and why not the other ways. ABORT: that no way is open, and which
 * goals would open one. */
void message_way(const MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, char *ret_text,
                 size_t size);

/* The guest is throttled by more than is permitted, and how that ends. */
void message_over_cap(const MigMonitor *monitor, MigActionKind kind, unsigned cap_pct, char *ret_text,
                      size_t size);

/* Nothing is decided yet, and the limit is raised to the goal. */
void message_waits(const MigMonitor *monitor, uint64_t limit_ms, char *ret_text, size_t size);

/* The downtime limit in force is above the goal; UINT64_MAX: it is not known. */
void message_goal(uint64_t was_ms, uint64_t goal_ms, char *ret_text, size_t size);

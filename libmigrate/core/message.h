/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the monitor's decisions in words, with the numbers that they rest on. */
#pragma once

#include "libmigrate/core/monitor.h"

/* Why it is aborted, what was seen, and what would help. */
void message_abort(const MigMonitor *monitor, MigCause cause, uint64_t waited_ms, char *ret_text,
                   size_t size);

/* What was chosen by the last forecast, what it is to take, and what was barred or dearer. ABORT: that no way is open. */
void message_way(const MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, char *ret_text,
                 size_t size);

/* The guest is slowed down by more than is permitted, and that ends so. */
void message_over_cap(const MigMonitor *monitor, MigActionKind kind, unsigned cap_pct, char *ret_text,
                      size_t size);

/* A limit that a goal no longer allows; UINT64_MAX: one that is not known. */
void message_goal(uint64_t was_ms, uint64_t goal_ms, char *ret_text, size_t size);

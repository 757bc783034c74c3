/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: how long the monitor goes on although no way that it likes is open. */
#pragma once

#include "libmigrate/core/monitor.h"

/* The guest changed its behaviour not long ago, or works in bursts, and may change again. */
bool patience_may_change(const MigMonitor *monitor);

/* This pass is smaller than the previous one. */
bool patience_gains(const MigMonitor *monitor);

/* As it is, it goes nowhere. */
bool patience_is_stuck(const MigMonitor *monitor);

/* An error of a few percent decides whether it fits the goal: for a minute. */
bool patience_is_at_goal(const MigMonitor *monitor);

bool patience_deadline_is_near(const MigMonitor *monitor);

/* Wait instead of pausing the guest, or of going over to post-copy. */
bool patience_before_pause(MigMonitor *monitor, const MigWayForecast *pause);
bool patience_before_post_copy(const MigMonitor *monitor);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: the monitor's choice of a way. */
#pragma once

#include "libmigrate/core/monitor.h"

/* Learns from a sample before it becomes monitor->last. */
void choose_observe(MigMonitor *monitor, const MigSample *sample, bool first);

/* Compares the ways and takes one, if it is time. True: ret_action says what to do. */
bool choose_way(MigMonitor *monitor, bool pass_began, MigAction *ret_action);

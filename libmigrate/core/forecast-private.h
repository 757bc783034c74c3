/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: what the files of the forecast share. */
#pragma once

#include "libmigrate/core/forecast.h"

/* QEMU's own first throttle, and its steps. */
#define LEAST_THROTTLE_PCT 20
#define OWN_INCREMENT_PCT  10
/* QEMU's max-cpu-throttle. */
#define MOST_THROTTLE_PCT 99

/* Adds a point that was not observed, or that contradicts nothing. */
void forecast_insert_point(MigDirtyCurve *curve, MigDirtyPoint point);

/* How fast a throttled guest runs, 0 to 1: it is not slowed down until its busiest vCPU gets less than it uses. */
double forecast_speed(double cpu_share, unsigned throttle_pct);

/* How long QEMU reads the dirty log between two passes. */
double forecast_sync_s(double memory_bytes);

/* The part of a goal (max_downtime_ms or max_pause_ms) that is left for sending memory; may be negative. */
double forecast_limit_s(const MigPolicy *policy, MigPolicyKey key, const MigStanding *standing);

/* How long each stop of QEMU's throttle silences the guest. */
double forecast_stall_s(unsigned throttle_pct);

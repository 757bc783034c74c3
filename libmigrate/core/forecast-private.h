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

/* How long each stop of QEMU's throttle silences the guest. */
double forecast_stall_s(unsigned throttle_pct);

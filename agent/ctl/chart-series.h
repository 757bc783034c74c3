/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report's points as lines over time, and those as columns: what every drawing of them shares. */
#pragma once

#include "agent/ctl/report.h"

typedef enum Series {
  SERIES_REMAINING,
  SERIES_BANDWIDTH,
  SERIES_DIRTY_RATE,
  SERIES_THROTTLE,
  SERIES_COUNT
} Series;

/* What people call it: "remaining", "bandwidth", "dirty rate", "throttle". */
const char *series_name(Series series);

typedef struct SeriesVertex {
  double at_s, value;
  bool begins; /* a line of its own: nobody looked before */
} SeriesVertex;

/* The lines of a series, in the order of time; to be unreferenced. Remaining memory rises at the begin of each pass at once
 * and falls evenly between readings; bandwidth goes from the middle of one point to that of the next; dirty rate and throttle go
 * in steps, as they are measured and set. There is no dirty rate in post-copy, when the guest runs elsewhere, and
 * none before QEMU has measured it. */
GArray *series_vertices(const Report *report, Series series);

/* `n` columns of equal width from 0 to end_s: the highest of the line in each for remaining and throttle, the mean for rates.
 * NAN where nobody looked. */
void series_columns(const Report *report, Series series, double *ret_columns, size_t n);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report's points as lines over time, and as columns: common to all kinds of charts. */
#pragma once

#include "agent/ctl/report.h"

typedef enum Series {
  SERIES_REMAINING,
  SERIES_BANDWIDTH,
  SERIES_DIRTY_RATE,
  SERIES_THROTTLE,
  SERIES_COUNT
} Series;

/* "remaining", "bandwidth", "dirty rate" or "throttle". */
const char *series_name(Series series);

typedef struct SeriesVertex {
  double at_s, value;
  bool begins; /* starts a new line, after a gap in the data */
} SeriesVertex;

/* The lines of a series in chronological order; to be unreferenced. Remaining memory jumps at the start of each pass and
 * falls linearly between samples; bandwidth connects the midpoints of the samples; dirty rate and throttle are step
 * functions, as they are measured and set. There is no dirty rate in post-copy, when the guest runs elsewhere, nor before
 * QEMU has measured it. */
GArray *series_vertices(const Report *report, Series series);

/* `n` columns of equal width from 0 to end_s: the maximum in each for remaining and throttle, the mean for rates. NAN where
 * there is no data. */
void series_columns(const Report *report, Series series, double *ret_columns, size_t n);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes: range, ticks and tick labels. */
#pragma once

#include "agent/ctl/format.h"

typedef enum ScaleForm {
  SCALE_NUMBER,  /* "128", with the unit "128 MiB" */
  SCALE_MINUTES, /* "1:30" */
  SCALE_HOURS,   /* "2:15" */
  SCALE_DAYS,    /* "3d 4h" */
} ScaleForm;

/* Ticks are at 0, step, 2 step, … up to max. */
typedef struct Scale {
  double max;
  double step;
  ScaleForm form;
  double unit;           /* labels of SCALE_NUMBER show value / unit */
  const char *unit_name; /* "MiB", "s"; "min:s" for the other forms */
  unsigned decimals;
} Scale;

/* Bytes, from 0 to at least `max`, with at most `ticks_max` (at least 1) ticks above 0. Steps are powers of two. */
Scale scale_bytes(double max, unsigned ticks_max);

/* Bytes per second. Steps are 1, 2 or 5 times a power of ten. */
Scale scale_rate(double max, unsigned ticks_max);

/* 0 to 100 in one step, halves or quarters. */
Scale scale_percent(unsigned ticks_max);

/* Seconds. The axis ends at `end_s` (above 0), wherever the last tick is. */
Scale scale_time(double end_s, unsigned ticks_max);

/* Number of ticks, including the one at 0. */
unsigned scale_count(const Scale *scale);

/* A tick label without the unit. */
FormatText scale_label(const Scale *scale, double value);

/* A tick label, with the unit in case of SCALE_NUMBER. */
FormatText scale_label_unit(const Scale *scale, double value);

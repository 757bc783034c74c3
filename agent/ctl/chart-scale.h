/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes: where they end, where their ticks are, and what those say. */
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
  double unit;           /* a number says value / unit */
  const char *unit_name; /* "MiB", "s"; "min:s" where the form is no number */
  unsigned decimals;
} Scale;

/* Of bytes, from 0 to at least `max`, with at most `ticks_max` (at least 1) ticks above 0: steps are powers of two of a unit. */
Scale scale_bytes(double max, unsigned ticks_max);

/* Of bytes per second: steps of 1, 2 or 5. */
Scale scale_rate(double max, unsigned ticks_max);

/* 0 to 100 in halves or in quarters. */
Scale scale_percent(unsigned ticks_max);

/* Of seconds: it ends at `end_s` (above 0), wherever the last tick is. */
Scale scale_time(double end_s, unsigned ticks_max);

/* How many ticks there are, with that at 0. */
unsigned scale_count(const Scale *scale);

/* Without the unit. */
FormatText scale_label(const Scale *scale, double value);

/* With the unit, where it is a number. */
FormatText scale_label_unit(const Scale *scale, double value);

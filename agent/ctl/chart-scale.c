/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes: range, ticks and tick labels. */
#include "agent/ctl/chart-scale.h"

#include <math.h>
#include <stdio.h>

static const struct {
  double size;
  const char *bytes, *rate;
} units[] = {
    {1, "B", "B/s"},
    {1024.0, "KiB", "KiB/s"},
    {1024.0 * 1024, "MiB", "MiB/s"},
    {1024.0 * 1024 * 1024, "GiB", "GiB/s"},
    {1024.0 * 1024 * 1024 * 1024, "TiB", "TiB/s"},
};

/* The largest unit that is not larger than `max`. */
static unsigned unit_of(double max) {
  unsigned unit = 0;

  while (unit + 1 < G_N_ELEMENTS(units) && max >= units[unit + 1].size)
    unit++;
  return unit;
}

/* Wide enough that ticks_max steps reach max. */
static double step_of(double max, unsigned ticks_max, bool binary) {
  static const double decimal[] = {1, 2, 5};
  double needed = max / MAX(ticks_max, 1), power = 1;

  if (binary) {
    while (power < needed)
      power *= 2;
    while (power / 2 >= needed)
      power /= 2;
    return power;
  }
  while (power > needed)
    power /= 10;
  for (;; power *= 10)
    for (unsigned i = 0; i < G_N_ELEMENTS(decimal); i++)
      if (power * decimal[i] >= needed)
        return power * decimal[i];
}

static unsigned decimals_of(double step) {
  unsigned decimals = 0;

  while (decimals < 3 && fabs(step - round(step)) > 0.001) {
    step *= 10;
    decimals++;
  }
  return decimals;
}

static Scale scale_of(double max, unsigned ticks_max, bool rate) {
  unsigned unit;
  double size, step;

  /* No data: use an arbitrary axis. */
  if (!(max > 0))
    max = units[2].size;
  unit = unit_of(max);
  size = units[unit].size;
  step = step_of(max / size, ticks_max, !rate);
  if (unit == 0)
    step = MAX(step, 1);
  return (Scale){
      .max = ceil(max / size / step - 1e-9) * step * size,
      .step = step * size,
      .unit = size,
      .unit_name = rate ? units[unit].rate : units[unit].bytes,
      .decimals = decimals_of(step),
  };
}

Scale scale_bytes(double max, unsigned ticks_max) {
  return scale_of(max, ticks_max, false);
}

Scale scale_rate(double max, unsigned ticks_max) {
  return scale_of(max, ticks_max, true);
}

Scale scale_percent(unsigned ticks_max) {
  return (Scale){
      .max = 100,
      .step = ticks_max >= 4   ? 25
              : ticks_max >= 2 ? 50
                               : 100,
      .unit = 1,
      .unit_name = "%",
  };
}

Scale scale_time(double end_s, unsigned ticks_max) {
  static const double steps[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5,  1,    2,    5,     10,    15,    30,
                                 60,   120,  300,  600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
  static const struct {
    double below_s;
    ScaleForm form;
    const char *name;
  } forms[] = {
      {120, SCALE_NUMBER, "s"},
      {7200, SCALE_MINUTES, "min:s"},
      {172800, SCALE_HOURS, "h:min"},
      {G_MAXDOUBLE, SCALE_DAYS, "days"},
  };
  double needed = end_s / MAX(ticks_max, 1), step = 0;
  unsigned form = 0;

  for (unsigned i = 0; i < G_N_ELEMENTS(steps) && step < needed; i++)
    step = steps[i];
  while (step < needed)
    step *= 2;
  while (end_s >= forms[form].below_s)
    form++;
  return (Scale){
      .max = end_s,
      .step = step,
      .form = forms[form].form,
      .unit = 1,
      .unit_name = forms[form].name,
      .decimals = decimals_of(step),
  };
}

unsigned scale_count(const Scale *scale) {
  return (unsigned)(scale->max / scale->step + 1e-6) + 1;
}

FormatText scale_label(const Scale *scale, double value) {
  long whole = lround(value);
  FormatText out;

  switch (scale->form) {
  case SCALE_MINUTES:
    snprintf(out.text, sizeof(out.text), "%ld:%02ld", whole / 60, whole % 60);
    return out;
  case SCALE_HOURS:
    snprintf(out.text, sizeof(out.text), "%ld:%02ld", whole / 3600, whole / 60 % 60);
    return out;
  case SCALE_DAYS:
    snprintf(out.text, sizeof(out.text), "%ldd %ldh", whole / 86400, whole / 3600 % 24);
    return out;
  case SCALE_NUMBER:
    break;
  }
  snprintf(out.text, sizeof(out.text), "%.*f", value > 0 ? (int)scale->decimals : 0, value / scale->unit);
  return out;
}

FormatText scale_label_unit(const Scale *scale, double value) {
  FormatText label = scale_label(scale, value), out;

  if (scale->form != SCALE_NUMBER)
    return label;
  snprintf(out.text, sizeof(out.text), "%.20s %s", label.text, scale->unit_name);
  return out;
}

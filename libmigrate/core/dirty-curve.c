/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest dirties in a time: the dirtying curve, from what was observed. */
#include "libmigrate/core/forecast-private.h"

#include <math.h>
#include <string.h>

/* For contradictions, see mig_dirty_curve_observe(). */
#define TOLERANCE   0.4
#define NOISE_BYTES (512.0 * 1024)

/* The first point at or beyond s; n: none. */
static unsigned find_point(const MigDirtyCurve *curve, double s) {
  unsigned i = 0;
  while (i < curve->n && curve->points[i].s < s)
    i++;
  return i;
}

static double chord(double s, MigDirtyPoint from, MigDirtyPoint to) {
  return to.s > from.s ? from.bytes + (to.bytes - from.bytes) * (s - from.s) / (to.s - from.s) : to.bytes;
}

double mig_dirty_curve_lower(const MigDirtyCurve *curve, double s) {
  const MigDirtyPoint origin = {0, 0};
  unsigned i = find_point(curve, s);
  if (curve->n == 0 || s <= 0)
    return 0;
  if (i == curve->n)
    return curve->points[i - 1].bytes;
  return chord(s, i > 0 ? curve->points[i - 1] : origin, curve->points[i]);
}

/* A concave curve lies below the extension of the chord that ends before s. It never falls, so it also lies below the
 * point after s. It lies below the backward extension of the chord after s, too; but noise in two points makes that
 * steep, and a steady guest would look like a changed one. */
double mig_dirty_curve_upper(const MigDirtyCurve *curve, double s) {
  const MigDirtyPoint origin = {0, 0};
  unsigned i = find_point(curve, s);
  double bound = INFINITY;
  if (curve->n == 0 || s <= 0)
    return 0;
  if (i > 0)
    bound = chord(s, i > 1 ? curve->points[i - 2] : origin, curve->points[i - 1]);
  if (i < curve->n && curve->points[i].bytes < bound)
    bound = curve->points[i].bytes;
  double lower = mig_dirty_curve_lower(curve, s);
  return bound > lower ? bound : lower;
}

static bool contradicts(const MigDirtyCurve *curve, double s, double bytes) {
  double lower = mig_dirty_curve_lower(curve, s), upper = mig_dirty_curve_upper(curve, s);
  return bytes + NOISE_BYTES < (1 - TOLERANCE) * lower || bytes > (1 + TOLERANCE) * upper + NOISE_BYTES;
}

/* Keep the points rising: the newest one corrects older points that it shows to be too high or too low. */
static void keep_rising(MigDirtyCurve *curve, MigDirtyPoint newest) {
  for (unsigned i = 0; i < curve->n; i++) {
    MigDirtyPoint *point = &curve->points[i];
    if ((point->s > newest.s && point->bytes < newest.bytes) ||
        (point->s < newest.s && point->bytes > newest.bytes))
      point->bytes = newest.bytes;
  }
}

static void remove_point(MigDirtyCurve *curve, unsigned i) {
  memmove(&curve->points[i], &curve->points[i + 1], (curve->n - i - 1) * sizeof(curve->points[0]));
  curve->n--;
}

/* The first point at nearly the same time; n: none. */
static unsigned find_near(const MigDirtyCurve *curve, double s) {
  unsigned i = 0;
  while (i < curve->n && fabs(curve->points[i].s - s) > 0.25 * s)
    i++;
  return i;
}

void forecast_insert_point(MigDirtyCurve *curve, MigDirtyPoint point) {
  /* Points at nearly the same time are merged: the newer one weighs as much as all before it. The mean may then be
   * near the next point. */
  for (unsigned i; (i = find_near(curve, point.s)) < curve->n; remove_point(curve, i)) {
    point.s = (point.s + curve->points[i].s) / 2;
    point.bytes = (point.bytes + curve->points[i].bytes) / 2;
  }
  keep_rising(curve, point);
  if (curve->n == MIG_DIRTY_POINTS) /* the second longest tells least: its neighbours enclose it */
    remove_point(curve, MIG_DIRTY_POINTS - 2);
  unsigned at = find_point(curve, point.s);
  memmove(&curve->points[at + 1], &curve->points[at], (curve->n - at) * sizeof(curve->points[0]));
  curve->points[at] = point;
  curve->n++;
}

void mig_dirty_curve_restart(MigDirtyCurve *curve) {
  curve->n = 0;
  curve->observations = 0;
}

bool mig_dirty_curve_observe(MigDirtyCurve *curve, double s, double bytes) {
  bool same = true;
  if (!(s > 0) || !(bytes >= 0) || !isfinite(s) || !isfinite(bytes))
    return true;
  if (curve->n > 0 && contradicts(curve, s, bytes)) {
    mig_dirty_curve_restart(curve);
    curve->changes++;
    same = false;
  }
  forecast_insert_point(curve, (MigDirtyPoint){.s = s, .bytes = bytes});
  curve->observations++;
  return same;
}

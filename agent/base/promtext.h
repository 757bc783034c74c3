/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prometheus's text format: families of samples, and histograms. Knows no job. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum PromType { PROM_GAUGE, PROM_COUNTER, PROM_HISTOGRAM } PromType;

typedef struct PromLabel {
  const char *name;
  const char *value; /* any text; what is no UTF-8 is replaced */
} PromLabel;

/* Opens a family: its samples follow, all of them before the next one. `help` is one line. */
void prom_family(GString *text, const char *name, PromType type, const char *help);

void prom_sample(GString *text, const char *name, const PromLabel *labels, unsigned n_labels, double value);

/* The same without labels. */
void prom_value(GString *text, const char *name, double value);

#define PROM_BOUNDS_MAX 16

/* Counts of what was at most each of the bounds, which rise, and lie in a table of the caller's. */
typedef struct PromHistogram {
  uint64_t below[PROM_BOUNDS_MAX]; /* at most bound i, and more than the one before it */
  uint64_t count;
  double sum;
} PromHistogram;

void prom_histogram_note(PromHistogram *histogram, const double *bounds, unsigned n_bounds, double value);

/* A whole family. */
void prom_histogram(GString *text, const char *name, const char *help, const PromHistogram *histogram,
                    const double *bounds, unsigned n_bounds);

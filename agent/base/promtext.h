/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prometheus's text format: families of samples, and histograms. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum PromType { PROM_GAUGE, PROM_COUNTER, PROM_HISTOGRAM } PromType;

typedef struct PromLabel {
  const char *name;
  const char *value; /* any text; invalid UTF-8 is replaced */
} PromLabel;

/* Opens a family. All its samples must follow before the next family. `help` is one line. */
void prom_family(GString *text, const char *name, PromType type, const char *help);

void prom_sample(GString *text, const char *name, const PromLabel *labels, unsigned n_labels, double value);

/* The same without labels. */
void prom_value(GString *text, const char *name, double value);

#define PROM_BOUNDS_MAX 16

/* Counts of values at or below each bound. The bounds ascend, in a table of the caller's. */
typedef struct PromHistogram {
  uint64_t below[PROM_BOUNDS_MAX]; /* above bound i - 1, up to bound i */
  uint64_t count;
  double sum;
} PromHistogram;

void prom_histogram_note(PromHistogram *histogram, const double *bounds, unsigned n_bounds, double value);

/* A whole family. */
void prom_histogram(GString *text, const char *name, const char *help, const PromHistogram *histogram,
                    const double *bounds, unsigned n_bounds);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prometheus's text format, version 0.0.4. */
#include "agent/base/promtext.h"

#include <math.h>

static const char *const types[] = {
    [PROM_GAUGE] = "gauge",
    [PROM_COUNTER] = "counter",
    [PROM_HISTOGRAM] = "histogram",
};

void prom_family(GString *text, const char *name, PromType type, const char *help) {
  g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

static void append_escaped(GString *text, const char *value) {
  g_autofree char *valid = g_utf8_make_valid(value ? value : "", -1);

  for (const char *p = valid; *p; p++) {
    if (*p == '\n') {
      g_string_append(text, "\\n");
      continue;
    }
    if (*p == '\\' || *p == '"')
      g_string_append_c(text, '\\');
    g_string_append_c(text, *p);
  }
}

/* Whole numbers in full, however large: people read counts, too. Independent of the locale. */
static void append_number(GString *text, double value) {
  char number[G_ASCII_DTOSTR_BUF_SIZE];

  if (isinf(value))
    g_string_append(text, value > 0 ? "+Inf" : "-Inf");
  else if (value == floor(value) && fabs(value) < 1e15)
    g_string_append(text, g_ascii_formatd(number, sizeof number, "%.0f", value));
  else
    g_string_append(text, g_ascii_formatd(number, sizeof number, "%.15g", value));
}

void prom_sample(GString *text, const char *name, const PromLabel *labels, unsigned n_labels, double value) {
  g_string_append(text, name);
  for (unsigned i = 0; i < n_labels; i++) {
    g_string_append_printf(text, "%c%s=\"", i == 0 ? '{' : ',', labels[i].name);
    append_escaped(text, labels[i].value);
    g_string_append_c(text, '"');
  }
  g_string_append(text, n_labels > 0 ? "} " : " ");
  append_number(text, value);
  g_string_append_c(text, '\n');
}

void prom_value(GString *text, const char *name, double value) {
  prom_sample(text, name, NULL, 0, value);
}

void prom_histogram_note(PromHistogram *histogram, const double *bounds, unsigned n_bounds, double value) {
  histogram->count++;
  histogram->sum += value;
  for (unsigned i = 0; i < n_bounds; i++)
    if (value <= bounds[i]) {
      histogram->below[i]++;
      return;
    }
}

void prom_histogram(GString *text, const char *name, const char *help, const PromHistogram *histogram,
                    const double *bounds, unsigned n_bounds) {
  g_autofree char *bucket = g_strconcat(name, "_bucket", NULL);
  g_autofree char *sum = g_strconcat(name, "_sum", NULL);
  g_autofree char *count = g_strconcat(name, "_count", NULL);
  uint64_t at_most = 0;

  prom_family(text, name, PROM_HISTOGRAM, help);
  for (unsigned i = 0; i <= n_bounds; i++) {
    g_autoptr(GString) bound = g_string_new(NULL);

    append_number(bound, i < n_bounds ? bounds[i] : HUGE_VAL);
    at_most = i < n_bounds ? at_most + histogram->below[i] : histogram->count;
    prom_sample(text, bucket, &(PromLabel){"le", bound->str}, 1, (double)at_most);
  }
  prom_value(text, sum, histogram->sum);
  prom_value(text, count, (double)histogram->count);
}

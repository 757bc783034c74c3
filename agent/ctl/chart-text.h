/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as text: charts made of characters, and the decisions as a list. Pure: no terminal, no clock. */
#pragma once

#include "agent/ctl/report.h"

#define CHART_TEXT_WIDTH_MIN 50
#define CHART_TEXT_WIDTH_MAX 160

/* Numbered marks, remaining memory, bandwidth, dirty rate, throttle (if any), time, passes and stages. No line is wider than
 * `width`, which is clamped to CHART_TEXT_WIDTH_MIN to …MAX. Plain ASCII without `utf8`. For a report that has started; to
 * be freed. */
char *chart_text(const Report *report, unsigned width, bool utf8);

/* The numbered list of marks with their times, wrapped. Empty without marks; to be freed. */
char *chart_text_marks(const Report *report, unsigned width);

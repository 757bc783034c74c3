/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as text: bars of characters over time, and what was decided as a list. Pure: no terminal, no clock. */
#pragma once

#include "agent/ctl/report.h"

#define CHART_TEXT_WIDTH_MIN 50
#define CHART_TEXT_WIDTH_MAX 160

/* Remaining, bandwidth, dirty rate, throttle where there was any, the time, passes, stages, numbered marks. No line is wider than
 * `width`, which is taken as CHART_TEXT_WIDTH_MIN to …MAX. Without `utf8` it is plain ASCII. Of a report that has started; to be
 * freed. */
char *chart_text(const Report *report, unsigned width, bool utf8);

/* The marks by their numbers, with their times, wrapped. Empty without marks; to be freed. */
char *chart_text_marks(const Report *report, unsigned width);

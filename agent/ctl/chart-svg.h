/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as an SVG file, drawn by cairo. */
#pragma once

#include "agent/ctl/report.h"

/* The content of the file. `closing` describes the outcome, one line per statement. */
GBytes *chart_svg(const Report *report, const char *closing, GError **error);

/* Writes the file atomically. Replaces an existing regular file, but nothing else. */
bool chart_svg_write(const char *path, GBytes *svg, GError **error);

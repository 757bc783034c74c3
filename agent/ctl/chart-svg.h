/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report as an SVG file, by cairo. */
#pragma once

#include "agent/ctl/report.h"

/* The text of the file. `closing` is what is said of the end, a line each. */
GBytes *chart_svg(const Report *report, const char *closing, GError **error);

/* Puts it there, whole or not at all. What is there is replaced, if it is a file. */
bool chart_svg_write(const char *path, GBytes *svg, GError **error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes, rates, times and hostile text, as people read them. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Returned by value, so that `format_bytes(x).text` can stand among printf's arguments. -1 is unknown: "-".
 */
typedef struct FormatText {
  char text[32];
} FormatText;

/* "512 B", "9.5 MiB", "118 MiB": units of 1024, and a decimal only below ten. */
FormatText format_bytes(int64_t bytes);

/* "118 MiB/s" */
FormatText format_rate(int64_t bytes_per_s);

/* "45 ms", "12.3 s", "4 min 05 s", "2 h 07 min", "3 d 4 h" */
FormatText format_duration_ms(int64_t ms);

/* The same in whole seconds, for what counts down or up: "0 s", "7 s", "4 min 05 s". */
FormatText format_seconds_of_ms(int64_t ms);

/* Microseconds since the epoch as local time: "2024-05-01 12:34:56", and "12:34:56". */
FormatText format_time(int64_t usec_realtime);
FormatText format_clock(int64_t usec_realtime);

/* A copy that cannot steer a terminal: control characters, and without `utf8` all beyond ASCII, become '?'.
 * Line ends stay. Names of domains and messages of libvirt come from elsewhere. */
char *format_safe(const char *text, bool utf8);

/* How many columns a text takes, near enough: its characters. */
unsigned format_width(const char *text);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes, rates, times and untrusted text in human-readable form. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Returned by value, so that `format_bytes(x).text` works as an argument of printf. -1 is unknown: "-". */
typedef struct FormatText {
  char text[32];
} FormatText;

/* "512 B", "9.5 MiB", "118 MiB": units of 1024, with a decimal only below ten. */
FormatText format_bytes(int64_t bytes);

/* "118 MiB/s" */
FormatText format_rate(int64_t bytes_per_s);

/* "45 ms", "12.3 s", "4 min 05 s", "2 h 07 min", "3 d 4 h" */
FormatText format_duration_ms(int64_t ms);

/* The same in whole seconds, for values that count up or down: "0 s", "7 s", "4 min 05 s". */
FormatText format_seconds_of_ms(int64_t ms);

/* Microseconds since the epoch as local time: "2024-05-01 12:34:56" or "12:34:56". */
FormatText format_time(int64_t usec_realtime);
FormatText format_clock(int64_t usec_realtime);

/* A copy that is safe to print on a terminal: control characters, and without `utf8` everything beyond ASCII, become
 * '?'. Newlines stay. Domain names and libvirt's messages are not under our control. */
char *format_safe(const char *text, bool utf8);

/* Width in columns, approximated by the number of characters. */
unsigned format_width(const char *text);

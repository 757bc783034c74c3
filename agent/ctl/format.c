/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes, rates, times and untrusted text in human-readable form. */
#include "agent/ctl/format.h"

#include <stdio.h>
#include <time.h>

static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

static const FormatText unknown = {"-"};

static FormatText format_scaled(int64_t bytes, const char *suffix) {
  FormatText out = unknown;
  double value = (double)bytes;
  unsigned unit = 0;

  if (bytes < 0)
    return out;
  if (bytes < 1024) {
    snprintf(out.text, sizeof(out.text), "%d B%s", (int)bytes, suffix);
    return out;
  }
  /* 1023.5 would be printed as 1024: use the next unit instead. */
  while (value >= 1023.5 && unit + 1 < G_N_ELEMENTS(byte_units)) {
    value /= 1024;
    unit++;
  }
  snprintf(out.text, sizeof(out.text), value < 9.95 ? "%.1f %s%s" : "%.0f %s%s", value, byte_units[unit],
           suffix);
  return out;
}

FormatText format_bytes(int64_t bytes) {
  return format_scaled(bytes, "");
}

FormatText format_rate(int64_t bytes_per_s) {
  return format_scaled(bytes_per_s, "/s");
}

FormatText format_seconds_of_ms(int64_t ms) {
  FormatText out = unknown;
  int64_t s = ms / 1000;

  if (ms < 0)
    return out;
  if (s < 60)
    snprintf(out.text, sizeof(out.text), "%d s", (int)s);
  else if (s < 3600)
    snprintf(out.text, sizeof(out.text), "%d min %02d s", (int)(s / 60), (int)(s % 60));
  else if (s < 86400)
    snprintf(out.text, sizeof(out.text), "%d h %02d min", (int)(s / 3600), (int)(s / 60 % 60));
  else
    snprintf(out.text, sizeof(out.text), "%" G_GINT64_FORMAT " d %d h", s / 86400, (int)(s / 3600 % 24));
  return out;
}

FormatText format_duration_ms(int64_t ms) {
  FormatText out = unknown;

  if (ms < 0)
    return out;
  if (ms < 1000)
    snprintf(out.text, sizeof(out.text), "%d ms", (int)ms);
  else if (ms < 59950)
    snprintf(out.text, sizeof(out.text), "%.1f s", (double)ms / 1000);
  else
    return format_seconds_of_ms(ms + 500);
  return out;
}

static FormatText format_local(int64_t usec_realtime, const char *pattern) {
  FormatText out = unknown;
  time_t seconds = (time_t)(usec_realtime / G_USEC_PER_SEC);
  g_autoptr(GDateTime) time = usec_realtime < 0 ? NULL : g_date_time_new_from_unix_local(seconds);
  g_autofree char *text = time ? g_date_time_format(time, pattern) : NULL;

  if (text)
    g_strlcpy(out.text, text, sizeof(out.text));
  return out;
}

FormatText format_time(int64_t usec_realtime) {
  return format_local(usec_realtime, "%Y-%m-%d %H:%M:%S");
}

FormatText format_clock(int64_t usec_realtime) {
  return format_local(usec_realtime, "%H:%M:%S");
}

char *format_safe(const char *text, bool utf8) {
  g_autofree char *valid = g_utf8_make_valid(text, -1);
  GString *out = g_string_new(NULL);

  for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
    gunichar c = g_utf8_get_char(p);

    if (c == '\n' || (c >= 0x20 && c < 0x7f))
      g_string_append_c(out, (char)c);
    else if (c < 0xa0 || !utf8 || !g_unichar_isprint(c))
      g_string_append_c(out, '?');
    else
      g_string_append_unichar(out, c);
  }
  return g_string_free(out, FALSE);
}

unsigned format_width(const char *text) {
  return (unsigned)g_utf8_strlen(text, -1);
}

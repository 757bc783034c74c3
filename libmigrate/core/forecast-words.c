/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A forecast in words. */
#include "libmigrate/core/forecast.h"

#include "libmigrate/core/table.h"

#include <stdio.h>

static const char *const way_names[] = {
    [MIG_WAY_PRE_COPY] = "pre_copy",
    [MIG_WAY_AUTO_CONVERGE] = "auto_converge",
    [MIG_WAY_PAUSE] = "pause",
    [MIG_WAY_POST_COPY] = "post_copy",
};
TABLE_COVERS(way_names, MIG_WAY_COUNT);

static const char *const bar_names[] = {
    [MIG_WAY_OPEN] = "open",
    [MIG_WAY_NOT_PERMITTED] = "not permitted",
    [MIG_WAY_NOT_STARTED_FOR] = "not enabled at the start",
    [MIG_WAY_REFUSED] = "tried without success",
    [MIG_WAY_NEVER_ENDS] = "would not converge",
    [MIG_WAY_PAUSE_TOO_LONG] = "pause too long",
    [MIG_WAY_TOO_LATE] = "would miss the deadline",
    [MIG_WAY_CAPPED] = "permitted throttle too low",
    [MIG_WAY_USELESS] = "throttling does not slow it",
    [MIG_WAY_UNKNOWN] = "not known yet",
};
TABLE_COVERS(bar_names, MIG_WAY_BAR_COUNT);

const char *mig_way_name(MigWay way) {
  return table_name(way_names, MIG_WAY_COUNT, (int)way);
}

const char *mig_way_bar_name(MigWayBar bar) {
  return table_name(bar_names, MIG_WAY_BAR_COUNT, (int)bar);
}

static void describe_way(const MigWayForecast *way, const char *name, char *ret_text, size_t size) {
  if (way->bar == MIG_WAY_OPEN)
    snprintf(ret_text, size, "%s: %.1f s in total, guest silent for %.0f ms", name, way->total_s,
             way->pause_s * 1000);
  else
    snprintf(ret_text, size, "%s: %s", name, mig_way_bar_name(way->bar));
}

void mig_forecast_describe(const MigForecast *forecast, char *ret_text, size_t size) {
  const char *separator = "";
  size_t used = 0;
  if (size > 0)
    ret_text[0] = '\0';
  for (int i = 0; i < MIG_WAY_COUNT && used < size; i++) {
    char text[120];
    if (forecast->ways[i].bar == MIG_WAY_NOT_PERMITTED)
      continue;
    describe_way(&forecast->ways[i], mig_way_name((MigWay)i), text, sizeof(text));
    int n = snprintf(ret_text + used, size - used, "%s%s", separator, text);
    used += n > 0 ? (size_t)n : 0;
    separator = "; ";
  }
}

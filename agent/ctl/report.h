/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a report shows of a job, taken out of the reply to GetHistory once. */
#pragma once

#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"

#include <glib.h>

/* Instead of a chart of a report without points. */
#define REPORT_NO_READINGS "Nothing was read of this migration while it ran, so there are no curves."

/* All times are seconds since the start of the migration; bytes and bytes per second as they are. */
typedef struct ReportPoint {
  double begin_s, end_s;
  double remaining, remaining_max; /* memory and disks */
  double bandwidth, dirty_rate;
  double throttle_pct;
  int64_t iteration;
  MigStage stage;
} ReportPoint;

typedef struct ReportBand {
  MigStage stage;
  double begin_s, end_s;
} ReportBand;

/* Something that was decided, asked for or that got in the way. */
typedef struct ReportMark {
  double at_s;
  const char *text; /* of the reply */
} ReportMark;

typedef struct Report {
  JobView job;
  bool started;           /* else there is nothing below */
  GArray *points;         /* ReportPoint, oldest first */
  GArray *bands;          /* ReportBand: without a gap from 0 to end_s, or none */
  GArray *marks;          /* ReportMark, oldest first */
  double end_s;           /* of the job, or of what is known so far; above 0 */
  double remaining_first; /* at 0: all of it, where that is known */
  double remaining_max, bandwidth_max, dirty_rate_max, throttle_max;
  bool has_disks;
} Report;

/* False: the reply has no job that can be understood. Its strings are borrowed by *ret. */
bool report_read(json_t *reply, Report *ret);
void report_clear(Report *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Report, report_clear)

const ReportPoint *report_point(const Report *report, size_t i);
const ReportBand *report_band(const Report *report, size_t i);
const ReportMark *report_mark(const Report *report, size_t i);

/* Does the point begin where the one before it ended? Else nobody looked in between. */
bool report_follows_on(const Report *report, size_t i);

/* "pre-copy 2.3 s, post-copy 1.8 s": how long each stage took, in the order in which they came; to be freed. */
char *report_stages(const Report *report);

/* Since the start of the migration: "0.0 s", "2.3 s", "4 min 05 s". */
FormatText report_format_time(double at_s);

/* "web1 to kvm2: moved in 8.4 s, downtime 85 ms"; to be freed. */
char *report_title(const Report *report);

/* Which job, when it began, how large it is and how much moved: "job 0123abcd, started …, 256 MiB of memory, 368 MiB
 * transferred, 4 passes"; to be freed. */
char *report_subtitle(const Report *report);

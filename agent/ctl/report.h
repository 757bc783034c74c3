/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of a report, parsed from the reply to GetHistory. */
#pragma once

#include "agent/ctl/format.h"
#include "agent/ctl/jobview.h"

#include <glib.h>

/* Shown instead of a chart if a report has no points. */
#define REPORT_NO_READINGS "No data was recorded while this migration ran, so there is no chart."

/* Times are in seconds since the start of the migration, sizes in bytes, rates in bytes per second. */
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

/* A decision, a request or an incident. */
typedef struct ReportMark {
  double at_s;
  const char *text; /* belongs to the reply */
} ReportMark;

typedef struct Report {
  JobView job;
  bool started;           /* if not, everything below is empty */
  GArray *points;         /* ReportPoint, oldest first */
  GArray *bands;          /* ReportBand: contiguous from 0 to end_s, or empty */
  GArray *marks;          /* ReportMark, oldest first */
  double end_s;           /* end of the job, or of what is known so far; above 0 */
  double remaining_first; /* remaining bytes at time 0: everything, if known */
  double remaining_max, bandwidth_max, dirty_rate_max, throttle_max;
  bool has_disks;
} Report;

/* False: the reply contains no valid job. *ret borrows strings from the reply. */
bool report_read(json_t *reply, Report *ret);
void report_clear(Report *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Report, report_clear)

const ReportPoint *report_point(const Report *report, size_t i);
const ReportBand *report_band(const Report *report, size_t i);
const ReportMark *report_mark(const Report *report, size_t i);

/* Whether the point begins where the previous one ended. If not, there is a gap in the data. */
bool report_follows_on(const Report *report, size_t i);

/* "pre-copy 2.3 s, post-copy 1.8 s": the duration of each stage, in order; to be freed. */
char *report_stages(const Report *report);

/* Since the start of the migration: "0.0 s", "2.3 s", "4 min 05 s". */
FormatText report_format_time(double at_s);

/* "web1 to kvm2: migrated in 8.4 s, downtime 85 ms"; to be freed. */
char *report_title(const Report *report);

/* Job, start, size and amount of data: "job 0123abcd, started …, 256 MiB of memory, 368 MiB transferred, 4 passes"; to be
 * freed. */
char *report_subtitle(const Report *report);

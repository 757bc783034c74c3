/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of a report, parsed from the reply to GetHistory. */
#include "agent/ctl/report.h"
#include "agent/ctl/format.h"
#include "agent/ctl/progress.h"

#include <string.h>

/* However short the migration was, the time axis needs a length. */
#define END_MIN_S 0.1

const ReportPoint *report_point(const Report *report, size_t i) {
  return &g_array_index(report->points, ReportPoint, i);
}

const ReportBand *report_band(const Report *report, size_t i) {
  return &g_array_index(report->bands, ReportBand, i);
}

const ReportMark *report_mark(const Report *report, size_t i) {
  return &g_array_index(report->marks, ReportMark, i);
}

bool report_follows_on(const Report *report, size_t i) {
  double before_s = i == 0 ? 0 : report_point(report, i - 1)->end_s;

  return report_point(report, i)->begin_s <= before_s + 0.0005;
}

/* --- reading --- */

static double number_or_zero(json_t *object, const char *key) {
  int64_t value = json_int_of(object, key);

  return value > 0 ? (double)value : 0;
}

static MigStage stage_of(json_t *object) {
  const char *name = json_string_of(object, "stage");
  int stage = name ? mig_stage_from_name(name) : MIG_ENUM_UNKNOWN;

  return stage == MIG_ENUM_UNKNOWN ? MIG_STAGE_NONE : (MigStage)stage;
}

static void read_points(json_t *samples, Report *report) {
  double before_s = 0;
  json_t *sample;
  size_t i;

  json_array_foreach (samples, i, sample) {
    double disks = number_or_zero(sample, "disk_remaining_bytes");
    ReportPoint point = {
        .end_s = number_or_zero(sample, "elapsed_ms") / 1000,
        .remaining = number_or_zero(sample, "memory_remaining_bytes") + disks,
        .remaining_max = number_or_zero(sample, "memory_remaining_max_bytes") + disks,
        .bandwidth = number_or_zero(sample, "bandwidth_bytes_per_s"),
        .dirty_rate = number_or_zero(sample, "dirty_rate_bytes_per_s"),
        .throttle_pct = MIN(number_or_zero(sample, "throttle_pct"), 100),
        .iteration = json_int_of(sample, "iteration"),
        .stage = stage_of(sample),
    };

    point.begin_s = point.end_s - number_or_zero(sample, "span_ms") / 1000;
    point.remaining_max = MAX(point.remaining_max, point.remaining);
    /* No agent sends overlapping points. Drop them, since the code below relies on the order. */
    if (point.begin_s < before_s - 0.0005 || point.end_s < before_s)
      continue;
    before_s = point.end_s;
    report->has_disks = report->has_disks || disks > 0;
    report->remaining_max = MAX(report->remaining_max, point.remaining_max);
    report->bandwidth_max = MAX(report->bandwidth_max, point.bandwidth);
    report->dirty_rate_max = MAX(report->dirty_rate_max, point.dirty_rate);
    report->throttle_max = MAX(report->throttle_max, point.throttle_pct);
    g_array_append_val(report->points, point);
  }
}

/* A migration starts with all of the memory remaining. */
static void find_first(Report *report) {
  double total = (double)MAX(report->job.memory_total, 0) + (double)MAX(report->job.disk_total, 0);
  const ReportPoint *first;

  if (report->points->len == 0)
    return;
  first = report_point(report, 0);
  report->remaining_first = first->iteration <= 1 ? MAX(first->remaining_max, total) : first->remaining_max;
  if (report_follows_on(report, 0))
    report->remaining_max = MAX(report->remaining_max, report->remaining_first);
}

static double time_of(const Report *report, json_t *event) {
  int64_t usec = json_int_of(event, "time_usec_realtime");

  return usec < 0 ? -1 : (double)(usec - report->job.started_us) / G_USEC_PER_SEC;
}

static bool is_mark(json_t *event) {
  static const char *const kinds[] = {"decision", "tuned", "abort_requested", "agent_restarted", "warning"};
  const char *kind = json_string_of(event, "kind"), *phase = json_string_of(event, "phase");

  for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
    if (g_strcmp0(kind, kinds[i]) == 0)
      return true;
  return g_strcmp0(kind, "phase") == 0 && g_strcmp0(phase, "recovering") == 0;
}

static void read_marks(json_t *events, Report *report) {
  json_t *event;
  size_t i;

  json_array_foreach (events, i, event) {
    ReportMark mark = {time_of(report, event), json_string_of(event, "message")};

    if (mark.at_s >= 0 && mark.text && is_mark(event))
      g_array_append_val(report->marks, mark);
  }
}

static bool is_read(const Report *report, double at_s) {
  for (guint i = 0; i < report->points->len; i++)
    if (at_s > report_point(report, i)->begin_s && at_s <= report_point(report, i)->end_s)
      return true;
  return false;
}

static void add_stage(GArray *seen, MigStage stage, double at_s) {
  ReportBand band = {stage, MAX(at_s, 0), 0};

  if (stage != MIG_STAGE_NONE)
    g_array_append_val(seen, band);
}

static int compare_bands(gconstpointer a, gconstpointer b) {
  const ReportBand *x = a, *y = b;

  return (x->begin_s > y->begin_s) - (x->begin_s < y->begin_s);
}

/* Samples have the stage. Where there are none, events do: for example, a switch to post-copy just before the end. */
static void read_bands(json_t *events, Report *report) {
  g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(ReportBand));
  json_t *event;
  size_t i;

  for (guint p = 0; p < report->points->len; p++)
    add_stage(seen, report_point(report, p)->stage, report_point(report, p)->begin_s);
  json_array_foreach (events, i, event) {
    double at_s = time_of(report, event);

    if (at_s >= 0 && !is_read(report, at_s))
      add_stage(seen, stage_of(event), at_s);
  }
  g_array_sort(seen, compare_bands);
  for (guint s = 0; s < seen->len; s++) {
    ReportBand *last =
        report->bands->len > 0 ? &g_array_index(report->bands, ReportBand, report->bands->len - 1) : NULL;
    ReportBand band = g_array_index(seen, ReportBand, s);

    band.end_s = report->end_s;
    if (!last)
      band.begin_s = 0;
    if (last && (last->stage == band.stage || band.begin_s >= report->end_s))
      continue;
    if (last)
      last->end_s = band.begin_s;
    g_array_append_val(report->bands, band);
  }
}

static double find_end(const Report *report, json_t *events) {
  const JobView *job = &report->job;
  double end_s = 0;
  json_t *event;
  size_t i;

  if (job->finished_us >= job->started_us)
    end_s = (double)(job->finished_us - job->started_us) / G_USEC_PER_SEC;
  else
    json_array_foreach (events, i, event)
      end_s = MAX(end_s, time_of(report, event));
  if (report->points->len > 0)
    end_s = MAX(end_s, report_point(report, report->points->len - 1)->end_s);
  return MAX(end_s, END_MIN_S);
}

bool report_read(json_t *reply, Report *ret) {
  json_t *job = json_object_get(reply, "job"), *events = json_object_get(job, "events");
  Report report = {0};

  if (!job_view_read(job, &report.job))
    return false;
  report.points = g_array_new(FALSE, FALSE, sizeof(ReportPoint));
  report.bands = g_array_new(FALSE, FALSE, sizeof(ReportBand));
  report.marks = g_array_new(FALSE, FALSE, sizeof(ReportMark));
  report.started = report.job.started_us >= 0;
  if (report.started) {
    read_points(json_object_get(reply, "samples"), &report);
    find_first(&report);
    read_marks(events, &report);
    report.end_s = find_end(&report, events);
    read_bands(events, &report);
  }
  *ret = report;
  return true;
}

void report_clear(Report *report) {
  g_clear_pointer(&report->points, g_array_unref);
  g_clear_pointer(&report->bands, g_array_unref);
  g_clear_pointer(&report->marks, g_array_unref);
}

/* --- in words --- */

static FormatText format_s(double seconds) {
  return format_duration_ms((int64_t)(seconds * 1000 + 0.5));
}

FormatText report_format_time(double at_s) {
  FormatText text;

  if (at_s >= 59.95)
    return format_s(at_s);
  g_snprintf(text.text, sizeof(text.text), "%.1f s", at_s);
  return text;
}

char *report_stages(const Report *report) {
  GString *text = g_string_new(NULL);

  for (guint i = 0; i < report->bands->len; i++) {
    const ReportBand *band = report_band(report, i);

    g_string_append_printf(text, "%s%s %s", i > 0 ? ", " : "", progress_stage_words(band->stage),
                           format_s(band->end_s - band->begin_s).text);
  }
  return g_string_free(text, FALSE);
}

char *report_title(const Report *report) {
  const JobView *job = &report->job;
  GString *text = g_string_new(NULL);

  g_string_printf(text, "%s to %s: ", job->domain, job_view_target(job));
  if (job->phase == MIG_PHASE_SUCCEEDED) {
    g_string_append(text, "migrated");
    if (job->total_time_ms >= 0)
      g_string_append_printf(text, " in %s", format_duration_ms(job->total_time_ms).text);
    if (job->downtime_ms >= 0)
      g_string_append_printf(text, ", downtime %s", format_duration_ms(job->downtime_ms).text);
  } else if (mig_phase_is_final(job->phase)) {
    g_string_append_printf(text, "%s", mig_phase_name(job->phase));
    if (report->started)
      g_string_append_printf(text, " after %s", format_s(report->end_s).text);
    if (job->cause_name)
      g_string_append_printf(text, " (%s)", job->cause_name);
  } else {
    g_string_append_printf(text, "%s", progress_doing(job));
    if (report->started)
      g_string_append_printf(text, ", %s so far", format_s(report->end_s).text);
  }
  return g_string_free(text, FALSE);
}

char *report_subtitle(const Report *report) {
  const JobView *job = &report->job;
  int64_t passes = report->points->len > 0 ? report_point(report, report->points->len - 1)->iteration : -1;
  GString *text = g_string_new(NULL);

  g_string_printf(text, "job %.8s, started %s", job->id, format_time(job->started_us).text);
  if (job->memory_total > 0)
    g_string_append_printf(text, ", %s of memory", format_bytes(job->memory_total).text);
  if (job->disk_total > 0)
    g_string_append_printf(text, ", %s of disks", format_bytes(job->disk_total).text);
  if (job->transferred_bytes >= 0)
    g_string_append_printf(text, ", %s transferred", format_bytes(job->transferred_bytes).text);
  if (passes > 0)
    g_string_append_printf(text, ", %" G_GINT64_FORMAT " pass%s", passes, passes == 1 ? "" : "es");
  return g_string_free(text, FALSE);
}

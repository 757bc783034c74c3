/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of a job on one line. Pure text formatting: no clock, no terminal. */
#include "agent/ctl/progress.h"
#include "agent/ctl/format.h"

#include <assert.h>
#include <glib.h>

#define BAR_MIN      10
#define BAR_MAX      30
#define BAR_STEP     4 /* so that it does not jitter with every digit */
#define NAME_COLUMNS 24

/* Numbers older than this are marked with their age. */
#define OLD_MS 3000

static const char *const stage_words[] = {
    [MIG_STAGE_NONE] = "migrating",
    [MIG_STAGE_PRE_COPY] = "pre-copy",
    [MIG_STAGE_AUTO_CONVERGE] = "auto-converge",
    [MIG_STAGE_STOP_AND_COPY] = "stop-and-copy",
    [MIG_STAGE_POST_COPY] = "post-copy",
};
static_assert(G_N_ELEMENTS(stage_words) == MIG_STAGE_COUNT, "words for each stage");

const char *progress_stage_words(MigStage stage) {
  return stage_words[stage];
}

const char *progress_way_words(MigStage way) {
  if (way == MIG_STAGE_NONE)
    return "no permitted way";
  return way == MIG_STAGE_STOP_AND_COPY ? "a pause" : stage_words[way];
}

const char *progress_doing(const JobView *job) {
  return job->phase == MIG_PHASE_MIGRATING ? stage_words[job->stage] : mig_phase_name(job->phase);
}

/* In display order. When there is not enough room, the segments with the lowest ranks stay. */
typedef enum Segment {
  SEGMENT_NAME,
  SEGMENT_PERCENT,
  SEGMENT_BAR,
  SEGMENT_DOING,
  SEGMENT_WAITING,
  SEGMENT_ITERATION,
  SEGMENT_RATE,
  SEGMENT_DIRTY_RATE,
  SEGMENT_REMAINING,
  SEGMENT_DOWNTIME,
  SEGMENT_ENDS,
  SEGMENT_THROTTLE,
  SEGMENT_FAULTS,
  SEGMENT_DEADLINE,
  SEGMENT_AGE,
  SEGMENT_COUNT
} Segment;

static const unsigned ranks[] = {
    [SEGMENT_PERCENT] = 0, [SEGMENT_DOING] = 1,      [SEGMENT_NAME] = 2,        [SEGMENT_AGE] = 3,
    [SEGMENT_BAR] = 4,     [SEGMENT_REMAINING] = 5,  [SEGMENT_RATE] = 6,        [SEGMENT_WAITING] = 7,
    [SEGMENT_ENDS] = 8,    [SEGMENT_DEADLINE] = 9,   [SEGMENT_DIRTY_RATE] = 10, [SEGMENT_DOWNTIME] = 11,
    [SEGMENT_FAULTS] = 12, [SEGMENT_ITERATION] = 13, [SEGMENT_THROTTLE] = 14,
};
static_assert(G_N_ELEMENTS(ranks) == SEGMENT_COUNT, "a rank for each segment");

static char *short_name(const char *name, bool utf8) {
  g_autofree char *safe = g_utf8_make_valid(name, -1);
  g_autofree char *head = NULL;

  if (format_width(safe) <= NAME_COLUMNS)
    return g_steal_pointer(&safe);
  head = g_utf8_substring(safe, 0, NAME_COLUMNS - 1);
  return g_strconcat(head, utf8 ? "…" : "~", NULL);
}

static char *describe_age(const ProgressInput *input) {
  int64_t age_ms = MAX(input->job->age_ms, 0) + input->received_ms;

  if (input->away_ms >= 0)
    return g_strdup_printf("agent unreachable for %s", format_seconds_of_ms(input->away_ms).text);
  if (input->job->has_progress && input->job->phase != MIG_PHASE_PENDING && age_ms >= OLD_MS)
    return g_strdup_printf("numbers %s old", format_seconds_of_ms(age_ms).text);
  return NULL;
}

/* The forecast is stale once another way was taken or an abort was requested. */
static bool is_foreseen(const JobView *job) {
  return job->has_forecast && job->phase == MIG_PHASE_MIGRATING && !job->abort_requested &&
         (job->stage != MIG_STAGE_POST_COPY || job->forecast_way == MIG_STAGE_POST_COPY);
}

/* The forecast starts with the migration. The agent's clock is this node's clock. */
static int64_t ends_in_ms(const ProgressInput *input) {
  const JobView *job = input->job;
  int64_t elapsed_ms = job->started_us >= 0
                           ? (input->now_us - job->started_us) / 1000
                           : MAX(job->elapsed_ms, 0) + MAX(job->age_ms, 0) + input->received_ms;

  return MAX(job->forecast_total_ms - elapsed_ms, 0);
}

/* Names the way if it differs from the current stage. Once post-copy runs, its pause is over. */
static void describe_forecast(const ProgressInput *input, char *ret[SEGMENT_COUNT]) {
  const JobView *job = input->job;

  if (job->forecast_way == MIG_STAGE_NONE) {
    ret[SEGMENT_ENDS] = g_strdup("no permitted way to complete");
    return;
  }
  if (job->forecast_total_ms >= 0) {
    int64_t left_ms = ends_in_ms(input);
    g_autofree char *when =
        left_ms > 0 ? g_strdup_printf("in ~%s", format_seconds_of_ms(left_ms + 999).text) : g_strdup("soon");
    bool other = job->forecast_way != job->stage;

    ret[SEGMENT_ENDS] = g_strdup_printf("done %s%s%s", when, other ? " by " : "",
                                        other ? progress_way_words(job->forecast_way) : "");
  }
  if (job->forecast_pause_ms >= 0 && job->stage != MIG_STAGE_POST_COPY) {
    g_free(ret[SEGMENT_DOWNTIME]);
    ret[SEGMENT_DOWNTIME] = g_strdup_printf("pause ~%s", format_duration_ms(job->forecast_pause_ms).text);
  }
}

/* Fills all segments but the bar. NULL: nothing to say. */
static void describe(const ProgressInput *input, char *ret[SEGMENT_COUNT]) {
  const JobView *job = input->job;
  bool post_copy = job->stage == MIG_STAGE_POST_COPY;
  int64_t remaining = job_view_remaining(job);

  ret[SEGMENT_PERCENT] = g_strdup_printf("%3d%%", (int)input->percent);
  ret[SEGMENT_DOING] = job->abort_requested && !mig_phase_is_final(job->phase)
                           ? g_strdup_printf("aborting (%s)", progress_doing(job))
                           : g_strdup(progress_doing(job));
  ret[SEGMENT_AGE] = describe_age(input);
  if (job->phase == MIG_PHASE_PENDING && job->queue_position > 0)
    ret[SEGMENT_WAITING] = g_strdup_printf("#%" G_GINT64_FORMAT " in the queue: %s", job->queue_position,
                                           job->pending_message ? job->pending_message : "waiting");
  if (job->deadline_us >= 0 && !mig_phase_is_final(job->phase))
    ret[SEGMENT_DEADLINE] = g_strdup_printf(
        "deadline in %s", format_seconds_of_ms(MAX(job->deadline_us - input->now_us, 0) / 1000).text);
  if (!job->has_progress)
    return;
  if (job->iteration > 0 && !post_copy)
    ret[SEGMENT_ITERATION] = g_strdup_printf("pass %" G_GINT64_FORMAT, job->iteration);
  if (job->bandwidth >= 0)
    ret[SEGMENT_RATE] = g_strdup(format_rate(job->bandwidth).text);
  if (job->dirty_rate >= 0 && !post_copy)
    ret[SEGMENT_DIRTY_RATE] = g_strdup_printf("dirty %s", format_rate(job->dirty_rate).text);
  if (remaining >= 0)
    ret[SEGMENT_REMAINING] = g_strdup_printf("%s left", format_bytes(remaining).text);
  if (job->expected_downtime_ms >= 0 && !post_copy)
    ret[SEGMENT_DOWNTIME] =
        g_strdup_printf("downtime ~%s", format_duration_ms(job->expected_downtime_ms).text);
  if (job->throttle_pct > 0)
    ret[SEGMENT_THROTTLE] = g_strdup_printf("throttle %" G_GINT64_FORMAT "%%", job->throttle_pct);
  if (job->post_copy_requests >= 0 && post_copy)
    ret[SEGMENT_FAULTS] = g_strdup_printf("%" G_GINT64_FORMAT " page faults", job->post_copy_requests);
  if (is_foreseen(job))
    describe_forecast(input, ret);
}

static void clear(char *segments[SEGMENT_COUNT]) {
  for (int i = 0; i < SEGMENT_COUNT; i++)
    g_free(segments[i]);
}

static char *draw_bar(int64_t percent, unsigned width, bool utf8) {
  unsigned inner = width - 2, full = (unsigned)(CLAMP(percent, 0, 100) * inner / 100);
  GString *bar = g_string_new("[");

  for (unsigned i = 0; i < inner; i++)
    g_string_append(bar, i < full ? (utf8 ? "█" : "#") : (utf8 ? "░" : "."));
  g_string_append_c(bar, ']');
  return g_string_free(bar, FALSE);
}

static char *join(char *segments[SEGMENT_COUNT], const bool *use) {
  GString *line = g_string_new(NULL);

  for (int i = 0; i < SEGMENT_COUNT; i++) {
    if (use && !use[i])
      continue;
    if (segments[i])
      g_string_append_printf(line, "%s%s", line->len > 0 ? "  " : "", segments[i]);
  }
  return g_string_free(line, FALSE);
}

char *progress_bar(const ProgressInput *input, unsigned width, bool utf8) {
  char *segments[SEGMENT_COUNT] = {NULL}, *line;
  bool use[SEGMENT_COUNT] = {false};
  unsigned used = 0;

  describe(input, segments);
  segments[SEGMENT_NAME] = short_name(input->job->domain, utf8);
  if (input->job->phase != MIG_PHASE_PENDING)
    segments[SEGMENT_BAR] = g_strnfill(BAR_MIN, '.');

  for (unsigned rank = 0; rank < SEGMENT_COUNT; rank++) {
    for (int i = 0; i < SEGMENT_COUNT; i++) {
      unsigned cost = segments[i] ? format_width(segments[i]) + (used > 0 ? 2 : 0) : 0;

      if (ranks[i] != rank || cost == 0 || used + cost > width)
        continue;
      use[i] = true;
      used += cost;
    }
  }
  if (use[SEGMENT_BAR]) {
    g_free(segments[SEGMENT_BAR]);
    segments[SEGMENT_BAR] =
        draw_bar(input->percent, MIN(BAR_MAX, BAR_MIN + (width - used) / BAR_STEP * BAR_STEP), utf8);
  }
  line = join(segments, use);
  clear(segments);
  return line;
}

char *progress_line(const ProgressInput *input) {
  char *segments[SEGMENT_COUNT] = {NULL}, *line;

  describe(input, segments);
  line = join(segments, NULL);
  clear(segments);
  return g_strchug(line);
}

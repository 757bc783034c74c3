/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's decisions in words. One sentence each, short enough for a line of the journal. */
#include "libmigrate/core/message.h"

#include "libmigrate/core/text.h"
#include "libmigrate/core/throttle.h"

#include <inttypes.h>
#include <stdio.h>

static const char *time_text(uint64_t ms, char text[static TEXT_NUMBER_SIZE]) {
  double s = (double)ms / 1000;
  if (s < 9.95)
    snprintf(text, TEXT_NUMBER_SIZE, "%.1f s", s);
  else if (s < 600)
    snprintf(text, TEXT_NUMBER_SIZE, "%.0f s", s);
  else if (s < 2 * 3600)
    snprintf(text, TEXT_NUMBER_SIZE, "%.0f min", s / 60);
  else
    snprintf(text, TEXT_NUMBER_SIZE, "%.1f h", s / 3600);
  return text;
}

static void add_numbers(Text *text, const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
  if (!monitor->have_last) {
    text_add(text, "no numbers could be read");
    return;
  }
  text_add(text, "%s of memory", text_bytes(last->memory_remaining_bytes, a));
  if (last->disk_total_bytes > 0)
    text_add(text, " and %s of disks", text_bytes(last->disk_remaining_bytes, a));
  text_add(text, " remain in iteration %" PRIu64 ", the guest dirties %s/s, the link carries %s/s",
           last->iteration, text_bytes(last->dirty_rate_bytes_per_s, a),
           text_bytes(last->bandwidth_bytes_per_s, b));
}

/* What would let the same guest through over the same link, of what is not permitted already. */
static void add_help(Text *text, const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  uint64_t limited = mig_policy_get(&monitor->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  uint64_t downtime = mig_policy_get(&monitor->policy, MIG_POLICY_MAX_DOWNTIME_MS);
  bool shared =
      monitor->share_bytes_per_s > 0 && monitor->share_bytes_per_s == mig_monitor_limit_bytes_per_s(monitor);
  const char *bandwidth = shared    ? "a larger share of MaxBandwidth="
                          : limited ? "a higher bandwidth_bytes_per_s"
                                    : "more bandwidth";
  text_add(text, "; ");
  if (!mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_AUTO_CONVERGE))
    text_add(text, "allow_auto_converge, ");
  if (last->expected_downtime_ms > downtime)
    text_add(text, "max_downtime_ms=%" PRIu64 " ", last->expected_downtime_ms);
  else
    text_add(text, "a larger max_downtime_ms ");
  text_add(text, "or %s would help", bandwidth);
}

void message_abort(const MigMonitor *monitor, MigCause cause, uint64_t waited_ms, char *ret_text,
                   size_t size) {
  Text text = {.text = ret_text, .size = size};
  const MigSample *last = &monitor->last;
  char a[TEXT_NUMBER_SIZE];
  time_text(waited_ms, a);
  switch (cause) {
  case MIG_CAUSE_DEADLINE:
    text_add(&text, "Not finished after %s, the deadline of %" PRIu64 " s/GiB: ", a,
             mig_policy_get(&monitor->policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB));
    add_numbers(&text, monitor);
    /* While a pass outruns the guest, time is all that it lacks. */
    if (monitor->have_last && last->dirty_rate_bytes_per_s >= last->bandwidth_bytes_per_s)
      add_help(&text, monitor);
    else
      text_add(&text, "; a larger completion_timeout_s_per_gib would help");
    break;
  case MIG_CAUSE_NO_PROGRESS:
    text_add(&text, "No further than before for %s: ", a);
    add_numbers(&text, monitor);
    if (monitor->memory.seen) {
      char best[TEXT_NUMBER_SIZE];
      text_add(&text, ", no pass began with less than %s",
               text_bytes(monitor->memory.best_remaining_bytes, best));
    }
    add_help(&text, monitor);
    break;
  case MIG_CAUSE_LINK_STALLED:
    text_add(&text, "No data has moved for %s with %s of memory left", a,
             text_bytes(last->memory_remaining_bytes, (char[TEXT_NUMBER_SIZE]){0}));
    text_add(&text, " in iteration %" PRIu64 ": look at the network between the hosts and at the target",
             last->iteration);
    break;
  default:
    text_add(&text, "%s", mig_cause_describe(cause));
    return;
  }
  text_add(&text, ".");
}

/* What the guest does to this link, as far as the curve tells. */
static void add_seen(Text *text, const MigMonitor *monitor) {
  const MigSample *last = &monitor->last;
  double bandwidth = (double)last->bandwidth_bytes_per_s;
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];
  double pass_s = bandwidth > 0 ? (double)monitor->pass_bytes / bandwidth : 0;
  double bytes = mig_dirty_curve_lower(&monitor->curve, pass_s);
  text_add(text, "Iteration %" PRIu64 " sends %s at %s/s, and the guest dirties %s meanwhile",
           last->iteration, text_bytes(monitor->pass_bytes, a), text_bytes(last->bandwidth_bytes_per_s, b),
           text_bytes(bytes > 0 ? (uint64_t)bytes : 0, c));
  if (last->throttle_pct > 0)
    text_add(text, " though slowed by %" PRIu64 " %%", last->throttle_pct);
  if (throttle_is_imminent(monitor))
    text_add(text, ", next by %u %%, %s", throttle_next_pct(monitor),
             throttle_cap_pct(monitor) > 0 ? "above max_throttle_pct" : "which is not permitted any more");
}

static void add_open_way(Text *text, const MigWayForecast *way) {
  char total[TEXT_NUMBER_SIZE];
  text_add(text, "%s in all, silent for %.0f ms", time_text((uint64_t)(way->total_s * 1000), total),
           way->pause_s * 1000);
}

/* The others: what they would take, or what bars them. */
static void add_others(Text *text, const MigMonitor *monitor, MigWay chosen) {
  const char *separator = "; not";
  for (int i = 0; i < MIG_WAY_COUNT; i++) {
    const MigWayForecast *way = &monitor->forecast.ways[i];
    if (i == (int)chosen)
      continue;
    text_add(text, "%s %s (", separator, mig_way_name((MigWay)i));
    if (way->bar == MIG_WAY_OPEN)
      add_open_way(text, way);
    else
      text_add(text, "%s", mig_way_bar_name(way->bar));
    text_add(text, ")");
    separator = ",";
  }
}

/* The goals that would have let it through. */
static void add_remedy(Text *text, const MigMonitor *monitor) {
  const MigForecast *forecast = &monitor->forecast;
  double pause_ms = (forecast->ways[MIG_WAY_PAUSE].pause_s) * 1000;
  text_add(text, "; max_pause_ms=%.0f would do", pause_ms * 1.1 + 10);
  if (!mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_POST_COPY))
    text_add(text, ", or allow_post_copy");
  if (!mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_AUTO_CONVERGE))
    text_add(text, ", or allow_auto_converge");
  else if (throttle_is_last(monitor))
    text_add(text, ", or more of max_throttle_pct");
}

void message_way(const MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, char *ret_text,
                 size_t size) {
  Text text = {.text = ret_text, .size = size};
  const MigForecast *forecast = &monitor->forecast;
  MigWay way = forecast->best;
  add_seen(&text, monitor);
  if (kind == MIG_ACTION_ABORT) {
    text_add(&text, ": no way is open");
    add_others(&text, monitor, MIG_WAY_COUNT);
    add_remedy(&text, monitor);
    text_add(&text, ".");
    return;
  }
  text_add(&text, ": %s, ", mig_way_name(way));
  add_open_way(&text, &forecast->ways[way]);
  if (limit_ms > 0)
    text_add(&text, ", by a downtime limit of %" PRIu64 " ms", limit_ms);
  if (kind != MIG_ACTION_SET_DOWNTIME)
    add_others(&text, monitor, way);
  text_add(&text, ".");
}

void message_over_cap(const MigMonitor *monitor, MigActionKind kind, unsigned cap_pct, char *ret_text,
                      size_t size) {
  Text text = {.text = ret_text, .size = size};
  text_add(&text, "The guest is slowed by %" PRIu64 " %%, ", monitor->last.throttle_pct);
  if (cap_pct > 0)
    text_add(&text, "more than max_throttle_pct=%u permits", cap_pct);
  else
    text_add(&text, "though allow_auto_converge=no");
  if (kind == MIG_ACTION_START_POST_COPY)
    text_add(&text, ": post-copy ends it.");
  else
    text_add(&text, ": only an end of the migration ends that; a higher max_throttle_pct, max_pause_ms or "
                    "allow_post_copy would help.");
}

void message_goal(uint64_t was_ms, uint64_t goal_ms, char *ret_text, size_t size) {
  Text text = {.text = ret_text, .size = size};
  if (was_ms == UINT64_MAX) {
    text_add(
        &text,
        "Which downtime limit is in force is not known after a restart of the agent: it is set to %" PRIu64
        " ms.",
        goal_ms);
    return;
  }
  text_add(&text,
           "The downtime is limited to %" PRIu64 " ms from now on, as the goal has it, was %" PRIu64 " ms.",
           goal_ms, was_ms);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's decisions in words: a sentence or two each, short enough for one journal line. */
#include "libmigrate/core/message.h"

#include "libmigrate/core/choose.h"
#include "libmigrate/core/text.h"
#include "libmigrate/core/throttle.h"

#include <inttypes.h>
#include <math.h>
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
    text_add(text, "no statistics could be read");
    return;
  }
  text_add(text, "%s of memory", text_bytes(last->memory_remaining_bytes, a));
  if (last->disk_total_bytes > 0)
    text_add(text, " and %s of disks", text_bytes(last->disk_remaining_bytes, a));
  text_add(text, " remain in pass %" PRIu64 ", the guest dirties %s/s, the link carries %s/s",
           last->iteration, text_bytes(last->dirty_rate_bytes_per_s, a),
           text_bytes((uint64_t)choose_bandwidth(monitor), b));
}

/* What would help the same guest over the same link, of what is not permitted already. */
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
    text_add(&text, "Not finished after %s (deadline: %" PRIu64 " s/GiB): ", a,
             mig_policy_get(&monitor->policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB));
    add_numbers(&text, monitor);
    /* While the passes outrun the guest, all it needs is time. */
    if (monitor->have_last && (double)last->dirty_rate_bytes_per_s >= choose_bandwidth(monitor))
      add_help(&text, monitor);
    else
      text_add(&text, "; a larger completion_timeout_s_per_gib would help");
    break;
  case MIG_CAUSE_NO_PROGRESS:
    text_add(&text, "No progress for %s: ", a);
    add_numbers(&text, monitor);
    if (monitor->memory.seen) {
      char best[TEXT_NUMBER_SIZE];
      text_add(&text, ", no pass started with less than %s",
               text_bytes(monitor->memory.best_remaining_bytes, best));
    }
    add_help(&text, monitor);
    break;
  case MIG_CAUSE_LINK_STALLED:
    text_add(&text, "No data has moved for %s, with %s of memory left", a,
             text_bytes(last->memory_remaining_bytes, (char[TEXT_NUMBER_SIZE]){0}));
    text_add(&text, " in pass %" PRIu64 ": check the network between the hosts, and the target",
             last->iteration);
    break;
  default:
    text_add(&text, "%s", mig_cause_describe(cause));
    return;
  }
  text_add(&text, ".");
}

/* The goal that limits the throttle: a percentage, or how long each stop may be. */
static const char *throttle_goal(const MigMonitor *monitor) {
  uint64_t most_pct = mig_policy_get(&monitor->policy, MIG_POLICY_MAX_THROTTLE_PCT);
  return throttle_cap_pct(monitor) < most_pct ? "max_downtime_ms" : "max_throttle_pct";
}

static void add_throttle(Text *text, const MigMonitor *monitor) {
  if (monitor->last.throttle_pct > 0)
    text_add(text, ", although throttled by %" PRIu64 " %%%s", monitor->last.throttle_pct,
             monitor->open.throttle_useless ? ", which does not slow it" : "");
  if (throttle_is_imminent(monitor))
    text_add(text, "; QEMU would throttle by %u %% next, %s%s", throttle_next_pct(monitor),
             throttle_cap_pct(monitor) > 0 ? "too much for " : "which is no longer permitted",
             throttle_cap_pct(monitor) > 0 ? throttle_goal(monitor) : "");
}

static void add_open_way(Text *text, const MigWayForecast *way) {
  char total[TEXT_NUMBER_SIZE];
  text_add(text, "%s in total, guest silent for %.0f ms", time_text((uint64_t)(way->total_s * 1000), total),
           way->pause_s * 1000);
}

/* The ways not chosen: what they would take, or why they are not open. */
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

/* Why the permitted ways are not open. That pre-copy does not converge was said before; what the policy forbids is among
 * the remedies. */
static void add_bars(Text *text, const MigMonitor *monitor) {
  const char *separator = " Not possible: ";
  for (int i = 0; i < MIG_WAY_COUNT; i++) {
    MigWayBar bar = monitor->forecast.ways[i].bar;
    if (bar == MIG_WAY_NOT_PERMITTED || (i == MIG_WAY_PRE_COPY && bar == MIG_WAY_NEVER_ENDS))
      continue;
    text_add(text, "%s%s (%s)", separator, mig_way_name((MigWay)i), mig_way_bar_name(bar));
    separator = ", ";
  }
  if (*separator == ',')
    text_add(text, ".");
}

/* The goals that would have let it finish. */
static void add_remedy(Text *text, const MigMonitor *monitor) {
  const MigWayForecast *pause = &monitor->forecast.ways[MIG_WAY_PAUSE];
  /* Not less than what is dirty now would take. */
  double more_s = (double)monitor->pass_bytes / choose_bandwidth(monitor) - pause->downtime_s;
  double pause_ms = (pause->pause_s + fmax(more_s, 0)) * 1000;
  const char *post_copy =
      mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_POST_COPY) ? NULL : "allow_post_copy";
  char higher[40];
  snprintf(higher, sizeof(higher), "a higher %s", throttle_goal(monitor));
  const char *throttle = !mig_policy_get(&monitor->policy, MIG_POLICY_ALLOW_AUTO_CONVERGE)
                             ? "allow_auto_converge"
                         : throttle_is_last(monitor) && !monitor->open.throttle_useless ? higher
                                                                                        : NULL;
  text_add(text, " Would finish with max_pause_ms=%.0f", pause_ms * 1.1 + 10);
  if (post_copy)
    text_add(text, "%s%s", throttle ? ", " : " or ", post_copy);
  if (throttle)
    text_add(text, " or %s", throttle);
  text_add(text, ".");
}

static void describe_abort(Text *text, const MigMonitor *monitor) {
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];
  bool converges = monitor->forecast.ways[MIG_WAY_PRE_COPY].bar != MIG_WAY_NEVER_ENDS;
  text_add(text, "%s: %s per pass at %s/s, guest dirties %s meanwhile",
           converges ? "Cannot finish as permitted" : "Will not converge", text_bytes(monitor->pass_bytes, a),
           text_bytes((uint64_t)choose_bandwidth(monitor), b),
           text_bytes(choose_dirtied_in_pass(monitor), c));
  add_throttle(text, monitor);
  text_add(text, ".");
  add_bars(text, monitor);
  add_remedy(text, monitor);
}

static void add_pass(Text *text, const MigMonitor *monitor) {
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];
  text_add(text, "Pass %" PRIu64 " sends %s at %s/s, guest dirties %s meanwhile", monitor->last.iteration,
           text_bytes(monitor->pass_bytes, a), text_bytes((uint64_t)choose_bandwidth(monitor), b),
           text_bytes(choose_dirtied_in_pass(monitor), c));
  add_throttle(text, monitor);
}

void message_waits(const MigMonitor *monitor, uint64_t limit_ms, char *ret_text, size_t size) {
  Text text = {.text = ret_text, .size = size};
  add_pass(&text, monitor);
  text_add(&text, ": waiting for a pass that fits a downtime limit of %" PRIu64 " ms.", limit_ms);
}

void message_way(const MigMonitor *monitor, MigActionKind kind, uint64_t limit_ms, char *ret_text,
                 size_t size) {
  Text text = {.text = ret_text, .size = size};
  const MigForecast *forecast = &monitor->forecast;
  MigWay way = forecast->best;
  if (kind == MIG_ACTION_ABORT) {
    describe_abort(&text, monitor);
    return;
  }
  add_pass(&text, monitor);
  text_add(&text, ": %s, ", mig_way_name(way));
  add_open_way(&text, &forecast->ways[way]);
  if (limit_ms > 0)
    text_add(&text, ", with a downtime limit of %" PRIu64 " ms", limit_ms);
  if (kind != MIG_ACTION_SET_DOWNTIME)
    add_others(&text, monitor, way);
  text_add(&text, ".");
}

void message_over_cap(const MigMonitor *monitor, MigActionKind kind, unsigned cap_pct, char *ret_text,
                      size_t size) {
  Text text = {.text = ret_text, .size = size};
  text_add(&text, "The guest is throttled by %" PRIu64 " %%, ", monitor->last.throttle_pct);
  if (cap_pct > 0)
    text_add(&text, "and %s permits %u %%", throttle_goal(monitor), cap_pct);
  else
    text_add(&text, "although allow_auto_converge=no");
  if (kind == MIG_ACTION_START_POST_COPY)
    text_add(&text, "; post-copy ends that.");
  else
    text_add(&text,
             "; only ending the migration stops that. Would finish with a higher %s, "
             "max_pause_ms or allow_post_copy.",
             throttle_goal(monitor));
}

void message_goal(uint64_t was_ms, uint64_t goal_ms, char *ret_text, size_t size) {
  Text text = {.text = ret_text, .size = size};
  if (was_ms == UINT64_MAX)
    text_add(&text,
             "After a restart of the agent the downtime limit in force is unknown; setting it to %" PRIu64
             " ms.",
             goal_ms);
  else
    text_add(&text,
             "Lowering the downtime limit from %" PRIu64 " ms to %" PRIu64 " ms, as the goals require.",
             was_ms, goal_ms);
}

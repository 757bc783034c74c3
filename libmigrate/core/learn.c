/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the monitor learns from a sample. */
#include "libmigrate/core/choose.h"

#include "libmigrate/core/throttle.h"

#include <math.h>

/* A stream that reaches this much of its share is limited by the share, not by the link. */
#define HELD_BACK      0.9
#define LOAD_WINDOW_MS 1000
#define RECENT_MS      1000

typedef struct PassBegun {
  uint64_t passes;    /* that have started */
  uint64_t bytes;     /* dirty at the start of each, on average */
  uint64_t begin_ms;  /* of the last one */
  uint64_t processed; /* sent in all by then */
} PassBegun;

/* One or more passes started between two samples: how long a pass took and what it left, on average. What they all
 * left has been sent since, minus the rest of the last one and plus the rest of the one before them. The start of the
 * current pass follows from how much of it has been sent. */
static PassBegun pass_begun(const MigMonitor *monitor, const MigSample *sample) {
  const MigSample *last = &monitor->last;
  uint64_t passes = since(sample->iteration, last->iteration);
  uint64_t sent = since(sample->memory_processed_bytes, last->memory_processed_bytes);
  uint64_t bytes = (sample->memory_remaining_bytes + since(sent, last->memory_remaining_bytes)) / passes;
  uint64_t sent_of_this = since(bytes, sample->memory_remaining_bytes);
  uint64_t ago_ms = 0;
  if (sample->bandwidth_bytes_per_s > 0)
    ago_ms = (uint64_t)((double)sent_of_this * 1000.0 / (double)sample->bandwidth_bytes_per_s);
  if (ago_ms > since(sample->now_ms, last->now_ms))
    ago_ms = since(sample->now_ms, last->now_ms);

  return (PassBegun){.passes = passes,
                     .bytes = bytes,
                     .begin_ms = sample->now_ms - ago_ms,
                     .processed = since(sample->memory_processed_bytes, sent_of_this)};
}

static void enter_pass(MigMonitor *monitor, const PassBegun *begun) {
  monitor->pass_start_ms = begun->begin_ms;
  monitor->prior_pass_bytes = monitor->pass_bytes;
  monitor->pass_bytes = begun->bytes;
  monitor->pass_processed = begun->processed;
  monitor->pass_whole = true;
}

static void learn_from_passes(MigMonitor *monitor, const MigSample *sample) {
  PassBegun begun = pass_begun(monitor, sample);
  double took_s = (double)since(begun.begin_ms, monitor->pass_start_ms) / 1000.0 / (double)begun.passes;
  uint64_t sent = since(begun.processed, monitor->pass_processed) / begun.passes;
  throttle_note_pass(monitor, monitor->last.now_ms, sample->now_ms, sent, begun.bytes);
  /* The length of a pass that was seen to start is known. The first one under a new throttle is left out, unless
   * there may be no other. */
  bool whole = monitor->passes_seen > 0 || monitor->last.iteration <= 1 ||
               (monitor->pass_whole && throttle_is_last(monitor));
  if (whole && !mig_dirty_curve_observe(&monitor->curve, took_s, (double)begun.bytes))
    monitor->changed_ms = sample->now_ms;
  enter_pass(monitor, &begun);
  monitor->passes_seen += (unsigned)(begun.passes > 1000 ? 1000 : begun.passes);
}

/* A throttled guest behaves like a different one. QEMU throttles as a pass starts, which is then the first under the
 * new throttle, and may be seen to start before the throttle shows. Otherwise the current pass mixes both, and
 * nothing can be learned from it. */
static void learn_from_throttle(MigMonitor *monitor, const MigSample *sample) {
  uint64_t passes = since(sample->iteration, monitor->last.iteration);
  mig_dirty_curve_restart(&monitor->curve);
  throttle_note_step(monitor, monitor->last.now_ms, sample->now_ms, passes);
  if (passes > 0) {
    PassBegun begun = pass_begun(monitor, sample);
    enter_pass(monitor, &begun);
  } else if (!monitor->pass_whole || since(sample->now_ms, monitor->pass_start_ms) > RECENT_MS) {
    monitor->pass_start_ms = sample->now_ms;
    monitor->pass_bytes = sample->memory_remaining_bytes;
    monitor->pass_processed = sample->memory_processed_bytes;
    monitor->pass_whole = false;
  }
  monitor->passes_seen = 0;
}

/* A throttled guest only looks calm. */
static void observe_load(MigMonitor *monitor, const MigSample *sample) {
  MigGuestLoad *load = &monitor->load;
  uint64_t ms = since(sample->now_ms, load->from_ms);
  if (sample->guest_cpus == 0 || sample->throttle_pct > 0) {
    load->counting = false;
    return;
  }
  if (load->counting && ms < LOAD_WINDOW_MS)
    return;
  if (load->counting && sample->guest_cpu_ms >= load->from_cpu_ms) {
    double used =
        (double)(sample->guest_cpu_ms - load->from_cpu_ms) / (double)ms / (double)sample->guest_cpus;
    double share = fmin(used, 1.0);
    load->most_share = load->seen ? fmax(load->most_share, share) : share;
    load->least_share = load->seen ? fmin(load->least_share, share) : share;
    load->seen = true;
    if (share <= load->least_share + CHOOSE_LOAD_NOISE || share < CHOOSE_CALM_SHARE * load->most_share)
      load->calm_ms = sample->now_ms;
    if (monitor->cpu_share <= 0)
      monitor->cpu_share = share;
  }
  load->counting = true;
  load->from_ms = sample->now_ms;
  load->from_cpu_ms = sample->guest_cpu_ms;
}

/* Does the link set the pace? */
static bool shows_link(const MigMonitor *monitor, const MigSample *sample) {
  return !sample->post_copy &&
         (monitor->share_bytes_per_s == 0 ||
          (double)sample->bandwidth_bytes_per_s < HELD_BACK * (double)monitor->share_bytes_per_s);
}

void choose_observe(MigMonitor *monitor, const MigSample *sample, bool first) {
  const MigSample *last = &monitor->last;
  observe_load(monitor, sample);
  if (first) {
    monitor->pass_start_ms = sample->iteration <= 1 ? monitor->start_ms : sample->now_ms;
    monitor->pass_bytes =
        sample->iteration <= 1 ? sample->memory_total_bytes : sample->memory_remaining_bytes;
    monitor->way_since_ms = sample->now_ms;
    monitor->way_iteration = sample->iteration;
    monitor->pass_processed = sample->iteration <= 1 ? 0 : sample->memory_processed_bytes;
    monitor->throttle_counted_ms = monitor->pass_start_ms;
    monitor->throttle_counts = sample->iteration > 1; /* earlier passes are not known */
  }
  if (monitor->flow_begin_ms == 0 && sample->memory_processed_bytes > 0) {
    monitor->flow_begin_ms = sample->now_ms;
    if (sample->iteration <= 1)
      monitor->pass_start_ms = sample->now_ms;
  }
  if (monitor->flow_begin_ms > 0 && since(sample->now_ms, monitor->flow_begin_ms) >= CHOOSE_SETTLE_MS &&
      shows_link(monitor, sample) && sample->bandwidth_bytes_per_s > monitor->peak_bytes_per_s)
    monitor->peak_bytes_per_s = sample->bandwidth_bytes_per_s;
  /* Across a gap in the readings, a rate says nothing about the link now. */
  uint64_t gap_ms = first ? 0 : since(sample->now_ms, last->now_ms);
  monitor->recent_bytes_per_s = 0;
  if (gap_ms > 0 && gap_ms <= RECENT_MS)
    monitor->recent_bytes_per_s =
        (double)since(sample->memory_processed_bytes, last->memory_processed_bytes) * 1000.0 / (double)gap_ms;
  if (!first && sample->throttle_pct != last->throttle_pct)
    learn_from_throttle(monitor, sample);
  else if (!first && sample->iteration > last->iteration)
    learn_from_passes(monitor, sample);
}

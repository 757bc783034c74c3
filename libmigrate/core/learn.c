/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the monitor learns from a sample. */
#include "libmigrate/core/choose.h"

#include "libmigrate/core/forecast-private.h"
#include "libmigrate/core/throttle.h"

#include <math.h>

/* A stream that reaches this much of its share is limited by the share, not by the link. */
#define HELD_BACK      0.9
#define LOAD_WINDOW_MS 1000
#define RECENT_MS      1000
/* Up to this share of zero pages, the pace is that of the others within as much. */
#define ZERO_SHARE 0.1
/* A time of which QEMU spent more than this share with the dirty log tells nothing about the pace. */
#define SYNC_SHARE 0.1
/* Once all memory was sent, going on for as long again costs no more than is lost by giving up; and no longer than this. */
#define WORTH_MS 60000
/* How much of its excess over what is read the reckoned debt of the disks' copy loses with each reading. */
#define OWED_SHARE 0.1
/* A throttle that should leave more than this share of the dirtying tells nothing. */
#define TELLING_SHARE   0.8
#define UNHELPED_PASSES 2

typedef struct PassBegun {
  uint64_t passes;    /* that have started */
  uint64_t bytes;     /* dirty at the start of each, on average */
  uint64_t dirtied;   /* of these, dirtied during the pass before; the others it left over */
  uint64_t begin_ms;  /* of the last one */
  uint64_t processed; /* sent in all by then */
} PassBegun;

/* One or more passes started between two samples: how long a pass took and what it left, on average. What they all
 * left has been sent since, minus the rest of the last one and plus the rest of the one before them. The start of the
 * current pass follows from how much of it has been sent. QEMU ends a pass as soon as the rest fits the downtime limit, so
 * with a large one, much of what is dirty may be left over. */
static PassBegun pass_begun(const MigMonitor *monitor, const MigSample *sample) {
  const MigSample *last = &monitor->last;
  uint64_t passes = since(sample->iteration, last->iteration);
  uint64_t sent = since(gone_bytes(sample), gone_bytes(last));
  uint64_t bytes = (sample->memory_remaining_bytes + since(sent, last->memory_remaining_bytes)) / passes;
  uint64_t dirtied = since(sample->memory_remaining_bytes + sent, last->memory_remaining_bytes) / passes;
  /* What short passes leave over is not in the mean. */
  bytes = bytes > sample->memory_remaining_bytes ? bytes : sample->memory_remaining_bytes;
  uint64_t sent_of_this = since(bytes, sample->memory_remaining_bytes);
  uint64_t ago_ms = 0;
  if (choose_bandwidth(monitor) > 0)
    ago_ms = (uint64_t)((double)sent_of_this * 1000.0 / choose_bandwidth(monitor));
  if (ago_ms > since(sample->now_ms, last->now_ms))
    ago_ms = since(sample->now_ms, last->now_ms);

  return (PassBegun){.passes = passes,
                     .bytes = bytes,
                     .dirtied = dirtied,
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

/* Did the throttle do anything? The guest is compared with what it did before; with half of what the throttle should have
 * taken from it, it helps. Where its whole working set is dirtied all the same, or too little should have been taken,
 * nobody can tell. Devices and the host's own threads are not throttled. */
static void judge_throttle(MigMonitor *monitor, double s, double bytes) {
  const MigDirtyCurve *before = &monitor->unthrottled;
  double speed = forecast_speed(monitor->cpu_share, (unsigned)monitor->last.throttle_pct);
  double without = mig_dirty_curve_lower(before, s), with = mig_dirty_curve_upper(before, s * speed);
  if (before->n == 0 || with > TELLING_SHARE * without)
    return;
  monitor->unhelped = bytes > (without + with) / 2 ? monitor->unhelped + 1 : 0;
  monitor->open.throttle_useless = monitor->unhelped >= UNHELPED_PASSES;
}

/* Each of the passes that are over now, on average. */
static double took_s_of(const MigMonitor *monitor, const PassBegun *begun) {
  return (double)since(begun->begin_ms, monitor->pass_start_ms) / 1000.0 / (double)begun->passes;
}

static void learn_from_passes(MigMonitor *monitor, const MigSample *sample) {
  PassBegun begun = pass_begun(monitor, sample);
  double took_s = took_s_of(monitor, &begun);
  uint64_t sent = since(begun.processed, monitor->pass_processed) / begun.passes;
  throttle_note_pass(monitor, monitor->last.now_ms, sample->now_ms, sent, begun.dirtied);
  /* The length of a pass that was seen to start is known. The first one under a new throttle is left out, unless
   * there may be no other. */
  bool whole = monitor->passes_seen > 0 || monitor->last.iteration == 1 ||
               (monitor->pass_whole && throttle_is_last(monitor));
  if (whole && !mig_dirty_curve_observe(&monitor->curve, took_s, (double)begun.dirtied))
    monitor->changed_ms = sample->now_ms;
  if (whole && monitor->last.throttle_pct > 0)
    judge_throttle(monitor, took_s, (double)begun.dirtied);
  enter_pass(monitor, &begun);
  monitor->passes_seen += (unsigned)(begun.passes > 1000 ? 1000 : begun.passes);
}

/* A throttled guest behaves like a different one. QEMU throttles as a pass starts, which is then the first under the
 * new throttle, and may be seen to start before the throttle shows. Otherwise the current pass mixes both, and
 * nothing can be learned from it. */
static void learn_from_throttle(MigMonitor *monitor, const MigSample *sample) {
  uint64_t passes = since(sample->iteration, monitor->last.iteration);
  PassBegun begun = {0};
  if (passes > 0)
    begun = pass_begun(monitor, sample);
  /* The pass that is over was all under the old one. */
  bool whole = passes > 0 && monitor->passes_seen > 0 && monitor->last.throttle_pct > 0;
  if (whole)
    judge_throttle(monitor, took_s_of(monitor, &begun), (double)begun.dirtied);
  if (monitor->last.throttle_pct == 0)
    monitor->unthrottled = monitor->curve;
  mig_dirty_curve_restart(&monitor->curve);
  if (whole && monitor->open.throttle_useless) /* nor does the new one change anything */
    mig_dirty_curve_observe(&monitor->curve, took_s_of(monitor, &begun), (double)begun.dirtied);
  throttle_note_step(monitor, monitor->last.now_ms, sample->now_ms, passes);
  if (passes > 0) {
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
  if (load->counting && sample->busiest_cpu_ms >= load->from_cpu_ms) {
    double share = fmin((double)(sample->busiest_cpu_ms - load->from_cpu_ms) / (double)ms, 1.0);
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
  load->from_cpu_ms = sample->busiest_cpu_ms;
}

uint64_t mig_vcpus_update(MigVcpus *vcpus, const uint64_t *cpu_ms, unsigned n) {
  uint64_t busiest_ms = 0;
  n = n < MIG_VCPUS ? n : MIG_VCPUS;
  for (unsigned i = 0; i < n; i++) {
    uint64_t used_ms = n == vcpus->n ? since(cpu_ms[i], vcpus->cpu_ms[i]) : 0;
    busiest_ms = used_ms > busiest_ms ? used_ms : busiest_ms;
    vcpus->cpu_ms[i] = cpu_ms[i];
  }
  vcpus->n = n;
  vcpus->busiest_ms += busiest_ms;
  return vcpus->busiest_ms;
}

/* On a clock of its own, which runs only in what is added. */
static void pace_add(MigBandwidth *rate, uint64_t bytes, uint64_t ms) {
  mig_bandwidth_update(rate, rate->at_ms, rate->processed_bytes);
  mig_bandwidth_update(rate, rate->at_ms + ms, rate->processed_bytes + bytes);
}

static void observe_pace(MigMonitor *monitor, const MigSample *sample, bool first) {
  MigPace *pace = &monitor->pace;
  const MigSample *last = &monitor->last;
  uint64_t gone = since(gone_bytes(sample), gone_bytes(last));
  uint64_t zero = since(sample->memory_zero_bytes, last->memory_zero_bytes);
  uint64_t ms = since(sample->now_ms, last->now_ms), passes = since(sample->iteration, last->iteration);
  double sync_ms = 1000.0 * forecast_sync_s((double)sample->memory_total_bytes) * (double)passes;
  /* While the migration is set up nothing moves, nor while QEMU reads the dirty log between two passes. */
  if (first || gone_bytes(last) == 0 || sync_ms > SYNC_SHARE * (double)ms)
    return;
  if (last->iteration <= 1)
    pace_add(&pace->all, gone, ms);
  if (last->iteration > 1 || (double)zero <= ZERO_SHARE * (double)gone)
    pace_add(&pace->written, gone, ms);
}

/* The copy of a disk that is written to is behind by a sawtooth: the pause may meet its highest point. */
static void observe_disks(MigMonitor *monitor, const MigSample *sample) {
  uint64_t owed = monitor->disk_owed_bytes, read = sample->disk_remaining_bytes;
  if (monitor->flow_begin_ms > 0)
    monitor->disk_owed_bytes = read > owed ? read : owed - (uint64_t)(OWED_SHARE * (double)(owed - read));
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
  observe_pace(monitor, sample, first);
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
  observe_disks(monitor, sample);
  if (monitor->flow_begin_ms > 0 && since(sample->now_ms, monitor->flow_begin_ms) >= CHOOSE_SETTLE_MS &&
      shows_link(monitor, sample) && sample->bandwidth_bytes_per_s > monitor->peak_bytes_per_s)
    monitor->peak_bytes_per_s = sample->bandwidth_bytes_per_s;
  /* Across a gap in the readings, a rate says nothing about the link now. */
  uint64_t gap_ms = first ? 0 : since(sample->now_ms, last->now_ms);
  monitor->recent_bytes_per_s = 0;
  if (gap_ms > 0 && gap_ms <= RECENT_MS)
    monitor->recent_bytes_per_s =
        (double)since(gone_bytes(sample), gone_bytes(last)) * 1000.0 / (double)gap_ms;
  if (!first && last->iteration == 1 && sample->iteration > 1) {
    uint64_t took_ms = since(sample->now_ms, monitor->flow_begin_ms);
    monitor->worth_until_ms = sample->now_ms + (took_ms < WORTH_MS ? took_ms : WORTH_MS);
  }
  if (!first && sample->throttle_pct != last->throttle_pct)
    learn_from_throttle(monitor, sample);
  else if (!first && sample->iteration > last->iteration)
    learn_from_passes(monitor, sample);
}

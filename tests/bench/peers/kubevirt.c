/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* KubeVirt: the legacy engine, and the stall detector that may replace it. */
#include "tests/bench/peers/steering.h"

#include <string.h>

/* Source: kubevirt/kubevirt, pkg/virt-launcher/virtwrap/live-migration-source.go (newMigrationMonitor,
 * processInflightMigration, processStallDetectionIteration), pkg/virt-config/virt-config.go for the defaults,
 * VEP 248 for the stall detector (alpha).
 *
 * Defaults: polls each 400 ms; 150 s/GiB of deadline, over GB (10^9) rounded up; 150 s without progress;
 * post-copy, auto-converge and workload disruption off. QEMU's own downtime limit of 300 ms.
 *
 * Switches: allow_post_copy and allow_auto_converge are allowPostCopy and allowAutoConverge. A pause is
 * permitted where allowWorkloadDisruption is, which follows allowPostCopy unless it is set. Deadline and
 * progress timeout are taken from a policy that names them. */

enum {
  POLL_MS = 400,
  COMPLETION_S_PER_GB = 150,
  PROGRESS_TIMEOUT_S = 150,
};
static const uint64_t gb_bytes = 1000000000;
static const uint64_t largest_downtime_ms = 2000000; /* QEMU's limit */

typedef struct Options {
  bool post_copy;
  bool disruption;
  bool passthrough;
  uint64_t completion_s; /* 0: none */
} Options;

static void read_options(Options *ret_options, const MigPolicy *policy, const StrategyGuest *guest,
                         StrategyStart *ret_start) {
  uint64_t bytes = guest->memory_bytes + guest->disk_bytes;
  bool post_copy = mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY);
  *ret_options = (Options){
      .post_copy = post_copy,
      .disruption = post_copy || mig_policy_get(policy, MIG_POLICY_MAX_PAUSE_MS) > 0,
      .passthrough = guest->passthrough,
      .completion_s = policy_or(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, COMPLETION_S_PER_GB) *
                      ((bytes + gb_bytes - 1) / gb_bytes),
  };
  *ret_start = (StrategyStart){
      .post_copy = post_copy,
      .auto_converge = mig_policy_get(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE),
  };
}

/* Whole seconds, and only beyond them. */
static bool past(uint64_t elapsed, uint64_t limit_s) {
  return limit_s != 0 && elapsed / 1000 > limit_s;
}

/* The legacy engine */

typedef struct Legacy {
  Options options;
  uint64_t start_ms;
  uint64_t progress_timeout_s;
  uint64_t previous_bytes;
  uint64_t progress_ms;
  bool switched; /* to post-copy */
  bool paused;
} Legacy;

static void legacy_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                         StrategyStart *ret_start) {
  Legacy *legacy = state;
  *legacy = (Legacy){.start_ms = now_ms, .progress_ms = now_ms};
  legacy->progress_timeout_s = policy_or(policy, MIG_POLICY_PROGRESS_TIMEOUT_S, PROGRESS_TIMEOUT_S);
  read_options(&legacy->options, policy, guest, ret_start);
}

/* Past the deadline, with the permission to disturb the guest. A pause doubles the deadline. */
static void legacy_assist(Legacy *legacy, MigAction *ret_action) {
  Options *options = &legacy->options;
  if (options->post_copy && !options->passthrough) {
    legacy->switched = true;
    act_post_copy(ret_action, "the completion timeout has passed");
    return;
  }
  options->completion_s *= 2;
  legacy->paused = true;
  if (options->passthrough) {
    uint64_t wanted_ms = options->completion_s * 1000;
    act_downtime(ret_action, wanted_ms < largest_downtime_ms ? wanted_ms : largest_downtime_ms,
                 "the completion timeout has passed, with passthrough");
  } else {
    act_pause(ret_action, "the completion timeout has passed");
  }
}

static void legacy_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Legacy *legacy = state;
  const Options *options = &legacy->options;
  uint64_t elapsed = elapsed_ms(legacy->start_ms, sample);
  act_none(ret_action);
  if (!steerable(sample))
    return;

  /* Below the sample before it, however much above the best: any dip of the sawtooth is progress. */
  uint64_t remaining = remaining_bytes(sample);
  if (legacy->previous_bytes == 0 || remaining < legacy->previous_bytes)
    legacy->progress_ms = sample->now_ms;
  legacy->previous_bytes = remaining;

  uint64_t idle_ms = sample->now_ms - legacy->progress_ms;
  if (legacy->switched)
    return;
  if (options->disruption && !legacy->paused && past(elapsed, options->completion_s))
    legacy_assist(legacy, ret_action);
  else if (past(idle_ms, legacy->progress_timeout_s))
    act_abort(ret_action, MIG_CAUSE_NO_PROGRESS, "stuck for %u s", (unsigned)(idle_ms / 1000));
  else if (past(elapsed, options->completion_s))
    act_abort(ret_action, MIG_CAUSE_DEADLINE, "not complete after %u s", (unsigned)options->completion_s);
}

const Strategy kubevirt_strategy = {
    .name = "kubevirt",
    .source = "KubeVirt live-migration-source.go, legacy engine",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Legacy),
    .start = legacy_start,
    .step = legacy_step,
};

/* The stall detector. At the start of each iteration what remains is compared with the least that was seen
 * at one more than 40 s ago. Not 4 % less is a stall; from then on an iteration within 4 % of the best is
 * waited for, and the best is given up for the next after 40 s, 20 s, ... 1 s. There the cheapest permitted
 * way is taken: post-copy; any downtime, if disruption is permitted; the downtime that is needed, if
 * maxDowntime (900 ms) covers it; an abort, if it is 1.5 times as much. Past the deadline it aborts.
 * Migrations begin with a limit of 300 ms. */

enum {
  STALL_WINDOW_MS = 40000,
  LEAST_PATIENCE_MS = 1000,
  STALL_DOWNTIME_MS = 300,
  STALL_LARGEST_DOWNTIME_MS = 900,
  RECORDS = 128,     /* falling minima of 40 s: more than any link makes iterations of */
  HISTORY = 64,      /* only the smallest are ever looked at, one each second */
  STALL_POLL_MS = 50 /* stands in for the event that announces an iteration */
};
static const double stall_margin = 0.04;
static const double hopeless_factor = 1.5;
static const double bandwidth_weight = 0.5;

typedef struct Record {
  uint64_t at_ms;
  uint64_t bytes;
} Record;

typedef struct Stall {
  Options options;
  uint64_t start_ms, next_poll_ms;
  uint64_t largest_downtime_ms;
  uint64_t iteration;
  double bytes_per_s;
  Record records[RECORDS]; /* of the window, later ones smaller */
  unsigned n_records;
  bool have_old;
  uint64_t old_bytes; /* the least of those that left the window */
  bool stalled;
  uint64_t best_bytes;
  uint64_t patience_ms, patience_until_ms;
  uint64_t history[HISTORY]; /* since the stall, the smallest first */
  unsigned n_history;
  bool acted;
} Stall;

static void stall_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                        StrategyStart *ret_start) {
  Stall *stall = state;
  memset(stall, 0, sizeof(*stall));
  stall->start_ms = stall->next_poll_ms = now_ms;
  stall->largest_downtime_ms = policy_or(policy, MIG_POLICY_MAX_DOWNTIME_MS, STALL_LARGEST_DOWNTIME_MS);
  read_options(&stall->options, policy, guest, ret_start);
  ret_start->downtime_ms =
      stall->largest_downtime_ms < STALL_DOWNTIME_MS ? stall->largest_downtime_ms : STALL_DOWNTIME_MS;
}

static void record_iteration(Stall *stall, uint64_t at_ms, uint64_t bytes) {
  unsigned left = 0;
  for (; left < stall->n_records && at_ms - stall->records[left].at_ms >= STALL_WINDOW_MS; left++)
    if (!stall->have_old || stall->records[left].bytes < stall->old_bytes) {
      stall->have_old = true;
      stall->old_bytes = stall->records[left].bytes;
    }
  stall->n_records -= left;
  memmove(stall->records, stall->records + left, stall->n_records * sizeof(stall->records[0]));

  bool matters = (!stall->have_old || bytes <= stall->old_bytes) &&
                 (stall->n_records == 0 || bytes < stall->records[stall->n_records - 1].bytes);
  if (matters && stall->n_records < RECORDS)
    stall->records[stall->n_records++] = (Record){.at_ms = at_ms, .bytes = bytes};
}

static void remember(Stall *stall, uint64_t bytes) {
  unsigned at = stall->n_history;
  if (at == HISTORY && bytes >= stall->history[--at])
    return;
  for (; at > 0 && stall->history[at - 1] > bytes; at--)
    stall->history[at] = stall->history[at - 1];
  stall->history[at] = bytes;
  if (stall->n_history < HISTORY)
    stall->n_history++;
}

static void find_stall(Stall *stall, uint64_t at_ms, uint64_t bytes) {
  if (!stall->have_old || (double)bytes < (double)stall->old_bytes * (1 - stall_margin))
    return;
  stall->stalled = true;
  stall->best_bytes = stall->old_bytes;
  if (stall->n_records > 0 && stall->records[stall->n_records - 1].bytes < stall->best_bytes)
    stall->best_bytes = stall->records[stall->n_records - 1].bytes;
  stall->patience_ms = STALL_WINDOW_MS;
  stall->patience_until_ms = at_ms + stall->patience_ms;
}

static void lose_patience(Stall *stall, uint64_t at_ms) {
  if (at_ms < stall->patience_until_ms || stall->n_history == 0)
    return;
  stall->best_bytes = stall->history[0];
  memmove(stall->history, stall->history + 1, --stall->n_history * sizeof(stall->history[0]));
  stall->patience_ms =
      stall->patience_ms / 2 > LEAST_PATIENCE_MS ? stall->patience_ms / 2 : LEAST_PATIENCE_MS;
  stall->patience_until_ms = at_ms + stall->patience_ms;
}

static void converge(Stall *stall, MigAction *ret_action) {
  const Options *options = &stall->options;
  double needed_ms = (double)stall->best_bytes / stall->bytes_per_s * 1000;
  stall->acted = true;
  if (options->post_copy && !options->passthrough)
    act_post_copy(ret_action, "stalled, and near the best iteration");
  else if (options->disruption || options->passthrough)
    act_downtime(ret_action, largest_downtime_ms, "stalled, and the guest may be disturbed");
  else if (needed_ms <= (double)stall->largest_downtime_ms)
    act_downtime(ret_action, needed_ms > 1 ? (uint64_t)needed_ms : 1, "stalled, and this is enough");
  else if (needed_ms >= hopeless_factor * (double)stall->largest_downtime_ms)
    act_abort(ret_action, MIG_CAUSE_NOT_CONVERGING, "%.0f ms would be needed", needed_ms);
  else
    act_downtime(ret_action, stall->largest_downtime_ms, "stalled, and this is the most");
}

static void stall_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Stall *stall = state;
  act_none(ret_action);
  if (!steerable(sample))
    return;

  if (sample->iteration != stall->iteration) {
    uint64_t bytes = remaining_bytes(sample);
    stall->iteration = sample->iteration;
    record_iteration(stall, sample->elapsed_ms, bytes);
    if (!stall->stalled)
      find_stall(stall, sample->elapsed_ms, bytes);
    if (stall->stalled) {
      remember(stall, bytes);
      lose_patience(stall, sample->elapsed_ms);
      bool near = (double)bytes <= (double)stall->best_bytes * (1 + stall_margin);
      if (near && stall->best_bytes > 0 && stall->bytes_per_s > 0 && !stall->acted)
        converge(stall, ret_action);
    }
  } else if (sample->now_ms < stall->next_poll_ms) {
    return;
  } else {
    double bps = (double)sample->memory_bps_bytes_per_s;
    stall->bytes_per_s =
        stall->bytes_per_s > 0 ? stall->bytes_per_s + bandwidth_weight * (bps - stall->bytes_per_s) : bps;
  }
  stall->next_poll_ms = sample->now_ms + POLL_MS;
  if (ret_action->kind == MIG_ACTION_NONE &&
      past(elapsed_ms(stall->start_ms, sample), stall->options.completion_s))
    act_abort(ret_action, MIG_CAUSE_DEADLINE, "not complete after %u s",
              (unsigned)stall->options.completion_s);
}

const Strategy kubevirt_stall_strategy = {
    .name = "kubevirt-stall",
    .source = "KubeVirt live-migration-source.go, MigrationStallDetection (VEP 248, alpha)",
    .poll_ms = STALL_POLL_MS,
    .state_size = sizeof(Stall),
    .start = stall_start,
    .step = stall_step,
};

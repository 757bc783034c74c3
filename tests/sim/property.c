/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random guests, links, policies and faults: what must hold for every one of them.
 *
 *   property [COUNT [SEED]]     TAP; the seed is printed, and with each failure that of its guest
 *   property 1 SEED verbose     ... tells the course of one guest
 *
 * What is asserted, and how exactly:
 *  - There is an end, always.
 *  - The abort for the deadline is decided within one poll and one tick of it (and a slow answer).
 *    A move that ends otherwise, not in post-copy, ends within that and the time that the abort or the end takes.
 *  - QEMU is never given a downtime limit above what the policy permits. The switchover itself, on a link that is
 *    steady, is over within that limit and what the limit does not cover: device state, the socket's buffer. QEMU's own 300 ms
 *    hold until the first limit is set, which takes one poll: a small guest may be gone by then. On a link that changes QEMU's measure of 100 ms may be off
 *    by as much as the link changes; not asserted.
 *  - A pause is asked for only where one is permitted, never with a device that cannot be paused, and on a steady link it is over within
 *    what is permitted and the same addition.
 *  - Post-copy is asked for only where it is permitted and possible, and not when the link has been cut for longer than
 *    two polls (before that nobody can know).
 *  - The throttle that QEMU is told to begin with is not above the policy's. Nor does QEMU go above it later, but for a guest that
 *    changed in the middle of a pass; then for two polls, and what a slow answer or a slow action adds to it. Not asserted where
 *    readings are missing.
 *  - One abort at most, and nothing is asked after it or after the end.
 *  - Of the simulator itself, with each tenth guest: steered by one who asks for anything at any time, it shows no
 *    counter that falls, no more memory than there is, no way back from post-copy, no silence longer than the whole. */
#include "tests/sim/engine.h"
#include "tests/sim/guest.h"
#include "tests/sim/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_DEFAULT 100000
#define SHOWN         5
#define TICK_MS       1000
#define GIVE_UP_MS    (7 * 24 * UINT64_C(3600000))
/* Reading the log of a large guest, the 50 ms between two looks, rounding. */
#define MODEL_MS 60

typedef enum Property {
  PROPERTY_END,
  PROPERTY_DEADLINE,
  PROPERTY_DOWNTIME_LIMIT,
  PROPERTY_DOWNTIME,
  PROPERTY_PAUSE_PERMITTED,
  PROPERTY_PAUSE,
  PROPERTY_POST_COPY_PERMITTED,
  PROPERTY_POST_COPY_LINK,
  PROPERTY_THROTTLE,
  PROPERTY_THROTTLE_CAP,
  PROPERTY_ONE_ABORT,
  PROPERTY_POSSIBLE,
  PROPERTY_COUNT
} Property;

static const char *const property_names[PROPERTY_COUNT] = {
    [PROPERTY_END] = "there is always an end",
    [PROPERTY_DEADLINE] = "never past the deadline by more than a poll and a tick",
    [PROPERTY_DOWNTIME_LIMIT] = "no downtime limit above what is permitted",
    [PROPERTY_DOWNTIME] = "no switchover longer than permitted, on a steady link",
    [PROPERTY_PAUSE_PERMITTED] = "no pause where none is permitted",
    [PROPERTY_PAUSE] = "no pause longer than permitted, on a steady link",
    [PROPERTY_POST_COPY_PERMITTED] = "post-copy only where it is permitted and possible",
    [PROPERTY_POST_COPY_LINK] = "post-copy only while the link is alive",
    [PROPERTY_THROTTLE] = "no start with a throttle above what is permitted",
    [PROPERTY_THROTTLE_CAP] = "no throttle above what is permitted for longer than two polls",
    [PROPERTY_ONE_ABORT] = "one abort at most, and nothing after it",
    [PROPERTY_POSSIBLE] = "whoever steers, and however, the simulator shows nothing impossible",
};

typedef struct Run {
  SimScenario scenario;
  MigPolicy policy;
  SimResult result;
  bool steady; /* the link is what it was, all the time */
  bool sure;   /* actions are neither refused nor slow */
} Run;

/* --- a random guest --- */

static double uniform(uint64_t *random, double low, double high) {
  return low + (high - low) * sim_random(random);
}

static double log_uniform(uint64_t *random, double low, double high) {
  return exp(uniform(random, log(low), log(high)));
}

static bool chance(uint64_t *random, double share) {
  return sim_random(random) < share;
}

static void draw_region(uint64_t *random, const SimGuest *guest, double share, double link,
                        SimRegion *ret_region) {
  ret_region->ws_bytes = (uint64_t)((double)guest->memory_bytes * share * log_uniform(random, 0.01, 1.0));
  ret_region->rate_bytes_per_s = (uint64_t)(link * log_uniform(random, 0.005, 8.0));
  ret_region->writer = chance(random, 0.5) ? SIM_WRITER_RANDOM : SIM_WRITER_CYCLIC;
}

static void draw_guest(uint64_t *random, double link, SimGuest *guest) {
  /* A first pass of half a second to two minutes. */
  guest->memory_bytes = (uint64_t)(link * log_uniform(random, 0.5, 120.0));
  if (guest->memory_bytes < 16 * MIG_MIB_BYTES)
    guest->memory_bytes = 16 * MIG_MIB_BYTES;
  if (chance(random, 0.3))
    guest->zero_bytes = (uint64_t)((double)guest->memory_bytes * uniform(random, 0, 0.9));
  guest->zeroes = (SimZeroes)uniform(random, 0, 3);
  guest->busy_pct = chance(random, 0.3) ? (unsigned)uniform(random, 5, 100) : 0;
  guest->noise_pct = chance(random, 0.2) ? (unsigned)uniform(random, 5, 90) : 0;
  guest->passthrough = chance(random, 0.1);
  if (chance(random, 0.08))
    return; /* idle */
  unsigned phases = chance(random, 0.3) ? 2 + (unsigned)uniform(random, 0, 3) : 1;
  unsigned regions = 1 + (unsigned)uniform(random, 0, 3);
  for (unsigned p = 0; p < phases; p++) {
    guest->phases[p].duration_ms = phases > 1 ? (uint64_t)log_uniform(random, 300, 60000) : 0;
    for (unsigned r = 0; r < regions; r++)
      draw_region(random, guest, 0.9 / regions, link, &guest->phases[p].regions[r]);
  }
  guest->repeat = chance(random, 0.6);
  if (chance(random, 0.1)) {
    guest->disk_bytes = (uint64_t)(link * log_uniform(random, 1, 60));
    guest->disk_write_bytes_per_s = chance(random, 0.5) ? (uint64_t)(link * uniform(random, 0, 0.7)) : 0;
  }
}

static bool draw_link(uint64_t *random, double rate, SimLink *link) {
  bool steady = true;
  link->bytes_per_s = (uint64_t)rate;
  link->latency_ms = chance(random, 0.2) ? (unsigned)uniform(random, 1, 40) : 1;
  if (chance(random, 0.15)) {
    link->jitter_pct = (unsigned)uniform(random, 1, 80);
    steady = false;
  }
  if (chance(random, 0.25)) {
    unsigned steps = 1 + (unsigned)uniform(random, 0, 5);
    double at_ms = 0;
    for (unsigned i = 0; i < steps; i++) {
      at_ms += log_uniform(random, 500, 60000);
      bool cut = (i == 0 || link->steps[i - 1].bytes_per_s > 0) && chance(random, 0.4);
      link->steps[i] =
          (SimLinkStep){(uint64_t)at_ms, cut ? 0 : (uint64_t)(rate * log_uniform(random, 0.02, 1.5))};
    }
    steady = false;
  }
  return steady;
}

static void set(MigPolicy *policy, MigPolicyKey key, double value) {
  char reason[256];
  (void)mig_policy_set(policy, key, (uint64_t)value, reason, sizeof(reason));
}

static void draw_policy(uint64_t *random, double link, const SimGuest *guest, MigPolicy *policy) {
  mig_policy_init(policy);
  if (chance(random, 0.6))
    set(policy, MIG_POLICY_MAX_DOWNTIME_MS, log_uniform(random, 10, 5000));
  if (chance(random, 0.4))
    set(policy, MIG_POLICY_MAX_PAUSE_MS, log_uniform(random, 100, 30000));
  set(policy, MIG_POLICY_ALLOW_POST_COPY, chance(random, 0.4));
  set(policy, MIG_POLICY_ALLOW_AUTO_CONVERGE, chance(random, 0.4));
  if (chance(random, 0.5))
    set(policy, MIG_POLICY_MAX_THROTTLE_PCT, floor(uniform(random, 1, 100)));
  set(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, floor(log_uniform(random, 1, 400)));
  /* so that no run takes hours */
  double gib = (double)guest->memory_bytes / (double)MIG_GIB_BYTES,
         first_s = (double)guest->memory_bytes / link;
  if (chance(random, 0.8))
    set(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, ceil(first_s / gib * log_uniform(random, 0.5, 8)));
  else if (chance(random, 0.2))
    set(policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB, 0);
  if (chance(random, 0.4))
    set(policy, MIG_POLICY_PROGRESS_TIMEOUT_S, floor(log_uniform(random, 1, 300)));
  if (chance(random, 0.15))
    set(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S, link * log_uniform(random, 0.05, 1.2));
  if (guest->disk_bytes > 0 && chance(random, 0.7)) {
    set(policy, MIG_POLICY_COPY_DISKS, MIG_COPY_DISKS_ALL);
    set(policy, MIG_POLICY_ALLOW_POST_COPY, 0); /* a conflict, refused before a start */
  }
}

static bool draw_faults(uint64_t *random, SimScenario *scenario) {
  static const MigActionKind actions[] = {MIG_ACTION_SET_DOWNTIME, MIG_ACTION_START_POST_COPY,
                                          MIG_ACTION_PAUSE};
  unsigned n = 0;
  bool sure = true;
  if (chance(random, 0.15)) {
    uint64_t from_ms = (uint64_t)log_uniform(random, 100, 60000);
    scenario->faults[n++] = (SimFault){.kind = SIM_FAULT_NO_STATS,
                                       .from_ms = from_ms,
                                       .until_ms = from_ms + (uint64_t)log_uniform(random, 400, 60000)};
  }
  if (chance(random, 0.1)) {
    uint64_t from_ms = (uint64_t)log_uniform(random, 100, 60000);
    scenario->faults[n++] = (SimFault){.kind = SIM_FAULT_SLOW_STATS,
                                       .from_ms = from_ms,
                                       .until_ms = from_ms + (uint64_t)log_uniform(random, 400, 60000),
                                       .value_ms = (uint64_t)log_uniform(random, 10, 10000)};
  }
  if (chance(random, 0.2)) {
    scenario->faults[n++] = (SimFault){.kind = chance(random, 0.5) ? SIM_FAULT_REFUSE : SIM_FAULT_SLOW_ACTION,
                                       .until_ms = chance(random, 0.5) ? 20000 : 0,
                                       .action = actions[(unsigned)uniform(random, 0, 3)],
                                       .value_ms = (uint64_t)log_uniform(random, 10, 5000)};
    sure = false;
  }
  if (chance(random, 0.15))
    scenario->miss_pct = (unsigned)uniform(random, 1, 60);
  return sure;
}

static void draw(uint64_t seed, Run *run) {
  uint64_t random = seed;
  double link = log_uniform(&random, 4e6, 2.5e9);
  memset(&run->scenario, 0, sizeof(run->scenario));
  run->scenario.group = "random";
  run->scenario.name = "guest";
  run->scenario.what = "by chance";
  run->scenario.seed = seed;
  run->scenario.policy = &run->policy;
  run->scenario.give_up_ms = GIVE_UP_MS; /* later than any deadline that is drawn */
  run->steady = draw_link(&random, link, &run->scenario.link);
  draw_guest(&random, link, &run->scenario.guest);
  draw_policy(&random, link, &run->scenario.guest, &run->policy);
  run->sure = draw_faults(&random, &run->scenario);
  run->scenario.no_probe = chance(&random, 0.3);
  run->scenario.link_unknown = chance(&random, 0.3);
}

/* --- what must hold --- */

static uint64_t goal(const Run *run, MigPolicyKey key) {
  return mig_policy_get(&run->policy, key);
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* What no downtime limit covers. */
static uint64_t beyond_limit_ms(void) {
  return sim_host_default.fixed_downtime_ms + sim_host_default.buffer_ms + MODEL_MS;
}

/* How late a step may be. */
static uint64_t late_ms(const Run *run) {
  uint64_t late = strategy_handoffd.poll_ms + TICK_MS;
  for (unsigned i = 0; i < SIM_FAULTS; i++)
    if (run->scenario.faults[i].kind == SIM_FAULT_SLOW_ACTION)
      late += run->scenario.faults[i].value_ms;
  return late;
}

static uint64_t deadline_ms(const Run *run) {
  MigMonitor monitor;
  mig_monitor_init(&monitor, &run->policy, 0, run->scenario.guest.memory_bytes,
                   run->scenario.guest.disk_bytes);
  return mig_monitor_deadline_ms(&monitor);
}

/* Above max_downtime_ms only where a pause is permitted: that is how a guest with a device is paused. */
static uint64_t permitted_ms(const Run *run) {
  return larger(goal(run, MIG_POLICY_MAX_DOWNTIME_MS), goal(run, MIG_POLICY_MAX_PAUSE_MS));
}

/* The limit that QEMU held when it switched over was one of ours, or still its own. */
static bool downtime_holds(const Run *run) {
  const SimResult *result = &run->result;
  bool told = false;
  if (result->end != SIM_END_PRE_COPY || !run->steady || !run->sure)
    return true;
  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++)
    told |= result->events[i].action.kind == MIG_ACTION_SET_DOWNTIME &&
            result->events[i].outcome == SIM_OUTCOME_DONE;
  uint64_t limit = told ? permitted_ms(run) : larger(permitted_ms(run), 300);
  return result->downtime_ms <= limit + beyond_limit_ms();
}

static bool deadline_holds(const Run *run) {
  const SimResult *result = &run->result;
  uint64_t deadline = deadline_ms(run), last;
  if (deadline == UINT64_MAX)
    return true;
  last = deadline + late_ms(run);
  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++)
    if (result->events[i].action.kind == MIG_ACTION_ABORT && result->events[i].at_ms > last)
      return false;
  /* From post-copy there is no way back. */
  if (result->end == SIM_END_POST_COPY || result->end == SIM_END_POST_COPY_BROKEN)
    return true;
  return result->total_ms <= last + sim_host_default.finish_ms;
}

/* Each reading comes, and each action is carried out. */
static bool is_throttle_seen(const Run *run) {
  for (unsigned i = 0; i < SIM_FAULTS; i++)
    if (run->scenario.faults[i].kind == SIM_FAULT_NO_STATS ||
        run->scenario.faults[i].kind == SIM_FAULT_REFUSE)
      return false;
  return run->scenario.miss_pct == 0;
}

static bool throttle_holds(const Run *run) {
  uint64_t most_ms = 2 * strategy_handoffd.poll_ms;
  for (unsigned i = 0; i < SIM_FAULTS; i++)
    most_ms += 2 * run->scenario.faults[i].value_ms;
  return !is_throttle_seen(run) || run->result.over_cap_ms <= most_ms;
}

/* Returns a bit for each property that does not hold. */
static unsigned judge(const Run *run) {
  const SimResult *result = &run->result;
  unsigned broken = 0, aborts = 0, initial = result->start.throttle_initial_pct;
  bool pause = goal(run, MIG_POLICY_MAX_PAUSE_MS) > 0 && !run->scenario.guest.passthrough;
  bool post_copy = goal(run, MIG_POLICY_ALLOW_POST_COPY) && !run->scenario.guest.passthrough;
#define CHECK(property, holds) broken |= (holds) ? 0u : 1u << (property)
  CHECK(PROPERTY_END, result->end != SIM_END_GAVE_UP && result->action_count <= SIM_EVENTS);
  CHECK(PROPERTY_DEADLINE, deadline_holds(run));
  CHECK(PROPERTY_DOWNTIME, downtime_holds(run));
  CHECK(PROPERTY_THROTTLE, initial <= goal(run, MIG_POLICY_MAX_THROTTLE_PCT) || !result->start.auto_converge);
  CHECK(PROPERTY_THROTTLE, !result->start.auto_converge || goal(run, MIG_POLICY_ALLOW_AUTO_CONVERGE));
  CHECK(PROPERTY_THROTTLE_CAP, throttle_holds(run));
  CHECK(PROPERTY_POST_COPY_PERMITTED, post_copy || !result->start.post_copy);
  if (run->steady && result->end == SIM_END_PAUSED)
    CHECK(PROPERTY_PAUSE, result->pause_ms <= goal(run, MIG_POLICY_MAX_PAUSE_MS) + beyond_limit_ms());

  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++) {
    const SimEvent *event = &result->events[i];
    CHECK(PROPERTY_ONE_ABORT, aborts == 0);
    switch (event->action.kind) {
    case MIG_ACTION_ABORT:
      CHECK(PROPERTY_ONE_ABORT, event->action.cause != MIG_CAUSE_NONE);
      aborts++;
      break;
    case MIG_ACTION_SET_DOWNTIME:
      CHECK(PROPERTY_DOWNTIME_LIMIT, event->action.downtime_ms <= permitted_ms(run));
      break;
    case MIG_ACTION_START_POST_COPY:
      CHECK(PROPERTY_POST_COPY_PERMITTED, post_copy);
      CHECK(PROPERTY_POST_COPY_LINK, event->cut_ms <= 2 * strategy_handoffd.poll_ms);
      break;
    case MIG_ACTION_PAUSE:
      /* By a limit, so that QEMU stops the guest: also with a device. */
      CHECK(PROPERTY_PAUSE_PERMITTED,
            pause || (goal(run, MIG_POLICY_MAX_PAUSE_MS) > 0 && event->action.downtime_ms > 0));
      CHECK(PROPERTY_PAUSE_PERMITTED, event->action.downtime_ms <= goal(run, MIG_POLICY_MAX_PAUSE_MS));
      break;
    case MIG_ACTION_NONE:
    case MIG_ACTION_COUNT:
      break;
    }
  }
#undef CHECK
  return broken;
}

/* --- the simulator itself --- */

typedef struct Monkey {
  uint64_t random;
  uint64_t aborts_ms; /* so that there is an end */
  bool impossible;
  MigSample last;
} Monkey;

static void monkey_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                         StrategyStart *ret_start) {
  Monkey *monkey = state;
  monkey->random = guest->memory_bytes + guest->link_bytes_per_s;
  monkey->aborts_ms = (uint64_t)log_uniform(&monkey->random, 100, 600000);
  *ret_start = (StrategyStart){
      .post_copy = chance(&monkey->random, 0.7),
      .auto_converge = chance(&monkey->random, 0.5),
      .throttle_initial_pct = (unsigned)uniform(&monkey->random, 0, 100),
      .throttle_increment_pct = (unsigned)uniform(&monkey->random, 0, 50),
      .downtime_ms = (uint64_t)uniform(&monkey->random, 0, 1000),
  };
}

static bool impossible(const MigSample *last, const MigSample *sample) {
  return sample->now_ms < last->now_ms || sample->memory_processed_bytes < last->memory_processed_bytes ||
         sample->disk_processed_bytes < last->disk_processed_bytes || sample->iteration < last->iteration ||
         sample->memory_remaining_bytes > sample->memory_total_bytes || sample->throttle_pct > 99 ||
         (last->post_copy &&
          (!sample->post_copy || sample->memory_remaining_bytes > last->memory_remaining_bytes));
}

static void monkey_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Monkey *monkey = state;
  *ret_action = (MigAction){.kind = MIG_ACTION_NONE};
  if (sample->valid) {
    monkey->impossible |= impossible(&monkey->last, sample);
    monkey->last = *sample;
  }
  if (chance(&monkey->random, 0.05)) {
    ret_action->kind = (MigActionKind)(MIG_ACTION_SET_DOWNTIME + (unsigned)uniform(&monkey->random, 0, 3));
    ret_action->downtime_ms = (uint64_t)log_uniform(&monkey->random, 1, 1e7);
  }
  if (sample->now_ms >= monkey->aborts_ms)
    ret_action->kind = MIG_ACTION_ABORT;
  /* the state is gone when the run is over: this is how it is told */
  if (monkey->impossible)
    ret_action->cause = MIG_CAUSE_INTERNAL;
}

static const Strategy strategy_monkey = {"monkey",       "anything goes", 130,
                                         sizeof(Monkey), monkey_start,    monkey_step};

static bool simulator_holds(Run *run) {
  const SimResult *result = &run->result;
  sim_run(&run->scenario, &strategy_monkey, &run->result);
  bool holds = result->end != SIM_END_GAVE_UP && result->cause != MIG_CAUSE_INTERNAL &&
               result->longest_silence_ms <= result->total_ms + 1000 &&
               result->lost_work_ms <= result->total_ms && result->pause_ms <= result->total_ms &&
               result->downtime_ms <= result->total_ms;
  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++)
    holds &= result->events[i].action.cause != MIG_CAUSE_INTERNAL;
  /* all of the memory went over, unless it was zero pages */
  if (sim_end_is_success(result->end))
    holds &= result->wire_bytes >= run->scenario.guest.memory_bytes - run->scenario.guest.zero_bytes;
  return holds;
}

/* --- all of them --- */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void tell(const Run *run, uint64_t seed) {
  const SimGuest *guest = &run->scenario.guest;
  char text[64];
  printf("# guest %" PRIu64 ": memory %.0f MiB, link %.1f MiB/s, %s%s\n", seed,
         (double)guest->memory_bytes / (double)MIG_MIB_BYTES,
         (double)run->scenario.link.bytes_per_s / (double)MIG_MIB_BYTES, run->steady ? "steady" : "changing",
         run->sure ? "" : ", actions refused or slow");
  printf("# policy:");
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++)
    if (run->policy.set & (1u << key)) {
      mig_policy_format(&run->policy, (MigPolicyKey)key, text, sizeof(text));
      printf(" %s=%s", mig_policy_key_info((MigPolicyKey)key)->name, text);
    }
  printf("; deadline at %.1f s\n", (double)deadline_ms(run) / 1000.0);
  sim_trace_comment(&run->scenario, &run->result);
}

int main(int argc, char **argv) {
  uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : COUNT_DEFAULT;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  bool verbose = argc > 3;
  uint64_t failures[PROPERTY_COUNT] = {0}, ends[SIM_END_COUNT] = {0}, told = 0, polls = 0, over_cap = 0,
           over_cap_seen = 0;
  static Run run;
  double begin_s = now_s();

  printf("TAP version 13\n1..%d\n# %" PRIu64 " guests from seed %" PRIu64 "\n", PROPERTY_COUNT, count, seed);
  for (uint64_t i = 0; i < count; i++) {
    draw(seed + i, &run);
    sim_run(&run.scenario, &strategy_handoffd, &run.result);
    ends[run.result.end]++;
    polls += run.result.polls;
    over_cap += run.result.over_cap_ms > 0;
    over_cap_seen += run.result.over_cap_ms > 0 && is_throttle_seen(&run);
    unsigned broken = judge(&run);
    if ((seed + i) % 10 == 0 && !simulator_holds(&run))
      broken |= 1u << PROPERTY_POSSIBLE;
    for (unsigned p = 0; p < PROPERTY_COUNT; p++)
      if (broken & (1u << p)) {
        if (failures[p]++ < SHOWN)
          printf("# not so: %s, guest %" PRIu64 "\n", property_names[p], seed + i);
      }
    if (verbose || (broken && told++ < SHOWN))
      tell(&run, seed + i);
  }
  int failed = 0;
  for (unsigned p = 0; p < PROPERTY_COUNT; p++) {
    printf("%sok %u - %s", failures[p] ? "not " : "", p + 1, property_names[p]);
    if (failures[p])
      printf(" (%" PRIu64 " times)", failures[p]);
    printf("\n");
    failed |= failures[p] > 0;
  }
  double took_s = now_s() - begin_s;
  printf("# ends:");
  for (unsigned e = 0; e < SIM_END_COUNT; e++)
    printf(" %s %" PRIu64 ",", sim_end_name((SimEnd)e), ends[e]);
  printf("\n# throttled above what is permitted, for however long: %" PRIu64 ", %" PRIu64
         " of them with all readings",
         over_cap, over_cap_seen);
  printf("\n# %.1f s, %.3f ms a guest, %.0f polls a guest\n", took_s, took_s * 1000 / (double)count,
         (double)polls / (double)count);
  return failed;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulator itself, where pencil and paper give the answer. */
#include "tests/sim/engine.h"
#include "tests/sim/virsh.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB  MIG_MIB_BYTES
#define WIRE (4104.0 / 4096.0)
#define LINK (100 * MIB)
#define HOST_PLAIN                                                                                           \
  { .setup_ms = 100, .fixed_downtime_ms = 20, .finish_ms = 10, .scan_bytes_per_s = 64 * MIG_GIB_BYTES }

static void assert_near(double value, double wanted, double share) {
  if (fabs(value - wanted) > fabs(wanted) * share)
    fail_msg("%f is not within %.1f %% of %f", value, share * 100, wanted);
}

/* --- a strategy that acts by a list, and writes down what it saw --- */

typedef struct Scripted {
  uint64_t at_ms;
  MigAction action;
} Scripted;

#define SEEN 4000

static struct {
  StrategyStart start;
  Scripted script[8];
  MigSample seen[SEEN];
  unsigned n_seen;
} scripted;

static void scripted_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                           StrategyStart *ret_start) {
  *ret_start = scripted.start;
  scripted.n_seen = 0;
}

static void scripted_step(void *state, const MigSample *sample, MigAction *ret_action) {
  unsigned *next = state;
  *ret_action = (MigAction){.kind = MIG_ACTION_NONE};
  if (scripted.n_seen < SEEN)
    scripted.seen[scripted.n_seen++] = *sample;
  const Scripted *line = &scripted.script[*next];
  if (line->action.kind != MIG_ACTION_NONE && sample->now_ms >= line->at_ms) {
    *ret_action = line->action;
    (*next)++;
  }
}

static const Strategy strategy_scripted = {"scripted",       "this file",    10,
                                           sizeof(unsigned), scripted_start, scripted_step};

static SimResult result;

static const SimResult *run(const SimScenario *scenario) {
  sim_run(scenario, &strategy_scripted, &result);
  return &result;
}

static int fresh(void **state) {
  memset(&scripted, 0, sizeof(scripted));
  return 0;
}

static SimScenario plain(uint64_t memory_mib, uint64_t ws_mib, uint64_t rate_mib, SimWriter writer) {
  return (SimScenario){
      .name = "plain",
      .guest = {.memory_bytes = memory_mib * MIB, .phases = {{0, {{ws_mib * MIB, rate_mib * MIB, writer}}}}},
      .link = {.bytes_per_s = LINK},
      .host = HOST_PLAIN,
  };
}

/* The dirty set of pass k, as the first sample of the pass shows it, put back to the pass's begin. */
static double dirty_set(unsigned pass) {
  for (unsigned i = 1; i < scripted.n_seen; i++) {
    const MigSample *sample = &scripted.seen[i], *last = &scripted.seen[i - 1];
    if (sample->iteration == pass && last->iteration != pass)
      return (double)sample->memory_remaining_bytes;
  }
  return -1;
}

/* --- bytes --- */

static void test_an_idle_guest_is_sent_once(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PRE_COPY);
  assert_near((double)r->wire_bytes, 1000.0 * MIB * WIRE, 1e-6);
  /* setup, all pages, the fixed part, the end; and two reads of the log */
  assert_near((double)r->total_ms, 100 + 10000 * WIRE + 20 + 10, 1e-3);
  assert_int_equal(r->iterations, 2);
  assert_int_equal(r->lost_work_ms, r->downtime_ms);
}

/* QEMU stops an idle guest as soon as what remains fits the limit, not when nothing remains. */
static void test_an_idle_guest_pays_nearly_the_whole_limit(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  const SimResult *r = run(&scenario);
  assert_in_range(r->downtime_ms, 20 + 300 - 50, 20 + 300);
  scripted.start.downtime_ms = 50;
  r = run(&scenario);
  assert_in_range(r->downtime_ms, 20, 20 + 50);
}

static void test_zero_pages_cost_nine_bytes(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  scenario.guest.zero_bytes = 600 * MIB;
  const SimResult *r = run(&scenario);
  assert_near((double)r->wire_bytes, 400.0 * MIB * WIRE + 600.0 * MIB * 9 / 4096, 1e-6);
  scenario.guest.zeroes = SIM_ZEROES_LAST;
  r = run(&scenario);
  assert_near((double)r->wire_bytes, 400.0 * MIB * WIRE + 600.0 * MIB * 9 / 4096, 1e-6);
}

/* What goes over the wire is what was dirty at first and what became dirty: the sum over all passes. */
static void test_bytes_are_conserved(void **state) {
  SimScenario scenario = plain(1000, 500, 30, SIM_WRITER_CYCLIC);
  scripted.start.downtime_ms = 1;
  const SimResult *r = run(&scenario);
  const double dirtied = 30.0 * MIB * (double)(r->total_ms - 100 - 30) / 1000; /* nothing twice: W is far */
  assert_int_equal(r->end, SIM_END_PRE_COPY);
  assert_near((double)r->wire_bytes, (1000.0 * MIB + dirtied) * WIRE, 2e-3);
}

static void test_bytes_processed_are_those_on_the_wire(void **state) {
  SimScenario scenario = plain(500, 100, 30, SIM_WRITER_RANDOM);
  const SimResult *r = run(&scenario);
  assert_near((double)scripted.seen[scripted.n_seen - 1].memory_processed_bytes, (double)r->wire_bytes, 1e-9);
}

/* --- convergence --- */

static void test_passes_shrink_geometrically_below_the_link(void **state) {
  SimScenario scenario = plain(1000, 1000, 40, SIM_WRITER_CYCLIC);
  scripted.start.downtime_ms = 1;
  run(&scenario);
  double r1 = dirty_set(2), r2 = dirty_set(3), r3 = dirty_set(4);
  assert_near(r1, 40.0 * MIB * 10 * WIRE, 0.01);
  assert_near(r2 / r1, 0.4 * WIRE, 0.02);
  assert_near(r3 / r2, 0.4 * WIRE, 0.03);
}

static void test_no_end_above_the_link(void **state) {
  SimScenario scenario = plain(200, 200, 101, SIM_WRITER_CYCLIC);
  scenario.give_up_ms = 600000;
  assert_int_equal(run(&scenario)->end, SIM_END_GAVE_UP);
  scenario.guest.phases[0].regions[0].rate_bytes_per_s = 200 * MIB;
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_GAVE_UP);
  assert_near((double)r->wire_bytes, 600.0 * LINK, 0.01);
  /* Each pass has the whole working set, 2 s, and ends 300 ms before its end. */
  assert_in_range(r->iterations, 600 / 1.8, 600 / 1.7);
}

/* The fixed point of R = W (1 − e^(−dR/(BW))), for d/B = 2: R/W = 0.7968. */
static void test_random_writer_floors_at_the_fixed_point(void **state) {
  SimScenario scenario = plain(500, 100, 200, SIM_WRITER_RANDOM);
  scripted.start.downtime_ms = 1;
  scenario.give_up_ms = 60000;
  assert_int_equal(run(&scenario)->end, SIM_END_GAVE_UP);
  assert_near(dirty_set(40), 79.7 * MIB, 0.03);
}

static void test_a_small_working_set_ends_within_the_limit(void **state) {
  SimScenario scenario = plain(1000, 20, 1000, SIM_WRITER_CYCLIC);
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PRE_COPY); /* 20 MiB in 200 ms < 300 ms */
  scripted.start.downtime_ms = 150;
  scenario.give_up_ms = 60000;
  assert_int_equal(run(&scenario)->end, SIM_END_GAVE_UP);
}

static void test_who_watches_changes_nothing(void **state) {
  SimScenario scenario = plain(1000, 100, 60, SIM_WRITER_RANDOM);
  scenario.guest.noise_pct = 30;
  SimResult often = *run(&scenario);
  Strategy seldom = strategy_scripted;
  seldom.poll_ms = 10000;
  sim_run(&scenario, &seldom, &result);
  assert_in_range(result.total_ms, often.total_ms - 2, often.total_ms + 2);
  assert_near((double)result.wire_bytes, (double)often.wire_bytes, 1e-4);
}

static void test_phases_change_what_is_dirtied(void **state) {
  SimScenario scenario = plain(1000, 500, 0, SIM_WRITER_CYCLIC);
  scenario.guest.phases[0] = (SimPhase){5000, {{500 * MIB, 10 * MIB}}};
  scenario.guest.phases[1] = (SimPhase){5000, {{500 * MIB, 40 * MIB}}};
  scripted.start.downtime_ms = 1;
  run(&scenario);
  /* The first pass is from 0.1 s to 10.1 s; the second phase stays. */
  assert_near(dirty_set(2), (4.9 * 10 + 5.1 * 40) * MIB, 0.01);
  scenario.guest.repeat = true;
  run(&scenario);
  assert_near(dirty_set(2), (4.9 * 10 + 5.0 * 40 + 0.1 * 10) * MIB, 0.01);
}

/* --- what libvirt says --- */

static void test_samples_are_as_libvirt_gives_them(void **state) {
  SimScenario scenario = plain(1000, 500, 40, SIM_WRITER_CYCLIC);
  scripted.start.downtime_ms = 1;
  run(&scenario);
  const MigSample *sample = &scripted.seen[1]; /* at 10 ms: Prepare */
  assert_true(sample->valid && sample->active);
  assert_int_equal(sample->memory_total_bytes, 0);
  sample = &scripted.seen[100]; /* at 1 s */
  assert_int_equal(sample->now_ms, 1000);
  assert_int_equal(sample->iteration, 1);
  assert_int_equal(sample->dirty_rate_bytes_per_s, 0); /* no pass has ended */
  assert_near((double)sample->memory_bps_bytes_per_s, LINK, 0.01);
  assert_near((double)sample->memory_remaining_bytes, 910.0 * MIB, 0.01);
  assert_int_equal(sample->page_size_bytes, 4096);
  sample = &scripted.seen[1100]; /* at 11 s: the second pass */
  assert_near((double)sample->bandwidth_bytes_per_s, LINK, 0.01);
  assert_int_equal(sample->iteration, 2);
  assert_near((double)sample->dirty_rate_bytes_per_s, 40.0 * MIB, 0.01);
  assert_near((double)sample->expected_downtime_ms, 4000, 0.01);
}

/* At a pass that is shorter than a second no rate is made: it stays what it was. */
static void test_dirty_rate_is_at_least_a_second_old(void **state) {
  SimScenario scenario = plain(1000, 10, 1000, SIM_WRITER_CYCLIC);
  scripted.start.downtime_ms = 1;
  scenario.give_up_ms = 15000;
  run(&scenario);
  uint64_t rate = 0, changed_ms = 0;
  for (unsigned i = 1; i < scripted.n_seen; i++) {
    if (scripted.seen[i].dirty_rate_bytes_per_s == rate)
      continue;
    rate = scripted.seen[i].dirty_rate_bytes_per_s;
    assert_true(changed_ms == 0 || scripted.seen[i].now_ms - changed_ms >= 990);
    changed_ms = scripted.seen[i].now_ms;
  }
  /* 10 MiB each 100 ms, whatever it writes: the rate is that of distinct pages, so never above the link's. */
  assert_near((double)rate, LINK, 0.05);
}

static void test_a_stretch_of_zero_pages_makes_the_link_look_slow(void **state) {
  SimScenario scenario = plain(16000, 0, 0, SIM_WRITER_CYCLIC);
  scenario.host.scan_bytes_per_s = 2 * MIG_GIB_BYTES;
  scenario.guest.zero_bytes = 15000 * MIB;
  scenario.guest.zeroes = SIM_ZEROES_LAST;
  const SimResult *r = run(&scenario);
  assert_near((double)r->switchover_bandwidth_bytes_per_s, 2048.0 * MIB * 9 / 4096, 0.02);
}

static void test_statistics_fail_and_are_slow(void **state) {
  SimScenario scenario = plain(500, 0, 0, SIM_WRITER_CYCLIC);
  scenario.faults[0] = (SimFault){SIM_FAULT_NO_STATS, 1000, 2000};
  scenario.faults[1] = (SimFault){SIM_FAULT_SLOW_STATS, 3000, 3001, .value_ms = 1500};
  run(&scenario);
  unsigned invalid = 0;
  uint64_t longest = 0;
  for (unsigned i = 1; i < scripted.n_seen; i++) {
    uint64_t gap = scripted.seen[i].now_ms - scripted.seen[i - 1].now_ms;
    invalid += !scripted.seen[i].valid;
    longest = gap > longest ? gap : longest;
  }
  assert_in_range(invalid, 99, 101);    /* the second */
  assert_in_range(longest, 1500, 1510); /* the slow answer */
}

/* --- throttling --- */

static void test_throttle_climbs_at_each_second_check(void **state) {
  SimScenario scenario = plain(200, 200, 400, SIM_WRITER_CYCLIC);
  scripted.start.auto_converge = true;
  scenario.give_up_ms = 60000;
  const SimResult *r = run(&scenario);
  unsigned last = 0, climbs = 0;
  for (unsigned i = 0; i < scripted.n_seen; i++) {
    unsigned pct = (unsigned)scripted.seen[i].throttle_pct;
    if (pct == last)
      continue;
    assert_int_equal(pct, last == 0 ? 20 : last == 90 ? 99 : last + 10);
    last = pct;
    climbs++;
  }
  assert_true(climbs >= 6);
  assert_int_equal(r->max_throttle_pct, last);
  /* 10 ms × p/(100 − p) */
  assert_true(r->longest_silence_ms >= 10 * last / (100 - last));
}

static void test_throttle_starts_where_it_is_told(void **state) {
  SimScenario scenario = plain(200, 200, 400, SIM_WRITER_CYCLIC);
  scripted.start =
      (StrategyStart){.auto_converge = true, .throttle_initial_pct = 80, .throttle_increment_pct = 5};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PRE_COPY);
  assert_in_range(r->max_throttle_pct, 80, 85);
  assert_true(r->lost_work_ms > 4000); /* most of the time since */
}

static void test_no_throttle_without_auto_converge(void **state) {
  SimScenario scenario = plain(200, 200, 400, SIM_WRITER_CYCLIC);
  scenario.give_up_ms = 20000;
  assert_int_equal(run(&scenario)->max_throttle_pct, 0);
}

static void test_a_guest_that_is_not_busy_is_not_slowed(void **state) {
  SimScenario scenario = plain(200, 200, 90, SIM_WRITER_CYCLIC);
  scripted.start = (StrategyStart){.auto_converge = true, .throttle_initial_pct = 50};
  scripted.start.downtime_ms = 1;
  const SimResult fully_busy = *run(&scenario);
  scenario.guest.busy_pct = 40;
  const SimResult *r = run(&scenario);
  assert_true(r->total_ms > fully_busy.total_ms + 1000);
}

/* A measurement with virsh: 256 MiB, 100 MiB at 200 MiB/s, limit 32 MiB/s: 57 s,
 * 99 %. The guest's 200 MiB/s took most of a TCG processor. */
static void test_auto_converge_as_measured(void **state) {
  SimScenario scenario = plain(256, 100, 200, SIM_WRITER_CYCLIC);
  scenario.host = (SimHost){0};
  scenario.link.bytes_per_s = 1000 * MIB;
  scenario.goals = "bandwidth_bytes_per_s=32M";
  scripted.start.auto_converge = true;
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PRE_COPY);
  assert_in_range(r->total_ms, 57000 * 0.9, 57000 * 1.1);
  assert_int_equal(r->max_throttle_pct, 99);
  assert_in_range(r->longest_silence_ms, 990, 1000);
}

/* --- switchover, pause, post-copy --- */

static void test_downtime_is_rest_buffer_and_fixed_part(void **state) {
  SimScenario scenario = plain(500, 100, 50, SIM_WRITER_CYCLIC);
  scenario.host.buffer_bytes = 5 * MIB; /* 50 ms */
  scenario.host.buffer_ms = 1000;
  const SimResult *r = run(&scenario);
  double rest_ms = (double)r->switchover_remaining_bytes * WIRE / LINK * 1000;
  assert_in_range(r->downtime_ms, rest_ms + 50 + 20 - 2, rest_ms + 50 + 20 + 2);
  assert_true(rest_ms < 300);
}

static void test_no_bandwidth_limit_in_the_switchover(void **state) {
  SimScenario scenario = plain(500, 0, 0, SIM_WRITER_CYCLIC);
  scenario.goals = "bandwidth_bytes_per_s=10M";
  const SimResult *r = run(&scenario);
  assert_near((double)r->total_ms, 50000, 0.01);
  /* Up to 3 MiB were left, by the limit's 10 MiB/s; they went with 100. */
  assert_in_range(r->downtime_ms, 20, 20 + 32);
}

static void test_pause_sends_what_is_left(void **state) {
  SimScenario scenario = plain(500, 100, 200, SIM_WRITER_CYCLIC);
  scripted.script[0] = (Scripted){7000, {.kind = MIG_ACTION_PAUSE}};
  scripted.start.downtime_ms = 1;
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PAUSED);
  /* The first pass ends at 5.1 s, the second at 6.1; 0.1 s of the third are left, and one whole working set. */
  assert_in_range(r->pause_ms, 1000 + 20, 1150);
  assert_int_equal(r->downtime_ms, r->pause_ms);
  assert_int_equal(r->longest_silence_ms, r->pause_ms);
  assert_int_equal(r->total_ms, 7000 + r->pause_ms + 10);
}

static void test_post_copy_sends_what_is_left_once(void **state) {
  SimScenario scenario = plain(500, 100, 200, SIM_WRITER_CYCLIC);
  scripted.start.post_copy = true;
  scripted.script[0] = (Scripted){5500, {.kind = MIG_ACTION_START_POST_COPY}};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_POST_COPY);
  assert_in_range(r->downtime_ms, 20, 40);
  assert_near((double)r->wire_bytes, (500 + 40 + 100) * (double)MIB * WIRE, 0.02);
  /* It writes at the link's pace until all is there: half of a second's work is lost. */
  assert_in_range(r->lost_work_ms, 450, 700);
  assert_true(scripted.seen[scripted.n_seen - 1].post_copy);
}

static void test_post_copy_of_a_slow_cyclic_writer_costs_nothing_more(void **state) {
  SimScenario scenario = plain(500, 100, 20, SIM_WRITER_CYCLIC);
  scripted.start.post_copy = true;
  scripted.script[0] = (Scripted){5500, {.kind = MIG_ACTION_START_POST_COPY}};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->lost_work_ms, r->downtime_ms);
}

static void test_actions_that_come_to_nothing(void **state) {
  SimScenario scenario = plain(500, 100, 200, SIM_WRITER_CYCLIC);
  scripted.script[0] = (Scripted){3000, {.kind = MIG_ACTION_START_POST_COPY}}; /* not started for it */
  scripted.script[1] = (Scripted){4000, {.kind = MIG_ACTION_PAUSE}};           /* refused by the scenario */
  scripted.script[2] = (Scripted){6000, {.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_DEADLINE}};
  scenario.faults[0] = (SimFault){SIM_FAULT_REFUSE, 0, 0, MIG_ACTION_PAUSE};
  scenario.faults[1] = (SimFault){SIM_FAULT_SLOW_ACTION, 0, 0, MIG_ACTION_ABORT, 700};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->action_count, 3);
  assert_int_equal(r->events[0].outcome, SIM_OUTCOME_REFUSED);
  assert_int_equal(r->events[1].outcome, SIM_OUTCOME_REFUSED);
  assert_int_equal(r->events[2].outcome, SIM_OUTCOME_DONE);
  assert_int_equal(r->end, SIM_END_ABORTED);
  assert_int_equal(r->cause, MIG_CAUSE_DEADLINE);
  assert_int_equal(r->total_ms, 6700);
  assert_int_equal(r->downtime_ms, 0);
  assert_int_equal(r->lost_work_ms, 0);
}

static void test_post_copy_cannot_be_aborted(void **state) {
  SimScenario scenario = plain(500, 100, 200, SIM_WRITER_CYCLIC);
  scripted.start.post_copy = true;
  scripted.script[0] = (Scripted){1000, {.kind = MIG_ACTION_START_POST_COPY}};
  scripted.script[1] = (Scripted){2000, {.kind = MIG_ACTION_ABORT}};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_POST_COPY);
  assert_int_equal(r->events[1].outcome, SIM_OUTCOME_REFUSED);
}

/* --- the link --- */

static void test_a_short_cut_is_waited_out(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  uint64_t total_ms = run(&scenario)->total_ms;
  scenario.link.steps[0] = (SimLinkStep){5000, 0};
  scenario.link.steps[1] = (SimLinkStep){25000, LINK};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_PRE_COPY);
  assert_in_range(r->total_ms, total_ms + 19995, total_ms + 20050);
}

static void test_a_long_cut_ends_it(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  scenario.link.steps[0] = (SimLinkStep){5000, 0};
  scenario.link.steps[1] = (SimLinkStep){36000, LINK};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_LINK_LOST);
  assert_int_equal(r->total_ms, 35000);
  assert_int_equal(r->longest_silence_ms, 0);
}

static void test_a_long_cut_in_post_copy_leaves_the_guest_waiting(void **state) {
  SimScenario scenario = plain(1000, 100, 50, SIM_WRITER_CYCLIC);
  scripted.start.post_copy = true;
  scripted.script[0] = (Scripted){3000, {.kind = MIG_ACTION_START_POST_COPY}};
  scenario.link.steps[0] = (SimLinkStep){5000, 0};
  const SimResult *r = run(&scenario);
  assert_int_equal(r->end, SIM_END_POST_COPY_BROKEN);
  assert_true(r->longest_silence_ms >= 30000);
}

static void test_a_slower_link_takes_longer(void **state) {
  SimScenario scenario = plain(1000, 0, 0, SIM_WRITER_CYCLIC);
  scenario.link.steps[0] = (SimLinkStep){5100, LINK / 2};
  assert_near((double)run(&scenario)->total_ms, 130 + 5000 + 10000, 0.01);
}

static void test_jitter_keeps_the_mean(void **state) {
  SimScenario scenario = plain(4000, 0, 0, SIM_WRITER_CYCLIC);
  scenario.link.jitter_pct = 40;
  assert_near((double)run(&scenario)->total_ms, 40130, 0.04);
}

static void test_disks_go_first(void **state) {
  SimScenario scenario = plain(500, 0, 0, SIM_WRITER_CYCLIC);
  scenario.guest.disk_bytes = 2000 * MIB;
  scenario.guest.disk_write_bytes_per_s = 10 * MIB;
  const SimResult *r = run(&scenario);
  assert_near((double)r->total_ms, 5130, 0.01); /* not copied: shared */
  scenario.goals = "copy_disks=all";
  r = run(&scenario);
  /* what is written to a part that was copied goes over again, and takes its share of the link */
  assert_near((double)r->total_ms, 130 + 2000.0 / 90 * 1000 + 500.0 / 90 * 1000, 0.03);
  const MigSample *sample = &scripted.seen[500];
  assert_int_equal(sample->memory_total_bytes, 0);
  assert_true(sample->disk_processed_bytes > 0 && sample->disk_remaining_bytes > 0);
}

static void test_same_seed_same_run(void **state) {
  SimScenario scenario = plain(1000, 100, 60, SIM_WRITER_RANDOM);
  scenario.guest.noise_pct = 50;
  scenario.link.jitter_pct = 50;
  scenario.miss_pct = 20;
  scenario.seed = 7;
  SimResult first = *run(&scenario);
  const SimResult *r = run(&scenario);
  assert_memory_equal(&first, r, offsetof(SimResult, events));
  scenario.seed = 8;
  assert_int_not_equal(run(&scenario)->wire_bytes, first.wire_bytes);
}

#define ROW(name) cmocka_unit_test_setup(name, fresh)

int main(void) {
  const struct CMUnitTest tests[] = {
      ROW(test_an_idle_guest_is_sent_once),
      ROW(test_an_idle_guest_pays_nearly_the_whole_limit),
      ROW(test_zero_pages_cost_nine_bytes),
      ROW(test_bytes_are_conserved),
      ROW(test_bytes_processed_are_those_on_the_wire),
      ROW(test_passes_shrink_geometrically_below_the_link),
      ROW(test_no_end_above_the_link),
      ROW(test_random_writer_floors_at_the_fixed_point),
      ROW(test_a_small_working_set_ends_within_the_limit),
      ROW(test_who_watches_changes_nothing),
      ROW(test_phases_change_what_is_dirtied),
      ROW(test_samples_are_as_libvirt_gives_them),
      ROW(test_dirty_rate_is_at_least_a_second_old),
      ROW(test_a_stretch_of_zero_pages_makes_the_link_look_slow),
      ROW(test_statistics_fail_and_are_slow),
      ROW(test_throttle_climbs_at_each_second_check),
      ROW(test_throttle_starts_where_it_is_told),
      ROW(test_no_throttle_without_auto_converge),
      ROW(test_a_guest_that_is_not_busy_is_not_slowed),
      ROW(test_auto_converge_as_measured),
      ROW(test_downtime_is_rest_buffer_and_fixed_part),
      ROW(test_no_bandwidth_limit_in_the_switchover),
      ROW(test_pause_sends_what_is_left),
      ROW(test_post_copy_sends_what_is_left_once),
      ROW(test_post_copy_of_a_slow_cyclic_writer_costs_nothing_more),
      ROW(test_actions_that_come_to_nothing),
      ROW(test_post_copy_cannot_be_aborted),
      ROW(test_a_short_cut_is_waited_out),
      ROW(test_a_long_cut_ends_it),
      ROW(test_a_long_cut_in_post_copy_leaves_the_guest_waiting),
      ROW(test_a_slower_link_takes_longer),
      ROW(test_jitter_keeps_the_mean),
      ROW(test_disks_go_first),
      ROW(test_same_seed_same_run),
  };
  return cmocka_run_group_tests_name("sim-engine", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QEMU 7.2's migration: passes, switchover, throttle, post-copy. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <math.h>

/* Theory of operation
 *
 * QEMU 7.2 (migration/migration.c, migration/ram.c), as far as it decides how a migration goes:
 *  - Its thread sends pages for 50 ms, or until none is dirty, and then looks at what remains. Less than the threshold:
 *    the dirty log is read (a "sync", what libvirt counts as an iteration). Still less: switchover. Else the next pass
 *    begins. So a pass does not end at zero but at the threshold, and what was left is taken along.
 *  - threshold = bandwidth of the last 100 ms × downtime limit; 0 in the first 100 ms. Bandwidth counts bytes on
 *    the wire, where a page of zeroes is 9 bytes: after a stretch of those the link looks slow.
 *  - With a bandwidth limit it sends the share of 100 ms and sleeps until they are over. In the switchover no limit
 *    holds.
 *  - A sync that comes more than a second after the last such one also yields the dirty rate (pages that were not
 *    dirty before, over that time) and, with auto-converge, compares them with half of the bytes sent meanwhile. Each second time
 *    that they are more, the throttle rises: 20 %, then by 10, at most 99. The count of times is not reset by a
 *    better one.
 *  - The throttle at p % lets the guest run 10 ms and stops it for 10 ms × p/(100−p) (softmmu/cpu-throttle.c).
 *  - Post-copy begins at the next look, also in the first pass. Guest stopped, log read once more, device state sent, guest
 *    on at the target. Then the rest is sent in order, with the pages that the guest misses in between.
 * What the switchover takes: one more sync (ram_save_complete), the dirty rest at the link's rate, what the socket's buffer
 * still holds (QEMU counts it as sent), what a mirror of disks is behind, and a fixed time for stop, device state and start.
 *
 * Post-copy (ram.c, ram_find_and_save_block: the scan goes on behind the page that was asked for): a cyclic writer that is
 * slower than the link finds its pages there before it needs them; a faster one goes at the link's pace, so waits
 * d/B − 1 for each time it runs. One at random places waits for each page that is missing: pages/s × P(missing) × (round
 * trip + buffer ahead). With a(t) of waiting per running, the work lost over T is ∫ a/(1+a) dt.
 *
 * Simplified: in which order pages are sent does not count otherwise; of what is left over at a pass's end all regions have
 * their share. KVM's write protection in chunks of 1 GiB, which begins only when a chunk is first sent, is left out: a
 * real guest dirties less in the first pass. The guest's clock begins at 0 with its first phase. */

#define PAGE             4096.0
#define HUGE_PAGE        (2.0 * 1024 * 1024)
#define PAGE_WIRE        (4104.0 / PAGE) /* with its header (ram.c, save_page_header) */
#define ZERO_WIRE        (9.0 / PAGE)
#define LOOK_US          INT64_C(50000)  /* ram.c: MAX_WAIT */
#define WINDOW_US        INT64_C(100000) /* migration.c: BUFFER_DELAY */
#define RATE_US          INT64_C(1000000)
#define SYNC_US          INT64_C(300)
#define SYNC_GIB_US      20.0 /* per GiB of memory: its bitmap is read and merged */
#define THROTTLE_MS      10.0 /* softmmu/cpu-throttle.c: CPU_THROTTLE_TIMESLICE_NS */
#define THROTTLE_MAX     99u
#define POST_COPY_STOP_S 0.003           /* to send which pages are void */
#define MIRROR_US        INT64_C(100000) /* blockjob.c: BLOCK_JOB_SLICE_TIME */
#define FIRST_FAULTS     2.5 /* lab: silences of 101 to 116 ms around a clock that stood for 43 to 47 */

double sim_remaining(const Sim *sim) {
  double bytes = sim->rest + sim->zero;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    bytes += sim->pending[i];
  return bytes;
}

/* A mirror copies what was written since its last round: it is behind by a sawtooth, and never quite idle. */
double sim_disk_owed(const Sim *sim) {
  const SimGuest *guest = &sim->scenario->guest;
  double most = (double)guest->disk_owed_bytes;
  if (sim->disk_sent <= 0 || guest->disk_write_bytes_per_s == 0 || sim->state < STATE_PRE_COPY)
    return 0;
  if (most <= 0)
    most = (double)guest->disk_write_bytes_per_s * (double)MIRROR_US * 1e-6;
  return most * (1.0 - 0.75 * (double)(sim->now_us % MIRROR_US) / (double)MIRROR_US);
}

/* --- rates --- */

bool sim_guest_runs_here(const Sim *sim) {
  return !sim->paused && (sim->state <= STATE_PRE_COPY || (sim->state == STATE_OVER && sim->aborted));
}

/* Bytes/s that the stream may take now. */
static double stream_rate(const Sim *sim) {
  double rate = sim->rate, limit = 0;
  if (sim->state == STATE_PRE_COPY || sim->state == STATE_DISK)
    limit = (double)mig_policy_get(&sim->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  if (sim->state == STATE_POST_COPY)
    limit = (double)mig_policy_get(&sim->policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);
  if (limit > 0 && limit < rate)
    rate = limit;
  if (sim->disk_sent > 0 && sim_guest_runs_here(sim))
    rate -= (double)sim->scenario->guest.disk_write_bytes_per_s;
  return larger(rate, 0);
}

static bool limited(const Sim *sim) {
  uint64_t limit = mig_policy_get(&sim->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);
  return limit > 0 && (double)limit < sim->rate;
}

/* How full the socket's buffer is, in seconds of the link: a stream below the link's rate leaves it empty. */
static double buffer_s(const Sim *sim) {
  if (limited(sim) || sim->rate <= 0)
    return 0;
  return fmin((double)sim->host.buffer_bytes / sim->rate, sim->host.buffer_ms * 1e-3);
}

static bool sending(const Sim *sim) {
  return (sim->state == STATE_PRE_COPY || sim->state == STATE_POST_COPY || sim->state == STATE_SWITCHOVER) &&
         sim->now_us >= sim->busy_until_us;
}

/* Bytes on the wire for a byte of memory, at this point of the pass. */
static double wire_per_byte(const Sim *sim) {
  double all = sim_remaining(sim), zero = sim->zero;
  if (zero <= 0 || all <= 0)
    return PAGE_WIRE;
  if (sim->scenario->guest.zeroes == SIM_ZEROES_LAST)
    return all > zero ? PAGE_WIRE : ZERO_WIRE;
  if (sim->scenario->guest.zeroes == SIM_ZEROES_FIRST)
    return ZERO_WIRE;
  return (zero * ZERO_WIRE + (all - zero) * PAGE_WIRE) / all;
}

/* Bytes of memory per second by which the rest shrinks. */
static double drain_rate(const Sim *sim) {
  double rate;
  if (!sending(sim))
    return 0;
  rate = stream_rate(sim) / wire_per_byte(sim);
  return rate < (double)sim->host.scan_bytes_per_s ? rate : (double)sim->host.scan_bytes_per_s;
}

static double threshold(const Sim *sim) {
  return sim->window_rate * sim->downtime_limit_ms / 1000.0;
}

/* --- time passes --- */

static void drain(Sim *sim, double bytes) {
  double all = sim_remaining(sim), wire = wire_per_byte(sim), zero = sim->zero, of_first, first, keep;
  if (bytes <= 0 || all <= 0)
    return;
  if (bytes > all - 0.5)
    bytes = all; /* below a byte is rounding */
  sim->transferred += bytes * wire;
  sim->wire_bytes += bytes * wire;
  switch (zero > 0 ? sim->scenario->guest.zeroes : SIM_ZEROES_SCATTERED) {
  case SIM_ZEROES_LAST:
    first = all - zero;
    of_first = bytes < first ? bytes : first;
    sim->zero = larger(zero - (bytes - of_first), 0);
    keep = first > of_first ? 1.0 - of_first / first : 0;
    break;
  case SIM_ZEROES_FIRST:
    sim->zero = larger(zero - bytes, 0);
    keep = bytes < zero ? 1.0 : 1.0 - (bytes - zero) / (all - zero);
    break;
  case SIM_ZEROES_SCATTERED:
  default:
    keep = 1.0 - bytes / all;
    sim->zero *= keep;
  }
  sim->zero_passed += zero - sim->zero;
  sim->normal_passed += bytes - (zero - sim->zero);
  sim->rest *= keep;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim->pending[i] *= keep;
}

/* The last whole window, when `rate` held from now until then. QEMU closes a window between two stretches of sending, so
 * one that has a long sync in it is as long as that, and shows a slow link. */
static int64_t window_end_us(const Sim *sim) {
  int64_t end_us = sim->window_us + WINDOW_US;
  return sim->busy_until_us > end_us ? sim->busy_until_us + LOOK_US : end_us;
}

static void advance_window(Sim *sim, int64_t to_us, double rate) {
  int64_t end_us = window_end_us(sim);
  if (sim->state != STATE_PRE_COPY || to_us < end_us)
    return;
  double in_window = sim->transferred - sim->window_bytes;
  if (end_us > sim->now_us)
    in_window += rate * (double)(end_us - sim->now_us) * 1e-6;
  int64_t whole = (to_us - end_us) / WINDOW_US;
  sim->window_rate = whole > 0 ? rate : in_window / ((double)(end_us - sim->window_us) * 1e-6);
  /* what sim_advance() will have added at the window's end */
  sim->window_us = end_us + whole * WINDOW_US;
  sim->window_bytes = sim->transferred + rate * (double)(sim->window_us - sim->now_us) * 1e-6;
}

/* All is sent before the stretch is over. */
static void end_window(Sim *sim) {
  if (sim->now_us < sim->window_us + WINDOW_US)
    return;
  sim->window_rate = (sim->transferred - sim->window_bytes) / ((double)(sim->now_us - sim->window_us) * 1e-6);
  sim->window_us = sim->now_us;
  sim->window_bytes = sim->transferred;
}

/* What one missing page costs: the request's way, the buffer that is ahead of it, its own bytes. */
static double fault_s(const Sim *sim) {
  double page = sim->scenario->guest.huge_pages ? HUGE_PAGE : PAGE;
  return sim->scenario->link.latency_ms * 1e-3 + buffer_s(sim) + (sim->rate > 0 ? page / sim->rate : 0);
}

/* Waiting per time that the guest runs, when so much of each region is missing. */
static double waiting(const Sim *sim, double left) {
  const SimPhase *phase = &sim->scenario->guest.phases[sim->dirtying.phase];
  double share = sim->missing_at_start > 0 ? left / sim->missing_at_start : 0, all = 0;
  for (unsigned i = 0; i < SIM_REGIONS; i++) {
    double rate = (double)phase->regions[i].rate_bytes_per_s * sim->dirtying.noise;
    if (sim->missing[i] <= 0 || rate <= 0)
      continue;
    if (phase->regions[i].writer == SIM_WRITER_RANDOM)
      all += rate / PAGE * fault_s(sim) * share * sim->missing[i] / sim->dirtying.extent[i];
    else if (left > 0)
      all += larger(0, rate / sim->rate - 1.0) * sim->missing[i] / sim->dirtying.extent[i];
  }
  return all;
}

/* Guest time lost to missing pages, in µs. */
static double work_in_faults(Sim *sim, int64_t dt_us, double drained) {
  double left = sim_remaining(sim), a0, a1, s = (double)dt_us * 1e-6, lost;
  if (sim->rate <= 0)
    return (double)dt_us; /* it stands before the first page that is missing */
  a0 = waiting(sim, left);
  a1 = waiting(sim, larger(left - drained, 0));
  /* ∫ a/(1+a) dt over a line from a0 to a1 */
  lost = a0 - a1 > 1e-9 ? s * (1.0 - (log1p(a0) - log1p(a1)) / (a0 - a1)) : s * a0 / (1.0 + a0);
  sim->requests += lost / fault_s(sim);
  return lost * 1e6;
}

static unsigned throttle_cap(const Sim *sim) {
  if (!mig_policy_get(&sim->policy, MIG_POLICY_ALLOW_AUTO_CONVERGE))
    return 0;
  return (unsigned)mig_policy_get(&sim->policy, MIG_POLICY_MAX_THROTTLE_PCT);
}

void sim_advance(Sim *sim, int64_t to_us) {
  int64_t dt_us = to_us - sim->now_us;
  if (dt_us <= 0)
    return;
  double rate = drain_rate(sim), s = (double)dt_us * 1e-6, bytes = rate * s;

  if (sim->state == STATE_POST_COPY)
    sim->lost_us += work_in_faults(sim, dt_us, bytes);
  else if (!sim_guest_runs_here(sim) && sim->state != STATE_FINISH)
    sim->lost_us += (double)dt_us;
  else if (sim->throttle_pct > 0 && sim_guest_runs_here(sim))
    sim->lost_us += (double)dt_us * (1 - sim_dirtying_speed(&sim->scenario->guest, sim->throttle_pct));

  if (sim_guest_runs_here(sim) && sim->state < STATE_OVER && sim->throttle_pct > throttle_cap(sim))
    sim->over_cap_us += dt_us;
  if (sim_guest_runs_here(sim)) {
    sim->cpu_us += (double)dt_us * sim_dirtying_cpu_share(&sim->dirtying, sim->throttle_pct);
    sim_dirtying_run(&sim->dirtying, dt_us, sim_dirtying_speed(&sim->scenario->guest, sim->throttle_pct));
    if (sim->disk_sent > 0) {
      double write = (double)sim->scenario->guest.disk_write_bytes_per_s;
      double mirrored = s * (write < sim->rate ? write : sim->rate);
      sim->wire_bytes += mirrored;
      if (sim->state >= STATE_PRE_COPY)
        sim->disk_sent += mirrored;
    }
  }
  if (sim->state == STATE_DISK) {
    double disk = stream_rate(sim) * s;
    disk = disk < sim->disk_left - 0.5 ? disk : sim->disk_left;
    sim->disk_left -= disk;
    sim->disk_sent += disk;
    sim->wire_bytes += disk;
  }
  advance_window(sim, to_us, rate * wire_per_byte(sim));
  drain(sim, bytes);
  sim->now_us = to_us;
}

/* --- QEMU --- */

void sim_end(Sim *sim, SimEnd how) {
  sim->result->end = how;
  sim->state = STATE_OVER;
}

void sim_note_silence(Sim *sim, int64_t since_us) {
  sim->silence_us = larger(sim->silence_us, (double)(sim->now_us - since_us));
}

static void set_throttle(Sim *sim, unsigned pct) {
  sim->throttle_pct = pct < THROTTLE_MAX ? pct : THROTTLE_MAX;
  if (sim->throttle_pct > sim->result->max_throttle_pct)
    sim->result->max_throttle_pct = sim->throttle_pct;
  sim->silence_us = larger(sim->silence_us, THROTTLE_MS * 1e3 * pct / (100.0 - sim->throttle_pct));
}

static void check_throttle(Sim *sim) {
  const StrategyStart *start = &sim->result->start;
  if (!start->auto_converge || sim->period_dirty <= (sim->transferred - sim->rate_transferred) / 2)
    return;
  if (++sim->high_count < 2)
    return;
  sim->high_count = 0;
  if (sim->throttle_pct == 0)
    set_throttle(sim, start->throttle_initial_pct ? start->throttle_initial_pct : 20);
  else
    set_throttle(sim,
                 sim->throttle_pct + (start->throttle_increment_pct ? start->throttle_increment_pct : 10));
}

/* How much of what was written is dirty already, left over from the pass before. Random writes meet it with the
 * density that it has in the region. A cyclic writer goes on where it was: it meets what it wrote in the last
 * period only when it comes round, u + u' > W, and then with the density of the left-over pages in that. */
static double met_again(const Sim *sim, unsigned i, double dirty) {
  double extent = sim->dirtying.extent[i], left = sim->pending[i], last = sim->harvest[i];
  if (left <= 0 || last <= 0)
    return 0;
  if (sim->scenario->guest.phases[sim->dirtying.phase].regions[i].writer == SIM_WRITER_RANDOM)
    return dirty * left / extent;
  return larger(0, dirty + last - extent) * (left < last ? left / last : 1.0);
}

static int64_t sync_us(const Sim *sim) {
  return SYNC_US + (int64_t)(SYNC_GIB_US * (double)sim->scenario->guest.memory_bytes / 0x1p30);
}

/* Reads the dirty log. */
static void sync_log(Sim *sim) {
  for (unsigned i = 0; i < SIM_REGIONS; i++) {
    double dirty = sim_dirtying_harvest(&sim->dirtying, i);
    double fresh = dirty - met_again(sim, i, dirty);
    sim->harvest[i] = dirty;
    if (fresh <= 0)
      continue;
    sim->pending[i] = fmin(sim->pending[i] + fresh, sim->dirtying.extent[i]);
    sim->period_dirty += fresh;
  }
  sim->iteration++;
  sim->synced_bytes = sim_remaining(sim);
  if (sim->now_us > sim->rate_us + RATE_US) {
    check_throttle(sim);
    sim->dirty_rate = sim->period_dirty / ((double)(sim->now_us - sim->rate_us) * 1e-6);
    sim->rate_us = sim->now_us;
    sim->rate_transferred = sim->transferred;
    sim->period_dirty = 0;
  }
  sim->look_us = sim->now_us;
  sim->busy_until_us = sim->now_us + sync_us(sim);
}

static void begin_memory(Sim *sim) {
  const SimGuest *guest = &sim->scenario->guest;
  double memory = (double)guest->memory_bytes, regions = 0;
  for (unsigned i = 0; i < SIM_REGIONS; i++) {
    sim->pending[i] = sim->dirtying.extent[i];
    regions += sim->pending[i];
  }
  assert(regions <= memory);
  sim->zero = (double)guest->zero_bytes < memory - regions ? (double)guest->zero_bytes : memory - regions;
  sim->rest = memory - regions - sim->zero;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim_dirtying_harvest(&sim->dirtying, i);
  sim->state = STATE_PRE_COPY;
  sim->rate_us = sim->window_us = sim->now_us;
  sim->window_bytes = sim->transferred;
  sync_log(sim);
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim->harvest[i] = sim->dirtying.extent[i]; /* all of it is to be sent */
}

static void switch_over(Sim *sim) {
  SimResult *result = sim->result;
  result->switchover_disk_bytes = sim->paused ? 0 : (uint64_t)sim_disk_owed(sim);
  result->switchover_remaining_bytes = (uint64_t)sim_remaining(sim);
  result->switchover_bandwidth_bytes_per_s = (uint64_t)sim->window_rate;
  result->switchover_limit_ms = (uint64_t)sim->downtime_limit_ms;
  sim->stopped_us = sim->paused ? sim->paused_us : sim->now_us;
  sim->busy_until_us = sim->now_us + sync_us(sim); /* once more, with the guest stopped */
  sim->buffer_us = (int64_t)(buffer_s(sim) * 1e6);
  sim->state = STATE_SWITCHOVER;
}

/* libvirt ends the mirror before the guest starts at the target: it is given what it is behind first. */
static void hand_over(Sim *sim) {
  double disk_s = sim->rate > 0 ? (double)sim->result->switchover_disk_bytes / sim->rate : 0;
  sim->state = STATE_HANDOVER;
  sim->state_ends_us =
      sim->now_us + (int64_t)sim->host.fixed_downtime_ms * 1000 + sim->buffer_us + (int64_t)(disk_s * 1e6);
}

static void to_post_copy(Sim *sim) {
  sim->stopped_us = sim->now_us;
  sync_log(sim);
  sim->state = STATE_TO_POST_COPY;
  sim->state_ends_us = sim->now_us + sync_us(sim) + (int64_t)sim->host.fixed_downtime_ms * 1000 +
                       (int64_t)((buffer_s(sim) + POST_COPY_STOP_S) * 1e6);
}

static void begin_post_copy(Sim *sim) {
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim->missing[i] = sim->pending[i];
  sim->missing_at_start = sim_remaining(sim);
  sim->throttle_pct = 0;
  sim->result->downtime_ms = (uint64_t)((sim->now_us - sim->stopped_us) / 1000);
  sim_note_silence(sim, sim->stopped_us);
  /* hardly arrived, it misses the pages that it uses all the time, one after the other */
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    if (sim->missing[i] > 0 && sim->rate > 0) {
      sim->silence_us = larger(sim->silence_us,
                               (double)(sim->now_us - sim->stopped_us) + FIRST_FAULTS * fault_s(sim) * 1e6);
      break;
    }
  sim->state = STATE_POST_COPY;
}

static void finish(Sim *sim, SimEnd how) {
  sim->result->end = how;
  sim->state = STATE_FINISH;
  sim->state_ends_us = sim->now_us + (int64_t)sim->host.finish_ms * 1000;
}

/* When QEMU does something of its own next, if all rates stay. */
int64_t sim_qemu_next_us(const Sim *sim) {
  double left, rate, to;
  int64_t cross_us, look_us, zero_us, step_us;
  switch (sim->state) {
  case STATE_SETUP:
  case STATE_HANDOVER:
  case STATE_TO_POST_COPY:
  case STATE_FINISH:
    return sim->state_ends_us;
  case STATE_DISK:
    rate = stream_rate(sim);
    return rate > 0 ? sim->now_us + (int64_t)ceil(sim->disk_left / rate * 1e6) : NEVER;
  case STATE_PRE_COPY:
  case STATE_POST_COPY:
  case STATE_SWITCHOVER:
    break;
  case STATE_OVER:
    return NEVER;
  }
  if (sim->now_us < sim->busy_until_us)
    return sim->busy_until_us;
  left = sim_remaining(sim);
  rate = drain_rate(sim);
  if (left <= 0)
    return sim->now_us;
  if (rate <= 0)
    return NEVER;
  zero_us = sim->now_us + (int64_t)ceil(left / rate * 1e6);
  /* the rate changes where the zeroes begin or end */
  if (sim->scenario->guest.zeroes == SIM_ZEROES_LAST && sim->zero > 0 && left > sim->zero)
    zero_us = sim->now_us + (int64_t)ceil((left - sim->zero) / rate * 1e6);
  if (sim->scenario->guest.zeroes == SIM_ZEROES_FIRST && sim->zero > 0 && left > sim->zero)
    zero_us = sim->now_us + (int64_t)ceil(sim->zero / rate * 1e6);
  if (sim->state != STATE_PRE_COPY)
    return zero_us;

  /* the next look at which what remains is below the threshold */
  step_us = limited(sim) ? WINDOW_US : LOOK_US;
  to = threshold(sim);
  cross_us = sim->post_copy_asked || left < to ? sim->now_us
                                               : sim->now_us + (int64_t)floor((left - to) / rate * 1e6) + 1;
  look_us = sim->look_us + (cross_us - sim->look_us + step_us - 1) / step_us * step_us;
  if (look_us <= sim->now_us)
    look_us += step_us;
  look_us = sooner(look_us, zero_us);
  /* the threshold follows the bandwidth: unless that is steady, the next window's end changes it */
  if (fabs(sim->window_rate - rate * wire_per_byte(sim)) > 1.0)
    look_us = sooner(look_us, window_end_us(sim));
  return look_us;
}

static void begin_stream(Sim *sim) {
  bool disks = mig_policy_get(&sim->policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE;
  sim->disk_left = disks ? (double)sim->scenario->guest.disk_bytes : 0;
  if (sim->disk_left > 0)
    sim->state = STATE_DISK;
  else
    begin_memory(sim);
}

/* migration_iteration_run() */
static void look(Sim *sim) {
  if (sim_remaining(sim) <= 0)
    end_window(sim);
  if (sim_remaining(sim) > 0 && sim_remaining(sim) >= threshold(sim)) {
    /* not yet; a window's end or a limit that was lowered brought us here */
  } else {
    sync_log(sim);
    if (sim_remaining(sim) <= 0 || sim_remaining(sim) < threshold(sim)) {
      switch_over(sim);
      return;
    }
  }
  if (sim->post_copy_asked && (sim->now_us - sim->look_us) % LOOK_US == 0)
    to_post_copy(sim);
}

void sim_qemu_step(Sim *sim) {
  switch (sim->state) {
  case STATE_SETUP:
    begin_stream(sim);
    break;
  case STATE_DISK:
    if (sim->disk_left <= 0)
      begin_memory(sim);
    break;
  case STATE_PRE_COPY:
    look(sim);
    break;
  case STATE_SWITCHOVER:
    if (sim_remaining(sim) <= 0)
      hand_over(sim);
    break;
  case STATE_HANDOVER:
    sim_note_silence(sim, sim->stopped_us);
    sim->result->downtime_ms = (uint64_t)((sim->now_us - sim->stopped_us) / 1000);
    finish(sim, sim->paused ? SIM_END_PAUSED : SIM_END_PRE_COPY);
    break;
  case STATE_TO_POST_COPY:
    begin_post_copy(sim);
    break;
  case STATE_POST_COPY:
    if (sim_remaining(sim) <= 0)
      finish(sim, SIM_END_POST_COPY);
    break;
  case STATE_FINISH:
    sim_end(sim, sim->result->end);
    break;
  case STATE_OVER:
    break;
  }
}

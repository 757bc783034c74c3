/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest, a link and QEMU's migration under a virtual clock, steered by a Strategy. */
#include "tests/sim/engine.h"

#include "tests/sim/guest.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Theory of operation
 *
 * The clock jumps from event to event. Between two of them all rates are constant, so that advance() moves
 * guest, link and QEMU in closed form. Events are: a poll or its answer, an action that takes effect, a change of the link
 * or of the guest, and what QEMU does next (qemu_next_us()).
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
 * What the switchover takes: the dirty rest at the link's rate, what the socket's buffer still holds (QEMU counts it as
 * sent), and a fixed time for stop, device state and start.
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
#define PAGE_WIRE        (4104.0 / PAGE) /* with its header (ram.c, save_page_header) */
#define ZERO_WIRE        (9.0 / PAGE)
#define LOOK_US          INT64_C(50000)  /* ram.c: MAX_WAIT */
#define WINDOW_US        INT64_C(100000) /* migration.c: BUFFER_DELAY */
#define RATE_US          INT64_C(1000000)
#define JITTER_US        INT64_C(100000)
#define TICK_US          INT64_C(1000000)
#define KEEPALIVE_US     INT64_C(30000000) /* libvirt: 5 s × 5, and until it is noticed */
#define SYNC_US          INT64_C(300)
#define SYNC_GIB_US      20.0 /* per GiB of memory: its bitmap is read and merged */
#define THROTTLE_MS      10.0 /* softmmu/cpu-throttle.c: CPU_THROTTLE_TIMESLICE_NS */
#define THROTTLE_MAX     99u
#define DOWNTIME_MS      300.0 /* migration.c: DEFAULT_MIGRATE_SET_DOWNTIME */
#define POST_COPY_STOP_S 0.003 /* to send which pages are void */
#define FIRST_FAULTS     2.5   /* lab: silences of 101 to 116 ms around a clock that stood for 43 to 47 */
#define GIVE_UP_MS       (6 * UINT64_C(3600000))
#define NEVER            INT64_MAX
#define QUEUE            4

/* Measured in the lab: libvirt 9.0 and QEMU 7.2 under TCG on two cores, a link of 400 Mbit/s by tbf with a queue of
 * 50 ms, guests of 256 MiB (test-sim-lab.sh prints the comparison).
 *  setup: from virsh's start to the first bytes on the wire, 0.36 to 0.42 s; the target's capabilities were probed before.
 *  finish: from the guest's first heartbeat at the target to virsh's end, about 0.12 s.
 *  fixed downtime and buffer: in post-copy, where no memory is in it, the clock stood still for 43 to 47 ms on a quiet
 *  machine, for 66 to 83 on a busy one, and in pre-copy for as much more than its dirty rest explains. Two thirds
 *  of it is the wait for what was sent before. 4 MiB is the most that Linux lets a TCP socket hold (tcp_wmem).
 *  scan: not measured. One thread that finds, copies and writes pages does 1 to 2 GiB/s, of zero pages somewhat more. */
const SimHost sim_host_default = {
    .setup_ms = 380,
    .fixed_downtime_ms = 15,
    .finish_ms = 120,
    .buffer_bytes = 4 << 20,
    .buffer_ms = 30,
    .scan_bytes_per_s = UINT64_C(2) << 30,
};

static const char *const end_names[SIM_END_COUNT] = {
    [SIM_END_PRE_COPY] = "pre-copy",   [SIM_END_PAUSED] = "paused",
    [SIM_END_POST_COPY] = "post-copy", [SIM_END_ABORTED] = "aborted",
    [SIM_END_LINK_LOST] = "link lost", [SIM_END_POST_COPY_BROKEN] = "post-copy broken",
    [SIM_END_GAVE_UP] = "no end",
};

const char *sim_end_name(SimEnd end) {
  return end < SIM_END_COUNT ? end_names[end] : "?";
}

typedef enum State {
  STATE_SETUP,
  STATE_DISK,
  STATE_PRE_COPY,
  STATE_SWITCHOVER, /* the guest is stopped, the rest is sent */
  STATE_HANDOVER,   /* ... the buffer, the device state, the start at the target */
  STATE_TO_POST_COPY,
  STATE_POST_COPY,
  STATE_FINISH, /* the guest runs at the target */
  STATE_OVER
} State;

typedef struct Pending {
  MigActionKind kind;
  uint64_t downtime_ms;
  MigCause cause;
  int64_t at_us;
  unsigned event; /* its number */
} Pending;

typedef struct Sim {
  const SimScenario *scenario;
  const Strategy *strategy;
  void *strategy_state;
  SimResult *result;
  SimHost host;
  MigPolicy policy;
  SimDirtying dirtying;
  uint64_t random;

  int64_t now_us;
  State state;
  int64_t state_ends_us; /* of states that only wait */
  bool paused;
  int64_t paused_us, stopped_us;
  bool aborted;

  /* the link */
  unsigned link_step;
  double nominal; /* bytes/s, without jitter */
  double rate;
  int64_t jitter_ends_us;
  int64_t cut_us; /* since when; NEVER: it is alive */

  /* QEMU's memory: dirty bytes by region, of the rest, and of that the zero pages */
  double pending[SIM_REGIONS], rest, zero;
  double harvest[SIM_REGIONS]; /* what the last log had of each region */
  double wire_bytes, transferred;
  double disk_left, disk_sent;
  uint64_t iteration;
  int64_t look_us;       /* from when 50 ms are counted */
  int64_t busy_until_us; /* reading the log */
  int64_t window_us;
  double window_bytes; /* transferred at the window's begin */
  double window_rate;  /* of the last window, bytes/s; 0: none yet */
  double synced_bytes; /* remaining at the last sync */
  int64_t rate_us;     /* of the last sync that made a rate */
  double rate_transferred, period_dirty, dirty_rate;
  unsigned high_count, throttle_pct;
  double downtime_limit_ms;
  bool post_copy_asked;
  int64_t buffer_us; /* what the socket's buffer held at the switchover */

  /* post-copy */
  double missing_at_start, missing[SIM_REGIONS];
  double requests;

  /* the poll */
  int64_t poll_us;   /* when it is asked next */
  int64_t answer_us; /* when what was read is answered; NEVER: nothing is on its way */
  int64_t tick_us;
  MigSample sample;
  MigBandwidth bandwidth;
  Pending queue[QUEUE];
  unsigned queued;

  double lost_us, silence_us;
} Sim;

static double larger(double a, double b) {
  return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static double remaining(const Sim *sim) {
  double bytes = sim->rest + sim->zero;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    bytes += sim->pending[i];
  return bytes;
}

static const SimFault *fault(const Sim *sim, SimFaultKind kind, MigActionKind action) {
  uint64_t now_ms = (uint64_t)(sim->now_us / 1000);
  for (unsigned i = 0; i < SIM_FAULTS; i++) {
    const SimFault *f = &sim->scenario->faults[i];
    if (f->kind == kind && now_ms >= f->from_ms && (f->until_ms == 0 || now_ms < f->until_ms) &&
        (action == MIG_ACTION_NONE || f->action == action))
      return f;
  }
  return NULL;
}

/* --- rates --- */

static bool guest_runs_here(const Sim *sim) {
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
  if (sim->disk_sent > 0 && guest_runs_here(sim))
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
  double all = remaining(sim), zero = sim->zero;
  if (zero <= 0 || all <= 0)
    return PAGE_WIRE;
  if (sim->scenario->guest.zero_last)
    return all > zero ? PAGE_WIRE : ZERO_WIRE;
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
  double all = remaining(sim), wire = wire_per_byte(sim), keep;
  if (bytes <= 0 || all <= 0)
    return;
  if (bytes > all - 0.5)
    bytes = all; /* below a byte is rounding */
  sim->transferred += bytes * wire;
  sim->wire_bytes += bytes * wire;
  if (sim->scenario->guest.zero_last && sim->zero > 0) {
    double first = all - sim->zero, of_first = bytes < first ? bytes : first;
    sim->zero = larger(sim->zero - (bytes - of_first), 0);
    keep = first > of_first ? 1.0 - of_first / first : 0;
  } else {
    keep = 1.0 - bytes / all;
    sim->zero *= keep;
  }
  sim->rest *= keep;
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim->pending[i] *= keep;
}

/* The last whole window of 100 ms, when `rate` held from now until then. */
static void advance_window(Sim *sim, int64_t to_us, double rate) {
  int64_t whole;
  if (sim->state != STATE_PRE_COPY || to_us < sim->window_us + WINDOW_US)
    return;
  double in_window = sim->transferred - sim->window_bytes;
  int64_t first_end_us = sim->window_us + WINDOW_US;
  double first =
      in_window + (first_end_us > sim->now_us ? rate * (double)(first_end_us - sim->now_us) * 1e-6 : 0);
  whole = (to_us - sim->window_us) / WINDOW_US;
  sim->window_rate = whole > 1 ? rate : first / ((double)WINDOW_US * 1e-6);
  /* what advance() will have added at the window's end */
  sim->window_us += whole * WINDOW_US;
  sim->window_bytes = sim->transferred + rate * (double)(sim->window_us - sim->now_us) * 1e-6;
}

/* What one missing page costs: the request's way, the buffer that is ahead of it, its own bytes. */
static double fault_s(const Sim *sim) {
  return sim->scenario->link.latency_ms * 1e-3 + buffer_s(sim) + (sim->rate > 0 ? PAGE / sim->rate : 0);
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
  double left = remaining(sim), a0, a1, s = (double)dt_us * 1e-6, lost;
  if (sim->rate <= 0)
    return (double)dt_us; /* it stands before the first page that is missing */
  a0 = waiting(sim, left);
  a1 = waiting(sim, larger(left - drained, 0));
  /* ∫ a/(1+a) dt over a line from a0 to a1 */
  lost = a0 - a1 > 1e-9 ? s * (1.0 - (log1p(a0) - log1p(a1)) / (a0 - a1)) : s * a0 / (1.0 + a0);
  sim->requests += lost / fault_s(sim);
  return lost * 1e6;
}

static void advance(Sim *sim, int64_t to_us) {
  int64_t dt_us = to_us - sim->now_us;
  if (dt_us <= 0)
    return;
  double rate = drain_rate(sim), s = (double)dt_us * 1e-6, bytes = rate * s;

  if (sim->state == STATE_POST_COPY)
    sim->lost_us += work_in_faults(sim, dt_us, bytes);
  else if (!guest_runs_here(sim) && sim->state != STATE_FINISH)
    sim->lost_us += (double)dt_us;
  else if (sim->throttle_pct > 0 && guest_runs_here(sim))
    sim->lost_us += (double)dt_us * sim->throttle_pct / 100.0;

  if (guest_runs_here(sim)) {
    sim_dirtying_run(&sim->dirtying, dt_us, sim_dirtying_speed(&sim->scenario->guest, sim->throttle_pct));
    if (sim->disk_sent > 0) {
      double write = (double)sim->scenario->guest.disk_write_bytes_per_s;
      sim->wire_bytes += s * (write < sim->rate ? write : sim->rate);
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

static void end(Sim *sim, SimEnd how) {
  sim->result->end = how;
  sim->state = STATE_OVER;
}

static void note_silence(Sim *sim, int64_t since_us) {
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
  sim->synced_bytes = remaining(sim);
  if (sim->now_us > sim->rate_us + RATE_US) {
    check_throttle(sim);
    sim->dirty_rate = sim->period_dirty / ((double)(sim->now_us - sim->rate_us) * 1e-6);
    sim->rate_us = sim->now_us;
    sim->rate_transferred = sim->transferred;
    sim->period_dirty = 0;
  }
  sim->look_us = sim->now_us;
  sim->busy_until_us =
      sim->now_us + SYNC_US + (int64_t)(SYNC_GIB_US * (double)sim->scenario->guest.memory_bytes / 0x1p30);
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
  result->switchover_remaining_bytes = (uint64_t)remaining(sim);
  result->switchover_bandwidth_bytes_per_s = (uint64_t)sim->window_rate;
  result->switchover_limit_ms = (uint64_t)sim->downtime_limit_ms;
  sim->stopped_us = sim->paused ? sim->paused_us : sim->now_us;
  sim->busy_until_us = sim->now_us;
  sim->buffer_us = (int64_t)(buffer_s(sim) * 1e6);
  sim->state = STATE_SWITCHOVER;
}

static void hand_over(Sim *sim) {
  sim->state = STATE_HANDOVER;
  sim->state_ends_us = sim->now_us + (int64_t)sim->host.fixed_downtime_ms * 1000 + sim->buffer_us;
}

static void to_post_copy(Sim *sim) {
  sim->stopped_us = sim->now_us;
  sync_log(sim);
  sim->state = STATE_TO_POST_COPY;
  sim->state_ends_us = sim->now_us + (int64_t)sim->host.fixed_downtime_ms * 1000 +
                       (int64_t)((buffer_s(sim) + POST_COPY_STOP_S) * 1e6);
}

static void begin_post_copy(Sim *sim) {
  for (unsigned i = 0; i < SIM_REGIONS; i++)
    sim->missing[i] = sim->pending[i];
  sim->missing_at_start = remaining(sim);
  sim->throttle_pct = 0;
  sim->result->downtime_ms = (uint64_t)((sim->now_us - sim->stopped_us) / 1000);
  note_silence(sim, sim->stopped_us);
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
static int64_t qemu_next_us(const Sim *sim) {
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
  left = remaining(sim);
  rate = drain_rate(sim);
  if (left <= 0)
    return sim->now_us;
  if (rate <= 0)
    return NEVER;
  zero_us = sim->now_us + (int64_t)ceil(left / rate * 1e6);
  if (sim->scenario->guest.zero_last && sim->zero > 0 && left > sim->zero)
    zero_us = sim->now_us + (int64_t)ceil((left - sim->zero) / rate * 1e6); /* the rate changes there */
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
    look_us = sooner(look_us, sim->window_us + WINDOW_US);
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
  if (remaining(sim) > 0 && remaining(sim) >= threshold(sim)) {
    /* not yet; a window's end or a limit that was lowered brought us here */
  } else {
    sync_log(sim);
    if (remaining(sim) <= 0 || remaining(sim) < threshold(sim)) {
      switch_over(sim);
      return;
    }
  }
  if (sim->post_copy_asked && (sim->now_us - sim->look_us) % LOOK_US == 0)
    to_post_copy(sim);
}

static void qemu_step(Sim *sim) {
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
    if (remaining(sim) <= 0)
      hand_over(sim);
    break;
  case STATE_HANDOVER:
    note_silence(sim, sim->stopped_us);
    sim->result->downtime_ms = (uint64_t)((sim->now_us - sim->stopped_us) / 1000);
    finish(sim, sim->paused ? SIM_END_PAUSED : SIM_END_PRE_COPY);
    break;
  case STATE_TO_POST_COPY:
    begin_post_copy(sim);
    break;
  case STATE_POST_COPY:
    if (remaining(sim) <= 0)
      finish(sim, SIM_END_POST_COPY);
    break;
  case STATE_FINISH:
    end(sim, sim->result->end);
    break;
  case STATE_OVER:
    break;
  }
}

/* --- the link --- */

static void set_link(Sim *sim) {
  double share = sim->scenario->link.jitter_pct / 100.0;
  sim->rate = sim->nominal;
  sim->jitter_ends_us = NEVER;
  if (share > 0) {
    sim->rate *= 1.0 + share * (2.0 * sim_random(&sim->random) - 1.0);
    sim->jitter_ends_us = (sim->now_us / JITTER_US + 1) * JITTER_US;
  }
  if (sim->nominal > 0)
    sim->cut_us = NEVER;
  else if (sim->cut_us == NEVER)
    sim->cut_us = sim->now_us;
}

static int64_t link_next_us(const Sim *sim) {
  const SimLink *link = &sim->scenario->link;
  int64_t next_us = sim->jitter_ends_us;
  if (sim->link_step < SIM_LINK_STEPS && link->steps[sim->link_step].at_ms > 0)
    next_us = sooner(next_us, (int64_t)link->steps[sim->link_step].at_ms * 1000);
  if (sim->cut_us != NEVER)
    next_us = sooner(next_us, sim->cut_us + KEEPALIVE_US);
  return next_us;
}

static void link_step(Sim *sim) {
  const SimLink *link = &sim->scenario->link;
  if (link_next_us(sim) > sim->now_us)
    return;
  while (sim->link_step < SIM_LINK_STEPS && link->steps[sim->link_step].at_ms > 0 &&
         (int64_t)link->steps[sim->link_step].at_ms * 1000 <= sim->now_us)
    sim->nominal = (double)link->steps[sim->link_step++].bytes_per_s;
  set_link(sim);
  if (sim->cut_us != NEVER && sim->now_us >= sim->cut_us + KEEPALIVE_US) {
    if (sim->state == STATE_POST_COPY || sim->state == STATE_TO_POST_COPY || sim->state == STATE_FINISH) {
      note_silence(sim, sim->cut_us);
      end(sim, SIM_END_POST_COPY_BROKEN);
    } else {
      if (sim->state == STATE_SWITCHOVER || sim->state == STATE_HANDOVER || sim->paused)
        note_silence(sim, sim->stopped_us);
      end(sim, SIM_END_LINK_LOST);
    }
  }
}

/* --- actions --- */

static SimOutcome take_effect(Sim *sim, const Pending *pending) {
  switch (pending->kind) {
  case MIG_ACTION_ABORT:
    if (sim->state == STATE_TO_POST_COPY || sim->state == STATE_POST_COPY)
      return SIM_OUTCOME_REFUSED;
    if (sim->state == STATE_FINISH)
      return SIM_OUTCOME_TOO_LATE;
    if (sim->paused || sim->state == STATE_SWITCHOVER || sim->state == STATE_HANDOVER)
      note_silence(sim, sim->stopped_us);
    sim->aborted = true;
    sim->result->cause = pending->cause;
    end(sim, SIM_END_ABORTED);
    return SIM_OUTCOME_DONE;
  case MIG_ACTION_SET_DOWNTIME:
    if (sim->state > STATE_PRE_COPY)
      return SIM_OUTCOME_TOO_LATE;
    sim->downtime_limit_ms = (double)pending->downtime_ms;
    return SIM_OUTCOME_DONE;
  case MIG_ACTION_START_POST_COPY:
    if (!sim->result->start.post_copy || sim->paused || sim->state == STATE_SETUP || sim->state == STATE_DISK)
      return SIM_OUTCOME_REFUSED;
    if (sim->state != STATE_PRE_COPY)
      return SIM_OUTCOME_TOO_LATE;
    sim->post_copy_asked = true;
    return SIM_OUTCOME_DONE;
  case MIG_ACTION_PAUSE:
    if (sim->state == STATE_TO_POST_COPY || sim->state == STATE_POST_COPY)
      return SIM_OUTCOME_REFUSED;
    if (sim->state > STATE_PRE_COPY || sim->paused)
      return SIM_OUTCOME_TOO_LATE;
    sim->paused = true;
    sim->paused_us = sim->stopped_us = sim->now_us;
    return SIM_OUTCOME_DONE;
  case MIG_ACTION_NONE:
  case MIG_ACTION_COUNT:
    break;
  }
  return SIM_OUTCOME_REFUSED;
}

static void act(Sim *sim, const MigAction *action) {
  SimResult *result = sim->result;
  const SimFault *slow = fault(sim, SIM_FAULT_SLOW_ACTION, action->kind);
  Pending pending = {.kind = action->kind,
                     .downtime_ms = action->downtime_ms,
                     .cause = action->cause,
                     .event = result->action_count};
  SimOutcome outcome = SIM_OUTCOME_DONE;

  SimEvent *event = NULL;
  if (result->action_count < SIM_EVENTS) {
    event = &result->events[result->action_count];
    event->at_ms = (uint64_t)(sim->now_us / 1000);
    event->sample = sim->sample;
    event->action = *action;
    event->cut_ms = sim->cut_us == NEVER ? 0 : (uint64_t)((sim->now_us - sim->cut_us) / 1000);
  }
  result->action_count++;

  if (fault(sim, SIM_FAULT_REFUSE, action->kind)) {
    outcome = SIM_OUTCOME_REFUSED;
  } else if (slow && sim->queued < QUEUE) {
    pending.at_us = sim->now_us + (int64_t)slow->value_ms * 1000;
    sim->queue[sim->queued++] = pending;
  } else {
    outcome = take_effect(sim, &pending);
  }
  if (event)
    event->outcome = outcome;
}

static int64_t queue_next_us(const Sim *sim) {
  int64_t next_us = NEVER;
  for (unsigned i = 0; i < sim->queued; i++)
    next_us = sooner(next_us, sim->queue[i].at_us);
  return next_us;
}

static void queue_step(Sim *sim) {
  for (unsigned i = 0; i < sim->queued && sim->state != STATE_OVER;) {
    Pending pending = sim->queue[i];
    if (pending.at_us > sim->now_us) {
      i++;
      continue;
    }
    sim->queued--;
    memmove(&sim->queue[i], &sim->queue[i + 1], (sim->queued - i) * sizeof(sim->queue[0]));
    SimEvent *event = pending.event < SIM_EVENTS ? &sim->result->events[pending.event] : NULL;
    SimOutcome outcome = take_effect(sim, &pending);
    if (event)
      event->outcome = outcome;
  }
}

/* --- what libvirt says --- */

static uint64_t whole(double value) {
  return value > 0 ? (uint64_t)value : 0;
}

static void read_sample(Sim *sim) {
  const SimGuest *guest = &sim->scenario->guest;
  MigSample *sample = &sim->sample;
  double left = remaining(sim);
  bool memory = sim->state >= STATE_PRE_COPY;
  memset(sample, 0, sizeof(*sample));
  sample->valid =
      !fault(sim, SIM_FAULT_NO_STATS, MIG_ACTION_NONE) &&
      !(sim->scenario->miss_pct > 0 && sim_random(&sim->random) * 100.0 < sim->scenario->miss_pct);
  if (!sample->valid)
    return;
  sample->active = true;
  sample->post_copy = sim->state == STATE_POST_COPY || (sim->state == STATE_FINISH && sim->post_copy_asked);
  sample->elapsed_ms = (uint64_t)(sim->now_us / 1000);
  if (sim->disk_sent > 0 || sim->state == STATE_DISK) {
    sample->disk_total_bytes = guest->disk_bytes;
    sample->disk_processed_bytes = whole(sim->disk_sent);
    sample->disk_remaining_bytes = whole(sim->disk_left);
  }
  if (!memory)
    return;
  sample->memory_total_bytes = guest->memory_bytes;
  sample->memory_processed_bytes = whole(sim->transferred);
  sample->memory_remaining_bytes = whole(left);
  sample->memory_bps_bytes_per_s = whole(sim->window_rate);
  sample->dirty_rate_bytes_per_s = whole(sim->dirty_rate);
  sample->page_size_bytes = 4096;
  sample->iteration = sim->iteration;
  sample->throttle_pct = sim->throttle_pct;
  if (sim->window_rate > 0)
    sample->expected_downtime_ms = sim->dirty_rate > 0 ? whole(sim->synced_bytes / sim->window_rate * 1000.0)
                                                       : whole(sim->downtime_limit_ms);
  sample->post_copy_requests = whole(sim->requests);
}

static void step(Sim *sim, const MigSample *sample) {
  MigAction action;
  sim->tick_us = sim->now_us + TICK_US;
  sim->strategy->step(sim->strategy_state, sample, &action);
  if (action.kind != MIG_ACTION_NONE)
    act(sim, &action);
}

static void answer(Sim *sim) {
  MigSample *sample = &sim->sample;
  sample->now_ms = (uint64_t)(sim->now_us / 1000);
  if (sample->valid)
    sample->bandwidth_bytes_per_s = mig_bandwidth_update(
        &sim->bandwidth, sample->now_ms, sample->memory_processed_bytes + sample->disk_processed_bytes);
  sim->answer_us = NEVER;
  sim->poll_us = sim->now_us + (int64_t)sim->strategy->poll_ms * 1000;
  sim->result->polls++;
  step(sim, sample);
}

static void poll_step(Sim *sim) {
  if (sim->state == STATE_OVER)
    return;
  if (sim->now_us >= sim->poll_us) {
    const SimFault *slow = fault(sim, SIM_FAULT_SLOW_STATS, MIG_ACTION_NONE);
    read_sample(sim);
    sim->poll_us = NEVER;
    sim->answer_us = sim->now_us + (slow ? (int64_t)slow->value_ms * 1000 : 0);
  }
  if (sim->now_us >= sim->answer_us) {
    answer(sim);
  } else if (sim->answer_us != NEVER && sim->now_us >= sim->tick_us) {
    /* the daemon's tick: no answer yet, but time goes on */
    MigSample none = {.now_ms = (uint64_t)(sim->now_us / 1000)};
    step(sim, &none);
  }
}

/* --- all of it --- */

bool sim_policy(const SimScenario *scenario, MigPolicy *ret_policy) {
  char text[512], *save = NULL, reason[256];
  if (scenario->policy) {
    *ret_policy = *scenario->policy;
    return true;
  }
  mig_policy_init(ret_policy);
  if (!scenario->goals)
    return true;
  if (strlen(scenario->goals) >= sizeof(text))
    return false;
  strcpy(text, scenario->goals);
  for (char *goal = strtok_r(text, " ", &save); goal; goal = strtok_r(NULL, " ", &save)) {
    char *equals = strchr(goal, '=');
    if (!equals)
      return false;
    *equals = '\0';
    if (mig_policy_set_text(ret_policy, goal, equals + 1, reason, sizeof(reason)) != MIG_POLICY_OK)
      return false;
  }
  return true;
}

static void begin(Sim *sim) {
  const SimScenario *scenario = sim->scenario;
  StrategyGuest guest = {
      .memory_bytes = scenario->guest.memory_bytes,
      .disk_bytes = scenario->guest.disk_bytes,
      .probe_dirty_bytes_per_s = UINT64_MAX,
      .link_bytes_per_s = scenario->link_unknown ? 0 : scenario->link.bytes_per_s,
      .passthrough = scenario->guest.passthrough,
  };
  sim_dirtying_init(&sim->dirtying, &scenario->guest, scenario->seed * 2 + 1);
  sim->random = scenario->seed * 2;
  if (!scenario->no_probe) /* right within 10 % */
    guest.probe_dirty_bytes_per_s =
        whole(sim_dirtying_probe(&scenario->guest) * (0.9 + 0.2 * sim_random(&sim->random)));
  sim->nominal = (double)scenario->link.bytes_per_s;
  sim->cut_us = NEVER;
  set_link(sim);
  sim->answer_us = NEVER;
  sim->tick_us = TICK_US;
  sim->state_ends_us = (int64_t)sim->host.setup_ms * 1000;
  sim->strategy->start(sim->strategy_state, &sim->policy, &guest, 0, &sim->result->start);
  sim->downtime_limit_ms =
      sim->result->start.downtime_ms ? (double)sim->result->start.downtime_ms : DOWNTIME_MS;
}

static void run(Sim *sim) {
  uint64_t give_up_ms = sim->scenario->give_up_ms ? sim->scenario->give_up_ms : GIVE_UP_MS;
  int64_t give_up_us = (int64_t)give_up_ms * 1000;
  while (sim->state != STATE_OVER) {
    int64_t next_us = sooner(sooner(sim->poll_us, sim->answer_us), queue_next_us(sim));
    if (sim->answer_us != NEVER)
      next_us = sooner(next_us, sim->tick_us);
    int64_t qemu_us = qemu_next_us(sim);
    next_us = sooner(next_us, sooner(qemu_us, link_next_us(sim)));
    next_us = sooner(next_us, sim_dirtying_next_us(&sim->dirtying));
    if (next_us >= give_up_us) {
      advance(sim, give_up_us);
      end(sim, SIM_END_GAVE_UP);
      break;
    }
    advance(sim, next_us);
    link_step(sim);
    if (sim->now_us >= sim_dirtying_next_us(&sim->dirtying))
      sim_dirtying_change(&sim->dirtying, sim->now_us);
    if (sim->now_us >= qemu_us && sim->state != STATE_OVER)
      qemu_step(sim);
    queue_step(sim);
    poll_step(sim);
  }
}

void sim_run(const SimScenario *scenario, const Strategy *strategy, SimResult *ret_result) {
  Sim sim = {.scenario = scenario, .strategy = strategy, .result = ret_result, .host = sim_host_default};
  /* the events are written when they happen: there are many, and mostly none happens */
  memset(ret_result, 0, offsetof(SimResult, events));
  bool parsed = sim_policy(scenario, &sim.policy);
  assert(parsed);
  (void)parsed;
  if (scenario->host.fixed_downtime_ms > 0)
    sim.host = scenario->host;
  sim.strategy_state = calloc(1, strategy->state_size ? strategy->state_size : 1);
  assert(sim.strategy_state);
  begin(&sim);
  run(&sim);
  free(sim.strategy_state);

  ret_result->total_ms = (uint64_t)(sim.now_us / 1000);
  ret_result->longest_silence_ms = whole(sim.silence_us / 1000.0);
  ret_result->lost_work_ms = whole(sim.lost_us / 1000.0);
  ret_result->wire_bytes = whole(sim.wire_bytes);
  ret_result->iterations = sim.iteration;
  if (sim.paused)
    ret_result->pause_ms = (uint64_t)((sim.now_us - sim.paused_us) / 1000) -
                           (sim_end_is_success(ret_result->end) ? sim.host.finish_ms : 0);
}

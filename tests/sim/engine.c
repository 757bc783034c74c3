/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest, a link and QEMU's migration under a virtual clock, steered by a Strategy. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Theory of operation
 *
 * The clock jumps from event to event. Between two of them all rates are constant, so that sim_advance() moves
 * guest, link and QEMU in closed form. Events are: a poll or its answer, an action that takes effect, a change of the link
 * or of the guest, and what QEMU does next (sim_qemu_next_us()). What QEMU does is in qemu.c. */

#define JITTER_US    INT64_C(100000)
#define TICK_US      INT64_C(250000)   /* the daemon's */
#define KEEPALIVE_US INT64_C(30000000) /* libvirt: 5 s × 5, and until it is noticed */
#define DOWNTIME_MS  300.0             /* migration.c: DEFAULT_MIGRATE_SET_DOWNTIME */
#define GIVE_UP_MS   (6 * UINT64_C(3600000))

/* Measured in the lab: libvirt 9.0 and QEMU 7.2 under TCG on two cores, a link of 400 Mbit/s by tbf with a queue of
 * 50 ms, guests of 256 MiB (compare-with-lab prints the comparison).
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
      sim_note_silence(sim, sim->cut_us);
      sim_end(sim, SIM_END_POST_COPY_BROKEN);
    } else {
      if (sim->state == STATE_SWITCHOVER || sim->state == STATE_HANDOVER || sim->paused)
        sim_note_silence(sim, sim->stopped_us);
      sim_end(sim, SIM_END_LINK_LOST);
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
      sim_note_silence(sim, sim->stopped_us);
    sim->aborted = true;
    sim->result->cause = pending->cause;
    sim_end(sim, SIM_END_ABORTED);
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
    if (pending->downtime_ms > 0) { /* QEMU stops the guest where it fits */
      sim->downtime_limit_ms = (double)pending->downtime_ms;
      return SIM_OUTCOME_DONE;
    }
    sim->paused = true;
    sim->paused_us = sim->stopped_us = sim->now_us;
    return SIM_OUTCOME_DONE;
  case MIG_ACTION_NONE:
  case MIG_ACTION_COUNT:
    break;
  }
  return SIM_OUTCOME_REFUSED;
}

static void tell_refused(Sim *sim, MigActionKind kind, SimOutcome outcome) {
  if (outcome == SIM_OUTCOME_REFUSED && sim->strategy->refused)
    sim->strategy->refused(sim->strategy_state, kind, (uint64_t)(sim->now_us / 1000));
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
  tell_refused(sim, action->kind, outcome);
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
    tell_refused(sim, pending.kind, outcome);
  }
}

/* --- what libvirt says --- */

static uint64_t whole(double value) {
  return value > 0 ? (uint64_t)value : 0;
}

static void read_sample(Sim *sim) {
  const SimGuest *guest = &sim->scenario->guest;
  MigSample *sample = &sim->sample;
  double left = sim_remaining(sim);
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
    /* what is written anew makes the job longer (mirror.c: job_progress_set_remaining) */
    double disk_left = sim->disk_left + sim_disk_owed(sim);
    sample->disk_total_bytes = whole(sim->disk_sent + disk_left);
    sample->disk_processed_bytes = whole(sim->disk_sent);
    sample->disk_remaining_bytes = whole(disk_left);
  }
  if (!memory)
    return;
  sample->memory_total_bytes = guest->memory_bytes;
  sample->memory_processed_bytes = whole(sim->transferred);
  sample->memory_remaining_bytes = whole(left);
  sample->memory_zero_bytes = whole(sim->zero_passed);
  sample->memory_normal_bytes = whole(sim->normal_passed);
  sample->memory_bps_bytes_per_s = whole(sim->window_rate);
  sample->dirty_rate_bytes_per_s = whole(sim->dirty_rate);
  sample->page_size_bytes = 4096;
  sample->iteration = sim->iteration;
  sample->throttle_pct = sim->throttle_pct;
  if (sim->window_rate > 0)
    sample->expected_downtime_ms = sim->dirty_rate > 0 ? whole(sim->synced_bytes / sim->window_rate * 1000.0)
                                                       : whole(sim->downtime_limit_ms);
  sample->post_copy_requests = whole(sim->requests);
  sample->guest_cpus = guest->vcpus ? guest->vcpus : 1;
  sample->busiest_cpu_ms = whole(sim->cpu_us / 1000.0);
}

static void step(Sim *sim, const MigSample *sample) {
  MigAction action;
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
  if (sim->now_us >= sim->answer_us)
    answer(sim);
}

static void tick_step(Sim *sim) {
  MigAction action;
  if (sim->state == STATE_OVER || sim->now_us < sim->tick_us)
    return;
  sim->tick_us = sim->now_us + TICK_US;
  sim->strategy->tick(sim->strategy_state, (uint64_t)(sim->now_us / 1000), &action);
  if (action.kind != MIG_ACTION_NONE)
    act(sim, &action);
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
  if (!scenario->no_probe) { /* right within 10 % */
    double bytes = sim_dirtying_probe(&scenario->guest, &guest.probe_cpu_share);
    guest.probe_dirty_bytes_per_s = whole(bytes * (0.9 + 0.2 * sim_random(&sim->random)));
  }
  sim->nominal = (double)scenario->link.bytes_per_s;
  sim->cut_us = NEVER;
  set_link(sim);
  sim->answer_us = NEVER;
  sim->tick_us = sim->strategy->tick ? TICK_US : NEVER;
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
    next_us = sooner(next_us, sim->tick_us);
    int64_t qemu_us = sim_qemu_next_us(sim);
    next_us = sooner(next_us, sooner(qemu_us, link_next_us(sim)));
    next_us = sooner(next_us, sim_dirtying_next_us(&sim->dirtying));
    if (next_us >= give_up_us) {
      sim_advance(sim, give_up_us);
      sim_end(sim, SIM_END_GAVE_UP);
      break;
    }
    sim_advance(sim, next_us);
    link_step(sim);
    if (sim->now_us >= sim_dirtying_next_us(&sim->dirtying))
      sim_dirtying_change(&sim->dirtying, sim->now_us);
    if (sim->now_us >= qemu_us && sim->state != STATE_OVER)
      sim_qemu_step(sim);
    queue_step(sim);
    poll_step(sim);
    tick_step(sim);
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
  ret_result->over_cap_ms = (uint64_t)(sim.over_cap_us / 1000);
  ret_result->wire_bytes = whole(sim.wire_bytes);
  ret_result->iterations = sim.iteration;
  if (sim.paused)
    ret_result->pause_ms = (uint64_t)((sim.now_us - sim.paused_us) / 1000) -
                           (sim_end_is_success(ret_result->end) ? sim.host.finish_ms : 0);
}

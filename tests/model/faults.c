/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Faults, what the owner does to the guest, and what an operator does when called. */
#include "tests/model/model.h"

static bool always(const World *world) {
  return true;
}

/* --- libvirtd --- */

static bool source_is_up(const World *world) {
  return world->source.daemon == DAEMON_UP;
}
static bool target_is_up(const World *world) {
  return world->target.daemon == DAEMON_UP;
}
static bool source_is_not_up(const World *world) {
  return world->source.daemon != DAEMON_UP;
}
static bool target_is_not_up(const World *world) {
  return world->target.daemon != DAEMON_UP;
}
static void kill_source_daemon(World *world) {
  world_kill_daemon(world, &world->source);
}
static void kill_target_daemon(World *world) {
  world_kill_daemon(world, &world->target);
}
static void hang_source_daemon(World *world) {
  world->source.daemon = DAEMON_HUNG;
}
static void hang_target_daemon(World *world) {
  world->target.daemon = DAEMON_HUNG;
}
static void start_source_daemon(World *world) {
  world_start_daemon(world, &world->source);
}
static void start_target_daemon(World *world) {
  world_start_daemon(world, &world->target);
}

/* --- the link --- */

static bool link_is_up(const World *world) {
  return world->link;
}
static bool link_is_down(const World *world) {
  return !world->link;
}
static void cut_link(World *world) {
  world->link = false;
}
static void heal_link(World *world) {
  world->link = true;
}

static bool has_stream(const World *world) {
  return world->stream == STREAM_PRE_COPY || world->stream == STREAM_SENT ||
         world->stream == STREAM_POST_COPY;
}
static void break_stream(World *world) {
  world->stream = world->stream == STREAM_POST_COPY ? STREAM_POST_COPY_PAUSED : STREAM_BROKEN;
}

static bool has_connection(const World *world) {
  return world->source_conn || world->target_conn;
}
static void break_connection(World *world) {
  world->source_conn = world->target_conn = false;
}

/* --- QEMU and the guest --- */

static void end_guest(World *world, End *end) {
  bool other = end == &world->target ? world->source.qemu : world->target.qemu;
  bool same = world->arrived && !world->ran_there && other; /* paused, and the same at both ends */
  bool counts = !same && (end == &world->target) == world_newest_is_there(world);

  if (counts)
    world->guest_ended = true;
  end->ended = true;
  agent_hear_of_end(world, end, true);
  if (world->stream == STREAM_POST_COPY || world->stream == STREAM_POST_COPY_PAUSED)
    world->lost = true;
  if (end == &world->source && world->stream == STREAM_PRE_COPY)
    world->stream = STREAM_BROKEN;
  if (end == &world->target &&
      (world->stream == STREAM_PRE_COPY || world->stream == STREAM_SENT || world->stream == STREAM_LOADED))
    world->stream = STREAM_BROKEN;
  if (world->stream == STREAM_POST_COPY)
    world->stream = STREAM_POST_COPY_PAUSED;
  if (end == &world->target)
    world->auto_destroy = false;
  end->qemu = end->cpus = end->job = false;
  end->phase = PHASE_NONE;
  end->reason = REASON_NORMAL;
  end->stop_failed = false;
  if (!other)
    world->guest_ended = true;
}

static bool source_has_qemu(const World *world) {
  return world->setup.mortal && world->source.qemu;
}
static void kill_source_qemu(World *world) {
  end_guest(world, &world->source);
}
static bool target_has_qemu(const World *world) {
  return world->setup.mortal && world->target.qemu;
}
static void kill_target_qemu(World *world) {
  end_guest(world, &world->target);
}
static bool runs_at_source(const World *world) {
  return world->setup.mortal && world->source.cpus && !world->ran_there;
}
static void power_off_at_source(World *world) {
  end_guest(world, &world->source);
}
static bool runs_at_target(const World *world) {
  return world->setup.mortal && world->target.cpus;
}
static void power_off_at_target(World *world) {
  end_guest(world, &world->target);
}

/* If somebody pauses a guest while the agent's own pause is in force, or while its call for a pause or post-copy is queued,
 * nothing that libvirt says can tell the two apart: left out. */
static bool may_owner_pause(const World *world) {
  for (int i = 0; i < CALLS_MAX; i++)
    if (world->source.calls[i].call == CALL_SUSPEND || world->source.calls[i].call == CALL_START_POST_COPY)
      return false;
  return world->setup.owner_acts && world->source.cpus && world->source.daemon == DAEMON_UP &&
         !world->foreign && !world->agent.record.paused_by_agent;
}
static void owner_pauses(World *world) {
  world->source.cpus = false;
  world->source.reason = REASON_OWNER;
  world->stopper = STOPPED_BY_OWNER;
}
static bool may_owner_resume(const World *world) {
  return world->setup.owner_acts && world->source.qemu && !world->source.cpus &&
         world->stopper == STOPPED_BY_OWNER && !world->source.job && !world->ran_there && !world->arrived &&
         world->source.daemon == DAEMON_UP;
}
static void owner_resumes(World *world) {
  world->source_restored = true;
  world->source.cpus = true;
  world->source.reason = REASON_NORMAL;
  world->stopper = STOPPED_BY_NOBODY;
}

static bool agent_runs(const World *world) {
  return world->agent.stage != AGENT_OFF && world->agent.stage != AGENT_DONE;
}
static bool agent_is_off(const World *world) {
  return world->agent.stage == AGENT_OFF;
}

static const Event events[] = {
    {"source libvirtd is killed", KIND_FAULT, 2, source_is_up, kill_source_daemon},
    {"target libvirtd is killed", KIND_FAULT, 2, target_is_up, kill_target_daemon},
    {"source libvirtd hangs", KIND_FAULT, 1, source_is_up, hang_source_daemon},
    {"target libvirtd hangs", KIND_FAULT, 1, target_is_up, hang_target_daemon},
    {"the link is cut", KIND_FAULT, 1, link_is_up, cut_link},
    {"the stream is reset", KIND_FAULT, 3, has_stream, break_stream},
    {"libvirt's connection is reset", KIND_FAULT, 1, has_connection, break_connection},
    {"the source's QEMU is killed", KIND_FAULT, 1, source_has_qemu, kill_source_qemu},
    {"the target's QEMU is killed", KIND_FAULT, 1, target_has_qemu, kill_target_qemu},
    {"the agent is killed", KIND_FAULT, 2, agent_runs, agent_crash},
    {"source libvirtd is back", KIND_HEAL, 6, source_is_not_up, start_source_daemon},
    {"target libvirtd is back", KIND_HEAL, 6, target_is_not_up, start_target_daemon},
    {"the link is back", KIND_HEAL, 6, link_is_down, heal_link},
    {"the agent is started", KIND_HEAL, 6, agent_is_off, agent_start},
    {"the guest powers off at the source", KIND_OWNER, 1, runs_at_source, power_off_at_source},
    {"the guest powers off at the target", KIND_OWNER, 2, runs_at_target, power_off_at_target},
    {"its owner pauses the guest", KIND_OWNER, 2, may_owner_pause, owner_pauses},
    {"its owner resumes the guest", KIND_OWNER, 1, may_owner_resume, owner_resumes},
    {"time passes", KIND_WORLD, 5, always, NULL},
};

const Event *fault_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

void fault_heal_all(World *world) {
  world->link = true;
  if (world->source.daemon != DAEMON_UP)
    world_start_daemon(world, &world->source);
  if (world->target.daemon != DAEMON_UP)
    world_start_daemon(world, &world->target);
  if (world->agent.stage == AGENT_OFF)
    agent_start(world);
}

/* --- the operator --- */

static void destroy(World *world, End *end) {
  agent_hear_of_end(world, end, true);
  end->qemu = end->cpus = end->job = false;
  end->phase = PHASE_NONE;
  end->reason = REASON_NORMAL;
  end->stop_failed = false;
}

/* He knows the truth, from the logs at both ends. The job leaves him two choices: resume or destroy. */
bool fault_operator_acts(World *world) {
  End *source = &world->source, *target = &world->target;
  bool newest_is_there = world_newest_is_there(world);

  if (world->lost || (target->qemu && !target->cpus && end_state(target) == MIG_END_PAUSED_POSTCOPY_FAILED)) {
    if (!source->qemu && !target->qemu)
      return false;
    world->guest_ended = true;
    destroy(world, source);
    destroy(world, target);
    return true;
  }
  if (world->elsewhere && target->qemu && !target->cpus) {
    destroy(world, target);
    return true;
  }
  if (newest_is_there && source->qemu) {
    destroy(world, source);
    return true;
  }
  if (!newest_is_there && source->qemu && !target->qemu && !source->cpus) {
    if (end_state(source) == MIG_END_PAUSED_POSTCOPY || end_state(source) == MIG_END_PAUSED_POSTCOPY_FAILED) {
      /* QEMU does not go back from post-copy, although the target never began. */
      world->guest_ended = true;
      destroy(world, source);
      return true;
    }
    source->cpus = true;
    source->reason = REASON_NORMAL;
    world->stopper = STOPPED_BY_NOBODY;
    return true;
  }
  if (!newest_is_there && target->qemu) {
    destroy(world, target);
    return true;
  }
  return false;
}

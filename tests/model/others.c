/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What others do without this agent's knowledge: agents that send the guest on to a third host and home again, and an owner who
 * uses virsh at either end. Each is one event, however long it really takes, except the owner's own migration from the source. */
#include "tests/model/model.h"

/* No other call is queued in that libvirtd's socket: otherwise the order would be undefined. */
static bool is_quiet(const End *end) {
  return end->daemon == DAEMON_UP && end->calls[0].call == CALL_NONE;
}

/* By a migration. */
static void leave(World *world, End *end, bool undefine) {
  agent_hear_of_end(world, end, false);
  world->others_define = true;
  end->ended = false;
  end->qemu = end->cpus = end->job = false;
  end->phase = PHASE_NONE;
  end->reason = REASON_NORMAL;
  end->stop_failed = false;
  if (undefine)
    end->defined = end->owner_defined = false;
}

/* --- onward and home --- */

static bool may_move_on(const World *world) {
  const End *target = &world->target;

  return world->setup.third && is_quiet(target) && target->cpus && !target->job && world->arrived &&
         world->rpc == RPC_NONE && target->reason == REASON_NORMAL && !world->elsewhere;
}
static void move_on(World *world) {
  leave(world, &world->target, model_random(world, 3) > 0);
  world->elsewhere = world->ran_there = world->moved_on = true;
  world->moved_ms = world->now_ms;
}

/* Their libvirtd is killed before its Confirm, and their copy stays, stopped. */
static void move_on_and_leave_a_copy(World *world) {
  world_stop_cpus(world, &world->target, REASON_MIGRATION, STOPPED_BY_NOBODY);
  agent_hear_of_stop(world);
  world->elsewhere = world->ran_there = world->moved_on = true;
  world->moved_ms = world->now_ms;
  world_kill_daemon(world, &world->target);
}

static bool may_destroy_the_copy(const World *world) {
  const End *target = &world->target;

  return world->elsewhere && is_quiet(target) && target->qemu && !target->cpus && world->rpc == RPC_NONE;
}
/* Or its QEMU is killed. */
static void destroy_the_copy(World *world) {
  End *target = &world->target;

  world_kill_qemu(world, target, false);
  target->ended = true;
  agent_hear_of_end(world, target, true);
}

static bool may_move_back(const World *world) {
  return world->setup.third && world->elsewhere && is_quiet(&world->target) && !world->target.qemu &&
         world->rpc == RPC_NONE;
}
static void move_back(World *world) {
  End *target = &world->target;

  target->qemu = target->cpus = true;
  target->instance = ++world->last_instance;
  target->reason = REASON_NORMAL;
  target->stop_failed = target->ended = false;
  if (model_random(world, 2))
    target->defined = target->owner_defined = true;
  world->elsewhere = false;
  world->arrived = world->ran_there = true;
  agent_hear_of_target(world);
}

static bool may_go_home(const World *world) {
  return world->setup.third && world->elsewhere && is_quiet(&world->source) && !world->source.qemu &&
         world->thread == THREAD_NONE;
}
static void go_home(World *world) {
  End *source = &world->source;

  source->qemu = source->cpus = true;
  source->instance = ++world->last_instance;
  source->reason = REASON_NORMAL;
  source->ended = false;
  if (model_random(world, 2))
    source->defined = source->owner_defined = true;
  world->elsewhere = world->ran_there = world->arrived = false;
  world->stopper = STOPPED_BY_NOBODY;
  world->stream = STREAM_NONE;
  world->came_home = world->moved_on = true;
  world->moved_ms = world->now_ms;
}

/* --- an owner's own migration, from the source to the third host --- */

static bool may_owner_move(const World *world) {
  const End *source = &world->source;

  return world->setup.owner_acts && world->setup.third && is_quiet(source) && source->cpus && !source->job &&
         world->thread == THREAD_NONE && !world->ran_there && !world->arrived && !world->target.qemu &&
         !world->agent.record.paused_by_agent;
}
static void owner_moves(World *world) {
  world->source.job = world->foreign = true;
}

/* Nobody pauses it meanwhile. */
static bool is_owner_moving(const World *world) {
  return world->foreign && world_is_up(&world->source) && world->source.cpus;
}
static void owner_has_moved(World *world) {
  leave(world, &world->source, model_random(world, 2));
  world->elsewhere = world->ran_there = world->moved_on = true;
  world->moved_ms = world->now_ms;
  agent_hear_of_completion(world);
  world->foreign = false;
}
static void owner_fails_to_move(World *world) {
  world->foreign = world->source.job = false;
}
/* libvirtd is killed before its Confirm: a stopped copy stays that belongs to nobody. */
static void owner_leaves_a_copy(World *world) {
  world_stop_cpus(world, &world->source, REASON_MIGRATION, STOPPED_BY_MIGRATION);
  world->source.job = false;
  world->elsewhere = world->ran_there = world->moved_on = true;
  world->moved_ms = world->now_ms;
  world_kill_daemon(world, &world->source);
}

/* --- definitions --- */

static bool may_undefine_there(const World *world) {
  const End *target = &world->target;

  return world->setup.owner_acts && is_quiet(target) && !target->qemu && target->defined &&
         world->rpc == RPC_NONE && (world->source.defined || !world->setup.persistent);
}
static void undefine_there(World *world) {
  world->target.defined = world->target.owner_defined = world->target.stop_failed = false;
  world->setup.target_had_it = false;
  world->others_define = true;
}

/* A definition that somebody makes at the target while the agent watches, and its migration fails there, cannot be told from
 * the migration's own: left out. */
static bool may_define_there(const World *world) {
  return world->setup.owner_acts && is_quiet(&world->target) && !world->target.qemu &&
         !world->target.defined && world->rpc == RPC_NONE && world->thread == THREAD_NONE &&
         world->agent.stage == AGENT_OFF;
}
static void define_there(World *world) {
  world->target.defined = world->target.owner_defined = true;
  world->target.stop_failed = false;
}

static bool may_define_here(const World *world) {
  return world->setup.owner_acts && is_quiet(&world->source) && !world->source.qemu &&
         world->thread == THREAD_NONE && world->agent.stage == AGENT_OFF;
}
static void define_here(World *world) {
  world->source.defined = world->source.owner_defined = true;
}

static bool may_fail_to_start(const World *world) {
  const End *target = &world->target;

  return world->setup.owner_acts && is_quiet(target) && target->defined && !target->qemu &&
         world->rpc == RPC_NONE && !target->stop_failed;
}
static void fail_to_start(World *world) {
  world->target.stop_failed = true;
  world->target.ended = false;
}

static const Event events[] = {
    {"the target's agent sends it on", KIND_HEAL, 3, may_move_on, move_on},
    {"the target's agent sends it on, and its libvirtd is killed", KIND_FAULT, 2, may_move_on,
     move_on_and_leave_a_copy},
    {"an owner destroys the copy that stayed at the target", KIND_OWNER, 4, may_destroy_the_copy,
     destroy_the_copy},
    {"the third agent sends it back to the target", KIND_HEAL, 1, may_move_back, move_back},
    {"the third agent sends it home", KIND_HEAL, 1, may_go_home, go_home},
    {"its owner begins to migrate it elsewhere", KIND_OWNER, 1, may_owner_move, owner_moves},
    {"the owner's migration completes", KIND_WORLD, 1, is_owner_moving, owner_has_moved},
    {"the owner's migration fails", KIND_WORLD, 1, is_owner_moving, owner_fails_to_move},
    {"the owner's migration loses its libvirtd", KIND_FAULT, 4, is_owner_moving, owner_leaves_a_copy},
    {"an owner undefines it at the target", KIND_OWNER, 1, may_undefine_there, undefine_there},
    {"an owner defines it at the target", KIND_OWNER, 1, may_define_there, define_there},
    {"an owner defines it at the source", KIND_OWNER, 1, may_define_here, define_here},
    {"an owner fails to start it at the target", KIND_OWNER, 3, may_fail_to_start, fail_to_start},
};

const Event *other_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

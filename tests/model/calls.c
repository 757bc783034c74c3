/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's calls to a libvirtd, and the checks against the truth when libvirtd executes them. */
#include "tests/model/model.h"

#include <string.h>

/* How long a healthy libvirtd may delay a call. Less than the time between two looks. */
#define CALL_DUE_MS (MIG_SETTLE_SECOND_LOOK_MS / 2)

bool world_is_connected(const World *world, const End *end) {
  return end->daemon != DAEMON_DOWN && (end == &world->source || world->link);
}

unsigned world_send_call(World *world, End *end, Call call) {
  if (!world_is_connected(world, end))
    return 0;
  for (int i = 0; i < CALLS_MAX; i++)
    if (end->calls[i].call == CALL_NONE) {
      end->calls[i] = (Pending){.call = call, .since_ms = world->now_ms, .id = ++world->last_call};
      return world->last_call;
    }
  return 0;
}

static bool has_calls(const End *end) {
  return end->calls[0].call != CALL_NONE;
}

static Answer take_migrate(World *world, unsigned id) {
  End *source = &world->source;

  if (!source->qemu || source->job)
    return ANSWER_FAILED;
  if (world->agent.done)
    model_violation(world, "a migration that the agent had asked for began after its job had ended");
  world->stream = STREAM_NONE;
  world->source_restored = false;
  /* Whatever ran at the target before has ended: what migrates now is the guest. */
  if (!world->target.qemu && !world->elsewhere)
    world->ran_there = world->arrived = world->moved_on = world->came_home = false;
  source->job = true;
  source->phase = PHASE_BEGIN;
  world->thread = THREAD_BEGIN;
  world->thread_call = id;
  world->ran_at_begin = source->cpus;
  world->cancelled = false;
  return ANSWER_NONE; /* when it is over */
}

/* Both halves in one step: the connection works, and the QEMUs find each other. */
static Answer take_resume_post_copy(World *world, unsigned id) {
  End *source = &world->source, *target = &world->target;

  if (!source->job || source->phase != PHASE_POST_COPY_FAILED || world->stream != STREAM_POST_COPY_PAUSED ||
      world->lost)
    return ANSWER_FAILED;
  if (!world->link || !world_is_up(target) || !target->job || target->phase != PHASE_POST_COPY_FAILED ||
      world->rpc != RPC_NONE)
    return ANSWER_FAILED;
  world->stream = STREAM_POST_COPY;
  source->phase = target->phase = PHASE_RESUMED;
  source->reason = target->reason = REASON_POST_COPY;
  world->source_conn = world->target_conn = true;
  world->message = MESSAGE_NONE;
  world->reply = ANSWER_NONE;
  world->rpc = RPC_FINISH_POST_COPY;
  world->thread = THREAD_AWAITS_FINISH;
  world->thread_call = id;
  world->cancelled = false;
  return ANSWER_NONE;
}

/* The most dangerous action. libvirt does not look at the other end. */
static Answer take_resume(World *world) {
  End *source = &world->source;

  if (world->agent.done)
    model_violation(world, "the agent resumed a guest after its job had ended");
  if (!source->qemu || source->job)
    return ANSWER_FAILED;
  if (source->cpus)
    return ANSWER_OK;
  if (world->ran_there)
    model_violation(
        world,
        "the agent resumed the source's copy, which is out of date: the guest has run elsewhere since");
  else if (world->target.qemu && ((world->rpc >= RPC_FINISH_PERSIST && world->rpc <= RPC_FINISH_COMPLETE) ||
                                  world->message == MESSAGE_FINISH))
    model_violation(world, "the agent resumed the source while the target could still start it");
  else if (world->stopper == STOPPED_BY_OWNER)
    model_violation(world, "the agent resumed a guest that its owner had paused");
  if (world->setup.locks && (world->target.cpus || world->elsewhere))
    return ANSWER_FAILED;
  source->cpus = true;
  source->reason = REASON_NORMAL;
  world->stopper = STOPPED_BY_NOBODY;
  return ANSWER_OK;
}

static Answer take_undefine(World *world, End *end) {
  End *other = end == &world->source ? &world->target : &world->source;

  if (world->agent.done)
    model_violation(world, "the agent removed a definition after its job had ended");
  if (end->qemu || !end->defined)
    return ANSWER_FAILED;
  if (!other->defined && !world->moved_on)
    model_violation(world, "the agent removed the only definition");
  if (end->owner_defined)
    model_violation(world, "the agent removed a definition that an owner had made");
  if (end == &world->target && world->setup.target_had_it)
    model_violation(world, "the agent removed a definition that the target had before");
  if (end == &world->source && !world->setup.undefine_source)
    model_violation(world, "the agent removed the source's definition, which should stay");
  end->defined = false;
  return ANSWER_OK;
}

static Answer take_abort(World *world) {
  if (world->foreign)
    model_violation(world, "the agent cancelled the owner's own migration");
  if (world->thread != THREAD_PERFORM || world->stream != STREAM_PRE_COPY)
    return ANSWER_FAILED;
  world->stream = STREAM_BROKEN;
  return ANSWER_OK;
}

static Answer take_start_post_copy(World *world) {
  if (!world->setup.allow_post_copy || world->thread != THREAD_PERFORM || world->stream != STREAM_PRE_COPY ||
      !world->link)
    return ANSWER_FAILED;
  world->stream = STREAM_POST_COPY;
  world_stop_cpus(world, &world->source, REASON_POST_COPY, STOPPED_BY_MIGRATION);
  world->source.reason = REASON_POST_COPY;
  return ANSWER_OK;
}

static Answer take_suspend(World *world) {
  End *source = &world->source;

  if (!source->qemu || world->stream == STREAM_POST_COPY || world->stream == STREAM_POST_COPY_PAUSED)
    return ANSWER_FAILED;
  world_stop_cpus(world, source, REASON_OWNER, STOPPED_BY_AGENT);
  return ANSWER_OK;
}

static void take_call(World *world, End *end) {
  Pending pending = end->calls[0];
  Answer answer = ANSWER_FAILED;

  memmove(&end->calls[0], &end->calls[1], (CALLS_MAX - 1) * sizeof end->calls[0]);
  end->calls[CALLS_MAX - 1] = (Pending){0};
  switch (pending.call) {
  case CALL_MIGRATE:
    answer = take_migrate(world, pending.id);
    break;
  case CALL_RESUME_POST_COPY:
    answer = take_resume_post_copy(world, pending.id);
    break;
  case CALL_RESUME:
    answer = take_resume(world);
    break;
  case CALL_UNDEFINE:
    answer = take_undefine(world, end);
    break;
  case CALL_ABORT:
    answer = take_abort(world);
    break;
  case CALL_START_POST_COPY:
    answer = take_start_post_copy(world);
    break;
  case CALL_SUSPEND:
    answer = take_suspend(world);
    break;
  case CALL_NONE:
  case CALL_COUNT:
    return;
  }
  if (answer != ANSWER_NONE)
    agent_take_answer(world, pending.id, answer);
}

void world_take_due_calls(World *world) {
  End *ends[] = {&world->source, &world->target};

  for (int i = 0; i < 2; i++)
    while (world_is_up(ends[i]) && has_calls(ends[i]) && world->now_ms > ends[i]->up_since_ms + CALL_DUE_MS &&
           world->now_ms > ends[i]->calls[0].since_ms + CALL_DUE_MS)
      take_call(world, ends[i]);
}

static bool source_has_calls(const World *world) {
  return world_is_up(&world->source) && has_calls(&world->source);
}
static void source_takes_call(World *world) {
  take_call(world, &world->source);
}
static bool target_has_calls(const World *world) {
  return world_is_up(&world->target) && has_calls(&world->target);
}
static void target_takes_call(World *world) {
  take_call(world, &world->target);
}

static const Event events[] = {
    {"source libvirtd executes a call", KIND_WORLD, 6, source_has_calls, source_takes_call},
    {"target libvirtd executes a call", KIND_WORLD, 6, target_has_calls, target_takes_call},
};

const Event *call_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

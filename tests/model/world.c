/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model's hosts: their initial state, and what QEMU does by itself. */
#include "tests/model/model.h"

#include <stdarg.h>

unsigned model_random(World *world, unsigned n) {
  world->random ^= world->random >> 12;
  world->random ^= world->random << 25;
  world->random ^= world->random >> 27;
  return (unsigned)((world->random * UINT64_C(2685821657736338717)) >> 33) % n;
}

void model_violation(World *world, const char *format, ...) {
  va_list args;

  if (world->violation[0])
    return;
  va_start(args, format);
  vsnprintf(world->violation, sizeof world->violation, format, args);
  va_end(args);
}

bool world_is_up(const End *end) {
  return end->daemon == DAEMON_UP;
}

MigEndState end_state(const End *end) {
  static const MigEndState running[] = {
      [REASON_NORMAL] = MIG_END_RUNNING,
      [REASON_OWNER] = MIG_END_RUNNING,
      [REASON_API_ERROR] = MIG_END_RUNNING,
      [REASON_MIGRATION] = MIG_END_RUNNING,
      [REASON_POST_COPY] = MIG_END_RUNNING_POSTCOPY,
      [REASON_POST_COPY_FAILED] = MIG_END_RUNNING_POSTCOPY_FAILED,
  };
  static const MigEndState paused[] = {
      [REASON_NORMAL] = MIG_END_PAUSED,
      [REASON_OWNER] = MIG_END_PAUSED,
      [REASON_API_ERROR] = MIG_END_PAUSED_MIGRATION,
      [REASON_MIGRATION] = MIG_END_PAUSED_MIGRATION,
      [REASON_POST_COPY] = MIG_END_PAUSED_POSTCOPY,
      [REASON_POST_COPY_FAILED] = MIG_END_PAUSED_POSTCOPY_FAILED,
  };

  if (end->qemu)
    return end->cpus ? running[end->reason] : paused[end->reason];
  return end->defined ? MIG_END_INACTIVE : MIG_END_ABSENT;
}

bool world_newest_is_there(const World *world) {
  return world->ran_there || world->elsewhere || (world->arrived && world->target.qemu);
}

void world_init(World *world, uint64_t seed) {
  *world = (World){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .now_ms = 100000, .link = true};
  for (int i = 0; i < 8; i++)
    model_random(world, 2);
  world->setup = (Setup){
      .persistent = model_random(world, 4) > 0,
      .target_had_it = model_random(world, 4) == 0,
      .paused_before = model_random(world, 6) == 0,
      .persist_target = model_random(world, 3) > 0,
      .undefine_source = model_random(world, 3) > 0,
      .allow_post_copy = model_random(world, 3) > 0,
      .busy = model_random(world, 2),
      .mortal = model_random(world, 3) == 0,
      .owner_acts = model_random(world, 3) == 0,
      .locks = model_random(world, 2),
      .third = model_random(world, 2),
  };
  world->source = (End){.defined = world->setup.persistent,
                        .qemu = true,
                        .cpus = !world->setup.paused_before,
                        .reason = world->setup.paused_before ? REASON_OWNER : REASON_NORMAL,
                        .instance = ++world->last_instance};
  world->target = (End){.defined = world->setup.target_had_it};
  world->stopper = world->setup.paused_before ? STOPPED_BY_OWNER : STOPPED_BY_NOBODY;
}

/* --- QEMU --- */

void world_stop_cpus(World *world, End *end, Reason reason, Stopper stopper) {
  if (!end->cpus)
    return;
  end->cpus = false;
  end->reason = reason;
  if (end == &world->source)
    world->stopper = stopper;
}

void world_kill_qemu(World *world, End *end, bool failed) {
  if (!end->qemu)
    return;
  end->qemu = end->cpus = end->job = false;
  end->phase = PHASE_NONE;
  end->reason = REASON_NORMAL;
  end->stop_failed = failed;
  end->ended = false;
  agent_hear_of_end(world, end, false);
  if (end == &world->target)
    world->auto_destroy = false;
  switch (world->stream) {
  case STREAM_POST_COPY:
  case STREAM_POST_COPY_PAUSED:
    world->lost = true;
    world->stream = STREAM_POST_COPY_PAUSED;
    break;
  case STREAM_PRE_COPY:
    world->stream = STREAM_BROKEN;
    break;
  case STREAM_SENT:
  case STREAM_LOADED:
    if (end == &world->target)
      world->stream = STREAM_BROKEN;
    else if (world->stream == STREAM_SENT && model_random(world, 2))
      world->stream = STREAM_BROKEN; /* the last bytes went with it */
    break;
  default:
    break;
  }
}

/* A stopped guest has nothing more to write. */
static bool converges(const World *world) {
  return !world->setup.busy || !world->source.cpus;
}

static bool may_switch_over(const World *world) {
  return converges(world) && world->stream == STREAM_PRE_COPY && world->link &&
         world->thread == THREAD_PERFORM;
}

static void switch_over(World *world) {
  world->stream = STREAM_SENT;
  world_stop_cpus(world, &world->source, REASON_MIGRATION, STOPPED_BY_MIGRATION);
}

/* QEMU does this even while its libvirtd is down. */
static bool may_switch_over_unseen(const World *world) {
  return converges(world) && world->stream == STREAM_PRE_COPY && world->link &&
         world->thread == THREAD_NONE && world->source.qemu && world->source.daemon == DAEMON_DOWN;
}

static bool may_load(const World *world) {
  return world->stream == STREAM_SENT && world->link && world->target.qemu;
}

static void load(World *world) {
  world->stream = STREAM_LOADED;
}

static bool may_end_post_copy(const World *world) {
  return world->stream == STREAM_POST_COPY && world->link && world->target.qemu && world->arrived;
}

static void end_post_copy(World *world) {
  world->stream = STREAM_POST_COPY_DONE;
}

static const Event events[] = {
    {"QEMU switches over", KIND_WORLD, 1, may_switch_over, switch_over},
    {"QEMU switches over unseen", KIND_WORLD, 3, may_switch_over_unseen, switch_over},
    {"the target has all of the memory", KIND_WORLD, 5, may_load, load},
    {"post-copy ends", KIND_WORLD, 1, may_end_post_copy, end_post_copy},
};

const Event *world_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The target without the agent: libvirtd and its events, arriving and leaving guests, and the owner with virsh.
 *
 * As libvirt 9.0 does it: an incoming copy is reported once its QEMU waits; Finish first writes the definition, if requested, and
 * then starts the CPUs; an unfinished copy leaves whatever definition there was. A killed libvirtd forgets its clients and the
 * events for them. When it starts, it ends a copy that was still waiting and keeps a running guest; of one that it had started
 * in Finish it no longer says that it was migrated. */
#include "tests/model/arrival-model.h"

#include <stdarg.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

unsigned arrival_random(World *world, unsigned n) {
  world->random ^= world->random << 13;
  world->random ^= world->random >> 7;
  world->random ^= world->random << 17;
  return (unsigned)((world->random * 0x2545F4914F6CDD1DULL) >> 33) % n;
}

void arrival_violation(World *world, const char *format, ...) {
  va_list arguments;

  if (world->violation[0])
    return;
  va_start(arguments, format);
  vsnprintf(world->violation, sizeof world->violation, format, arguments);
  va_end(arguments);
}

static bool flip(World *world) {
  return arrival_random(world, 2);
}

static void tell(World *world, MigSlotNews news) {
  if (world->agent.up && world->agent.epoch == world->epoch && world->agent.connected &&
      world->n_news < NEWS_MAX)
    world->news[world->n_news++] = (News){news, world->now_ms, false};
}

static void tell_state(World *world, MigEndState state) {
  tell(world, (MigSlotNews){.state = state});
}

static void write_image(World *world) {
  if (!world->image)
    return;
  world->image_mtime++;
  world->image_used = true;
}

/* A guest has it open. */
static void use_image(World *world) {
  if (world->image)
    world->image_used = true;
}

void arrival_world_init(World *world, uint64_t seed, ShellFault fault) {
  memset(world, 0, sizeof *world);
  world->random = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (int i = 0; i < 4; i++)
    arrival_random(world, 2);
  world->fault = fault;
  world->now_ms = 100000;
  world->epoch = 1;
  world->at_source = true;
  world->setup = (Setup){
      .persist = flip(world),
      .had_definition = !arrival_random(world, 6),
      .images = arrival_random(world, 4),
      .idle = flip(world),
      .was_paused = !arrival_random(world, 5),
      .owner_acts = flip(world),
  };
  world->defined = world->setup.had_definition;
}

MigSlotLook arrival_world_look(const World *world) {
  static const MigEndState states[] = {
      [LIFE_NONE] = MIG_END_ABSENT,
      [LIFE_COPY] = MIG_END_PAUSED_MIGRATION,
      [LIFE_POST_COPY] = MIG_END_RUNNING_POSTCOPY,
      [LIFE_POST_COPY_CUT] = MIG_END_RUNNING_POSTCOPY_FAILED,
      [LIFE_RUNNING] = MIG_END_RUNNING,
      [LIFE_PAUSED] = MIG_END_PAUSED,
      [LIFE_CRASHED] = MIG_END_CRASHED,
  };
  bool running = world->life == LIFE_RUNNING;

  return (MigSlotLook){
      .state = world->life == LIFE_NONE && world->defined ? MIG_END_INACTIVE : states[world->life],
      .job_incoming = world->incoming,
      .job_outgoing = world->outgoing,
      .migrated = running && world->reason == REASON_MIGRATED,
      .booted = running && world->reason == REASON_BOOTED,
      .persistent = world->defined,
  };
}

void arrival_world_delete(World *world) {
  if (!world->image)
    return;
  if (world->image_used)
    arrival_violation(world, "an image was removed that a guest ran with or somebody wrote to");
  /* A copy that began at that moment loses nothing, and is reported. */
  world->raced += world->life != LIFE_NONE;
  world->image = false;
  world->removed++;
}

static bool is_on_its_way(const World *world) {
  return world->daemon == DAEMON_UP || world->news[0].sent;
}

void arrival_world_flush(World *world) {
  for (unsigned i = 0; i < world->n_news; i++)
    world->news[i].sent = true;
}

void arrival_world_tell_due(World *world) {
  while (world->n_news > 0 && world->daemon == DAEMON_UP &&
         world->now_ms > world->news[0].since_ms + HEARD_MS) {
    MigSlotNews news = world->news[0].news;

    memmove(world->news, world->news + 1, --world->n_news * sizeof world->news[0]);
    arrival_agent_hear(world, &news);
  }
}

static bool has_news(const World *world) {
  return world->n_news > 0 && is_on_its_way(world);
}

static void be_heard(World *world) {
  MigSlotNews news = world->news[0].news;

  memmove(world->news, world->news + 1, --world->n_news * sizeof world->news[0]);
  arrival_agent_hear(world, &news);
}

/* --- arrivals --- */

static bool works(const World *world) {
  return world->daemon == DAEMON_UP;
}

static bool may_begin(const World *world) {
  return works(world) && world->at_source && !world->moving && world->life == LIFE_NONE;
}

static void begin(World *world) {
  world->moving = true;
  world->began_ms = world->now_ms;
  world->life = LIFE_COPY;
  world->incoming = true;
  world->by_migration = true;
  if (!world->copy_came)
    world->first_ms = world->now_ms;
  world->copy_came = true;
  tell(world, (MigSlotNews){.state = MIG_END_PAUSED_MIGRATION, .arriving = true});
}

static bool has_copy(const World *world) {
  return works(world) && world->life == LIFE_COPY && world->moving;
}

/* No guest arrives and runs within the time that an event takes. */
static bool may_finish(const World *world) {
  return has_copy(world) && world->now_ms >= world->began_ms + 2 * HEARD_MS;
}

static bool copies(const World *world) {
  return has_copy(world) && !world->setup.idle;
}

static void copy_disk(World *world) {
  write_image(world);
}

static void persist(World *world) {
  if (!world->setup.persist || world->defined)
    return;
  world->defined = true;
  tell(world, (MigSlotNews){.definition = true});
}

/* The guest is here from now on. */
static void run_here(World *world, Life life, MigEndState told) {
  world->life = life;
  world->reason = REASON_MIGRATED;
  world->guest_here = true;
  world->at_source = false;
  use_image(world);
  tell_state(world, told);
}

static void finish(World *world) {
  persist(world);
  run_here(world, world->setup.was_paused ? LIFE_PAUSED : LIFE_RUNNING,
           world->setup.was_paused ? MIG_END_PAUSED : MIG_END_RUNNING);
}

static void begin_post_copy(World *world) {
  run_here(world, LIFE_POST_COPY, MIG_END_RUNNING_POSTCOPY);
}

static bool in_post_copy(const World *world) {
  return works(world) && world->life == LIFE_POST_COPY;
}

static void end_post_copy(World *world) {
  persist(world);
  world->life = LIFE_RUNNING;
  tell_state(world, MIG_END_RUNNING);
}

static bool is_cut(const World *world) {
  return works(world) && world->life == LIFE_POST_COPY_CUT;
}

static void cut(World *world) {
  world->life = LIFE_POST_COPY_CUT;
  tell_state(world, MIG_END_RUNNING_POSTCOPY_FAILED);
}

static void mend_cut(World *world) {
  world->life = LIFE_POST_COPY;
  tell_state(world, MIG_END_RUNNING_POSTCOPY);
}

/* Finish has completed. */
static bool has_job(const World *world) {
  return works(world) && world->incoming && world->life != LIFE_COPY && world->life != LIFE_POST_COPY &&
         world->life != LIFE_POST_COPY_CUT;
}

static void end_job(World *world) {
  world->incoming = world->moving = false;
}

static void end_life(World *world) {
  world->life = LIFE_NONE;
  world->incoming = world->outgoing = world->moving = false;
  tell_state(world, MIG_END_INACTIVE);
}

/* --- the guest here --- */

static bool guest_runs(const World *world) {
  return world->life == LIFE_RUNNING || world->life == LIFE_POST_COPY;
}

static void write_disk(World *world) {
  write_image(world);
}

static bool may_write(const World *world) {
  return guest_runs(world) && !world->setup.idle;
}

static bool may_power_off(const World *world) {
  return world->life == LIFE_RUNNING && works(world);
}

static bool may_crash(const World *world) {
  return world->life == LIFE_RUNNING && works(world) && !world->outgoing;
}

static void crash(World *world) {
  world->life = LIFE_CRASHED;
  tell_state(world, MIG_END_CRASHED);
}

static bool may_go_on(const World *world) {
  return works(world) && world->life == LIFE_RUNNING && !world->incoming && !world->outgoing;
}

static void go_on(World *world) {
  world->outgoing = true;
}

static bool goes_on(const World *world) {
  return works(world) && world->outgoing;
}

static void be_gone(World *world) {
  if (flip(world) && world->defined) {
    world->defined = false;
    end_life(world);
    tell_state(world, MIG_END_ABSENT);
  } else {
    end_life(world);
  }
}

/* --- the owner --- */

static bool owner_may(const World *world) {
  return works(world) && world->setup.owner_acts;
}

static bool may_define(const World *world) {
  return owner_may(world) && !world->defined && world->life != LIFE_COPY;
}

static void define(World *world) {
  world->defined = true;
  tell(world, (MigSlotNews){.definition = true});
}

static bool may_undefine(const World *world) {
  return owner_may(world) && world->defined;
}

static void undefine(World *world) {
  world->defined = false;
  tell_state(world, MIG_END_ABSENT);
}

static bool may_boot(const World *world) {
  return owner_may(world) && world->defined && world->life == LIFE_NONE;
}

/* He knows what he starts. */
static void boot(World *world) {
  world->life = LIFE_RUNNING;
  world->reason = REASON_BOOTED;
  world->by_migration = false;
  world->booted_here = true;
  use_image(world);
  tell(world, (MigSlotNews){.state = MIG_END_RUNNING, .started = true});
}

static bool may_destroy(const World *world) {
  return owner_may(world) && world->life != LIFE_NONE;
}

/* He does not pause what he started: after a gap, libvirt could not tell it from a guest that arrived. */
static bool may_pause(const World *world) {
  return owner_may(world) && world->life == LIFE_RUNNING && world->by_migration && !world->incoming;
}

static void pause_guest(World *world) {
  world->life = LIFE_PAUSED;
  tell_state(world, MIG_END_PAUSED);
}

static bool may_resume(const World *world) {
  return owner_may(world) && world->life == LIFE_PAUSED && !world->incoming;
}

static void resume(World *world) {
  world->life = LIFE_RUNNING;
  world->reason = REASON_UNPAUSED;
  tell_state(world, MIG_END_RUNNING);
}

static bool has_image(const World *world) {
  return world->setup.owner_acts && world->image && world->life == LIFE_NONE;
}

static void replace_image(World *world) {
  write_image(world);
}

static void remove_image(World *world) {
  world->image = false;
}

/* --- libvirtd --- */

static bool is_up(const World *world) {
  return world->daemon == DAEMON_UP;
}

static bool is_hung(const World *world) {
  return world->daemon == DAEMON_HUNG;
}

static bool is_down(const World *world) {
  return world->daemon == DAEMON_DOWN;
}

static bool is_alive(const World *world) {
  return world->daemon != DAEMON_DOWN;
}

static void hang(World *world) {
  world->daemon = DAEMON_HUNG;
}

/* It sends the events that it did not send before. */
static void wake(World *world) {
  world->daemon = DAEMON_UP;
  for (unsigned i = 0; i < world->n_news; i++)
    if (!world->news[i].sent)
      world->news[i].since_ms = world->now_ms;
}

static void kill_daemon(World *world) {
  world->daemon = DAEMON_DOWN;
  world->epoch++;
  world->broke_ms = world->now_ms;
  world->n_news = 0;
}

static void start_daemon(World *world) {
  world->daemon = DAEMON_UP;
  if (world->life == LIFE_COPY)
    end_life(world);
  else if (world->incoming && world->life == LIFE_RUNNING)
    world->reason = REASON_UNPAUSED;
  if (world->life != LIFE_POST_COPY && world->life != LIFE_POST_COPY_CUT)
    world->incoming = world->moving = false;
}

/* The guest runs while libvirtd does not. */
static bool may_end_unseen(const World *world) {
  return world->life == LIFE_RUNNING && !works(world);
}

static void end_unseen(World *world) {
  world->life = LIFE_NONE;
  world->incoming = world->outgoing = world->moving = false;
  /* A hung libvirtd reports it once it is back. */
  if (world->daemon == DAEMON_HUNG)
    tell_state(world, MIG_END_INACTIVE);
}

static void time_passes(World *world) {
  world->now_ms += arrival_random(world, 1500);
}

static bool always(const World *world) {
  return true;
}

void arrival_world_heal(World *world) {
  if (world->daemon == DAEMON_DOWN)
    start_daemon(world);
  else if (world->daemon == DAEMON_HUNG)
    wake(world);
  world->setup.owner_acts = false;
}

static const Event events[] = {
    {"time passes", KIND_WORLD, 6, always, time_passes},
    {"an event reaches the agent", KIND_WORLD, 6, has_news, be_heard},
    {"a migration begins: its copy waits here", KIND_WORLD, 3, may_begin, begin},
    {"its disk is copied", KIND_WORLD, 3, copies, copy_disk},
    {"Finish: the guest is here", KIND_WORLD, 3, may_finish, finish},
    {"post-copy begins", KIND_WORLD, 1, may_finish, begin_post_copy},
    {"post-copy ends", KIND_WORLD, 4, in_post_copy, end_post_copy},
    {"post-copy is cut", KIND_FAULT, 1, in_post_copy, cut},
    {"post-copy goes on", KIND_HEAL, 3, is_cut, mend_cut},
    {"post-copy goes on, at last", KIND_WORLD, 1, is_cut, mend_cut},
    {"the source cancels it", KIND_WORLD, 2, has_copy, end_life},
    {"the incoming job ends", KIND_WORLD, 8, has_job, end_job},
    {"the guest writes to its disk", KIND_WORLD, 2, may_write, write_disk},
    {"the guest powers off", KIND_WORLD, 1, may_power_off, end_life},
    {"the guest crashes", KIND_FAULT, 1, may_crash, crash},
    {"it moves on to a third node", KIND_WORLD, 1, may_go_on, go_on},
    {"it has moved on", KIND_WORLD, 4, goes_on, be_gone},
    {"its owner defines it", KIND_OWNER, 2, may_define, define},
    {"its owner undefines it", KIND_OWNER, 2, may_undefine, undefine},
    {"its owner starts it", KIND_OWNER, 3, may_boot, boot},
    {"its owner destroys it", KIND_OWNER, 3, may_destroy, end_life},
    {"its owner pauses it", KIND_OWNER, 2, may_pause, pause_guest},
    {"its owner resumes it", KIND_OWNER, 4, may_resume, resume},
    {"its owner puts his own image there", KIND_OWNER, 1, has_image, replace_image},
    {"its owner removes the image", KIND_OWNER, 1, has_image, remove_image},
    {"libvirtd hangs", KIND_FAULT, 2, is_up, hang},
    {"libvirtd continues", KIND_HEAL, 5, is_hung, wake},
    {"libvirtd is killed", KIND_FAULT, 3, is_alive, kill_daemon},
    {"libvirtd starts", KIND_HEAL, 5, is_down, start_daemon},
    {"the guest powers off, unseen", KIND_FAULT, 2, may_end_unseen, end_unseen},
};

const Event *arrival_world_events(size_t *ret_n) {
  *ret_n = LENGTH(events);
  return events;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent at a target, around the real core: the steps of agent/move/incoming.c, grant.c and images.c, in their order, the connection
 * of hypervisor.c, and the record of store.c, which lags behind. What is declared at the end is checked against the truth. */
#include "tests/model/arrival-model.h"

#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* An errand is given up after this time. */
#define LATE_MS 10000

/* images.c: how long a look counts that found nothing of the domain here. */
#define LOOK_MS 5000

#define LEASE_MS 20000

static void save(World *world) {
  world->agent.unsaved = true;
}

static void write_record(World *world) {
  Agent *agent = &world->agent;

  agent->record.came = agent->slot.came;
  agent->record.ran = agent->slot.ran;
  agent->record.traces = agent->slot.traces;
  agent->record.started = agent->slot.started;
  agent->record.ending = agent->slot.ending;
  agent->record.image = agent->image;
  agent->record.done = agent->done;
  agent->unsaved = false;
}

static void ask(World *world) {
  Agent *agent = &world->agent;

  if (agent->errand.call != CALL_NONE) {
    agent->ask_again = true;
    return;
  }
  agent->errand = (LocalCall){.call = CALL_SENT, .since_ms = world->now_ms};
  agent->due_ms = 0;
}

void arrival_agent_begin(World *world) {
  Agent *agent = &world->agent;

  agent->up = agent->connected = true;
  agent->epoch = world->epoch;
  agent->record.expires_ms = world->now_ms + LEASE_MS;
  mig_slot_watch(&agent->slot);
  if (world->setup.images) {
    world->image = true;
    world->made_mtime = world->image_mtime;
    agent->image = IMAGE_MADE;
  }
  write_record(world);
  agent->due_ms = world->now_ms;
}

void arrival_agent_kill(World *world) {
  Agent *agent = &world->agent;
  Record record = agent->record;
  /* What its threads had sent is with libvirtd; what they had not sent is lost. */
  *agent = (Agent){.record = record, .done = record.done, .end = agent->end};
  world->n_news = 0;
}

static void start(World *world) {
  Agent *agent = &world->agent;

  agent->up = true;
  agent->slot = (MigSlot){.came = agent->record.came,
                          .ran = agent->record.ran,
                          .traces = agent->record.traces,
                          .started = agent->record.started,
                          .ending = agent->record.ending,
                          .watched = world->fault == SHELL_REMEMBERS_ITS_WATCH};
  agent->image = agent->record.image;
  agent->due_ms = world->now_ms;
}

void arrival_agent_hear(World *world, const MigSlotNews *news) {
  Agent *agent = &world->agent;

  if (!agent->up || agent->done || world->fault == SHELL_HEARS_NO_EVENT)
    return;
  if (mig_slot_hear(&agent->slot, news))
    save(world);
  if (news->definition || news->state != MIG_END_INACTIVE)
    agent->called_off = agent->lost.called_off = true;
  ask(world);
}

/* --- its connection --- */

static bool is_at_work(const World *world) {
  return world->agent.up && !world->agent.done;
}

static void gap(World *world) {
  Agent *agent = &world->agent;

  if (world->fault == SHELL_SEES_NO_BREAK || !mig_slot_gap(&agent->slot))
    return;
  agent->called_off = agent->lost.called_off = true;
  save(world);
}

static bool is_broken(const World *world) {
  return is_at_work(world) && world->agent.connected && world->agent.epoch != world->epoch;
}

static void notice_break(World *world) {
  world->agent.connected = false;
  gap(world);
}

/* A closed socket is noticed as quickly as an event. */
void arrival_agent_notice_due(World *world) {
  if (is_broken(world) && world->now_ms > world->broke_ms + HEARD_MS)
    notice_break(world);
}

static bool may_connect(const World *world) {
  return is_at_work(world) && !world->agent.connected && world->daemon == DAEMON_UP;
}

static void reconnect(World *world) {
  Agent *agent = &world->agent;

  agent->connected = true;
  agent->epoch = world->epoch;
  if (world->fault != SHELL_REMEMBERS_ITS_WATCH)
    gap(world);
  if (agent->due_ms > 0)
    agent->due_ms = world->now_ms;
}

/* --- its end --- */

static void declare(World *world, MigSlotEnd end) {
  bool watched = world->agent.slot.watched;

  switch (end) {
  case MIG_SLOT_ARRIVED:
    if (!world->guest_here)
      arrival_violation(world, "ARRIVED, and no guest came");
    break;
  case MIG_SLOT_STOPPED:
    if (!world->guest_here)
      arrival_violation(world, "STOPPED, and no guest came");
    break;
  case MIG_SLOT_CANCELLED:
    if (world->guest_here)
      arrival_violation(world, "CANCELLED, \"never ran here\", but it did");
    break;
  case MIG_SLOT_GONE:
    if (!world->copy_came)
      arrival_violation(world, "GONE, and nothing had come");
    break;
  case MIG_SLOT_EXPIRED:
    if (watched && world->copy_came && world->first_ms < world->agent.record.expires_ms)
      arrival_violation(world, "EXPIRED, \"nothing came\", but something did");
    break;
  case MIG_SLOT_TAKEN:
    if (watched && !world->booted_here)
      arrival_violation(world, "TAKEN, \"not by a migration\", but the guest came by one");
    break;
  default:
    break;
  }
}

static void end_job(World *world, MigSlotEnd end) {
  Agent *agent = &world->agent;

  declare(world, end);
  if (agent->image == IMAGE_MADE && end != MIG_SLOT_ARRIVED) {
    agent->image = IMAGE_LEFT;
    world->kept++;
  }
  agent->done = true;
  agent->end = end;
  save(world);
}

/* --- looks --- */

static void apply(World *world, const MigSlotLook *seen) {
  Agent *agent = &world->agent;
  MigSlotLook look = *seen;
  MigSlotAnswer answer;

  if (!agent->errand.unbroken)
    gap(world);
  look.now_ms = world->now_ms;
  look.images = agent->image == IMAGE_MADE;
  agent->errand = (LocalCall){0};
  answer = mig_slot_step(&agent->slot, &look);
  save(world);
  if (answer.end == MIG_SLOT_OPEN) {
    agent->due_ms = world->now_ms + answer.again_ms;
    return;
  }
  if (answer.nothing && look.images && !answer.keep) {
    agent->errand =
        (LocalCall){.call = CALL_SENT, .remove = true, .since_ms = world->now_ms, .epoch = agent->epoch};
    agent->called_off = false;
    return;
  }
  end_job(world, answer.end);
}

static void take_removed(World *world) {
  Agent *agent = &world->agent;
  LocalCall errand = agent->errand;

  agent->errand = (LocalCall){0};
  agent->due_ms = world->now_ms + 1000;
  if (errand.failed || !errand.nothing) {
    mig_slot_doubt(&agent->slot);
    return;
  }
  if (errand.removed)
    agent->image = IMAGE_REMOVED;
  /* It arrived at that moment: reported, and followed. */
  if (errand.look.state != MIG_END_ABSENT && errand.look.state != MIG_END_INACTIVE) {
    agent->image = agent->image == IMAGE_MADE ? IMAGE_LEFT : agent->image;
    ask(world);
    return;
  }
  agent->image = agent->image == IMAGE_MADE ? IMAGE_LEFT : agent->image;
  world->kept += agent->image == IMAGE_LEFT;
  if (agent->slot.likely == MIG_SLOT_OPEN) {
    ask(world);
    return;
  }
  end_job(world, agent->slot.likely);
}

static bool may_take(const World *world) {
  return is_at_work(world) && world->agent.connected && world->agent.errand.call == CALL_SENT &&
         world->daemon == DAEMON_UP;
}

/* libvirtd answers. A thread opens its own connections, so this may be a restarted libvirtd; the thread sees that the
 * connection for events is broken. */
static void take(World *world) {
  Agent *agent = &world->agent;
  LocalCall *errand = &agent->errand;

  arrival_world_flush(world);
  errand->look = arrival_world_look(world);
  errand->unbroken = agent->epoch == world->epoch || world->fault == SHELL_SEES_NO_BREAK;
  errand->call = CALL_ANSWERED;
  if (!errand->remove)
    return;
  errand->failed = errand->epoch != agent->epoch || !errand->unbroken;
  errand->nothing = !errand->failed && errand->look.state == MIG_END_ABSENT;
  errand->since_ms = world->now_ms;
  if (errand->nothing)
    errand->call = CALL_TO_COMPARE;
}

static bool may_compare(const World *world) {
  return is_at_work(world) && world->agent.errand.call == CALL_TO_COMPARE && world->daemon == DAEMON_UP;
}

/* The driver: the stamp, the last look and the deletion, one right after the other. */
static bool compare_and_delete(World *world, bool called_off, uint64_t since_ms) {
  bool written = world->image_mtime != world->made_mtime && world->fault != SHELL_REMOVES_WHAT_WAS_WRITTEN;
  bool old =
      arrival_world_look(world).state != MIG_END_ABSENT || called_off || world->now_ms >= since_ms + LOOK_MS;

  if (written || (old && world->fault != SHELL_REMOVES_BY_AN_OLD_LOOK))
    return false;
  arrival_world_delete(world);
  return true;
}

static void compare(World *world) {
  LocalCall *errand = &world->agent.errand;

  errand->removed = compare_and_delete(world, world->agent.called_off, errand->since_ms);
  errand->look = arrival_world_look(world);
  errand->call = CALL_ANSWERED;
}

static bool may_answer(const World *world) {
  return is_at_work(world) && world->agent.errand.call == CALL_ANSWERED;
}

static void answer(World *world) {
  Agent *agent = &world->agent;
  bool again = agent->ask_again;

  agent->ask_again = false;
  if (agent->errand.remove) {
    take_removed(world);
  } else if (again) {
    agent->errand.call = CALL_NONE;
    ask(world);
  } else {
    MigSlotLook look = agent->errand.look;

    apply(world, &look);
  }
}

static bool is_late(const World *world) {
  return is_at_work(world) &&
         (world->agent.errand.call == CALL_SENT || world->agent.errand.call == CALL_TO_COMPARE) &&
         (world->daemon == DAEMON_DOWN || world->now_ms > world->agent.errand.since_ms + LATE_MS);
}

static void give_up(World *world) {
  Agent *agent = &world->agent;

  agent->ask_again = false;
  if (agent->errand.remove) {
    /* Its thread is still working. */
    agent->lost = (Lost){.compares = agent->errand.call == CALL_TO_COMPARE && world->daemon != DAEMON_DOWN,
                         .called_off = true};
    agent->errand = (LocalCall){.remove = true, .failed = true};
    take_removed(world);
  } else {
    apply(world, &(MigSlotLook){.state = MIG_END_UNKNOWN});
  }
}

static bool has_lost_thread(const World *world) {
  return world->agent.lost.compares && world->daemon == DAEMON_UP;
}

static void lost_thread_goes_on(World *world) {
  world->agent.lost.compares = false;
  compare_and_delete(world, world->agent.lost.called_off, world->now_ms);
}

static bool is_due(const World *world) {
  return is_at_work(world) && world->agent.errand.call == CALL_NONE && world->agent.due_ms > 0 &&
         world->now_ms >= world->agent.due_ms;
}

static bool may_expire(const World *world) {
  return is_at_work(world) && world->agent.errand.call == CALL_NONE &&
         world->now_ms >= world->agent.record.expires_ms;
}

static void expire(World *world) {
  Agent *agent = &world->agent;

  if (!mig_slot_expire(&agent->slot, world->now_ms, agent->record.expires_ms))
    return;
  save(world);
  agent->due_ms = world->now_ms;
}

static void release(World *world) {
  Agent *agent = &world->agent;

  if (!mig_slot_release(&agent->slot))
    return;
  save(world);
  if (agent->due_ms > 0)
    agent->due_ms = world->now_ms;
}

static bool is_unsaved(const World *world) {
  return world->agent.up && world->agent.unsaved;
}

static bool is_up(const World *world) {
  return world->agent.up;
}

static bool is_off(const World *world) {
  return !world->agent.up && !world->agent.record.done;
}

static void be_away(World *world) {
  arrival_agent_kill(world);
  world->now_ms += arrival_random(world, 2 * LEASE_MS);
}

static const Event events[] = {
    {"the agent looks", KIND_AGENT, 6, is_due, ask},
    {"libvirtd begins an errand", KIND_AGENT, 8, may_take, take},
    {"the image is compared", KIND_AGENT, 6, may_compare, compare},
    {"an answer arrives", KIND_AGENT, 8, may_answer, answer},
    {"the agent gives up an errand", KIND_AGENT, 2, is_late, give_up},
    {"a thread that was given up goes on", KIND_AGENT, 2, has_lost_thread, lost_thread_goes_on},
    {"the lease expires", KIND_AGENT, 6, may_expire, expire},
    {"the record is written", KIND_AGENT, 6, is_unsaved, write_record},
    {"the agent notices that its connection broke", KIND_AGENT, 6, is_broken, notice_break},
    {"the agent connects", KIND_AGENT, 6, may_connect, reconnect},
    {"the lease is released", KIND_FAULT, 1, is_at_work, release},
    {"the agent is killed", KIND_FAULT, 2, is_up, arrival_agent_kill},
    {"the agent is killed, and stays down", KIND_FAULT, 1, is_up, be_away},
    {"the agent starts", KIND_HEAL, 4, is_off, start},
};

const Event *arrival_agent_events(size_t *ret_n) {
  *ret_n = LENGTH(events);
  return events;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model's agent: the steps of agent/move/run.c, worker.c and settle.c, in their order, around the real mig_settle_step().
 *
 * Theory of Operation. The queries and their order are copied from there; every decision about an outcome or a domain is
 * the core's own. Whatever the monitor may decide while a migration runs (abort, post-copy, a pause) can happen at any time:
 * more than it would ever do. A crash leaves only the record. The checks of what was declared know the truth, and run at
 * that moment. */
#include "tests/model/model.h"

static bool is_own_job(const MigSettleLook *look) {
  return look->job_active && !look->job_foreign;
}

static bool source_answers(const World *world) {
  return world->source.daemon == DAEMON_UP;
}
static bool target_answers(const World *world) {
  return world->target.daemon == DAEMON_UP && world->link;
}

static void pause_for(World *world, unsigned ms) {
  world->agent.wake_ms = world->now_ms + ms;
  world->agent.stage = AGENT_WAIT;
}

static void begin_to_settle(World *world) {
  Agent *agent = &world->agent;

  MigSettleRecord record = agent->record;

  record.paused_by_agent = agent->said_paused = agent->paused;
  agent->said_answered = record.pause_answered;
  mig_settle_init(&agent->settle, &record, agent->adopted ? 0 : agent->called_ms);
  agent->stage = AGENT_ASK_SOURCE;
}

/* --- events --- */

void agent_hear_of_target(World *world) {
  if (world->agent.watched_since_ms > 0)
    world->agent.heard = world->agent.alive_there = true;
}

void agent_hear_of_stop(World *world) {
  if (world->agent.watched_since_ms > 0)
    world->agent.alive_there = false;
}

void agent_hear_of_end(World *world, const End *end, bool ended) {
  Agent *agent = &world->agent;

  if (end == &world->target && agent->watched_since_ms > 0) {
    agent->heard_end = ended && (agent->alive_there || world->fault == SHELL_TAKES_ANY_END);
    agent->alive_there = false;
  }
  if (end == &world->source && agent->stage != AGENT_OFF && world_is_up(end))
    agent->heard_end_here = ended;
}

/* libvirt does not say whose migration it was: the agent's own is one that its call sits in, or that it sees running. */
void agent_hear_of_completion(World *world) {
  Agent *agent = &world->agent;
  world->completed = world->completed || !world->foreign;
  bool its_own = (agent->stage == AGENT_IN_CALL && !agent->answered) ||
                 (is_own_job(&agent->settle.last) && !world->foreign);

  if (agent->stage != AGENT_OFF && (its_own || world->fault == SHELL_TAKES_ANY_COMPLETION))
    agent->completed = true;
}

void agent_lose_watch(World *world, const End *end) {
  Agent *agent = &world->agent;

  if (end == &world->target)
    agent->alive_there = agent->heard_end = false;
  if (world->fault == SHELL_WATCHES_WITH_GAPS)
    return;
  if (end == &world->target)
    agent->watched_since_ms = 0;
  else
    agent->source_since_ms = 0;
}

static void open_watch(World *world, uint64_t *since_ms) {
  if (*since_ms == 0)
    *since_ms = world->now_ms;
}

/* --- start and end of the process --- */

void agent_start(World *world) {
  Agent *agent = &world->agent;

  agent->completed = agent->call_taken = agent->call_failed = agent->answered = false;
  agent->waits_for = agent->pauses = 0;
  agent->question = agent->lost = CALL_NONE;
  agent->source_since_ms = agent->watched_since_ms = 0;
  agent->heard = agent->alive_there = agent->heard_end = agent->heard_end_here = false;
  agent->look = (MigSettleLook){0};
  agent->settle = (MigSettle){0};
  if (agent->done) {
    agent->stage = AGENT_DONE;
  } else if (agent->recorded) {
    agent->adopted = true;
    agent->paused = agent->record.paused_by_agent;
    agent->call_taken = agent->begun;
    begin_to_settle(world);
  } else {
    agent->adopted = false;
    agent->stage = AGENT_PREPARE;
  }
}

void agent_crash(World *world) {
  Agent *agent = &world->agent;

  if (agent->waits_for && !agent->recorded)
    model_violation(world, "the agent was killed while a migration was running that no record mentions");
  agent->stage = AGENT_OFF;
  agent->question = agent->lost = CALL_NONE;
  agent->watched_since_ms = 0;
  agent->waits_for = agent->pauses = 0;
  agent->answered = false;
}

/* --- before the migration --- */

static void refuse(World *world) {
  world->agent.done = world->agent.refused = true;
  world->agent.stage = AGENT_DONE;
}

static bool may_prepare(const World *world) {
  return world->agent.stage == AGENT_PREPARE && source_answers(world) && target_answers(world);
}

static void prepare(World *world) {
  MigEndState source = end_state(&world->source), target = end_state(&world->target);
  Agent *agent = &world->agent;

  if ((source != MIG_END_RUNNING && source != MIG_END_PAUSED) ||
      (target != MIG_END_ABSENT && target != MIG_END_INACTIVE)) {
    refuse(world);
    return;
  }
  agent->paused = false;
  agent->heard = agent->alive_there = agent->heard_end = agent->heard_end_here = false;
  agent->instance = world->source.instance;
  world->source.owner_defined = false; /* it goes along */
  open_watch(world, &agent->source_since_ms);
  open_watch(world, &agent->watched_since_ms);
  agent->record = (MigSettleRecord){
      .ran_before = source == MIG_END_RUNNING,
      .persist_target = world->setup.persist_target && world->source.defined,
      .undefine_source = world->setup.undefine_source && world->source.defined,
      .target_was_absent = target == MIG_END_ABSENT,
  };
  agent->stage = world->fault == SHELL_RECORDS_AFTER_START ? AGENT_START : AGENT_RECORD;
}

static bool may_record(const World *world) {
  return world->agent.stage == AGENT_RECORD;
}
static void record(World *world) {
  world->agent.recorded = true;
  world->agent.stage = world->agent.waits_for ? AGENT_IN_CALL : AGENT_START;
}

/* Since the checks somebody else may have migrated the guest and left an old copy behind. */
static bool is_as_checked(const World *world) {
  const End *source = &world->source;
  MigEndState state = end_state(source);

  if (!source_answers(world))
    return true; /* nor does the call get through */
  return (state == MIG_END_RUNNING || state == MIG_END_PAUSED) && !source->job &&
         source->instance == world->agent.instance;
}

/* A hung libvirtd also holds up the look before the call. */
static bool may_call(const World *world) {
  return world->agent.stage == AGENT_START && world->source.daemon != DAEMON_HUNG;
}
static void call(World *world) {
  Agent *agent = &world->agent;

  agent->adopted = false;
  agent->answered = false;
  agent->called_ms = world->now_ms;
  if (!is_as_checked(world)) {
    /* The driver looks again, and refuses. */
    agent->waits_for = 0;
    agent->called_ms = 0;
    agent->call_taken = true;
    begin_to_settle(world);
    return;
  }
  agent->waits_for = world_send_call(world, &world->source, CALL_MIGRATE);
  if (world->fault == SHELL_RECORDS_AFTER_START)
    agent->stage = AGENT_RECORD;
  else if (agent->waits_for)
    agent->stage = AGENT_IN_CALL;
  else
    begin_to_settle(world);
}

/* --- while it runs --- */

void agent_take_answer(World *world, unsigned id, Answer answer) {
  Agent *agent = &world->agent;

  if (id == 0)
    return;
  if (id == agent->pauses) {
    /* If refused, it did nothing; otherwise, or if nobody knows, it did. */
    agent->paused = agent->record.paused_by_agent =
        answer != ANSWER_FAILED && world->fault != SHELL_FORGETS_ITS_PAUSE;
    agent->record.pause_answered = answer == ANSWER_OK;
    agent->pauses = 0;
  }
  if (id == agent->waits_for && !agent->answered) {
    agent->answer = answer;
    agent->answered = true;
  }
}

static bool may_return(const World *world) {
  const Agent *agent = &world->agent;

  return (agent->stage == AGENT_IN_CALL || agent->stage == AGENT_IN_TOUCH) &&
         (agent->answered || (agent->waits_for == 0 && agent->question == CALL_NONE));
}

/* The keepalive of the agent's own connection. */
static bool may_give_up(const World *world) {
  const Agent *agent = &world->agent;
  const End *end = agent->stage == AGENT_IN_TOUCH && agent->step.touch == MIG_TOUCH_UNDEFINE_TARGET
                       ? &world->target
                       : &world->source;

  return (agent->stage == AGENT_IN_CALL || agent->stage == AGENT_IN_TOUCH) && !agent->answered &&
         agent->question == CALL_NONE && (end->daemon != DAEMON_UP || !world_is_connected(world, end));
}

static void return_with(World *world, Answer answer) {
  Agent *agent = &world->agent;

  agent->waits_for = 0;
  agent->answered = false;
  if (agent->stage == AGENT_IN_TOUCH) {
    mig_settle_note_touched(&agent->settle, world->now_ms, agent->step.touch, answer == ANSWER_OK);
    agent->stage = AGENT_ASK_SOURCE;
    return;
  }
  agent->call_taken = answer != ANSWER_NONE;
  agent->call_failed = answer == ANSWER_FAILED;
  agent->completed = agent->completed || answer == ANSWER_OK;
  begin_to_settle(world);
}

static void answer_comes(World *world) {
  return_with(world, world->agent.answered ? world->agent.answer : ANSWER_NONE);
}
static void answer_does_not_come(World *world) {
  return_with(world, ANSWER_NONE);
}

static bool is_steering(const World *world) {
  return world->agent.stage == AGENT_IN_CALL ||
         (world->agent.stage == AGENT_WAIT && world->agent.step.under_way);
}

static bool may_poll(const World *world) {
  return is_steering(world) && source_answers(world) && world->source.job && !world->foreign &&
         !world->agent.begun;
}
static void poll(World *world) {
  world->agent.begun = true;
}

/* Each action is checked against the job that is there at that moment. */
static bool may_steer(const World *world) {
  return is_steering(world) && world_is_connected(world, &world->source) && !world->foreign &&
         world->source.calls[1].call == CALL_NONE;
}

/* A requested abort is repeated until the migration has ended. */
static bool may_repeat_abort(const World *world) {
  const Agent *agent = &world->agent;

  if (!agent->abort_asked || agent->done || agent->stage == AGENT_OFF || !source_answers(world) ||
      world->source.calls[0].call != CALL_NONE)
    return false;
  return world->fault == SHELL_ABORTS_WHAT_IS_NOT_ITS ||
         (world->source.job && !world->foreign && agent->begun);
}
static void repeat_abort(World *world) {
  world_send_call(world, &world->source, CALL_ABORT);
}
static void ask_abort(World *world) {
  world->agent.abort_asked = true;
  world_send_call(world, &world->source, CALL_ABORT);
}
static void ask_post_copy(World *world) {
  world_send_call(world, &world->source, CALL_START_POST_COPY);
}
/* The monitor's deadline ends a migration that does not converge. */
static bool is_hopeless(const World *world) {
  return may_steer(world) && world->setup.busy && world->source.cpus && world->stream == STREAM_PRE_COPY;
}
static bool may_post_copy(const World *world) {
  return may_steer(world) && source_answers(world) && world->setup.allow_post_copy &&
         world->stream == STREAM_PRE_COPY && end_state(&world->source) == MIG_END_RUNNING;
}
static bool may_pause(const World *world) {
  return may_steer(world) && world->agent.pauses == 0 && !world->agent.record.paused_by_agent &&
         end_state(&world->source) == MIG_END_RUNNING && source_answers(world);
}
/* The record says so first. A restarted agent reads it from there. */
static void ask_pause(World *world) {
  Agent *agent = &world->agent;

  agent->pauses = world_send_call(world, &world->source, CALL_SUSPEND);
  if (agent->pauses && world->fault != SHELL_FORGETS_ITS_PAUSE)
    agent->record.paused_by_agent = true;
  agent->record.pause_answered = false;
}

/* --- the outcome --- */

static void ask_the_source(World *world) {
  Agent *agent = &world->agent;

  if (source_answers(world)) {
    open_watch(world, &agent->source_since_ms);
    agent->look.source_watched_since_ms = agent->source_since_ms;
    agent->look.source = end_state(&world->source);
    agent->look.source_defined = world->source.defined;
    agent->look.job_active = world->source.job && world->source.qemu;
    /* A job that exists after libvirt has answered the call is not this migration's. */
    agent->look.job_foreign =
        agent->look.job_active && world->foreign && agent->call_taken && !agent->adopted;
    agent->look.source_ended = !world->source.qemu && (world->source.ended || agent->heard_end_here);
    agent->look.source_replaced = world->source.qemu && world->source.instance != agent->instance;
  }
}

/* agent/libvirtd/endpoint.c: what a look shows counts like an event. */
static void see_target(Agent *agent, MigEndState state) {
  if (state == MIG_END_PAUSED_MIGRATION)
    agent->alive_there = false;
  else if (state == MIG_END_RUNNING || state == MIG_END_PAUSED || state == MIG_END_RUNNING_POSTCOPY ||
           state == MIG_END_RUNNING_POSTCOPY_FAILED)
    agent->alive_there = true;
}

static void ask_the_target(World *world) {
  Agent *agent = &world->agent;

  if (!target_answers(world)) {
    agent_lose_watch(world, &world->target);
  } else {
    /* A libvirtd that has just started to recover its QEMUs reports first that they exist. */
    if (agent->watched_since_ms == 0 && world->target.qemu && model_random(world, 4) == 0)
      agent->alive_there = true;
    open_watch(world, &agent->watched_since_ms);
    see_target(agent, end_state(&world->target));
    agent->look.target_watched_since_ms = agent->watched_since_ms;
    agent->look.target_had_guest = agent->heard;
    agent->look.target_ended = !world->target.qemu && agent->heard_end;
    agent->look.target = end_state(&world->target);
    agent->look.target_incoming = world->target.qemu && world->target.job;
    agent->look.target_defined = world->target.defined;
    agent->look.target_start_failed =
        !world->target.qemu && world->target.defined && world->target.stop_failed;
  }
}

static bool may_ask_first(const World *world) {
  return world->agent.stage == AGENT_ASK_SOURCE;
}
static void ask_first(World *world) {
  Agent *agent = &world->agent;

  agent->look = (MigSettleLook){
      .began_ms = world->now_ms,
      .completed = agent->completed,
      .call_taken = agent->call_taken,
      .call_failed = agent->call_failed,
      .pausing = agent->pauses != 0,
  };
  if (agent->paused != agent->said_paused || agent->record.pause_answered != agent->said_answered)
    mig_settle_set_paused(&agent->settle, agent->paused, agent->record.pause_answered);
  agent->said_paused = agent->paused;
  agent->said_answered = agent->record.pause_answered;
  ask_the_source(world);
  agent->stage = AGENT_ASK_TARGET;
}

static bool may_ask_second(const World *world) {
  return world->agent.stage == AGENT_ASK_TARGET;
}
static void ask_second(World *world) {
  ask_the_target(world);
  world->agent.look.ended_ms = world->now_ms;
  world->agent.stage = AGENT_DECIDE;
}

/* agent/move/outcome.c: a migration that was never seen to begin, with the guest at its source, starts again. */
static bool begins_anew(const Agent *agent) {
  return agent->adopted && !agent->begun && agent->step.verdict == MIG_VERDICT_AT_SOURCE &&
         !agent->abort_asked && !agent->look.source_replaced && !agent->record.seen_there;
}

static bool may_decide(const World *world) {
  return world->agent.stage == AGENT_DECIDE;
}

static End *end_of_touch(const World *world) {
  World *same = (World *)world;

  return world->agent.step.touch == MIG_TOUCH_UNDEFINE_TARGET ? &same->target : &same->source;
}

/* The driver looks again, right before it acts, at the evidence for the action. */
static bool is_still_right(const World *world, Call call) {
  const End *end = end_of_touch(world);

  if (call == CALL_RESUME)
    return end->qemu && !end->cpus && !end->job && end->instance == world->agent.instance;
  if (call == CALL_UNDEFINE)
    return !end->qemu && end->defined;
  return true;
}

static void send_action(World *world, Call call) {
  Agent *agent = &world->agent;

  if (is_still_right(world, call))
    agent->waits_for = world_send_call(world, end_of_touch(world), call);
}

static void touch(World *world) {
  Agent *agent = &world->agent;
  static const Call calls[] = {
      [MIG_TOUCH_NONE] = CALL_NONE,
      [MIG_TOUCH_RESUME_POST_COPY] = CALL_RESUME_POST_COPY,
      [MIG_TOUCH_RESUME_SOURCE] = CALL_RESUME,
      [MIG_TOUCH_UNDEFINE_TARGET] = CALL_UNDEFINE,
      [MIG_TOUCH_UNDEFINE_SOURCE] = CALL_UNDEFINE,
  };
  Call call = calls[agent->step.touch];

  world->touched[agent->step.touch]++;
  agent->answered = false;
  agent->waits_for = 0;
  agent->stage = AGENT_IN_TOUCH;
  /* A query has its own connection, which may hang by itself. */
  if (call == CALL_RESUME_POST_COPY ||
      (end_of_touch(world)->daemon != DAEMON_HUNG && model_random(world, 4))) {
    send_action(world, call);
    return;
  }
  agent->question = call;
}

static bool may_get_through(const World *world) {
  return world->agent.question != CALL_NONE && end_of_touch(world)->daemon != DAEMON_HUNG;
}
static void get_through(World *world) {
  Call call = world->agent.question;

  world->agent.question = CALL_NONE;
  send_action(world, call);
}

/* Nobody waits for it any more; its thread still exists. */
static bool may_lose_question(const World *world) {
  return world->agent.question != CALL_NONE;
}
static void lose_question(World *world) {
  Agent *agent = &world->agent;

  agent->lost = agent->question;
  agent->lost_end = end_of_touch(world);
  agent->question = CALL_NONE;
  return_with(world, ANSWER_NONE);
}

/* It finally gets through, and does nothing. */
static bool may_find_lost(const World *world) {
  return world->agent.lost != CALL_NONE && world->agent.lost_end->daemon != DAEMON_HUNG;
}
static void find_lost(World *world) {
  Agent *agent = &world->agent;

  if (world->fault == SHELL_ACTS_ON_LOST_QUESTIONS)
    world_send_call(world, agent->lost_end, agent->lost);
  agent->lost = CALL_NONE;
}

static void decide(World *world) {
  Agent *agent = &world->agent;

  mig_settle_step(&agent->settle, &agent->look, &agent->step);
  mig_settle_get_learnt(&agent->settle, &agent->record.seen_there, &agent->record.completed);
  /* It has been seen running since: a pause from now on is not the agent's. */
  if (agent->said_paused && !agent->settle.record.paused_by_agent && agent->pauses == 0)
    agent->paused = agent->record.paused_by_agent = agent->said_paused = false;
  switch (agent->step.next) {
  case MIG_SETTLE_LOOK:
    pause_for(world, agent->step.wait_ms);
    break;
  case MIG_SETTLE_TOUCH:
    touch(world);
    break;
  case MIG_SETTLE_DONE:
    if (begins_anew(agent)) {
      agent->adopted = agent->recorded = false;
      agent->stage = AGENT_PREPARE;
      break;
    }
    agent->done = true;
    agent->outcome = agent->step.verdict;
    agent->stage = AGENT_DONE;
    agent_check_outcome(world);
    break;
  }
}

/* A pause ends early when an event says that something changed. */
static bool may_wake(const World *world) {
  return world->agent.stage == AGENT_WAIT;
}
static void wake(World *world) {
  if (world->now_ms < world->agent.wake_ms)
    world->now_ms = world->agent.wake_ms;
  world->agent.stage = AGENT_ASK_SOURCE;
}
static void wake_early(World *world) {
  world->agent.stage = AGENT_ASK_SOURCE;
}

/* It does so by itself, not only for its next query. */
static bool may_reconnect(const World *world) {
  return world->agent.stage != AGENT_OFF && world->agent.source_since_ms == 0 &&
         world->source.daemon == DAEMON_UP;
}
static void reconnect(World *world) {
  open_watch(world, &world->agent.source_since_ms);
}

static const Event events[] = {
    {"the agent reconnects to the source", KIND_AGENT, 3, may_reconnect, reconnect},
    {"the agent checks", KIND_AGENT, 6, may_prepare, prepare},
    {"the agent writes its record", KIND_AGENT, 6, may_record, record},
    {"the agent calls for the migration", KIND_AGENT, 6, may_call, call},
    {"the agent gets its answer", KIND_AGENT, 6, may_return, answer_comes},
    {"the agent's connection breaks", KIND_AGENT, 3, may_give_up, answer_does_not_come},
    {"the agent sees the job", KIND_AGENT, 3, may_poll, poll},
    {"the monitor gives up", KIND_AGENT, 1, is_hopeless, ask_abort},
    {"the agent requests an abort", KIND_STEER, 1, may_steer, ask_abort},
    {"the agent requests post-copy", KIND_STEER, 20, may_post_copy, ask_post_copy},
    {"the agent pauses the guest", KIND_STEER, 1, may_pause, ask_pause},
    {"the agent repeats its abort", KIND_STEER, 2, may_repeat_abort, repeat_abort},
    {"an abandoned query gets through", KIND_AGENT, 3, may_get_through, get_through},
    {"the agent gives up a query", KIND_AGENT, 3, may_lose_question, lose_question},
    {"a question that was given up gets through", KIND_WORLD, 1, may_find_lost, find_lost},
    {"the agent asks the source", KIND_AGENT, 6, may_ask_first, ask_first},
    {"the agent asks the target", KIND_AGENT, 6, may_ask_second, ask_second},
    {"the agent decides", KIND_AGENT, 6, may_decide, decide},
    {"the agent's wait is over", KIND_AGENT, 4, may_wake, wake},
    {"an event wakes the agent", KIND_AGENT, 1, may_wake, wake_early},
};

const Event *agent_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

/* --- what is declared, and what is true --- */

static void check_at_source(World *world) {
  const End *source = &world->source;

  if (world->target.cpus && !world->others_resumed_both)
    model_violation(world, "declared to be at the source, but runs at the target");
  else if (world->ran_there && !world->others_resumed_both)
    model_violation(world, "declared to be at the source, which has only an old copy");
  else if (!world->guest_ended && !source->qemu)
    model_violation(world, "declared to be at the source, which has no guest");
  else if (source->qemu && !source->cpus && world->stopper != STOPPED_BY_OWNER)
    model_violation(world, "declared to be at the source, where the %s left it stopped",
                    world->stopper == STOPPED_BY_AGENT ? "agent" : "migration");
}

static void check_succeeded(World *world) {
  if (!world->arrived)
    model_violation(world, "declared to have migrated, but never arrived");
  else if (world->source.cpus && !world->came_home)
    model_violation(world, "declared to have migrated, but runs at the source");
  else if (!world->target.qemu && !world->guest_ended && !world->moved_on)
    model_violation(world, "declared to have migrated, but the target has no guest");
  else if (world->target.qemu &&
           (world->stream == STREAM_POST_COPY || world->stream == STREAM_POST_COPY_PAUSED))
    model_violation(world, "declared to have migrated, but some of its memory has not");
}

static void check_gone(World *world) {
  const End *source = &world->source, *target = &world->target;
  bool source_can_run = source->qemu && !world->ran_there && source->reason != REASON_POST_COPY &&
                        source->reason != REASON_POST_COPY_FAILED;
  bool target_can_run = target->qemu && world->arrived && !world->lost;

  if (source_can_run || target_can_run || world->elsewhere)
    model_violation(world, "declared to be gone, but the %s has it",
                    source_can_run   ? "source"
                    : target_can_run ? "target"
                                     : "third host");
}

static void check_left(World *world) {
  const End *source = &world->source;

  if (source->cpus && !world->came_home)
    model_violation(world, "declared to have left the source, but runs there");
  else if (source->qemu && !world->ran_there && !world->arrived && !world->came_home)
    model_violation(world, "declared to have left the source, but the newest copy is there");
  else if (world->target.qemu && world->arrived && !world->lost && !world->moved_on)
    model_violation(world, "declared to have left the target, but it is there");
}

static void check_definitions(World *world) {
  bool somewhere = world->source.defined || world->target.defined || world->moved_on || world->others_define;
  bool kept = world->setup.persist_target || !world->setup.undefine_source;

  if (world->setup.persistent && kept && !somewhere)
    model_violation(world, "no definition is left anywhere");
}

void agent_check_outcome(World *world) {
  if (world->agent.record.completed && !world->completed)
    model_violation(world, "takes its migration for completed, but that was another one");
  if (world->moved_ms >= world->agent.look.began_ms)
    return; /* somebody has moved it since it was seen */
  switch (world->agent.outcome) {
  case MIG_VERDICT_AT_SOURCE:
    check_at_source(world);
    break;
  case MIG_VERDICT_SUCCEEDED:
    check_succeeded(world);
    break;
  case MIG_VERDICT_GONE:
    check_gone(world);
    break;
  case MIG_VERDICT_LEFT:
    check_left(world);
    break;
  case MIG_VERDICT_SPLIT:
    /* A guest that was paused before the migration is the same at both ends, and its owner may resume either. */
    if (!world->others_resumed_both && !(world->arrived && !world->ran_there))
      model_violation(world, "declared to run twice, but libvirt let it run once");
    break;
  default:
    model_violation(world, "declared %s, which is not an outcome", mig_verdict_name(world->agent.outcome));
    break;
  }
  check_definitions(world);
}

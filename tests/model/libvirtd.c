/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model's libvirtd and QEMU at both ends, and the link between them.
 *
 * Theory of Operation. One migration as libvirt 9 does it, peer to peer: the source's libvirtd runs the thread
 * (Begin, Prepare, Perform, Finish, Confirm) and calls the target's over one connection; QEMU's own stream is separate.
 * Each function below is one event; anything else that is possible may happen between two of them. What a libvirtd holds
 * in memory dies with its process, and a new one recovers each domain by the phase in its status file.
 *
 * Three things of libvirt matter most:
 *  - The target's definition is written before its CPUs start, and only Finish starts them.
 *  - If the answer to Finish is lost, the source counts it as failed and resumes its copy, although the target may run it
 *    by then. Only locks on the disks prevent two running copies. The agent cannot; it must report it.
 *  - A libvirtd that is killed between the end of the stream and Confirm leaves its copy stopped, and knows no job.
 *
 * The target's copy is destroyed when the connection from the source breaks, but not while a call of that connection is
 * in progress, and not once Finish has completed. */
#include "tests/model/model.h"

/* libvirt's own resume of a copy, without regard to the other end. */
static void start_source_cpus(World *world) {
  End *source = &world->source;

  if (world->setup.locks && world->target.qemu && (world->target.cpus || world->arrived)) {
    source->reason = REASON_API_ERROR;
    return;
  }
  source->cpus = true;
  source->reason = REASON_NORMAL;
  world->stopper = STOPPED_BY_NOBODY;
  world->source_restored = true;
  if (world->ran_there || world->arrived)
    world->others_resumed_both = true;
}

static void restore_source(World *world) {
  End *source = &world->source;

  if (source->qemu && !source->cpus && source->reason != REASON_POST_COPY_FAILED && world->ran_at_begin)
    start_source_cpus(world);
}

/* --- the source's thread --- */

static void send_to_target(World *world, Message message, Thread next) {
  world->message = message;
  world->message_arrived = false;
  world->reply = ANSWER_NONE;
  world->reply_arrived = false;
  world->thread = next;
}

static void end_thread(World *world, Answer answer) {
  world->completed = world->completed || answer == ANSWER_OK;
  world->thread = THREAD_NONE;
  world->source_conn = false;
  agent_take_answer(world, world->thread_call, answer);
}

static void end_job(World *world, Answer answer) {
  world->source.job = false;
  world->source.phase = PHASE_NONE;
  end_thread(world, answer);
}

/* libvirt keeps the job of an interrupted post-copy, for a resume or until QEMU ends it alone. */
static void leave_post_copy(World *world) {
  world->source.reason = REASON_POST_COPY_FAILED;
  world->source.phase = PHASE_POST_COPY_FAILED;
  end_thread(world, ANSWER_FAILED);
}

static void complete_source(World *world, bool undefine) {
  bool had_guest = world->source.qemu;

  world_kill_qemu(world, &world->source, false);
  if (undefine && world->setup.undefine_source && world->setup.persistent)
    world->source.defined = false;
  if (had_guest)
    agent_hear_of_completion(world);
}

static bool reply_or_break(const World *world) {
  return (world->reply != ANSWER_NONE && world->reply_arrived) || !world->source_conn;
}

static bool may_step_thread(const World *world) {
  if (!world_is_up(&world->source))
    return false;
  switch (world->thread) {
  case THREAD_NONE:
    return false;
  case THREAD_AWAITS_PREPARE:
  case THREAD_AWAITS_FINISH:
    return reply_or_break(world);
  case THREAD_PERFORM:
    return world->stream != STREAM_PRE_COPY || !world->source_conn || !world->source.qemu;
  case THREAD_BEGIN:
  case THREAD_CONFIRM:
    return true;
  }
  return false;
}

static void step_begin(World *world) {
  if (!world->link || world->target.daemon == DAEMON_DOWN || !world->source.qemu) {
    end_job(world, ANSWER_FAILED);
    return;
  }
  world->source_conn = world->target_conn = true;
  send_to_target(world, MESSAGE_PREPARE, THREAD_AWAITS_PREPARE);
}

static void step_prepared(World *world) {
  if (world->reply != ANSWER_OK || !world->reply_arrived || !world->source.qemu) {
    end_job(world, ANSWER_FAILED);
    return;
  }
  world->source.phase = PHASE_PERFORM;
  world->stream = world->target.qemu && world->link ? STREAM_PRE_COPY : STREAM_BROKEN;
  world->thread = THREAD_PERFORM;
}

static void step_perform(World *world) {
  End *source = &world->source;
  bool done = world->stream == STREAM_SENT || world->stream == STREAM_LOADED ||
              world->stream == STREAM_POST_COPY || world->stream == STREAM_POST_COPY_PAUSED;

  if (source->qemu && done && (world->source_conn || model_random(world, 2))) {
    world->cancelled = false;
    source->phase = PHASE_PERFORM_DONE;
    send_to_target(world, MESSAGE_FINISH, THREAD_AWAITS_FINISH);
    return;
  }
  /* The connection broke, the stream broke, it was aborted, or the guest ended. The target does not run it yet, so even
   * post-copy can be taken back. */
  if (world->stream != STREAM_SENT && world->stream != STREAM_LOADED)
    world->stream = STREAM_BROKEN;
  if (source->qemu && source->reason == REASON_POST_COPY)
    source->reason = REASON_MIGRATION;
  world->cancelled = true;
  send_to_target(world, MESSAGE_FINISH_CANCELLED, THREAD_AWAITS_FINISH);
}

static bool in_post_copy(const World *world) {
  return world->source.qemu &&
         (world->source.reason == REASON_POST_COPY || world->source.reason == REASON_POST_COPY_FAILED);
}

static void step_finished(World *world) {
  bool finished = world->reply == ANSWER_OK && world->reply_arrived && !world->cancelled;

  if (!finished && in_post_copy(world) && world->stream == STREAM_POST_COPY_DONE)
    finished = true;
  if (!finished && in_post_copy(world)) {
    leave_post_copy(world);
    return;
  }
  world->cancelled = !finished;
  if (world->source.qemu)
    world->source.phase = finished ? PHASE_CONFIRM : PHASE_CONFIRM_CANCELLED;
  world->thread = THREAD_CONFIRM;
}

static void step_confirm(World *world) {
  if (!world->cancelled)
    complete_source(world, true);
  else
    restore_source(world);
  end_job(world, world->cancelled ? ANSWER_FAILED : ANSWER_OK);
}

static void step_thread(World *world) {
  switch (world->thread) {
  case THREAD_BEGIN:
    step_begin(world);
    break;
  case THREAD_AWAITS_PREPARE:
    step_prepared(world);
    break;
  case THREAD_PERFORM:
    step_perform(world);
    break;
  case THREAD_AWAITS_FINISH:
    step_finished(world);
    break;
  case THREAD_CONFIRM:
    step_confirm(world);
    break;
  case THREAD_NONE:
    break;
  }
}

/* --- the target --- */

static bool may_deliver(const World *world) {
  return world->message != MESSAGE_NONE && !world->message_arrived && world->link && world->source_conn &&
         world->target_conn && world->target.daemon != DAEMON_DOWN;
}
static void deliver(World *world) {
  world->message_arrived = true;
}

static bool may_deliver_reply(const World *world) {
  return world->reply != ANSWER_NONE && !world->reply_arrived && world->link && world->source_conn &&
         world->target_conn && world->source.daemon != DAEMON_DOWN;
}
static void deliver_reply(World *world) {
  world->reply_arrived = true;
}

static bool may_take_message(const World *world) {
  return world_is_up(&world->target) && world->message != MESSAGE_NONE && world->message_arrived &&
         world->rpc == RPC_NONE;
}

static void take_message(World *world) {
  End *target = &world->target;
  Message message = world->message;

  world->message = MESSAGE_NONE;
  world->rpc_result = ANSWER_FAILED;
  if (message == MESSAGE_PREPARE) {
    world->rpc = RPC_PREPARE;
  } else if (!target->qemu || !target->job || target->phase != PHASE_PREPARE) {
    world->rpc = RPC_FINISH_KILL;
  } else {
    target->phase = PHASE_FINISH;
    world->rpc = message == MESSAGE_FINISH ? RPC_FINISH_PERSIST : RPC_FINISH_KILL;
  }
}

static void answer_rpc(World *world, Answer answer) {
  world->rpc = RPC_NONE;
  world->reply = answer;
  world->reply_arrived = false;
}

static void step_prepare(World *world) {
  End *target = &world->target;

  if (target->qemu || model_random(world, 10) == 0) {
    if (!target->qemu)
      target->stop_failed = target->defined;
    answer_rpc(world, ANSWER_FAILED);
    return;
  }
  target->qemu = target->job = true;
  target->instance = ++world->last_instance;
  target->cpus = target->stop_failed = target->ended = false;
  target->reason = REASON_MIGRATION;
  target->phase = PHASE_PREPARE;
  world->auto_destroy = true;
  answer_rpc(world, ANSWER_OK);
}

static void step_start(World *world) {
  End *target = &world->target;

  if (model_random(world, 20) == 0 || (world->setup.locks && world->source.cpus)) {
    world->rpc = RPC_FINISH_KILL;
    return;
  }
  world->arrived = true;
  agent_hear_of_target(world);
  if (world->ran_at_begin) {
    target->cpus = true;
    target->reason = world->stream == STREAM_LOADED ? REASON_NORMAL : REASON_POST_COPY;
    world->ran_there = true;
    if (world->source_restored)
      world->others_resumed_both = true;
  }
  world->rpc = world->stream == STREAM_LOADED ? RPC_FINISH_COMPLETE : RPC_FINISH_POST_COPY;
}

static bool may_step_rpc(const World *world) {
  if (!world_is_up(&world->target))
    return false;
  switch (world->rpc) {
  case RPC_NONE:
    return false;
  case RPC_FINISH_LOAD:
    return world->stream != STREAM_SENT || !world->target.qemu;
  case RPC_FINISH_POST_COPY:
    return world->stream != STREAM_POST_COPY || !world->target.qemu;
  default:
    return true;
  }
}

static void step_rpc(World *world) {
  End *target = &world->target;

  switch (world->rpc) {
  case RPC_PREPARE:
    step_prepare(world);
    break;
  case RPC_FINISH_PERSIST:
    if (world->setup.persist_target && world->setup.persistent)
      target->defined = true;
    world->rpc = RPC_FINISH_LOAD;
    break;
  case RPC_FINISH_LOAD:
    world->rpc = target->qemu && (world->stream == STREAM_LOADED || world->stream == STREAM_POST_COPY)
                     ? RPC_FINISH_START
                     : RPC_FINISH_KILL;
    break;
  case RPC_FINISH_START:
    if (target->qemu)
      step_start(world);
    else
      answer_rpc(world, ANSWER_FAILED);
    break;
  case RPC_FINISH_POST_COPY:
    if (target->qemu && world->stream == STREAM_POST_COPY_DONE) {
      target->reason = target->cpus ? REASON_NORMAL : REASON_OWNER;
      world->rpc = RPC_FINISH_COMPLETE;
    } else {
      if (target->qemu) {
        target->reason = REASON_POST_COPY_FAILED;
        target->phase = PHASE_POST_COPY_FAILED;
        world->auto_destroy = false;
      }
      answer_rpc(world, ANSWER_FAILED);
    }
    break;
  case RPC_FINISH_COMPLETE:
    if (target->qemu && !target->cpus)
      target->reason = REASON_OWNER;
    target->job = false;
    target->phase = PHASE_NONE;
    world->auto_destroy = false;
    answer_rpc(world, ANSWER_OK); /* also of a guest that has powered off since it was started */
    break;
  case RPC_FINISH_KILL:
    world_kill_qemu(world, target, true);
    answer_rpc(world, ANSWER_FAILED);
    break;
  case RPC_NONE:
    break;
  }
}

/* --- broken connections and their consequences --- */

static bool may_source_notice(const World *world) {
  return world_is_up(&world->source) && world->source_conn &&
         ((!world->target_conn && world->link) || !world->link || world->target.daemon != DAEMON_UP);
}
static void source_notices(World *world) {
  world->source_conn = false;
}

static bool may_target_notice(const World *world) {
  return world_is_up(&world->target) && world->target_conn &&
         ((!world->source_conn && world->link) || !world->link || world->source.daemon != DAEMON_UP);
}
static void target_notices(World *world) {
  world->target_conn = false;
}

static bool may_auto_destroy(const World *world) {
  return world_is_up(&world->target) && !world->target_conn && world->auto_destroy &&
         world->rpc == RPC_NONE && world->target.qemu;
}
static void auto_destroy(World *world) {
  world_kill_qemu(world, &world->target, false);
}

/* QEMU's post-copy ended or broke, and no libvirt thread waits for it. */
static bool may_source_see_post_copy(const World *world) {
  return world_is_up(&world->source) && world->thread == THREAD_NONE && world->source.job &&
         world->source.qemu &&
         (world->stream == STREAM_POST_COPY_DONE ||
          (world->stream == STREAM_POST_COPY_PAUSED && world->source.reason == REASON_POST_COPY));
}
static void source_sees_post_copy(World *world) {
  if (world->stream == STREAM_POST_COPY_DONE)
    complete_source(world, false); /* libvirt forgets to undefine then */
  else
    world->source.reason = REASON_POST_COPY_FAILED;
}

static bool may_target_see_post_copy(const World *world) {
  return world_is_up(&world->target) && world->rpc == RPC_NONE && world->target.job && world->target.qemu &&
         world->target.phase >= PHASE_POST_COPY_FAILED &&
         (world->stream == STREAM_POST_COPY_DONE ||
          (world->stream == STREAM_POST_COPY_PAUSED && world->target.reason == REASON_POST_COPY));
}
static void target_sees_post_copy(World *world) {
  End *target = &world->target;

  if (world->stream != STREAM_POST_COPY_DONE) {
    target->reason = REASON_POST_COPY_FAILED;
    target->phase = PHASE_POST_COPY_FAILED;
    return;
  }
  target->reason = target->cpus ? REASON_NORMAL : REASON_OWNER;
  target->job = false;
  target->phase = PHASE_NONE;
}

/* --- libvirtd stops and starts --- */

void world_kill_daemon(World *world, End *end) {
  end->daemon = DAEMON_DOWN;
  end->ended = false;
  agent_lose_watch(world, end);
  for (int i = 0; i < CALLS_MAX; i++) {
    Pending pending = end->calls[i];

    end->calls[i] = (Pending){0};
    if (pending.call != CALL_NONE)
      agent_take_answer(world, pending.id, ANSWER_NONE);
  }
  if (end == &world->source) {
    if (world->thread != THREAD_NONE)
      agent_take_answer(world, world->thread_call, ANSWER_NONE);
    world->thread = THREAD_NONE;
    world->source_conn = false;
    if (!world->message_arrived)
      world->message = MESSAGE_NONE;
    world->foreign = false;
  } else {
    world->rpc = RPC_NONE;
    world->message = MESSAGE_NONE;
    world->reply = ANSWER_NONE;
    world->target_conn = false;
    world->auto_destroy = false;
    end->stop_failed = false;
  }
}

static void recover_post_copy(World *world, End *end) {
  if (world->stream == STREAM_POST_COPY_DONE && end == &world->source) {
    complete_source(world, false);
  } else if (world->stream == STREAM_POST_COPY_DONE) {
    end->reason = end->cpus ? REASON_NORMAL : REASON_OWNER;
    end->job = false;
    end->phase = PHASE_NONE;
  } else {
    end->phase = PHASE_POST_COPY_FAILED;
    if (world->stream != STREAM_POST_COPY)
      end->reason = REASON_POST_COPY_FAILED;
  }
}

static void recover_source(World *world) {
  End *source = &world->source;
  bool post_copy = in_post_copy(world);
  bool resume = false;

  if (!source->job || !source->qemu) {
    source->job = false;
    return;
  }
  switch (source->phase) {
  case PHASE_PERFORM:
    if (world->stream == STREAM_PRE_COPY || world->stream == STREAM_POST_COPY)
      world->stream = STREAM_BROKEN;
    resume = true;
    break;
  case PHASE_PERFORM_DONE:
    if (post_copy) {
      recover_post_copy(world, source);
      return;
    }
    break;
  case PHASE_CONFIRM_CANCELLED:
    if (post_copy) {
      recover_post_copy(world, source);
      return;
    }
    resume = true;
    break;
  case PHASE_CONFIRM:
    complete_source(world, false);
    return;
  case PHASE_POST_COPY_FAILED:
  case PHASE_RESUMED:
    recover_post_copy(world, source);
    return;
  default:
    break;
  }
  source->job = false;
  source->phase = PHASE_NONE;
  if (resume && !source->cpus && source->reason == REASON_MIGRATION)
    start_source_cpus(world);
}

static void recover_target(World *world) {
  End *target = &world->target;

  if (!target->job || !target->qemu) {
    target->job = false;
    return;
  }
  switch (target->phase) {
  case PHASE_PREPARE:
    world_kill_qemu(world, target, false);
    return;
  case PHASE_FINISH:
    if (target->cpus && target->reason == REASON_POST_COPY) {
      recover_post_copy(world, target);
      return;
    }
    if (!target->cpus) {
      world_kill_qemu(world, target, false);
      return;
    }
    break;
  case PHASE_POST_COPY_FAILED:
  case PHASE_RESUMED:
    recover_post_copy(world, target);
    return;
  default:
    break;
  }
  target->job = false;
  target->phase = PHASE_NONE;
}

void world_start_daemon(World *world, End *end) {
  Daemon was = end->daemon;

  end->daemon = DAEMON_UP;
  end->up_since_ms = world->now_ms;
  if (was != DAEMON_DOWN)
    return;
  if (end == &world->source)
    recover_source(world);
  else
    recover_target(world);
}
static const Event events[] = {
    {"source libvirtd takes its next step", KIND_WORLD, 6, may_step_thread, step_thread},
    {"target libvirtd takes its next step", KIND_WORLD, 6, may_step_rpc, step_rpc},
    {"message arrives at the target", KIND_WORLD, 6, may_deliver, deliver},
    {"answer arrives at the source", KIND_WORLD, 6, may_deliver_reply, deliver_reply},
    {"target libvirtd reads a message", KIND_WORLD, 6, may_take_message, take_message},
    {"source libvirtd sees its connection broken", KIND_WORLD, 3, may_source_notice, source_notices},
    {"target libvirtd sees its connection broken", KIND_WORLD, 3, may_target_notice, target_notices},
    {"target libvirtd destroys the incoming copy", KIND_WORLD, 4, may_auto_destroy, auto_destroy},
    {"source libvirtd sees the state of post-copy", KIND_WORLD, 4, may_source_see_post_copy,
     source_sees_post_copy},
    {"target libvirtd sees the state of post-copy", KIND_WORLD, 4, may_target_see_post_copy,
     target_sees_post_copy},
};

const Event *libvirtd_events(size_t *ret_n) {
  *ret_n = sizeof events / sizeof events[0];
  return events;
}

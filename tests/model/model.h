/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model of one migration: two hosts with libvirtd and QEMU, the link, the agent, whose decisions are the real core's, and others:
 * a third host, other agents, and an owner with virsh. */
#pragma once

#include "libmigrate/core/settle.h"

#include <stdio.h>

/* --- the world --- */

typedef enum Daemon { DAEMON_UP, DAEMON_HUNG, DAEMON_DOWN } Daemon;

/* libvirt's reason for a domain's state. */
typedef enum Reason {
  REASON_NORMAL,
  REASON_OWNER,     /* paused by a user's call */
  REASON_API_ERROR, /* could not be resumed */
  REASON_MIGRATION,
  REASON_POST_COPY,
  REASON_POST_COPY_FAILED
} Reason;

/* As libvirt keeps them in the domain's status file, for recovery. */
typedef enum Phase {
  PHASE_NONE,
  PHASE_BEGIN,
  PHASE_PERFORM,
  PHASE_PERFORM_DONE,
  PHASE_CONFIRM_CANCELLED,
  PHASE_CONFIRM,
  PHASE_PREPARE,
  PHASE_FINISH,
  PHASE_POST_COPY_FAILED,
  PHASE_RESUMED, /* PERFORM_RESUME or FINISH_RESUME */
  PHASE_COUNT
} Phase;

/* The agent's calls, as queued in a libvirtd's socket. */
typedef enum Call {
  CALL_NONE,
  CALL_MIGRATE,
  CALL_RESUME_POST_COPY,
  CALL_RESUME,
  CALL_UNDEFINE,
  CALL_ABORT,
  CALL_START_POST_COPY,
  CALL_SUSPEND,
  CALL_COUNT
} Call;

#define CALLS_MAX 4

typedef struct Pending {
  Call call;
  uint64_t since_ms;
  unsigned id; /* 0: the caller is gone */
} Pending;

/* One host. */
typedef struct End End;

struct End {
  Daemon daemon;
  uint64_t up_since_ms;
  Pending calls[CALLS_MAX];
  bool defined;
  bool stop_failed; /* the reason why it is shut off: its start failed */
  bool qemu;
  bool cpus;
  Reason reason;
  bool job;
  Phase phase;
  unsigned instance; /* which QEMU it is, or was: libvirt's id */
  bool
      ended; /* the reason why it is shut off: QEMU ended by itself or was destroyed, whatever copy it held */
  bool owner_defined; /* its definition is its owner's doing, and not the migration's */
};

/* The migration's data, from QEMU to QEMU. */
typedef enum Stream {
  STREAM_NONE,
  STREAM_PRE_COPY,
  STREAM_SENT,   /* the source has stopped and sent the last of it */
  STREAM_LOADED, /* the target has all of it */
  STREAM_POST_COPY,
  STREAM_POST_COPY_DONE,
  STREAM_POST_COPY_PAUSED,
  STREAM_BROKEN
} Stream;

/* What the source's libvirtd says to the target's, peer to peer. */
typedef enum Message {
  MESSAGE_NONE,
  MESSAGE_PREPARE,
  MESSAGE_FINISH,
  MESSAGE_FINISH_CANCELLED,
} Message;

/* Where the source's libvirtd is in its migration thread. */
typedef enum Thread {
  THREAD_NONE,
  THREAD_BEGIN,
  THREAD_AWAITS_PREPARE,
  THREAD_PERFORM,
  THREAD_AWAITS_FINISH,
  THREAD_CONFIRM
} Thread;

/* Where the target's libvirtd is in its current call. One step at a time, so that anything may come in between. */
typedef enum Rpc {
  RPC_NONE,
  RPC_PREPARE,
  RPC_FINISH_PERSIST,
  RPC_FINISH_LOAD,
  RPC_FINISH_START,
  RPC_FINISH_POST_COPY,
  RPC_FINISH_COMPLETE,
  RPC_FINISH_KILL
} Rpc;

typedef enum Answer { ANSWER_NONE, ANSWER_OK, ANSWER_FAILED } Answer;

/* Who stopped the guest's CPUs. */
typedef enum Stopper { STOPPED_BY_NOBODY, STOPPED_BY_OWNER, STOPPED_BY_MIGRATION, STOPPED_BY_AGENT } Stopper;

/* The setup of the case; drawn at its beginning. */
typedef struct Setup {
  bool persistent;
  bool target_had_it; /* a definition, shut off */
  bool paused_before;
  bool persist_target;
  bool undefine_source;
  bool allow_post_copy;
  bool busy;       /* writes faster than the link carries: pre-copy does not end */
  bool mortal;     /* it may power off, or crash */
  bool owner_acts; /* its owner pauses and resumes it */
  bool locks;      /* its disks are locked by who runs it */
  bool third;      /* there is a third node, and agents that move the guest on and home */
} Setup;

/* --- the agent --- */

typedef enum AgentStage {
  AGENT_OFF,
  AGENT_PREPARE,
  AGENT_RECORD, /* its record is to be written */
  AGENT_START,
  AGENT_IN_CALL,
  AGENT_ASK_SOURCE,
  AGENT_ASK_TARGET,
  AGENT_DECIDE,
  AGENT_WAIT,
  AGENT_IN_TOUCH, /* its question waits for an answer */
  AGENT_DONE
} AgentStage;

typedef struct Agent {
  /* on stable storage */
  bool recorded;
  bool begun;
  bool done;
  MigVerdict outcome;
  bool refused; /* DONE before anything was to move */
  bool abort_asked;
  MigSettleRecord record;
  unsigned instance; /* of the copy that is to move */

  /* gone with the process */
  AgentStage stage;
  MigSettle settle;
  MigSettleLook look;
  MigSettleStep step;
  bool completed;
  bool call_taken;
  bool call_failed;
  unsigned waits_for; /* id of a call */
  Answer answer;
  bool answered;
  uint64_t wake_ms;
  uint64_t called_ms; /* when it called for the migration; 0: it refused to */
  bool adopted;
  bool paused, said_paused; /* as the steering knows it, and as settle.c was told */
  bool said_answered;
  unsigned pauses; /* id of a suspend that is under way, or 0 */
  uint64_t
      source_since_ms; /* its connection to the source's libvirtd is there since then; 0: there is none */
  uint64_t watched_since_ms; /* the target's events are heard since then; 0: they are not */
  bool heard;                /* that the guest ran there */
  bool alive_there;          /* and is there as far as it has heard or seen, not stopped by a migration */
  bool heard_end;            /* that it ended there */
  bool heard_end_here;       /* or at the source */
  Call question; /* an action whose thread has not yet got through to a libvirtd that hangs, or NONE */
  Call lost;     /* another one that nobody waits for any more, and its end */
  End *lost_end;
} Agent;

/* Faults in the agent's own steps, to see that the model finds them. */
typedef enum ShellFault {
  SHELL_RIGHT,
  SHELL_RECORDS_AFTER_START,
  SHELL_FORGETS_ITS_PAUSE,
  SHELL_ACTS_ON_LOST_QUESTIONS,
  SHELL_ABORTS_WHAT_IS_NOT_ITS,
  SHELL_TAKES_ANY_COMPLETION,
  SHELL_WATCHES_WITH_GAPS,
  SHELL_TAKES_ANY_END,
  SHELL_FAULT_COUNT
} ShellFault;

typedef struct World {
  uint64_t random;
  uint64_t now_ms;
  Setup setup;
  End source, target;
  bool link;
  Stream stream;
  /* peer to peer: the connection as each end sees it, and what is in transit */
  bool source_conn, target_conn;
  Message message;
  bool message_arrived;
  Answer reply;
  bool reply_arrived;
  Thread thread;
  bool cancelled;
  unsigned thread_call; /* whom to answer */
  bool ran_at_begin;
  Rpc rpc;
  Answer rpc_result;
  bool auto_destroy;
  unsigned last_call;

  Agent agent;
  ShellFault fault;

  /* The third host: the guest just runs there. */
  bool elsewhere;
  bool foreign; /* the source's job is its owner's own migration to there */
  unsigned last_instance;

  /* ghosts: the truth, whoever knows it */
  bool ran_there;    /* the guest ran at the target, or at the third host: the source's copy is out of date */
  bool completed;    /* the agent's own migration was */
  bool moved_on;     /* by others, from the target or from the source */
  uint64_t moved_ms; /* when that was last, or when it came home */
  bool others_define; /* where it is defined is others' doing */
  bool came_home;     /* it runs at the source again, in another QEMU */
  bool arrived;       /* likewise, or it is paused there as it was before */
  bool guest_ended;
  bool lost; /* in post-copy one half of it is gone */
  Stopper stopper;
  bool source_restored;     /* by libvirt, which holds the migration for failed, or by its owner */
  bool others_resumed_both; /* libvirt itself, or the owner, let it run at both ends */
  unsigned touched[MIG_TOUCH_COUNT];
  char violation[240];
} World;

/* Uniform below n. */
unsigned model_random(World *world, unsigned n);
void model_violation(World *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One event that may happen. */
typedef enum Kind { KIND_WORLD, KIND_AGENT, KIND_STEER, KIND_FAULT, KIND_HEAL, KIND_OWNER, KIND_COUNT } Kind;

typedef struct Event {
  const char *name;
  Kind kind;
  unsigned weight;
  bool (*may)(const World *world);
  void (*happen)(World *world);
} Event;

/* --- world.c: the hosts and QEMU --- */

const Event *world_events(size_t *ret_n);
void world_init(World *world, uint64_t seed);
bool world_is_up(const End *end);
MigEndState end_state(const End *end);
/* Is the newest copy of the guest at the target? A guest paused before the migration is the same at both ends. */
bool world_newest_is_there(const World *world);
void world_stop_cpus(World *world, End *end, Reason reason, Stopper stopper);
/* `failed`: its start is the reason that libvirt keeps. */
void world_kill_qemu(World *world, End *end, bool failed);

/* --- libvirtd.c: both of them, and their messages --- */

const Event *libvirtd_events(size_t *ret_n);
void world_start_daemon(World *world, End *end);
void world_kill_daemon(World *world, End *end);

/* --- calls.c: the agent's calls to them --- */

const Event *call_events(size_t *ret_n);
bool world_is_connected(const World *world, const End *end);
/* Puts the call into the libvirtd's socket. Returns its id, or 0: no connection. */
unsigned world_send_call(World *world, End *end, Call call);
/* Calls that a healthy libvirtd must execute by now. */
void world_take_due_calls(World *world);

/* --- faults.c --- */

const Event *fault_events(size_t *ret_n);
/* All is well from now on. */
void fault_heal_all(World *world);
/* An operator does what the job asks for. False: he would not know what. */
bool fault_operator_acts(World *world);

/* --- others.c: the third host, other agents, an owner with virsh --- */

const Event *other_events(size_t *ret_n);

/* --- agent.c --- */

const Event *agent_events(size_t *ret_n);
void agent_start(World *world);
void agent_crash(World *world);
/* Event at the target: the guest's CPUs run there, or would if its owner had not paused it. */
void agent_hear_of_target(World *world);
/* Event at the target: a migration has stopped what is there. */
void agent_hear_of_stop(World *world);
/* Event at one end: QEMU ended there, or the guest left by a migration. */
void agent_hear_of_end(World *world, const End *end, bool ended);
/* Event at the source: a migration was completed. */
void agent_hear_of_completion(World *world);
/* The connection that carries this end's events has broken. */
void agent_lose_watch(World *world, const End *end);
/* libvirt has answered a call. */
void agent_take_answer(World *world, unsigned id, Answer answer);
/* Checks what was declared against the truth. */
void agent_check_outcome(World *world);

/* --- check.c --- */

/* The program: model-check [STEPS [SEED]] checks, --case SEED prints one case, --mutant STEPS [SEED] succeeds if it finds a
 * violation, because the core is a faulty one. Returns its exit status. */
int model_check(int argc, char **argv);

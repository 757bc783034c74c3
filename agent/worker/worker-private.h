/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the worker's files: the state that its threads share. */
#pragma once

#include "agent/libvirtd/endpoint.h"
#include "agent/worker/worker.h"

/* The order to the caller thread. */
typedef enum WorkerOrder { WORKER_ORDER_WAIT, WORKER_ORDER_GO, WORKER_ORDER_CANCEL } WorkerOrder;

typedef enum CommandKind { COMMAND_ACT, COMMAND_BANDWIDTH, COMMAND_WAKE } CommandKind;

typedef struct Command {
  CommandKind kind;
  MigAction action;
  uint64_t bytes_per_s;
  bool post_copy; /* applies to this one, too */
  uint64_t post_copy_bytes_per_s;
} Command;

struct Worker {
  gint refs;
  Hypervisor *hypervisor;
  MigDriver *driver;
  GMainContext *context;
  WorkerReportFunc report; /* main thread only; NULL once freed */
  gpointer user_data;

  char *name;
  char *domain_uuid;
  char *target_uri;
  char *migrate_uri;
  MigPolicy policy; /* set before worker_go(); then owned by the caller thread */
  bool limited;     /* these three under the mutex: the limits changed since the start */
  uint64_t bandwidth_bytes_per_s;
  uint64_t post_copy_bandwidth_bytes_per_s;
  bool reattach;
  bool probe;
  unsigned throttle_initial_pct; /* these two are set before worker_go(), and not after */
  unsigned throttle_increment_pct;
  unsigned connect_timeout_ms;
  unsigned poll_interval_ms;

  GAsyncQueue *commands; /* Command */
  gint sample_on_its_way;

  /* Caller thread only. */
  bool call_failed;   /* as in MigSettleLook */
  bool call_taken;    /* as in MigSettleLook */
  bool not_begun;     /* someone else is migrating it: the call was not made, and the guest is where it was */
  int source_id;      /* libvirt's id of that copy; 0: unknown */
  uint64_t asked_ms;  /* before the look that precedes the call */
  uint64_t stayed_ms; /* as in mig_settle_init() */
  Endpoint *source;
  Endpoint *target;                        /* from before the migration: watches what happens there */
  uint64_t source_took_us, target_took_us; /* the quickest answer of each end; 0: none yet */

  GMutex mutex;
  GCond cond;
  MigSettleRecord record; /* the facts before the migration; later also the agent's pauses */
  WorkerOrder order;
  bool over;      /* the threads have to end as soon as they can */
  bool completed; /* libvirt said that the migration was completed */
  bool hurry;
  bool pausing;    /* by the steerer, in progress */
  bool ended_here; /* libvirt said so about the source */
  bool recorded;   /* what was learnt last is durable */
  /* Which job is this migration's? See worker_owns_job(). */
  bool in_call;
  bool own_seen; /* it was there at the last look */
  uint64_t started_ms, call_began_ms, job_began_ms;
  unsigned pauses; /* that it made, or may have made */

  unsigned missing; /* main thread only: after a reattach, the roles (worker.c) that still have no thread */
};

/* --- worker.c --- */

/* Starts the steerer and the counter, which wait for the order, too. False: threads could not be started, and nothing may begin. */
bool worker_start_helpers(Worker *worker, GError **error);

/* --- shared.c --- */

Worker *worker_ref(Worker *worker);
void worker_unref(Worker *worker);

/* Posts a report to the main context, in the order of the thread's calls. Takes what `report` owns. Safe on any thread. */
void worker_post(Worker *worker, const WorkerReport *report);

/* One of the flags that the mutex guards. */
bool worker_sees(Worker *worker, const bool *flag);

/* Waits; worker_note_job_done() cuts it short. */
void worker_pause_ms(Worker *worker, unsigned ms);

/* Waits for worker_go() or worker_free(). */
WorkerOrder worker_wait_for_order(Worker *worker);

/* Creates the endpoints of both ends, and watches the target from now on if possible. */
void worker_watch_ends(Worker *worker);

/* On the thread that uses them: the last reference may be the main thread's, which must not call libvirt. */
void worker_forget_ends(Worker *worker);

/* Both ask the end, as endpoint_status() does, and note how quickly it answers. */
bool worker_ask_source(Worker *worker, EndpointAnswer *ret_answer, GError **error);
bool worker_ask_target(Worker *worker, EndpointAnswer *ret_answer, GError **error);

/* libvirt is about to get the call, or has answered it. */
void worker_set_in_call(Worker *worker, bool in_call);

/* Is the domain's present migration job in libvirt, of this age, this migration's? libvirt's APIs do not identify a job, but each
 * began at its own time. While our call is in progress and its job has been seen, there can be no other. */
bool worker_owns_job(Worker *worker, uint64_t elapsed_ms);

/* There is no migration job. */
void worker_note_no_job(Worker *worker);
uint64_t worker_job_began_ms(Worker *worker);

/* May the steerer act? The guard of its calls. `needs_job`: only if there is a job. */
bool worker_may_steer(Worker *worker, const MigDomainStatus *status, bool needs_job, GError **error);

/* Adds what was learnt to the record, and reports it. */
void worker_learn(Worker *worker, bool seen_there, bool completed);

void worker_set_record(Worker *worker, const MigSettleRecord *record);

/* Before and after the steerer pauses the guest. False: the outcome has been reported, so do not pause. */
bool worker_begin_pause(Worker *worker);
void worker_end_pause(Worker *worker, bool paused, bool answered);

/* The guest was seen running after that many pauses: drop the pause from the record, unless there was another. */
unsigned worker_count_pauses(Worker *worker);
void worker_forget_pause(Worker *worker, unsigned pauses);

/* The outcome is reported: the steerer starts nothing any more. False: a pause is in progress; wait for it to end. */
bool worker_end_steering(Worker *worker);

/* Puts the latest bandwidth limits into the worker's policy: for resuming post-copy. Caller thread only. */
void worker_take_limits(Worker *worker);

/* --- call.c --- */

/* Runs the migration's call and reports its return. Caller thread only. */
void worker_call(Worker *worker, const MigPolicyFacts *facts);

/* Blocks until the migration, or a resume of it, ends. Caller thread only. `request` has the worker's
 * policy: with tls=yes and an end without certificates it continues unencrypted; this is reported, and the policy changed. */
bool worker_migrate(Worker *worker, MigConn *conn, const MigMigrateRequest *request, GError **error);

/* --- checks.c --- */

/* Checks both ends and waits for the order. True: migrate. False: the last report was posted. */
bool worker_prepare(Worker *worker, MigPolicyFacts *policy_facts);

/* --- steer.c --- */

/* Carries out commands until the worker is over. */
void worker_steer(Worker *worker);

/* --- counter.c --- */

/* Reports the progress of the migration until the worker is over. */
void worker_count(Worker *worker);

/* --- settle.c --- */

/* Asks both ends until a verdict stands, however long that takes; then ends the steering and reports it. Unknown is not
 * failed. */
void worker_settle(Worker *worker);

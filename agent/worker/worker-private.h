/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the worker's files: what its threads share. */
#pragma once

#include "agent/libvirtd/endpoint.h"
#include "agent/worker/worker.h"

/* What the caller has been told. */
typedef enum WorkerOrder { WORKER_ORDER_WAIT, WORKER_ORDER_GO, WORKER_ORDER_CANCEL } WorkerOrder;

typedef enum CommandKind { COMMAND_ACT, COMMAND_BANDWIDTH, COMMAND_WAKE } CommandKind;

typedef struct Command {
  CommandKind kind;
  MigAction action;
  uint64_t bytes_per_s;
  bool post_copy; /* this one, too */
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
  MigPolicy policy; /* set before the order to go; then the caller's own */
  bool limited;     /* these three under the mutex: the limits were set anew since the start */
  uint64_t bandwidth_bytes_per_s;
  uint64_t post_copy_bandwidth_bytes_per_s;
  bool reattach;
  bool probe;
  unsigned throttle_initial_pct; /* these two are set before the order to go, and not after */
  unsigned throttle_increment_pct;
  unsigned connect_timeout_ms;
  unsigned poll_interval_ms;

  GAsyncQueue *commands; /* Command */
  gint sample_on_its_way;

  /* The caller's own. */
  bool call_failed; /* as in MigSettleLook */
  bool call_taken;  /* as in MigSettleLook */
  bool
      not_begun; /* somebody else migrates it from here: the call was not made, and the guest is where it was */
  int source_id;      /* libvirt's number of that copy; 0: not known */
  uint64_t asked_ms;  /* before libvirt was asked whether the domain is still as it was checked */
  uint64_t stayed_ms; /* as in mig_settle_init() */
  Endpoint *source;
  Endpoint *target; /* from before the migration on: it hears what happens there */

  GMutex mutex;
  GCond cond;
  MigSettleRecord record; /* what was known before anything moved; later changes: of a pause by the agent */
  WorkerOrder order;
  bool over;      /* the threads are to end, as soon as they can */
  bool completed; /* libvirt said that the migration was completed */
  bool hurry;
  bool pausing;    /* the steerer is at it */
  bool ended_here; /* libvirt said so of the source */
  bool recorded;   /* what was learnt last is durable */
  /* Which job is this migration's: see worker_owns_job(). */
  bool in_call;
  bool own_seen; /* it was there when libvirt was asked last */
  uint64_t started_ms, call_began_ms, job_began_ms;
  unsigned pauses; /* that it made, or may have made */

  unsigned
      missing; /* main thread only: of a reattach, the roles (worker.c) that no thread could be had for yet */
};

/* --- worker.c --- */

/* Starts the two that steer and count, which wait for the order as well. False: no threads could be had, and nothing may begin. */
bool worker_start_helpers(Worker *worker, GError **error);

/* --- shared.c --- */

Worker *worker_ref(Worker *worker);
void worker_unref(Worker *worker);

/* Posts a report to the main context, in the order of the thread's calls. Takes what `report` owns. From any thread. */
void worker_post(Worker *worker, const WorkerReport *report);

/* Pauses, unless hurried by worker_note_job_done(). */
void worker_pause_ms(Worker *worker, unsigned ms);

/* Waits for worker_go(), worker_cancel() or worker_free(). */
WorkerOrder worker_wait_for_order(Worker *worker);

/* Makes the askers of both ends, and has the target watched from now on, as well as that can be had. */
void worker_watch_ends(Worker *worker);

/* On the thread that has them: the last reference may be the main thread's, which makes no call to libvirt. */
void worker_forget_ends(Worker *worker);

/* libvirt is about to get the call, or has answered it. */
void worker_set_in_call(Worker *worker, bool in_call);

/* Is the migration job that libvirt has on the domain, and which began so long ago, this one? No API of libvirt's names a job, but
 * each began at its own moment. While our call sits in it, and it has been seen, there can be no other. */
bool worker_owns_job(Worker *worker, uint64_t elapsed_ms);
bool worker_has_ended_here(Worker *worker);

/* There is no migration job. */
void worker_note_no_job(Worker *worker);
uint64_t worker_job_began_ms(Worker *worker);

/* May the steerer act? The guard of its calls. `needs_job`: not without one. */
bool worker_may_steer(Worker *worker, const MigDomainStatus *status, bool needs_job, GError **error);

bool worker_is_recorded(Worker *worker);
/* Adds to the record what has been learnt, and reports it. */
void worker_learn(Worker *worker, bool seen_there, bool completed);

/* Did libvirt say that the migration was completed? */
bool worker_is_completed(Worker *worker);

void worker_set_record(Worker *worker, const MigSettleRecord *record);

/* The steerer is to pause the guest: false if the outcome has been told. Then what came of it. */
bool worker_begin_pause(Worker *worker);
void worker_end_pause(Worker *worker, bool paused, bool answered);
bool worker_is_pausing(Worker *worker);

/* The guest was seen to run since so many pauses: the record is not to claim one any more. Nothing, if there was another. */
unsigned worker_count_pauses(Worker *worker);
void worker_forget_pause(Worker *worker, unsigned pauses);

/* The outcome is told: the steerer begins nothing any more. False: it is at a pause, whose end is to be awaited. */
bool worker_end_steering(Worker *worker);

/* The goals of the start, with the bandwidth limits as they were set last: for a resume. */
MigPolicy worker_get_policy(Worker *worker);

/* Are the threads to end? */
bool worker_is_over(Worker *worker);

/* --- call.c --- */

/* The migration, from the call to its return, which is reported. The caller's own. */
void worker_call(Worker *worker, const MigPolicyFacts *facts);

/* Sits in the migration, or in a resume of it, until it ends. The caller's own. With tls=yes an end without certificates has it
 * done in clear, which is reported and remembered: `request` may come back so. */
bool worker_migrate(Worker *worker, MigConn *conn, MigMigrateRequest *request, GError **error);

/* --- checks.c --- */

/* Checks both ends and waits for the order. True: migrate. False: the last report has been made. */
bool worker_prepare(Worker *worker, MigPolicyFacts *policy_facts);

/* --- steer.c --- */

/* Carries out what it is told, until worker_is_over(). */
void worker_steer(Worker *worker);

/* --- counter.c --- */

/* Reports the numbers of the migration, until worker_is_over(). */
void worker_count(Worker *worker);

/* --- settle.c --- */

/* Asks both ends until a verdict stands, for as long as that takes, ends the steering, and reports it: unknown is not
 * failed. */
void worker_settle(Worker *worker);

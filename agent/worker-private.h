/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the worker's files: what its threads share. */
#pragma once

#include "agent/worker.h"

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

  bool call_failed; /* the caller's own: as in MigSettleLook */
  bool call_taken;  /* the caller's own: as in MigSettleLook */

  GMutex mutex;
  GCond cond;
  MigSettleRecord record; /* what was known before anything moved; later changes: of a pause by the agent */
  WorkerOrder order;
  bool over;      /* the threads are to end, as soon as they can */
  bool completed; /* libvirt said that the migration was completed */
  bool hurry;
  bool pausing; /* the steerer is at it */

  unsigned
      missing; /* main thread only: of a reattach, the roles (worker.c) that no thread could be had for yet */
};

/* --- worker.c --- */

/* Posts a report to the main context, in the order of the thread's calls. Takes what `report` owns. From any thread. */
void worker_post(Worker *worker, const WorkerReport *report);

uint64_t worker_now_ms(void);

/* Pauses, unless hurried by worker_note_job_done(). */
void worker_pause_ms(Worker *worker, unsigned ms);

/* Waits for worker_go(), worker_cancel() or worker_free(). */
/* Starts the two that steer and count, which wait for the order as well. False: no threads could be had, and nothing may begin. */
bool worker_start_helpers(Worker *worker, GError **error);
WorkerOrder worker_wait_for_order(Worker *worker);

/* Did libvirt say that the migration was completed? */
bool worker_is_completed(Worker *worker);

MigSettleRecord worker_get_record(Worker *worker);
void worker_set_record(Worker *worker, const MigSettleRecord *record);

/* The steerer is to pause the guest: false if the outcome has been told. Then what came of it. */
bool worker_begin_pause(Worker *worker);
void worker_end_pause(Worker *worker, bool paused, bool answered);
bool worker_is_pausing(Worker *worker);

/* The outcome is told: the steerer begins nothing any more. False: it is at a pause, whose end is to be awaited. */
bool worker_end_steering(Worker *worker);

/* Sits in the migration, or in a resume of it, until it ends. The caller's own. With tls=yes an end without certificates has it
 * done in clear, which is reported and remembered: `request` may come back so. */
bool worker_migrate(Worker *worker, MigConn *conn, MigMigrateRequest *request, GError **error);

/* The goals of the start, with the bandwidth limits as they were set last: for a resume. */
MigPolicy worker_get_policy(Worker *worker);

/* Are the threads to end? */
bool worker_is_over(Worker *worker);

/* --- prepare.c --- */

/* Checks both ends and waits for the order. True: migrate. False: the last report has been made. */
bool worker_prepare(Worker *worker, MigPolicyFacts *policy_facts);

/* --- steer.c --- */

/* Carries out what it is told, until worker_is_over(). */
void worker_steer(Worker *worker);

/* --- numbers.c --- */

/* Reports the numbers of the migration, until worker_is_over(). */
void worker_count(Worker *worker);

/* --- settle.c --- */

/* Asks both ends until a verdict stands, for as long as that takes, ends the steering, and reports it: unknown is not
 * failed. */
void worker_settle(Worker *worker);

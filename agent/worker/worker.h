/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads that do one migration: one sits in it, one steers it, one reads how far it is. They know no job, only their
 * request. */
#pragma once

#include "agent/libvirtd/hypervisor.h"
#include "libmigrate/core/admission.h"
#include "libmigrate/core/migratable.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/settle.h"

typedef struct Worker Worker;

/* Why a job waits that no threads could be had for: the reason in its report. */
#define WORKER_NO_THREADS "NO_THREADS"

/* Copied at the start; never changed. */
typedef struct WorkerRequest {
  const char *name; /* short, for the threads' names */
  const char *domain_uuid;
  const char *target_uri;
  const char *migrate_uri; /* or NULL */
  MigPolicy policy;        /* of a reattach: as the migration was started with */
  bool reattach;           /* a migration may be under way already: find out, start none */
  MigSettleRecord record;  /* of a reattach: what was known before anything moved */
  bool begun;              /* of a reattach: libvirt was seen at it */
  int source_id;           /* of a reattach: libvirt's number of the copy that was to move; 0: not known */
  uint64_t started_ms;     /* of a reattach: monotonic, when it was started; 0: not in this boot */
  uint64_t job_began_ms;   /* likewise, when libvirt's job began; 0: it was not seen */
  bool probe;              /* measure what the guest dirties, while preparing */
  unsigned connect_timeout_ms;
  unsigned poll_interval_ms;
} WorkerRequest;

typedef enum WorkerReportKind {
  WORKER_PREPARED, /* domain, record: facts, probe: what was measured, check: warnings. It waits for worker_go() or
                      worker_cancel() */
  WORKER_REFUSED, /* cause, hold, error: nothing was moved. With check (or NULL): all findings, evidence: the blockers in
                       words. The last report */
  WORKER_CANCELLED, /* by worker_cancel(), before anything was moved. The last report */
  WORKER_SAMPLE,    /* sample; invalid with `error` where libvirtd did not answer */
  WORKER_ACTED,     /* action, and error if it was refused */
  WORKER_IN_CLEAR,  /* error: an end has no certificates, and so it is begun again without TLS */
  WORKER_RETURNED,  /* the migration's call came back, with its error, or NULL */
  WORKER_ATTACHED,  /* a migration was found under way */
  WORKER_LEARNT,    /* record: what was seen of the outcome, and is to be kept */
  WORKER_UNSETTLED, /* evidence, plan, awaits, news: no verdict yet. Said when it changes */
  WORKER_TOUCHING,  /* touch, plan, tries, evidence: one of the actions of settle.h is about to be taken */
  WORKER_TOUCHED,   /* the same, again_ms: it was, with its error, or NULL */
  WORKER_SETTLED    /* verdict, evidence, what is left, and the target's count. The last report */
} WorkerReportKind;

typedef struct WorkerReport {
  WorkerReportKind kind;
  MigCause cause;
  MigHold hold;          /* can waiting cure it? */
  const char *reason;    /* of a hold: a code for what was found, static; NULL: the cause's name */
  GError *error;         /* or NULL */
  MigCheckReport *check; /* or NULL */
  MigDomainFacts domain;
  MigProbe probe;
  MigSample sample;
  MigAction action;
  MigSettleRecord record;
  int source_id;         /* PREPARED: of the copy that is to move */
  uint64_t job_began_ms; /* SAMPLE: of libvirt's job, if it is this migration's */
  bool came_back;        /* SETTLED: what is at the source is another copy */
  MigVerdict verdict;
  MigAwaits awaits;
  MigEndState source, target; /* UNSETTLED, SETTLED: what both ends say */
  MigTouch touch;
  const char *plan;  /* static, as in MigSettleStep */
  const char *left;  /* static, or NULL */
  bool news;         /* more has changed than the words */
  unsigned tries;    /* this one included */
  uint64_t again_ms; /* monotonic: the next try is not before; 0: none is needed */
  char *evidence;
  bool have_final;
  MigFinalStats final;
} WorkerReport;

/* On the main context. The report is borrowed. */
typedef void (*WorkerReportFunc)(Worker *worker, const WorkerReport *report, gpointer user_data);

/* Starts the threads. Free with worker_free(). */
Worker *worker_start(Hypervisor *hypervisor, MigDriver *driver, const WorkerRequest *request,
                     GMainContext *context, WorkerReportFunc report, gpointer user_data);

/* Now and then: threads that could not be had are asked for again. */
void worker_tick(Worker *worker);

/* No report is delivered any more. The threads end by themselves when their calls return; a migration that is under way
 * goes on in libvirtd. NULL is fine. */
void worker_free(Worker *worker);

/* Answers WORKER_PREPARED: the record is durable, migrate. `start` is what libvirt is to be asked for (the goals as the
 * plan has them), with the throttle of auto-converge, 0: QEMU's own. */
void worker_go(Worker *worker, const MigPolicy *start, unsigned throttle_initial_pct,
               unsigned throttle_increment_pct);

/* Ends a worker that has not been told to go yet. */
void worker_cancel(Worker *worker);

/* Queues an action for the steering thread. An abort is repeated until the migration is over, since libvirt refuses
 * it while the job is being set up. */
void worker_act(Worker *worker, const MigAction *action);

/* What is known of the domain now, of the time before the move and of a pause by the agent: that one is made, or may have been.
 * From any thread. */
MigSettleRecord worker_get_record(Worker *worker);

/* Sets the bandwidth limits of the running migration; the second with `post_copy` only. 0: none. */
void worker_set_bandwidth(Worker *worker, uint64_t bytes_per_s, bool post_copy,
                          uint64_t post_copy_bytes_per_s);

/* What the worker learnt last is on stable storage. */
void worker_note_recorded(Worker *worker);

/* A caller answers for it: the guest never ran at the target, or it did. */
void worker_set_word(Worker *worker, bool told_it_stayed, bool told_it_ran);

/* Libvirt said that the guest was shut down at the source, was destroyed or crashed; or something else of it since. */
void worker_note_ended_here(Worker *worker, bool ended);

/* Libvirt said that the job ended, with the migration completed or not: both ends are asked at once instead of after
 * the current pause. From any thread. */
void worker_note_job_done(Worker *worker, bool completed);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads of one migration: one runs it, one steers it, one polls its progress. They know no job, only their request. */
#pragma once

#include "agent/libvirtd/hypervisor.h"
#include "libmigrate/core/admission.h"
#include "libmigrate/core/migratable.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/settle.h"

typedef struct Worker Worker;

/* Why a job waits if threads could not be started: the reason in its report. */
#define WORKER_NO_THREADS "NO_THREADS"

/* What the worker needs of it, it copies when it starts. */
typedef struct WorkerRequest {
  const char *name; /* short, for the threads' names */
  const char *domain_uuid;
  const char *target_uri;
  const char *migrate_uri; /* or NULL */
  const MigPolicy *policy; /* for a reattach: those the migration was started with */
  bool reattach;           /* a migration may already be in progress: find out, start none */
  MigSettleRecord record;  /* for a reattach: the facts before the migration */
  bool begun;              /* for a reattach: libvirt was seen migrating it */
  int source_id;           /* for a reattach: libvirt's id of the copy to migrate; 0: unknown */
  uint64_t started_ms;     /* for a reattach: monotonic start time; 0: not in this boot */
  uint64_t job_began_ms;   /* likewise, start of libvirt's job; 0: not seen */
  bool probe;              /* measure the dirty rate while preparing */
  unsigned connect_timeout_ms;
  unsigned poll_interval_ms;
} WorkerRequest;

typedef enum WorkerReportKind {
  WORKER_PREPARED, /* domain, record: facts, probe: measurements, check: warnings. Waits for worker_go() */
  WORKER_REFUSED, /* cause, hold, error: nothing was migrated. With check (or NULL): all findings, evidence: the blockers in
                     words. The last report */
  WORKER_CANCELLED, /* by worker_free(), before the migration. The last report */
  WORKER_SAMPLE,    /* sample; invalid with `error` if libvirtd did not answer */
  WORKER_ACTED,     /* action, and error if it was refused */
  WORKER_IN_CLEAR,  /* error: an end has no certificates, so it starts again without TLS */
  WORKER_RETURNED,  /* the migration's call returned, with its error, or NULL */
  WORKER_ATTACHED,  /* a migration was found in progress */
  WORKER_RESUMED,   /* target, at_ms: libvirt said that the guest runs at the target */
  WORKER_LEARNT,    /* record: what was seen of the outcome, to be recorded */
  WORKER_UNSETTLED, /* evidence, plan, awaits, news: no verdict yet. On every change */
  WORKER_TOUCHING,  /* touch, plan, tries, evidence: about to take an action of settle.h */
  WORKER_TOUCHED,   /* the same, again_ms: it was taken, with its error, or NULL */
  WORKER_SETTLED    /* verdict, evidence, left, final. The last report */
} WorkerReportKind;

typedef struct WorkerReport {
  WorkerReportKind kind;
  MigCause cause;
  MigHold hold;          /* can waiting help? */
  const char *reason;    /* of a hold: a static code for the finding; NULL: the cause's name */
  GError *error;         /* or NULL */
  MigCheckReport *check; /* or NULL */
  MigDomainFacts domain;
  MigProbe probe;
  MigSample sample;
  MigAction action;
  MigSettleRecord record;
  int source_id;         /* PREPARED: of the copy to migrate */
  uint64_t job_began_ms; /* SAMPLE: of libvirt's job, if it is this migration's */
  bool came_back;        /* SETTLED: the source has another copy */
  MigVerdict verdict;
  MigAwaits awaits;
  MigEndState source, target; /* UNSETTLED, SETTLED: reported by both ends */
  MigTouch touch;
  const char *plan;  /* static, as in MigSettleStep */
  const char *left;  /* static, or NULL */
  bool news;         /* more changed than the words */
  unsigned tries;    /* this one included */
  uint64_t again_ms; /* monotonic: next try not before; 0: none needed */
  char *evidence;
  uint64_t at_ms;
  uint64_t error_ms; /* SETTLED: of the time between events of both ends; 0: unknown */
  bool have_final;
  MigFinalStats final;
} WorkerReport;

/* On the main context. The report is borrowed. */
typedef void (*WorkerReportFunc)(Worker *worker, const WorkerReport *report, gpointer user_data);

/* Starts the threads. Free with worker_free(). */
Worker *worker_start(Hypervisor *hypervisor, const WorkerRequest *request, GMainContext *context,
                     WorkerReportFunc report, gpointer user_data);

/* Call now and then: retries starting threads that could not be started. */
void worker_tick(Worker *worker);

/* Delivers no more reports. The threads end when their calls return; a migration in progress continues in libvirtd. NULL is fine. */
void worker_free(Worker *worker);

/* Answers WORKER_PREPARED: the record is durable, migrate. `start` is what to ask libvirt for (the goals according to the plan);
 * throttle 0: QEMU's default for auto-converge. */
void worker_go(Worker *worker, const MigPolicy *start, unsigned throttle_initial_pct,
               unsigned throttle_increment_pct);

/* Queues an action for the steering thread. An abort is repeated until the migration has ended, since libvirt refuses it while
 * the job is being set up. */
void worker_act(Worker *worker, const MigAction *action);

/* The present record: the facts before the migration, and a pause that the agent made or may have made. Safe on any thread. */
MigSettleRecord worker_get_record(Worker *worker);

/* Sets the bandwidth limits of the running migration; the second one only with `post_copy`. 0: none. */
void worker_set_bandwidth(Worker *worker, uint64_t bytes_per_s, bool post_copy,
                          uint64_t post_copy_bytes_per_s);

/* What the worker learnt last is on stable storage. */
void worker_note_recorded(Worker *worker);

/* A caller vouches that the guest never ran at the target, or that it did. */
void worker_set_word(Worker *worker, bool told_it_stayed, bool told_it_ran);

/* libvirt said that the guest was shut down, destroyed or crashed at the source; or a later event withdrew that. */
void worker_note_ended_here(Worker *worker, bool ended);

/* libvirt said that the job ended, with the migration completed or not: ask both ends at once instead of after the current
 * pause. Safe on any thread. */
void worker_note_job_done(Worker *worker, bool completed);

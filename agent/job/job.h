/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One move: what was asked, where it is, what happened to it. Plain state; nothing here does anything. */
#pragma once

#include "agent/config/goals.h"
#include "agent/job/caller.h"
#include "agent/job/joblease.h"
#include "libmigrate/core/admission.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/settle.h"
#include "libmigrate/core/types.h"
#include "libmigrate/virt/driver.h"

#include <glib.h>
#include <stdbool.h>

#define JOB_ID_SIZE    33
#define JOB_EVENTS_MAX 256

/* What a job may keep, in bytes: see job_check_limits(). */
#define JOB_TEXT_MAX   2048 /* a message, an evidence, …: longer ones are cut */
#define JOB_NAME_MAX   1024 /* of a domain, a target, a policy */
#define JOB_URI_MAX    4096
#define JOB_PATH_MAX   1024 /* of a disk image */
#define JOB_WORD_MAX   256  /* a disk's name, a pool's, … */
#define JOB_IMAGES_MAX 256

/* Something that happened to the job. */
typedef struct JobEvent {
  uint64_t seq;
  int64_t time_usec; /* realtime */
  MigPhase phase;
  MigStage stage;
  const char *kind; /* interned */
  MigCause cause;
  char *message;
} JobEvent;

/* Why it did, or will, not succeed. The first cause is kept. */
typedef struct JobFailure {
  MigCause cause; /* NONE: no failure */
  MigPhase phase;
  MigStage stage;
  char *message;
  int libvirt_code; /* 0: libvirt said nothing */
  char *libvirt_message;
} JobFailure;

/* While the phase is recovering. */
typedef struct JobRecovery {
  int64_t since_usec; /* all realtime; 0: not */
  unsigned tries;     /* to resume a cut post-copy */
  int64_t tried_usec; /* when the last one began; 0: there was none */
  int64_t again_usec; /* the next one is not before; 0: one is under way, or none is needed */
  char *error;        /* what came of the last one; NULL: nothing yet, or it worked */
} JobRecovery;

/* What its checks found last: blockers, if it was refused for them, and warnings. */
typedef struct JobFinding {
  char *code;
  bool blocks;
  bool transient;
  char *seen;
  char *remedy;
} JobFinding;

typedef struct Job Job;

struct Job {
  char id[JOB_ID_SIZE];
  uint64_t seq; /* order of arrival on this node */
  char *request_key;
  char *request_digest; /* of what was asked under the key, to tell a repetition from a conflict */
  MigDirection direction;
  char *drain_id; /* of the drain that it is of, or NULL */
  Caller *caller; /* who asked for it, or for its drain; NULL: nobody, or it is not known */

  char *domain_name;
  char domain_uuid[MIG_UUID_STRING_SIZE];
  char *target_name; /* of the configuration, or NULL */
  char *target_uri;
  char *migrate_uri; /* or NULL */
  MigPolicy policy;
  char *policy_name;                            /* that was asked for, or NULL */
  char *policy_matched;                         /* that the domain was chosen by, or NULL */
  uint8_t policy_sources[MIG_POLICY_KEY_COUNT]; /* GoalSource of each key */
  bool begun;                                   /* libvirt was seen at it */
  bool have_plan;                               /* it was started */
  MigPlan plan;
  MigSteering steering; /* while it migrates: what the monitor asked for, for the one after a restart */

  MigSettleRecord record; /* once it was started: what actions on a domain may rest on */
  int source_id;          /* libvirt's number of the copy that was to move; 0: not known */
  uint64_t job_began_ms;  /* monotonic, of this boot: when libvirt's job began; 0: it was not seen */
  JobLease *lease;        /* of an incoming job; else NULL */

  MigPhase phase;
  MigStage stage;
  bool abort_requested;
  uint64_t revision;

  int64_t created_usec; /* all realtime; 0: not yet */
  int64_t pending_since_usec;
  int64_t started_usec;
  int64_t finished_usec;
  uint64_t pending_since_ms; /* monotonic, of this boot: limits of waiting count from here */
  int64_t finished_ms;       /* monotonic; below 0: before this boot */
  uint64_t started_ms;       /* monotonic, of this boot; deadlines count from here, also after a restart */
  uint64_t memory_bytes;
  uint64_t disk_bytes;

  bool have_sample;
  MigSample sample; /* the last valid one */
  unsigned percent;
  uint64_t deadline_ms; /* monotonic; 0: none */
  char *next_action;

  JobFailure failure;
  JobRecovery recovery;
  GPtrArray *findings; /* JobFinding; NULL: it was not checked yet */

  bool have_forecast;  /* of the monitor, while migrating */
  MigWay forecast_way; /* COUNT: no way is open */
  uint64_t forecast_total_ms;
  uint64_t forecast_pause_ms;
  uint64_t forecast_floor_ms;

  bool have_total_time, have_downtime, have_transferred;
  uint64_t total_time_ms;
  uint64_t downtime_ms;
  uint64_t transferred_bytes;
  uint64_t link_bytes_per_s; /* that the link was seen to carry; 0: not known */
  uint64_t
      share_bytes_per_s;  /* of MaxBandwidth=, that it has, or had last; 0: it has what the link carries */
  const char *running_at; /* static: source, target, none, unknown */
  char *evidence;

  GPtrArray *events; /* JobEvent, oldest first, at most JOB_EVENTS_MAX */
  uint64_t events_seq;

  /* Of this process only. */
  MigWaiting waiting;             /* its place in the queue; of queue.c */
  struct JobCondition *condition; /* what holds it there, or NULL; owned by queue.c */
  bool durable;                   /* a record of it is on stable storage */
  struct JobRun *run;             /* while a worker is at it; of run.c */
  struct History *history;        /* while it migrates; of recorder.c */
  uint64_t history_due_ms;        /* when it is written next; 0: not said yet */
  GPtrArray *watchers;            /* owned by watch.c */
  GBytes *final_reply;            /* of Get, encoded once: a final job does not change any more */
  bool watch_pending;             /* watchers are yet to be told of a change */
  uint64_t watched_ms;            /* when they were told last */
  uint64_t record_due_ms;         /* a write failed: when to try again; 0: none did */
};

/* A new pending job with a fresh id. */
Job *job_new(void);
void job_free(Job *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Job, job_free)

/* Appends an event. `kind` is one of the words of the interface's type Event; the oldest events but the first
 * are dropped past the limit. Raises the revision. */
void job_add_event(Job *job, const char *kind, MigCause cause, const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Goes to another phase, with its event. The transition must be legal. */
void job_set_phase(Job *job, MigPhase phase, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Notes why the job will not succeed, unless something was noted before: false then. `error` may be NULL. */
bool job_note_failure(Job *job, MigCause cause, const GError *error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Replaces what was found before. */
void job_clear_findings(Job *job);
void job_add_finding(Job *job, const char *code, bool blocks, bool transient, const char *seen,
                     const char *remedy);

/* Forgets a noted cause: the move succeeded in spite of it. */
void job_clear_failure(Job *job);

/* A copy as a job keeps text: UTF-8 on one line, whatever a libvirtd said, cut at JOB_TEXT_MAX. NULL of NULL. */
char *job_copy_text(const char *text);

/* What both ends say, in words; copied. Of an open outcome, and in the end of the outcome. */
void job_set_evidence(Job *job, const char *evidence);

/* What the agent waits for or does next; NULL: nothing worth saying. */
void job_set_next_action(Job *job, const char *text);

bool job_is_final(const Job *job);

/* May it be accepted? False: a name, a URI or a list that it was given is longer than what is kept of any job. With that, and since
 * all texts that come later are cut, the record of a job that was accepted never grows past STORE_RECORD_BYTES_MAX
 * (test-jobjson.c has the largest). */
bool job_check_limits(const Job *job, GError **error);

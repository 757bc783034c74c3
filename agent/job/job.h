/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One migration: what was requested, where it is, what happened to it. Plain state; no behaviour. */
#pragma once

#include "agent/base/id.h"
#include "agent/config/goals.h"
#include "agent/job/caller.h"
#include "agent/job/joblease.h"
#include "agent/job/times.h"
#include "libmigrate/core/admission.h"
#include "libmigrate/core/monitor.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/settle.h"
#include "libmigrate/core/types.h"
#include "libmigrate/virt/driver.h"

#include <glib.h>
#include <stdbool.h>

#define JOB_ID_SIZE    ID_SIZE
#define JOB_EVENTS_MAX 256

/* What a job may hold, in bytes: see job_check_limits(). */
#define JOB_TEXT_MAX   2048 /* a message, evidence, …: cut if longer */
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

/* Why the job failed or will fail. The first cause is kept. */
typedef struct JobFailure {
  MigCause cause; /* NONE: no failure */
  MigPhase phase;
  MigStage stage;
  char *message;
  int libvirt_code; /* 0: not from libvirt */
  char *libvirt_message;
} JobFailure;

/* While the phase is recovering. Times are realtime. */
typedef struct JobRecovery {
  int64_t since_usec; /* 0: not recovering */
  unsigned tries;     /* attempts to resume an interrupted post-copy */
  int64_t tried_usec; /* start of the last attempt; 0: none */
  int64_t again_usec; /* next attempt not before; 0: one in progress, or none needed */
  char *error;        /* of the last attempt; NULL: no outcome yet, or it succeeded */
} JobRecovery;

/* A finding of its last checks: the blockers if they refused it, and warnings. */
typedef struct JobFinding {
  char *code;
  bool blocks;
  bool transient;
  char *seen;
  char *remedy;
} JobFinding;

/* Where the guest is, as far as a job that ended knows. */
typedef enum JobWhere { JOB_AT_UNKNOWN, JOB_AT_SOURCE, JOB_AT_TARGET, JOB_AT_NONE, JOB_WHERE_COUNT } JobWhere;

/* As in the interface's RunningAt; NULL out of range. */
const char *job_where_name(JobWhere where);

/* MIG_ENUM_UNKNOWN: none of them. */
int job_where_from_name(const char *name);

/* By the monitor, while the job migrates. */
typedef struct JobForecast {
  bool known;
  MigWay way; /* COUNT: it will not converge */
  uint64_t total_ms, pause_ms, floor_ms;
} JobForecast;

/* What came of the migration. */
typedef struct JobResult {
  bool have_libvirt_time, have_downtime, have_libvirt_downtime, have_transferred;
  uint64_t total_time_ms;   /* from the request to the end */
  uint64_t libvirt_time_ms; /* libvirt's own, of its job */
  uint64_t downtime_ms;
  uint64_t downtime_error_ms;   /* at most so much; 0: it is libvirt's number */
  uint64_t libvirt_downtime_ms; /* libvirt's own; none after post-copy */
  const char
      *downtime_unknown; /* why there is none: static or interned; NULL: there is, or it did not migrate */
  uint64_t transferred_bytes;
  JobWhere running_at;
  char *evidence; /* what both ends say; also while the outcome is open */
} JobResult;

/* Its place in the queue; owned by queue.c. */
typedef struct JobPlace {
  MigWaiting waiting;
  struct JobCondition *condition; /* that holds it there, or NULL */
} JobPlace;

/* Its history while it migrates; owned by recorder.c. */
typedef struct JobReadings {
  struct History *history;
  uint64_t due_ms; /* next write; 0: not scheduled yet */
} JobReadings;

/* Its followers; owned by request/watch.c. */
typedef struct JobWatch {
  GPtrArray *watchers;
  GBytes *final_reply; /* of Get, encoded once: a final job no longer changes */
  bool pending;        /* watchers have not been told of a change yet */
  uint64_t told_ms;    /* last message to the watchers */
} JobWatch;

typedef struct Job Job;

struct Job {
  char id[JOB_ID_SIZE];
  uint64_t seq; /* order of arrival on this node */
  char *request_key;
  char *request_digest; /* of the request under the key: tells a repetition from a conflict */
  MigDirection direction;
  char *drain_id; /* of the drain that it belongs to, or NULL */
  Caller *caller; /* who requested it, or its drain; NULL: nobody, or unknown */

  char *domain_name;
  char domain_uuid[MIG_UUID_STRING_SIZE];
  char *target_name; /* in the configuration, or NULL */
  char *target_uri;
  char *migrate_uri; /* or NULL */
  MigPolicy policy;
  char *policy_name;                            /* requested, or NULL */
  char *policy_matched;                         /* whose Match= fits the domain, or NULL */
  uint8_t policy_sources[MIG_POLICY_KEY_COUNT]; /* GoalSource of each key */
  bool begun;                                   /* libvirt was seen migrating it */
  bool have_plan;                               /* true once it was started */
  MigPlan plan;
  MigSteering steering; /* while it migrates: the monitor's requests, for a restart */

  MigSettleRecord record; /* once it was started: evidence for actions on a domain */
  int source_id;          /* libvirt's id of the copy to migrate; 0: unknown */
  uint64_t job_began_ms;  /* monotonic, of this boot: start of libvirt's job; 0: not seen */
  JobLease *lease;        /* of an incoming job; else NULL */

  MigPhase phase;
  MigStage stage;
  bool abort_requested;
  uint64_t revision;

  int64_t created_usec; /* all realtime; 0: not yet */
  int64_t pending_since_usec;
  int64_t started_usec;
  int64_t finished_usec;
  uint64_t pending_since_ms; /* monotonic, of this boot: waiting time limits count from here */
  int64_t finished_ms;       /* monotonic; negative: before this boot */
  uint64_t started_ms;       /* monotonic, of this boot; deadlines count from here, even after a restart */
  JobTimes times;
  uint64_t memory_bytes;
  uint64_t disk_bytes;

  bool have_sample;
  MigSample sample; /* the latest valid one */
  unsigned percent;
  uint64_t deadline_ms; /* monotonic; 0: none */
  char *next_action;

  JobFailure failure;
  JobRecovery recovery;
  GPtrArray *findings; /* JobFinding; NULL: not checked yet */

  uint64_t link_bytes_per_s;  /* throughput that the link showed; 0: unknown */
  uint64_t share_bytes_per_s; /* current or last share of MaxBandwidth=; 0: limited only by the link */
  GPtrArray *events;          /* JobEvent, oldest first, at most JOB_EVENTS_MAX */
  uint64_t events_seq;

  JobForecast forecast;
  JobResult result;

  /* Of this process only. */
  JobPlace place;
  JobReadings readings;
  JobWatch watch;
  bool durable;           /* its record is on stable storage */
  struct JobRun *run;     /* while it has a worker; owned by move/run.c */
  uint64_t record_due_ms; /* when to retry a failed write; 0: none failed */
};

/* A new pending job with a fresh id. */
Job *job_new(void);

/* What a request makes a job of. All is copied. */
typedef struct JobRequest {
  uint64_t asked_ms; /* monotonic: when the request came; 0: now */
  const Caller *caller;
  const char *domain_name, *domain_uuid;
  uint64_t memory_bytes;
  const char *target_name; /* or NULL */
  const char *target_uri;
  const char *migrate_uri; /* or NULL */
  const Goals *goals;
  const char *policy_name;    /* that was asked for, or NULL */
  const char *policy_matched; /* that the domain was chosen by, or NULL */
} JobRequest;

Job *job_new_for(const JobRequest *request);
void job_free(Job *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Job, job_free)

/* Appends an event. `kind` is one of the words of the interface's type Event. Beyond the limit, the oldest events except the
 * first are dropped. Raises the revision. */
void job_add_event(Job *job, const char *kind, MigCause cause, const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Enters another phase, with its event. The transition must be legal. */
void job_set_phase(Job *job, MigPhase phase, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Notes why the job will not succeed. False: an earlier cause was noted and stays. `error` may be NULL. */
bool job_note_failure(Job *job, MigCause cause, const GError *error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Forgets earlier findings. */
void job_clear_findings(Job *job);
void job_add_finding(Job *job, const char *code, bool blocks, bool transient, const char *seen,
                     const char *remedy);

/* Forgets the noted cause: the migration succeeded in spite of it. */
void job_clear_failure(Job *job);

/* Copies a text as a job keeps it: valid UTF-8, on one line, cut at JOB_TEXT_MAX. NULL for NULL. */
char *job_copy_text(const char *text);

/* What both ends report, in words; copied. While the outcome is open, and then for the outcome. */
void job_set_evidence(Job *job, const char *evidence);

/* What the agent waits for or does next; NULL: nothing to report. */
void job_set_next_action(Job *job, const char *text);

bool job_is_final(const Job *job);

/* May it be accepted? False: a name, URI or list that it was given exceeds what a job keeps. Together with the cutting of all later
 * texts this ensures that the record of an accepted job never exceeds STORE_RECORD_BYTES_MAX (test-jobjson.c has the largest). */
bool job_check_limits(const Job *job, GError **error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The waiting jobs, on top of core's queue: configured limits, targets, and the reason for waiting in words. */
#pragma once

#include "agent/config/config.h"
#include "agent/job/job.h"
#include "libmigrate/core/admission.h"

typedef struct JobQueue JobQueue;

/* `config` is borrowed. */
JobQueue *job_queue_new(const Config *config);
void job_queue_free(JobQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JobQueue, job_queue_free)

/* Applies a changed configuration: its limits and aging affect all jobs in the queue. */
void job_queue_apply_config(JobQueue *queue);

/* Queues a durable, pending job. */
void job_queue_push(JobQueue *queue, Job *job, uint64_t now_ms);

/* Enters a job that ran before a restart, whatever the limits say. */
void job_queue_enter(JobQueue *queue, Job *job);

/* The same for a job that was only being checked. False: the limits leave no slot, and it is not entered. */
bool job_queue_try_enter(JobQueue *queue, Job *job);

/* Removes a finished job. */
void job_queue_remove(JobQueue *queue, Job *job);

/* As in core/admission.h. `reason` is a code for what was found, such as the name of the cause; `error` is copied. */
MigTurn job_queue_next(JobQueue *queue, uint64_t now_ms, Job **ret_job);
bool job_queue_passed(JobQueue *queue, Job *job, uint64_t now_ms);
void job_queue_hold(JobQueue *queue, Job *job, MigHold hold, const char *reason, MigCause cause,
                    const GError *error, uint64_t now_ms);

/* To be called when the priority in the job's policy has changed. */
void job_queue_update(JobQueue *queue, Job *job);

/* What keeps every job from starting, besides the limits: MIG_ADMISSION_START (nothing), BANDWIDTH_LIMIT or NODE. The reason is a
 * static code, the message is copied; both are for clients. */
void job_queue_set_gate(JobQueue *queue, MigAdmission gate, const char *reason, const char *message);

/* The limit of concurrent migrations to this target; 0: none. */
unsigned job_queue_limit_of_target(const JobQueue *queue, const char *uri);

/* What kind of condition holds a waiting job; NONE: it waits for its turn. */
MigHold job_queue_held(const JobQueue *queue, const Job *job);

/* How many jobs have a slot. */
unsigned job_queue_count_running(const JobQueue *queue);

/* The first waiting job, and the one after it, or NULL. */
Job *job_queue_first(const JobQueue *queue);
Job *job_queue_after(const Job *job);

/* 1: first in the queue. 0: not waiting. */
unsigned job_queue_position(const Job *job);

/* A condition that holds a job. */
typedef struct JobCondition {
  const char *reason; /* interned */
  MigCause cause;
  GError *error;
  unsigned tries;
} JobCondition;

/* Why a job waits. Strings are static, except the message. */
typedef struct JobPending {
  const char *reason;
  char *message;                 /* owned by the caller */
  const JobCondition *condition; /* borrowed; NULL: it waits for its turn */
  uint64_t held_since_ms;        /* of the condition */
  uint64_t retry_ms;             /* next check */
} JobPending;

void job_queue_explain(const JobQueue *queue, const Job *job, uint64_t now_ms, JobPending *ret_pending);

/* Only the code. */
const char *job_queue_reason(const JobQueue *queue, const Job *job);

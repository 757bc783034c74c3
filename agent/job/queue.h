/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The jobs that wait, over core's queue: the limits of the configuration, the targets, and every reason in words. */
#pragma once

#include "agent/config/config.h"
#include "agent/job/job.h"
#include "libmigrate/core/admission.h"

typedef struct JobQueue JobQueue;

/* `config` is borrowed. */
JobQueue *job_queue_new(const Config *config);
void job_queue_free(JobQueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JobQueue, job_queue_free)

/* The configuration has changed: limits and aging hold for all that are in. */
void job_queue_apply_config(JobQueue *queue);

/* A durable, pending job gets its place in the order. */
void job_queue_push(JobQueue *queue, Job *job, uint64_t now_ms);

/* A job of before a restart, which runs whatever the limits say. */
void job_queue_enter(JobQueue *queue, Job *job);

/* The same for one that was only being checked: false, and it is not entered, where the limits leave it no place. */
bool job_queue_try_enter(JobQueue *queue, Job *job);

/* The job is over. */
void job_queue_remove(JobQueue *queue, Job *job);

/* As in core/admission.h. `reason` is a code for what was found, such as the name of the cause; `error` is copied. */
MigTurn job_queue_next(JobQueue *queue, uint64_t now_ms, Job **ret_job);
bool job_queue_passed(JobQueue *queue, Job *job, uint64_t now_ms);
void job_queue_hold(JobQueue *queue, Job *job, MigHold hold, const char *reason, MigCause cause,
                    const GError *error, uint64_t now_ms);

/* The job's priority, in its policy, has changed. */
void job_queue_update(JobQueue *queue, Job *job);

/* What keeps every job from starting, beside the limits: MIG_ADMISSION_START (nothing), BANDWIDTH_LIMIT or NODE. The code is
 * static, the message is copied; both are for clients. */
void job_queue_set_gate(JobQueue *queue, MigAdmission gate, const char *reason, const char *message);

/* How many to this target at a time; 0: no limit. */
unsigned job_queue_limit_of_target(const JobQueue *queue, const char *uri);

/* What kind of condition holds a job that waits; NONE: it waits for its turn. */
MigHold job_queue_held(const JobQueue *queue, const Job *job);

/* How many have a place. */
unsigned job_queue_count_running(const JobQueue *queue);

/* The first of those that wait, and the one after it, or NULL. */
Job *job_queue_first(const JobQueue *queue);
Job *job_queue_after(const Job *job);

/* 1: the first of those that wait. 0: it does not. */
unsigned job_queue_position(const Job *job);

/* What a condition that holds a job is, if one does. */
typedef struct JobCondition {
  const char *reason; /* interned */
  MigCause cause;
  GError *error;
  unsigned tries;
} JobCondition;

/* Why a job waits. Strings but the message are static. */
typedef struct JobPending {
  const char *reason;
  char *message;                 /* the caller's */
  const JobCondition *condition; /* borrowed; NULL: it waits for its turn */
  uint64_t held_since_ms;        /* of the condition */
  uint64_t retry_ms;             /* when it is looked at again */
} JobPending;

void job_queue_explain(const JobQueue *queue, const Job *job, uint64_t now_ms, JobPending *ret_pending);

/* The code alone. */
const char *job_queue_reason(const JobQueue *queue, const Job *job);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job as JSON, as the interface shows it. */
#pragma once

#include "agent/job/job.h"
#include "libmigrate/core/migratable.h"
#include "proto/json.h"

typedef enum JobDetail {
  JOB_DETAIL_FULL, /* all events */
  JOB_DETAIL_NEWS  /* only the newest events, for one message of a stream */
} JobDetail;

/* What a job's JSON takes from the rest of the agent and from the time. */
typedef struct JobContext {
  unsigned queue_position; /* 0: not waiting */
  const char *pending_reason;
  const char *pending_message;
  int64_t pending_until_usec; /* 0: forever */
  int64_t held_since_usec;    /* by a condition; 0: not held */
  int64_t retry_usec;         /* next check of the condition */
  unsigned tries;             /* checks so far */
  uint64_t now_ms;            /* monotonic */
  int64_t now_usec;           /* realtime, at the same moment */
} JobContext;

/* The interface's type Job. */
json_t *job_to_json(const Job *job, const JobContext *context, JobDetail view);

/* The interface's []Finding; empty if there are none. */
json_t *job_findings_to_json(const Job *job);

/* The interface's name for a way: the stage that it leads to; for MIG_WAY_COUNT: "none". */
const char *way_to_stage_name(MigWay way);

/* The interface's type JobSummary. Of the context it uses what concerns a pending job, except its message. */
json_t *job_to_summary(const Job *job, const JobContext *context);

/* An array of the interface's type Finding. */
json_t *check_report_to_json(const MigCheckReport *report);

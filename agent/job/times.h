/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a job's time goes, from the request to its end: parts that follow one another without a gap, so that they add up.
 *
 * Theory of Operation. A job is in one part at a time. Whoever learns that the next one began says when that was, by the
 * monotonic clock, and the time until then goes to the part before. The clock goes on while no agent runs, so a restart loses
 * no time; but if a part began meanwhile, nobody saw when, and the times are *inexact*: only their sum is right. After a reboot
 * even that is by the time of day. */
#pragma once

#include "libmigrate/core/table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum JobPart {
  JOB_PART_QUEUED, /* waits: for its turn, for a condition, for a share of the bandwidth. Incoming: for the guest */
  JOB_PART_CHECKS,     /* both ends are asked. Incoming: disk images are created */
  JOB_PART_BEGIN,      /* from the order to migrate to the first byte of the guest */
  JOB_PART_DISKS,      /* disks are copied, before the memory */
  JOB_PART_FIRST_PASS, /* all memory is sent once */
  JOB_PART_PASSES,     /* memory that was written meanwhile is sent. Incoming: all of the memory */
  JOB_PART_SWITCH,     /* the guest stands still: from its stop at the source until it runs at the target */
  JOB_PART_POST_COPY,  /* the rest of the memory follows the guest */
  JOB_PART_SETTLE,     /* libvirt cleans up, and both ends are asked for the outcome */
  JOB_PART_COUNT
} JobPart;

typedef struct JobTimes {
  JobPart part;                      /* the present one */
  uint64_t since_ms;                 /* monotonic */
  int64_t since_usec;                /* the same in realtime, for a reader after a reboot */
  uint64_t spent_ms[JOB_PART_COUNT]; /* until then */
  bool inexact;
  /* When this process heard that the guest stopped at the source, and that it ran at the target. Monotonic; 0: not heard. */
  uint64_t stopped_ms, resumed_ms;
} JobTimes;

/* "first_pass"; NULL out of range. */
const char *job_part_name(JobPart part);

/* The present part ends at `at_ms`, which may be a moment before it began: then it took no time. */
void job_times_enter(JobTimes *times, JobPart part, uint64_t at_ms);

/* Of the parts that are over; of a finished job, all. */
uint64_t job_times_total_ms(const JobTimes *times);

/* "checks 0.12 s, first-pass 0.30 s": those that took at least 1 ms; to be freed. */
char *job_times_describe(const JobTimes *times);

/* As in the interface's type TimeParts: what a finished job keeps. NULL, or no object: nothing is known. */
json_t *job_times_to_json(const JobTimes *times);
void job_times_from_json(JobTimes *times, json_t *object);

/* The same, and what goes on. `same_boot`: the record's monotonic times still count. */
json_t *job_times_to_record(const JobTimes *times);
void job_times_from_record(JobTimes *times, json_t *record, bool same_boot);

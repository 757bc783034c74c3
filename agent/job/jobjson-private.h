/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the two writers of a job: for clients, and for its record. */
#pragma once

#include "agent/job/jobjson.h"

/* Set nothing for an absent value. */
void jobjson_set_time(json_t *object, const char *key, int64_t value_usec);
void jobjson_set_count_if(json_t *object, bool have, const char *key, uint64_t value);

/* The part that both have in common. */
json_t *jobjson_common(const Job *job);
/* The newest `newest` events. */
json_t *jobjson_events(const Job *job, unsigned newest);
json_t *jobjson_failure(const JobFailure *failure);

/* The counts of a MigSample, all of them uint64_t. */
typedef struct JobjsonCount {
  const char *key;
  size_t offset;
} JobjsonCount;
#define JOBJSON_SAMPLE_COUNTS 13
extern const JobjsonCount jobjson_sample_counts[JOBJSON_SAMPLE_COUNTS];
json_t *jobjson_progress(const Job *job, const JobContext *context);

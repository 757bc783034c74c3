/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters of this process and the current state, in Prometheus's text format. */
#pragma once

#include "agent/base/promtext.h"
#include "agent/base/textfile.h"
#include "agent/job/jobs.h"

#include <stdbool.h>

typedef struct Node Node;

/* Counted since the process started: Prometheus expects counters to restart from zero. All zero: nothing yet. */
typedef struct Metrics {
  uint64_t accepted;
  uint64_t finished[MIG_DIRECTION_COUNT][MIG_PHASE_COUNT][MIG_CAUSE_COUNT];
  uint64_t recoveries;
  uint64_t transferred_bytes;
  uint64_t part_ms[JOB_PART_COUNT]; /* of the migrations in `duration` */
  PromHistogram wait, duration, downtime;

  TextFile *file; /* NULL: none is configured */
  uint64_t due_ms;
  bool failing; /* the last state that was logged */
} Metrics;

/* Call it several times a second: writes the file if one is configured and due. */
void metrics_tick(Node *node);

/* Removes the file. */
void metrics_close(Node *node);

/* A JobObserverFunc; `node` is Node. */
void metrics_on_job(Job *job, JobChange change, gpointer node);

/* All metrics; those of single migrations, which name domains, only with `jobs`. The caller frees the text. */
char *metrics_text(const Node *node, bool jobs);

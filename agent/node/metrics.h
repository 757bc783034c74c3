/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What this process has counted, and how things stand, in Prometheus's text format. */
#pragma once

#include "agent/base/promtext.h"
#include "agent/base/textfile.h"
#include "agent/job/jobs.h"

#include <stdbool.h>

typedef struct Node Node;

/* Since the process began: a counter that begins anew is what Prometheus expects of a restart. All zero: nothing yet. */
typedef struct Metrics {
  uint64_t accepted;
  uint64_t finished[MIG_DIRECTION_COUNT][MIG_PHASE_COUNT][MIG_CAUSE_COUNT];
  uint64_t recoveries;
  uint64_t transferred_bytes;
  PromHistogram wait, duration, downtime;

  TextFile *file; /* NULL: none is configured */
  uint64_t due_ms;
  bool failing; /* what was said last in the journal */
} Metrics;

/* Some times a second: writes the file, if one is configured, and it is time. */
void metrics_tick(Node *node);

/* Removes the file. */
void metrics_close(Node *node);

/* Observes jobs; `node` is Node. */
void metrics_on_job(Job *job, JobChange change, gpointer node);

/* All of it. The series of each migration that is under way, with the domain's name, only with `jobs`. The caller's. */
char *metrics_text(const Node *node, bool jobs);

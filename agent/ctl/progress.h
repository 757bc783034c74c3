/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of a job on one line. Pure text formatting: no clock, no terminal. */
#pragma once

#include "agent/ctl/jobview.h"

typedef struct ProgressInput {
  const JobView *job;
  int64_t percent;     /* as displayed; the caller makes sure that it never decreases */
  int64_t now_us;      /* realtime, for countdowns */
  int64_t received_ms; /* how long ago the agent sent this */
  int64_t away_ms;     /* how long the agent has been unreachable; -1: connected */
} ProgressInput;

/* For a terminal: at most `width` columns. The least important parts are dropped first; the bar takes the remaining
 * space. */
char *progress_bar(const ProgressInput *input, unsigned width, bool utf8);

/* For a log: everything except the bar. */
char *progress_line(const ProgressInput *input);

/* "pre-copy", "migrating": what the job is doing now. */
const char *progress_doing(const JobView *job);
const char *progress_stage_words(MigStage stage);

/* "pre-copy", "a pause": the way a migration completes, to be used after "by"; NONE: "no permitted way". */
const char *progress_way_words(MigStage way);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One line that says how far a job is. Text from facts: no clock, no terminal. */
#pragma once

#include "agent/ctl/jobview.h"

typedef struct ProgressInput {
  const JobView *job;
  int64_t percent;     /* to show: the caller sees to it that it never falls */
  int64_t now_us;      /* realtime, for what counts down */
  int64_t received_ms; /* how long ago the agent sent this */
  int64_t away_ms;     /* for how long the agent has been away; -1: it is there */
} ProgressInput;

/* For a terminal: at most `width` columns. What matters least is left out first; the bar takes what is left.
 */
char *progress_bar(const ProgressInput *input, unsigned width, bool utf8);

/* For a log: everything, without a bar. */
char *progress_line(const ProgressInput *input);

/* "pre-copy", "migrating": what it does now, in the words of a person. */
const char *progress_doing(const JobView *job);
const char *progress_stage_words(MigStage stage);

/* "pre-copy", "a pause": the way that ends a migration, after "by"; NONE: "no permitted way". */
const char *progress_way_words(MigStage way);

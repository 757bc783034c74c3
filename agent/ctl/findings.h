/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Findings of the checks, as reported by the agent. */
#pragma once

#include "agent/ctl/term.h"
#include "proto/json.h"

typedef struct FindingsCount {
  unsigned blockers;
  unsigned transient; /* those of the blockers where waiting may help */
  unsigned warnings;
} FindingsCount;

/* `findings` may be NULL: the job has not been checked yet. */
FindingsCount findings_count(json_t *findings);

/* Prints all of them as fields, or only the warnings. */
void findings_print(Term *term, json_t *findings, bool warnings_only);

/* Prints the blockers, one per line, indented. */
void findings_print_blockers(Term *term, json_t *findings);

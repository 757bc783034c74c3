/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What checks found, as the agent described it. */
#pragma once

#include "agent/ctl/term.h"

#include <jansson.h>

typedef struct FindingsCount {
  unsigned blockers;
  unsigned transient; /* of these: waiting may help */
  unsigned warnings;
} FindingsCount;

/* `findings` may be NULL, of a job that was not checked yet. */
FindingsCount findings_count(json_t *findings);

/* Fields of all of them, or of the warnings only. */
void findings_print(Term *term, json_t *findings, bool warnings_only);

/* The blockers, one a line, indented. */
void findings_print_blockers(Term *term, json_t *findings);

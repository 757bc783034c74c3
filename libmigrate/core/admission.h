/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pending job may start now, and why the others wait. */
#pragma once

#include "libmigrate/core/policy.h"

/* One pending job, as far as its turn is concerned. */
typedef struct MigCandidate {
  MigPriority priority;
  uint64_t created_seq; /* the order of arrival */
} MigCandidate;

/* Orders candidates: who starts first comes first (by priority, then by age). For qsort() and friends. */
int mig_candidate_compare(const MigCandidate *a, const MigCandidate *b);

typedef enum MigAdmission {
  MIG_ADMISSION_START,
  MIG_ADMISSION_OUTGOING_LIMIT,
  MIG_ADMISSION_COUNT
} MigAdmission;

const char *mig_admission_name(MigAdmission admission);

/* May one more start, with `running` under way and a limit of `max_outgoing` (at least 1)? */
MigAdmission mig_admit(unsigned running, unsigned max_outgoing);

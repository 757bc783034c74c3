/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pending job may start now. */
#include "libmigrate/core/admission.h"

#include "libmigrate/core/table.h"

static const char *const admission_names[] = {
    [MIG_ADMISSION_START] = "START",
    [MIG_ADMISSION_OUTGOING_LIMIT] = "OUTGOING_LIMIT",
};
TABLE_COVERS(admission_names, MIG_ADMISSION_COUNT);

const char *mig_admission_name(MigAdmission admission) {
  return table_name(admission_names, MIG_ADMISSION_COUNT, (int)admission);
}

int mig_candidate_compare(const MigCandidate *a, const MigCandidate *b) {
  if (a->priority != b->priority)
    return a->priority < b->priority ? -1 : 1;
  if (a->created_seq != b->created_seq)
    return a->created_seq < b->created_seq ? -1 : 1;
  return 0;
}

MigAdmission mig_admit(unsigned running, unsigned max_outgoing) {
  /* A limit of 0 would be a queue that never moves: cordoning is the way to say that. */
  unsigned limit = max_outgoing > 0 ? max_outgoing : 1;
  return running < limit ? MIG_ADMISSION_START : MIG_ADMISSION_OUTGOING_LIMIT;
}

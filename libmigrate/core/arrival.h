/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a migration into this node, as far as this node sees it. Only the source steers it. */
#pragma once

#include "libmigrate/core/verdict.h"

typedef enum MigArrival {
  MIG_ARRIVAL_UNSEEN,    /* this node's libvirtd does not answer */
  MIG_ARRIVAL_AWAITED,   /* nothing has arrived yet */
  MIG_ARRIVAL_COMING,    /* memory is arriving in a copy that has not run here */
  MIG_ARRIVAL_POST_COPY, /* it runs here, and the rest of its memory is still arriving */
  MIG_ARRIVAL_CUT,       /* the same, but libvirt says that post-copy failed: the source resumes it */
  MIG_ARRIVAL_ARRIVED,   /* the guest is here */
  MIG_ARRIVAL_ENDED,     /* the copy is gone and never ran: the source's job knows why */
  MIG_ARRIVAL_GONE,      /* the copy is gone, and nobody here knows whether it ran */
  MIG_ARRIVAL_STOPPED,   /* the guest ran here and no longer does */
  MIG_ARRIVAL_TAKEN,     /* a domain with that UUID is alive here, but did not arrive by migration */
  MIG_ARRIVAL_COUNT
} MigArrival;

typedef struct MigArrivalInput {
  MigEndState state;
  bool job_incoming; /* libvirt has an incoming migration job on the domain */
  bool job_outgoing; /* or an outgoing one: it is already moving on */
  bool migrated;     /* it runs, and libvirt's reason is that it was migrated here */
  bool booted;       /* it runs, and libvirt's reason is that it was started here, not migrated */
  bool came;         /* a copy that waits for a migration has been seen */
  bool ran;          /* it has been seen to run here */
  bool started;      /* an event reported its start here, other than by migration */
  bool watched;      /* without a gap: what was neither seen nor reported did not happen */
} MigArrivalInput;

typedef struct MigArrivalAnswer {
  MigArrival arrival;
  const char *why; /* static; ends a sentence that begins with the state */
} MigArrivalAnswer;

/* Answers for every combination; never NULL. */
const MigArrivalAnswer *mig_arrival_answer(const MigArrivalInput *input);

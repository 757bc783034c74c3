/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a migration into this node, as far as this node sees it. It steers nothing: the source does. */
#pragma once

#include "libmigrate/core/verdict.h"

typedef enum MigArrival {
  MIG_ARRIVAL_UNSEEN,    /* this node's libvirtd does not answer */
  MIG_ARRIVAL_AWAITED,   /* nothing has come yet */
  MIG_ARRIVAL_COMING,    /* memory flows into a copy that has not run here */
  MIG_ARRIVAL_POST_COPY, /* it runs here, and the rest of its memory is coming */
  MIG_ARRIVAL_CUT,       /* the same, and libvirt says that it failed: the source resumes it */
  MIG_ARRIVAL_ARRIVED,   /* the guest is here */
  MIG_ARRIVAL_ENDED,     /* the copy went without having run: the source's job knows why */
  MIG_ARRIVAL_GONE,      /* the copy went, and nobody here knows whether it ran before */
  MIG_ARRIVAL_STOPPED,   /* the guest ran here, and does not any more */
  MIG_ARRIVAL_TAKEN,     /* a domain of that UUID is alive here that did not come by a migration */
  MIG_ARRIVAL_COUNT
} MigArrival;

/* The names of the enum: "COMING". NULL out of range. */
const char *mig_arrival_name(MigArrival arrival);

typedef struct MigArrivalInput {
  MigEndState state;
  bool job_incoming; /* libvirt has a migration job into the domain */
  bool job_outgoing; /* or one out of it: it moves on already */
  bool migrated;     /* it runs, and libvirt says that it does so since it was migrated here */
  bool booted;  /* it runs, and libvirt says that it does so since it was started here, and by no migration */
  bool came;    /* a copy that waits for a migration has been seen */
  bool ran;     /* it has been seen to run here */
  bool started; /* its start here, by no migration, has been heard of */
  bool watched; /* without a gap: what was not seen, nor heard of, did not happen */
} MigArrivalInput;

typedef struct MigArrivalAnswer {
  MigArrival arrival;
  const char *why; /* static, the end of a sentence that begins with the state */
} MigArrivalAnswer;

/* Answers for every combination; never NULL. */
const MigArrivalAnswer *mig_arrival_answer(const MigArrivalInput *input);

/* No more comes of it. */
bool mig_arrival_is_final(MigArrival arrival);

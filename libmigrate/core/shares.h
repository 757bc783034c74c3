/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One bandwidth for all running migrations: what each may use, and in which order that is changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One migration that takes part. Rates are bytes per second; what is given is a multiple of its streams × 1 MiB/s, since libvirt
 * keeps limits in whole MiB/s. */
typedef struct MigShare {
  /* The caller's, at any time. */
  uint64_t ceiling; /* by its own policy, of all streams; 0: none */
  unsigned streams; /* so many have the limit each that libvirt is given; 0 counts as 1 */
  uint64_t need;    /* with less its guest dirties faster than it is moved; 0: not known, or hopeless */
  bool fixed;       /* it cannot be changed once it began */
  bool steerable;   /* libvirt takes another limit for it now */
  bool patient;     /* while it has nothing: it waits until all that is to be its share is free */

  /* The set's. */
  uint64_t wanted; /* its share as it is now divided */
  uint64_t given;  /* the most that it may be using, whatever is under way or unknown; 0: it has not begun */
  uint64_t asked;  /* a change to this is under way; 0: none is */
  bool unsure;     /* what libvirt has may be less than given */
} MigShare;

typedef struct MigShares {
  uint64_t cap; /* of all together */
  uint64_t min; /* less than this is not worth beginning; at least 1 MiB/s counts */
  unsigned
      at_most; /* so many run at a time: what cannot be changed later gets no more than its part of the cap */
  MigShare **members; /* the caller's */
  size_t n;
} MigShares;

/* A migration that was under way before: what it uses is not known, and so counts as all there is; but for one that cannot be
 * changed: that uses what it began with, if that is known (not 0). */
void mig_share_adopt(const MigShares *shares, MigShare *share, uint64_t begun_with);

/* Divides the cap anew: who may have less than an equal part gets that, and leaves the rest to the others; nobody gets more
 * than its ceiling, nor less than its need as long as that of all fits, or else that of those which have begun. To be
 * called when members come, go or change. */
void mig_shares_divide(MigShares *shares);

typedef enum MigShareStepKind {
  MIG_SHARE_STEP_NONE,  /* nothing to be done until something changes */
  MIG_SHARE_STEP_BEGIN, /* this migration may begin, with step->value for its limit */
  MIG_SHARE_STEP_SET    /* have libvirt set this limit, and tell mig_share_done() what came of it */
} MigShareStepKind;

typedef struct MigShareStep {
  MigShareStepKind kind;
  MigShare *share;
  uint64_t value;
} MigShareStep;

/* The next thing to do, towards what is wanted. To be repeated until there is none, and again after mig_share_done(). At
 * no moment in between is the sum of what is given beyond the cap, but for what was adopted: lower limits are asked for first,
 * and what they free is given away once libvirt has taken them. */
MigShareStep mig_shares_next(MigShares *shares);

/* libvirt took the limit that was asked for, or did not: then it is tried again, once the share is steerable. */
void mig_share_done(MigShare *share, bool ok);

/* Could `more` other migrations begin, each with the least that is worth beginning, and none of the members fall below its
 * need? What is unsure counts in full. */
bool mig_shares_have_room(const MigShares *shares, unsigned more);

/* Of what is given, all together. */
uint64_t mig_shares_given(const MigShares *shares);

/* The limit of each of its streams. */
uint64_t mig_share_per_stream(const MigShare *share);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One bandwidth for all running migrations: what each may use, and in which order that changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One migration that shares the bandwidth. Rates are in bytes per second; `given` is a multiple of its streams × 1
 * MiB/s, since libvirt keeps limits in whole MiB/s. */
typedef struct MigShare {
  /* Set by the caller at any time. */
  uint64_t ceiling; /* by its own policy, for all streams together; 0: none */
  unsigned streams; /* libvirt's limit applies to each of them; 0 counts as 1 */
  uint64_t need;    /* with less, its guest dirties faster than it is sent; 0: not known, or hopeless */
  bool fixed;       /* it cannot be changed once it has begun */
  bool steerable;   /* libvirt accepts another limit for it now */
  bool patient;     /* before it begins: it waits until its whole share is free */

  /* Set by this module. */
  uint64_t wanted; /* its share in the current division */
  uint64_t given;  /* the most that it may be using, pending and unknown changes included; 0: not begun */
  uint64_t asked;  /* a change to this is pending; 0: none */
  bool unsure;     /* libvirt's limit may be lower than given */
} MigShare;

typedef struct MigShares {
  uint64_t cap;       /* for all together */
  uint64_t min;       /* less than this is not worth starting with; at least 1 MiB/s */
  unsigned at_most;   /* how many may run; a fixed one gets at most cap / at_most */
  MigShare **members; /* owned by the caller */
  size_t n;
} MigShares;

/* Adopts a migration that was already running. What it uses is not known and counts as the whole cap; but a fixed one
 * uses what it began with, if that is known (not 0). */
void mig_share_adopt(const MigShares *shares, MigShare *share, uint64_t begun_with);

/* Divides the cap anew: a member whose ceiling is below an equal part gets its ceiling and leaves the rest to the
 * others. Nobody gets more than its ceiling, or less than its need, as long as all needs fit, or else those of the
 * members that have begun. Call it when members come, go or change. */
void mig_shares_divide(MigShares *shares);

typedef enum MigShareStepKind {
  MIG_SHARE_STEP_NONE,  /* nothing to be done until something changes */
  MIG_SHARE_STEP_BEGIN, /* this migration may begin, with step->value as its limit */
  MIG_SHARE_STEP_SET    /* have libvirt set this limit, then call mig_share_done() */
} MigShareStepKind;

typedef struct MigShareStep {
  MigShareStepKind kind;
  MigShare *share;
  uint64_t value;
} MigShareStep;

/* The next step towards the wanted division. Repeat until there is none, and again after mig_share_done(). The sum of
 * `given` never exceeds the cap in between, except for adopted migrations: lower limits are requested first, and what
 * they free is given away once libvirt has accepted them. */
MigShareStep mig_shares_next(MigShares *shares);

/* libvirt accepted the requested limit or not; if not, it is retried once the share is steerable. */
void mig_share_done(MigShare *share, bool ok);

/* Could `more` other migrations begin, each with the least that is worth starting with, without any member falling
 * below its need? Unsure members count in full. */
bool mig_shares_have_room(const MigShares *shares, unsigned more);

/* The sum of `given`. */
uint64_t mig_shares_given(const MigShares *shares);

/* The limit of each of its streams. */
uint64_t mig_share_per_stream(const MigShare *share);

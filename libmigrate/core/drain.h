/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emptying a node: which guest goes next, where to, and what follows when its move is over. Facts in, decisions out. */
#pragma once

#include "libmigrate/core/forecast.h"
#include "libmigrate/core/migratable.h"

/* Can a guest go to a target? */
typedef enum MigDrainFit {
  MIG_DRAIN_FIT_UNSEEN,  /* not looked at yet */
  MIG_DRAIN_FIT_YES,     /* nothing keeps it */
  MIG_DRAIN_FIT_NOT_NOW, /* what keeps it may go away by waiting */
  MIG_DRAIN_FIT_NO,      /* it will not, or it was tried and came to nothing */
  MIG_DRAIN_FIT_COUNT
} MigDrainFit;

/* By what the checks found. */
MigDrainFit mig_drain_fit(const MigCheckReport *report);

/* Expected of a move that no permitted way is foreseen to end. */
#define MIG_DRAIN_NEVER_MS UINT64_MAX

/* Where nothing is known of a link, it is taken to carry so much: all guests by the same measure. */
#define MIG_DRAIN_NOMINAL_BYTES_PER_S (100 * MIG_MIB_BYTES)

/* What a move is expected to take. By the forecast where the guest was measured; `probe` NULL: by its memory, once over the
 * link. */
uint64_t mig_drain_expected_ms(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link,
                               const MigPolicy *policy);

/* One guest that is to go. */
typedef struct MigDrainGuest {
  bool waits; /* for the drain to start its move; others are passed over */
  MigPriority priority;
  uint64_t expected_ms; /* that its move takes */
  uint64_t memory_bytes;
  const MigDrainFit *fits; /* one for each target */
} MigDrainGuest;

/* One target, as it is now. */
typedef struct MigDrainTarget {
  unsigned places;     /* how many more may be sent there now */
  bool held;           /* something keeps all that go there, for now */
  uint64_t free_bytes; /* memory there that nobody is on the way to; UINT64_MAX: not known */
  unsigned sent;       /* how many guests were sent there */
} MigDrainTarget;

typedef struct MigDrainChoice {
  size_t guest, target; /* indices */
} MigDrainChoice;

/* The guest to be sent next, and its target: the first in order that has a target with a place. The order is by priority, then
 * what can go now before what can not, then what is expected to take less time, then the smaller, then as given. A target
 * that fits now goes before one that may later (one without room for the guest's memory is such); then the one with the
 * most memory left, where that is known of all of these, else the one that the fewest were sent to. False: none can be
 * sent now. */
bool mig_drain_choose(const MigDrainGuest *guests, size_t n_guests, const MigDrainTarget *targets,
                      size_t n_targets, MigDrainChoice *ret_choice);

/* All targets that a guest could go to are used up: it cannot move. A guest without any has none. */
bool mig_drain_is_stuck(const MigDrainFit *fits, size_t n_targets);

/* What follows when a guest's move is over. */
typedef enum MigDrainNext {
  MIG_DRAIN_NEXT_MOVED,
  MIG_DRAIN_NEXT_GONE,      /* it does not run any more: nothing to move */
  MIG_DRAIN_NEXT_AGAIN,     /* neither the guest nor the target is to blame: the same again */
  MIG_DRAIN_NEXT_ELSEWHERE, /* this target is used up for it; another may do */
  MIG_DRAIN_NEXT_STAY,      /* it was not wanted, or no target would do better: left where it is */
  MIG_DRAIN_NEXT_COUNT
} MigDrainNext;

/* So often at most a guest's move is begun; without a bound a fault of this node would be a busy loop. */
#define MIG_DRAIN_TRIES_MAX 3

/* By how its job ended. `runs_here`: the guest is known to run at the source; where it may be elsewhere, nothing is tried
 * again. `tries`: how often a move of it was begun, this one included. */
MigDrainNext mig_drain_next(MigPhase phase, MigCause cause, bool runs_here, unsigned tries);

/* Does a job that ended for this tell that its target will not do for anybody, for as long as the drain goes on? */
bool mig_drain_gives_up_target(MigCause cause);

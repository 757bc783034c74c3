/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emptying a node: which guest goes next, where to, and what follows when its migration is over. Facts in, decisions
 * out. */
#pragma once

#include "libmigrate/core/forecast.h"
#include "libmigrate/core/migratable.h"

/* Can a guest go to a target? */
typedef enum MigDrainFit {
  MIG_DRAIN_FIT_UNSEEN,  /* not checked yet */
  MIG_DRAIN_FIT_YES,     /* nothing keeps it */
  MIG_DRAIN_FIT_NOT_NOW, /* waiting may clear what keeps it */
  MIG_DRAIN_FIT_NO,      /* waiting will not help, or it was tried and failed */
  MIG_DRAIN_FIT_COUNT
} MigDrainFit;

/* According to the checks. */
MigDrainFit mig_drain_fit(const MigCheckReport *report);

/* Expected for a migration that no permitted way can finish, by the forecast. */
#define MIG_DRAIN_NEVER_MS UINT64_MAX

/* Assumed bandwidth of an unknown link, so that all guests are measured alike. */
#define MIG_DRAIN_NOMINAL_BYTES_PER_S (100 * MIG_MIB_BYTES)

/* How long a migration is expected to take: by the forecast if the guest was measured; `probe` NULL: by its memory,
 * once over the link. */
uint64_t mig_drain_expected_ms(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link,
                               const MigPolicy *policy);

/* One guest to migrate. */
typedef struct MigDrainGuest {
  bool waits; /* for the drain to start its migration; others are skipped */
  MigPriority priority;
  uint64_t expected_ms; /* duration of its migration */
  uint64_t memory_bytes;
  const MigDrainFit *fits; /* one for each target */
} MigDrainGuest;

/* One target, as it is now. */
typedef struct MigDrainTarget {
  unsigned places;     /* how many more guests may be sent there now */
  bool held;           /* for now, something keeps every guest from going there */
  uint64_t free_bytes; /* free memory, less that of guests already on their way; UINT64_MAX: not known */
  unsigned sent;       /* how many guests were sent there */
} MigDrainTarget;

typedef struct MigDrainChoice {
  size_t guest, target; /* indices */
} MigDrainChoice;

/* The guest to send next, and its target: the first guest in order that has a target with a free place. The order is
 * by priority, then guests that can go now, then the shorter expected time, then the smaller memory, then as given. A
 * target that fits now goes before one that may fit later (such as one without room for the guest's memory); then the
 * one with the most free memory, if that is known for all of them, otherwise the one with the fewest guests sent.
 * False: none can be sent now. */
bool mig_drain_choose(const MigDrainGuest *guests, size_t n_guests, const MigDrainTarget *targets,
                      size_t n_targets, MigDrainChoice *ret_choice);

/* No target is left for the guest: it cannot migrate. Also true without targets. */
bool mig_drain_is_stuck(const MigDrainFit *fits, size_t n_targets);

/* What follows when a guest's migration is over. */
typedef enum MigDrainNext {
  MIG_DRAIN_NEXT_MOVED,
  MIG_DRAIN_NEXT_GONE,      /* it no longer runs: nothing to migrate */
  MIG_DRAIN_NEXT_AGAIN,     /* neither guest nor target is to blame: try the same again */
  MIG_DRAIN_NEXT_ELSEWHERE, /* not to this target again; another may do */
  MIG_DRAIN_NEXT_STAY,      /* not wanted, or no target would do better: leave it where it is */
  MIG_DRAIN_NEXT_COUNT
} MigDrainNext;

/* How often at most a guest's migration is started; without a bound, a fault of this node would be a busy loop. */
#define MIG_DRAIN_TRIES_MAX 3

/* Decides by how its job ended. `runs_here`: the guest is known to run at the source; if it may be elsewhere, nothing
 * is retried. `tries`: how often its migration was started, including this one. */
MigDrainNext mig_drain_next(MigPhase phase, MigCause cause, bool runs_here, unsigned tries);

/* Does this cause rule out the target for all guests for the rest of the drain? */
bool mig_drain_gives_up_target(MigCause cause);

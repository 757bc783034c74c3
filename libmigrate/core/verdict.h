/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a move, from what both ends say. Unknown is not failed. */
#pragma once

#include "libmigrate/core/types.h"

/* What one end says of the domain. */
typedef enum MigEndState {
  MIG_END_UNKNOWN,  /* no answer */
  MIG_END_ABSENT,   /* not defined there */
  MIG_END_INACTIVE, /* defined, shut off */
  MIG_END_RUNNING,
  MIG_END_PAUSED,           /* by its owner, or for I/O errors: a guest that is here and is not on the way */
  MIG_END_PAUSED_MIGRATION, /* stopped by the migration: the source at switchover, or the target before it */
  MIG_END_RUNNING_POSTCOPY, /* the target in post-copy */
  MIG_END_PAUSED_POSTCOPY,  /* the source in post-copy */
  MIG_END_RUNNING_POSTCOPY_FAILED,
  MIG_END_PAUSED_POSTCOPY_FAILED,
  MIG_END_CRASHED,
  MIG_END_STATE_COUNT
} MigEndState;

const char *mig_end_state_name(MigEndState state);

typedef enum MigVerdict {
  MIG_VERDICT_WAIT,      /* still on the way, or an end does not answer: look again */
  MIG_VERDICT_SUCCEEDED, /* runs at the target, not at the source */
  MIG_VERDICT_AT_SOURCE, /* runs at the source, not at the target: failed or aborted, guest alive */
  MIG_VERDICT_RECOVER,   /* post-copy cut: to be resumed */
  MIG_VERDICT_GONE,      /* stopped at both ends: the guest powered off or was destroyed */
  MIG_VERDICT_LEFT,      /* at neither end, and nobody watched it go: it was shut down, or has moved on */
  MIG_VERDICT_SPLIT,     /* both ends say that it runs: never by our doing; shout, touch nothing */
  MIG_VERDICT_COUNT
} MigVerdict;

const char *mig_verdict_name(MigVerdict verdict);

/* Who brings it further while no verdict stands. */
typedef enum MigAwaits {
  MIG_AWAITS_NOBODY,   /* a verdict stands */
  MIG_AWAITS_SOURCE,   /* no answer from the source's libvirtd */
  MIG_AWAITS_TARGET,   /* none from the target's */
  MIG_AWAITS_LIBVIRT,  /* the states are on their way to others, by what libvirt or QEMU does next */
  MIG_AWAITS_AGENT,    /* one of the actions of settle.h */
  MIG_AWAITS_OPERATOR, /* nobody can know what is right but who knows the guest: the agent touches nothing */
  MIG_AWAITS_COUNT
} MigAwaits;

const char *mig_awaits_name(MigAwaits awaits);

/* What the two ends say, the source asked first. All zero: neither has answered. */
typedef struct MigVerdictInput {
  MigEndState source;
  MigEndState target;
  bool job_active;      /* libvirt at the source still has a migration job on the domain */
  bool completed_event; /* libvirt said that the migration was completed */
  bool never_ran_there; /* known: the guest did not run at the target. Settle.c says what proves it */
  bool ended;       /* known: the guest was shut down, was destroyed or crashed, at one end or the other */
  bool told_it_ran; /* somebody who knows says that the guest ran at the target */
} MigVerdictInput;

typedef struct MigVerdictAnswer {
  MigVerdict verdict;
  MigAwaits awaits; /* NOBODY with all verdicts but WAIT and RECOVER */
  const char *why;  /* static sentence */
} MigVerdictAnswer;

/* Answers for every combination; never NULL. Ask the source first, then the target: the other way round a guest
 * that moves in between is missed at both. */
const MigVerdictAnswer *mig_verdict_answer(const MigVerdictInput *input);

/* The same in short. ret_why may be NULL. */
MigVerdict mig_verdict(const MigVerdictInput *input, const char **ret_why);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a migration, from what both ends report. Unknown is not failed. */
#pragma once

#include "libmigrate/core/types.h"

/* What one end reports about the domain. */
typedef enum MigEndState {
  MIG_END_UNKNOWN,  /* no answer */
  MIG_END_ABSENT,   /* not defined there */
  MIG_END_INACTIVE, /* defined, shut off */
  MIG_END_RUNNING,
  MIG_END_PAUSED,           /* by its owner, or after I/O errors: the guest is here and not migrating */
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
  MIG_VERDICT_WAIT,      /* still migrating, or an end does not answer: look again */
  MIG_VERDICT_SUCCEEDED, /* runs at the target, not at the source */
  MIG_VERDICT_AT_SOURCE, /* runs at the source, not at the target: failed or aborted, guest alive */
  MIG_VERDICT_RECOVER,   /* post-copy was interrupted: resume it */
  MIG_VERDICT_GONE,      /* stopped at both ends: the guest powered off or was destroyed */
  MIG_VERDICT_LEFT,      /* at neither end, and nobody saw it go: it was shut down, or has moved on */
  MIG_VERDICT_SPLIT, /* both ends say that it runs: never the agent's doing; raise the alarm, touch nothing */
  MIG_VERDICT_COUNT
} MigVerdict;

const char *mig_verdict_name(MigVerdict verdict);

/* Who has to act next while there is no verdict. */
typedef enum MigAwaits {
  MIG_AWAITS_NOBODY,   /* there is a verdict */
  MIG_AWAITS_SOURCE,   /* no answer from the source's libvirtd */
  MIG_AWAITS_TARGET,   /* no answer from the target's libvirtd */
  MIG_AWAITS_LIBVIRT,  /* the states are transient: libvirt or QEMU will change them */
  MIG_AWAITS_AGENT,    /* one of the actions of settle.h */
  MIG_AWAITS_OPERATOR, /* only someone who knows the guest can decide; the agent touches nothing */
  MIG_AWAITS_COUNT
} MigAwaits;

const char *mig_awaits_name(MigAwaits awaits);

/* What the two ends say, the source asked first. All zero: neither has answered. */
typedef struct MigVerdictInput {
  MigEndState source;
  MigEndState target;
  bool job_active;      /* libvirt at the source still has a migration job on the domain */
  bool completed_event; /* libvirt reported that the migration completed */
  bool never_ran_there; /* known: the guest did not run at the target; settle.c says what proves it */
  bool ended;           /* known: the guest was shut down, destroyed or crashed, at either end */
  bool told_it_ran;     /* a caller vouches that the guest ran at the target */
} MigVerdictInput;

typedef struct MigVerdictAnswer {
  MigVerdict verdict;
  MigAwaits awaits; /* NOBODY with all verdicts but WAIT and RECOVER */
  const char *why;  /* static, a sentence without its full stop */
} MigVerdictAnswer;

/* Answers for every combination; never NULL. Ask the source first, then the target: in the other order, a guest that
 * migrates in between is missed at both. */
const MigVerdictAnswer *mig_verdict_answer(const MigVerdictInput *input);

/* Just the verdict. ret_why may be NULL. */
MigVerdict mig_verdict(const MigVerdictInput *input, const char **ret_why);

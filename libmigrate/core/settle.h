/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done next about a move whose outcome is not known yet, and what may be done to a domain meanwhile. */
#pragma once

#include "libmigrate/core/verdict.h"

/* How far two looks must lie apart that are to confirm each other: longer than a libvirtd that hung takes to work off
 * what its clients had asked of it. */
#define MIG_SETTLE_SECOND_LOOK_MS 1000

/* How long a pause may still come that was asked for, and not answered: libvirt's calls wait 30 s for each other. */
#define MIG_SETTLE_LATE_PAUSE_MS 35000

/* How long a state that libvirt should bring further may last before an operator is called: keepalive (30 s), a restart of
 * libvirtd, and time to spare. */
#define MIG_SETTLE_PATIENCE_MS 120000

/* All that may ever be done to a domain beside the migration itself. Nothing destroys one. */
typedef enum MigTouch {
  MIG_TOUCH_NONE,
  MIG_TOUCH_RESUME_POST_COPY, /* the migration's call again, to resume a cut post-copy */
  MIG_TOUCH_RESUME_SOURCE,    /* a guest that a failed migration left stopped */
  MIG_TOUCH_UNDEFINE_TARGET,  /* the definition that a failed migration left there */
  MIG_TOUCH_UNDEFINE_SOURCE,  /* the definition that a migration was to take away, and did not */
  MIG_TOUCH_COUNT
} MigTouch;

const char *mig_touch_name(MigTouch touch);

/* What an action rests on. Each is a set bit only where it is *known*. */
typedef enum MigEvidence {
  MIG_EVIDENCE_NO_JOB = 1 << 0, /* libvirt at the source has no migration job */
  MIG_EVIDENCE_SOURCE_STOPPED =
      1 << 1,                         /* its copy is stopped by the migration, or was by the agent, for it */
  MIG_EVIDENCE_SOURCE_ALIVE = 1 << 2, /* the guest is there, running or paused: the verdict is AT_SOURCE */
  MIG_EVIDENCE_SOURCE_DEFINED = 1 << 3,  /* its definition is on the source's disk */
  MIG_EVIDENCE_SOURCE_INACTIVE = 1 << 4, /* nothing but a definition is at the source */
  MIG_EVIDENCE_TARGET_NOTHING = 1 << 5,  /* no QEMU at the target, not even one that waits for its memory */
  MIG_EVIDENCE_TARGET_INACTIVE = 1 << 6, /* nothing but a definition is at the target */
  MIG_EVIDENCE_TARGET_ALIVE =
      1 << 7, /* the guest is there with all of its memory: the verdict is SUCCEEDED */
  MIG_EVIDENCE_TARGET_DEFINED = 1 << 8,  /* its definition is on the target's disk */
  MIG_EVIDENCE_NEVER_RAN_THERE = 1 << 9, /* the guest did not run at the target */
  MIG_EVIDENCE_NOT_COMPLETED = 1 << 10,  /* libvirt never said that the migration was completed */
  MIG_EVIDENCE_RAN_BEFORE = 1 << 11,     /* the record: its owner had not paused it before the move */
  MIG_EVIDENCE_DEFINED_BY_US =
      1 << 12, /* libvirt was asked to make one, the guest never was there, and the target
                  was watched from when it had none */
  MIG_EVIDENCE_TO_BE_UNDEFINED = 1 << 13, /* the record: libvirt was asked to take the source's away */
  MIG_EVIDENCE_CUT_POST_COPY = 1 << 14,   /* both ends are in post-copy, and one says that it failed */
  MIG_EVIDENCE_SECOND_LOOK = 1 << 15,     /* all of it was the same MIG_SETTLE_SECOND_LOOK_MS ago */
  MIG_EVIDENCE_WATCHED =
      1
      << 16, /* both ends were watched without a gap since the guest was known not to have run at the target */
  MIG_EVIDENCE_SAME_COPY = 1 << 17, /* this process saw the very copy that was to move at the source, and
                                       what is there is no other one */
} MigEvidence;

#define MIG_EVIDENCE_BITS 18

/* Name of one bit, as logs show it; NULL for none. */
const char *mig_evidence_name(MigEvidence bit);

/* All the evidence without which the action is not taken. */
unsigned mig_touch_needs(MigTouch touch);

/* What the job's record has known since before anything moved. All false: nothing is known, and so no domain is
 * touched. */
typedef struct MigSettleRecord {
  bool ran_before;      /* the source ran: its owner had not paused it */
  bool paused_by_agent; /* the agent paused it later, to let the migration end: it had run until then */
  bool pause_answered;  /* and libvirt said that it did: that is not still on its way */
  bool persist_target; /* libvirt was asked to define it at the target, which it does before it lets it run */
  bool undefine_source;   /* libvirt was asked to remove the source's definition at the end */
  bool target_was_absent; /* the target had no such definition */
  /* What is learnt on the way, and kept: nothing takes it back. */
  bool seen_there; /* the target was seen to have the guest */
  bool completed;  /* libvirt said that the migration was completed */
  /* By a caller, who answers for it: see mig_settle_vouch(). */
  bool told_it_stayed; /* the guest never ran at the target */
  bool told_it_ran;    /* it did */
} MigSettleRecord;

/* Both ends as they answered, the source first. */
typedef struct MigSettleLook {
  uint64_t began_ms, ended_ms; /* monotonic: before the source was asked, after the target answered */
  MigEndState source;
  MigEndState target;
  bool job_active;  /* a migration job at the source */
  bool job_foreign; /* and it is not this migration's: somebody else moves the domain */
  bool
      source_replaced; /* the copy at the source is not the one that was to move: it came back, or was started anew */
  uint64_t
      source_watched_since_ms; /* the connection to the source's libvirtd has not broken since then; 0: there is none */
  uint64_t
      target_watched_since_ms; /* whatever happens at the target has been heard since then; 0: it is not */
  bool target_incoming;        /* the copy there waits for a migration into it */
  bool target_had_guest;       /* it was heard there that the guest ran */
  bool source_ended; /* it was heard, or is told by libvirt, that the guest ended at the source: it was */
  bool target_ended; /* shut down, was destroyed or crashed; the same of the target */
  bool completed;    /* libvirt said so: an event, or the call's success */
  bool call_taken;   /* libvirt is known to have taken up the migration's call: it is not still to begin */
  bool
      call_failed; /* libvirt itself answered the call with a failure: it has done what it does to the source then */
  bool pausing;        /* a pause by the agent was asked for and is not answered yet */
  bool source_defined; /* persistent there */
  bool target_defined; /* persistent there */
  bool
      target_start_failed; /* inactive at the target because its last start, or the migration into it, failed */
} MigSettleLook;

typedef enum MigSettleNext {
  MIG_SETTLE_LOOK,  /* look again after wait_ms */
  MIG_SETTLE_TOUCH, /* take the action, tell mig_settle_note_touched(), look again */
  MIG_SETTLE_DONE   /* the verdict stands */
} MigSettleNext;

typedef struct MigSettleStep {
  MigSettleNext next;
  unsigned wait_ms; /* LOOK: at most so long */
  MigTouch touch;   /* TOUCH; LOOK: the action that is prepared or tried again, or NONE */
  MigVerdict verdict;
  MigAwaits awaits; /* NOBODY once DONE */
  bool under_way;   /* libvirt is at the migration, all is as it should be */
  const char *why;  /* static: what both ends say of it */
  const char *plan; /* static: what is awaited or done next, for an operator; NULL once DONE */
  const char *left; /* static: DONE, and something is left behind that the agent may not remove; or NULL */
} MigSettleStep;

/* Private to settle.c. */
typedef struct MigSettle {
  MigSettleRecord record;
  bool call_taken;    /* once said, it stays; or the job was seen */
  bool given_back;    /* the source was seen to run it without a job, after the call had ended */
  bool copy_seen;     /* by this process: the copy that was to move, at the source */
  uint64_t stayed_ms; /* when it was known last not to have run at the target yet; 0: never */
  uint64_t absent_ms; /* when the target was known to have no definition; 0: never */
  bool looked;        /* there is a last look */
  MigSettleLook last; /* with the source as it counts */
  uint64_t same_since_ms;
  uint64_t source_since_ms; /* the source has answered each look since then */
  unsigned pause_ms;
  MigTouch touched; /* what was tried last, how often in a row, and when it may be again */
  unsigned tries;
  uint64_t again_ms;
} MigSettle;

/* `stayed_ms`: when the caller knew that the guest ran at the source and had never run at the target, as it does when it begins the
 * migration. 0: it does not know, since the migration began before this process. */
void mig_settle_init(MigSettle *settle, const MigSettleRecord *record, uint64_t stayed_ms);

/* What to do after this look. */
void mig_settle_step(MigSettle *settle, const MigSettleLook *look, MigSettleStep *ret_step);

/* The agent has paused the guest for the migration since the record was given, or was refused. As in the record. */
void mig_settle_set_paused(MigSettle *settle, bool paused_by_agent, bool pause_answered);

/* May a caller say so? NULL, or why not: a static sentence. What the agent has seen itself is not talked over. */
const char *mig_settle_refuse_word(const MigSettleRecord *record, bool it_ran);

/* A caller who answers for it says whether the guest ran at the target. */
void mig_settle_set_word(MigSettle *settle, bool told_it_stayed, bool told_it_ran);

/* What the last look has shown that is to be kept, as in the record. */
void mig_settle_get_learnt(const MigSettle *settle, bool *ret_seen_there, bool *ret_completed);

/* The action was taken, or refused. Returns when it may be tried again, as monotonic ms. */
uint64_t mig_settle_note_touched(MigSettle *settle, uint64_t now_ms, MigTouch touch, bool ok);

/* The evidence that the last look gives, as bits of MigEvidence. For tests and messages. */
unsigned mig_settle_evidence(const MigSettle *settle);

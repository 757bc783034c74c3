/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What to do next about a migration whose outcome is not known yet, and what may be done to a domain meanwhile. */
#pragma once

#include "libmigrate/core/verdict.h"

/* How far apart two looks must be to confirm each other: longer than a libvirtd that hung takes to work off its
 * clients' requests. */
#define MIG_SETTLE_SECOND_LOOK_MS 1000

/* How long an unanswered pause may still take effect: libvirt's calls wait up to 30 s for each other. */
#define MIG_SETTLE_LATE_PAUSE_MS 35000

/* How long a transient state may last before an operator is called: keepalive (30 s), a restart of libvirtd, and some
 * margin. */
#define MIG_SETTLE_PATIENCE_MS 120000

/* The only things ever done to a domain besides the migration itself. Nothing destroys one. */
typedef enum MigTouch {
  MIG_TOUCH_NONE,
  MIG_TOUCH_RESUME_POST_COPY, /* call the migration again, to resume an interrupted post-copy */
  MIG_TOUCH_RESUME_SOURCE,    /* resume a guest that a failed migration left stopped */
  MIG_TOUCH_UNDEFINE_TARGET,  /* remove the definition that a failed migration left there */
  MIG_TOUCH_UNDEFINE_SOURCE,  /* remove the definition that the migration should have removed */
  MIG_TOUCH_COUNT
} MigTouch;

const char *mig_touch_name(MigTouch touch);

/* What an action rests on. A bit is set only if the fact is *known*. */
typedef enum MigEvidence {
  MIG_EVIDENCE_NO_JOB = 1 << 0,          /* libvirt at the source has no migration job */
  MIG_EVIDENCE_SOURCE_STOPPED = 1 << 1,  /* its copy was stopped by the migration, or by the agent for it */
  MIG_EVIDENCE_SOURCE_ALIVE = 1 << 2,    /* the guest is there, running or paused: the verdict is AT_SOURCE */
  MIG_EVIDENCE_SOURCE_DEFINED = 1 << 3,  /* its definition is on the source's disk */
  MIG_EVIDENCE_SOURCE_INACTIVE = 1 << 4, /* the source has nothing but a definition */
  MIG_EVIDENCE_TARGET_NOTHING = 1 << 5,  /* no QEMU at the target, not even one waiting for its memory */
  MIG_EVIDENCE_TARGET_INACTIVE = 1 << 6, /* the target has nothing but a definition */
  MIG_EVIDENCE_TARGET_ALIVE =
      1 << 7, /* the guest is there with all of its memory: the verdict is SUCCEEDED */
  MIG_EVIDENCE_TARGET_DEFINED = 1 << 8,   /* its definition is on the target's disk */
  MIG_EVIDENCE_NEVER_RAN_THERE = 1 << 9,  /* the guest did not run at the target */
  MIG_EVIDENCE_NOT_COMPLETED = 1 << 10,   /* libvirt never reported that the migration completed */
  MIG_EVIDENCE_RAN_BEFORE = 1 << 11,      /* the record: its owner had not paused it before the migration */
  MIG_EVIDENCE_DEFINED_BY_US = 1 << 12,   /* requested by us, none before, guest never there, no gap since */
  MIG_EVIDENCE_TO_BE_UNDEFINED = 1 << 13, /* the record: libvirt was asked to remove it at the source */
  MIG_EVIDENCE_CUT_POST_COPY = 1 << 14,   /* both ends are in post-copy, and one says that it failed */
  MIG_EVIDENCE_SECOND_LOOK = 1 << 15,     /* all of it was the same MIG_SETTLE_SECOND_LOOK_MS ago */
  MIG_EVIDENCE_WATCHED = 1 << 16,         /* no gap at either end since it last had not run there */
  MIG_EVIDENCE_SAME_COPY = 1 << 17,       /* this process saw the copy to migrate; it is still that one */
} MigEvidence;

#define MIG_EVIDENCE_BITS 18

/* Name of one bit, as logs show it; NULL for none. */
const char *mig_evidence_name(MigEvidence bit);

/* All the evidence that the action needs. */
unsigned mig_touch_needs(MigTouch touch);

/* What the job's record has known since before any data was sent. All false: nothing is known, so no domain is
 * touched. */
typedef struct MigSettleRecord {
  bool ran_before;        /* the source ran: its owner had not paused it */
  bool paused_by_agent;   /* the agent paused it later to finish the migration; it ran until then */
  bool pause_answered;    /* and libvirt confirmed it: the pause is not still pending */
  bool persist_target;    /* libvirt was asked to define it at the target, which it does before it runs it */
  bool undefine_source;   /* libvirt was asked to remove the source's definition at the end */
  bool target_was_absent; /* the target had no definition of it */
  /* Learned during the migration and kept for good. */
  bool seen_there; /* the target was seen to have the guest */
  bool completed;  /* libvirt reported that the migration completed */
  /* A caller vouches for it: see mig_settle_set_word(). */
  bool told_it_stayed; /* the guest never ran at the target */
  bool told_it_ran;    /* it did */
} MigSettleRecord;

/* The answers of both ends, the source first. */
typedef struct MigSettleLook {
  uint64_t began_ms, ended_ms; /* monotonic: before the source was asked, after the target answered */
  MigEndState source;
  MigEndState target;
  bool job_active;      /* a migration job at the source */
  bool job_foreign;     /* and it is not this migration's: someone else is migrating the domain */
  bool source_replaced; /* the source's copy is not the one to migrate: it came back or was started anew */
  uint64_t source_watched_since_ms; /* connection to its libvirtd unbroken since then; 0: none */
  uint64_t target_watched_since_ms; /* its events received without a gap since then; 0: not */
  bool target_incoming;             /* the copy there waits for an incoming migration */
  bool target_had_guest;            /* an event said that the guest ran there */
  bool source_ended;        /* libvirt reports that the guest was shut down, destroyed or crashed there */
  bool target_ended;        /* likewise at the target */
  bool completed;           /* libvirt reported it: by an event, or the call's success */
  bool call_taken;          /* libvirt is known to have begun the migration's call */
  bool call_failed;         /* libvirt itself failed the call, and so has already restored the source */
  bool pausing;             /* the agent requested a pause, which is not answered yet */
  bool source_defined;      /* persistent there */
  bool target_defined;      /* persistent there */
  bool target_start_failed; /* inactive at the target because its last start or incoming migration failed */
} MigSettleLook;

typedef enum MigSettleNext {
  MIG_SETTLE_LOOK,  /* look again after wait_ms */
  MIG_SETTLE_TOUCH, /* take the action, call mig_settle_note_touched(), look again */
  MIG_SETTLE_DONE   /* the verdict stands */
} MigSettleNext;

typedef struct MigSettleStep {
  MigSettleNext next;
  unsigned wait_ms; /* LOOK: at most this long */
  MigTouch touch;   /* TOUCH; LOOK: the action in preparation or being retried, or NONE */
  MigVerdict verdict;
  MigAwaits awaits; /* NOBODY once DONE */
  bool under_way;   /* libvirt is migrating and all is well */
  const char *why;  /* static: what both ends report */
  const char *plan; /* static: what the job waits for or does next, for an operator; NULL once DONE */
  const char *left; /* static: once DONE, what is left behind that the agent may not remove; or NULL */
} MigSettleStep;

/* Private to settle.c. */
typedef struct MigSettle {
  MigSettleRecord record;
  bool call_taken;    /* sticky; or the job was seen */
  bool given_back;    /* the source was seen running it without a job, after the call had ended */
  bool copy_seen;     /* this process saw the copy to migrate at the source */
  uint64_t stayed_ms; /* when it was last known not to have run at the target; 0: never */
  uint64_t absent_ms; /* when the target was last known to have no definition; 0: never */
  bool looked;        /* there is a last look */
  MigSettleLook last; /* with the source state as it counts, see settle.c */
  uint64_t same_since_ms;
  uint64_t source_since_ms; /* the source has answered every look since then */
  unsigned pause_ms;
  MigTouch touched; /* the last action, how often in a row, and when it may be retried */
  unsigned tries;
  uint64_t again_ms;
} MigSettle;

/* `stayed_ms`: when the caller knew that the guest ran at the source and had never run at the target, which is when
 * it begins the migration. 0: not known, since the migration began before this process. */
void mig_settle_init(MigSettle *settle, const MigSettleRecord *record, uint64_t stayed_ms);

/* What to do after this look. */
void mig_settle_step(MigSettle *settle, const MigSettleLook *look, MigSettleStep *ret_step);

/* Since the record was given, the agent has paused the guest for the migration, or the pause was refused. As in the
 * record. */
void mig_settle_set_paused(MigSettle *settle, bool paused_by_agent, bool pause_answered);

/* May a caller vouch for this? NULL, or why not: a static sentence. Nobody overrules what the agent saw itself. */
const char *mig_settle_refuse_word(const MigSettleRecord *record, bool it_ran);

/* A caller vouches that the guest ran, or did not run, at the target. */
void mig_settle_set_word(MigSettle *settle, bool told_it_stayed, bool told_it_ran);

/* What to keep in the record from the looks so far. */
void mig_settle_get_learnt(const MigSettle *settle, bool *ret_seen_there, bool *ret_completed);

/* The action was taken or refused. Returns when it may be retried, in monotonic ms. */
uint64_t mig_settle_note_touched(MigSettle *settle, uint64_t now_ms, MigTouch touch, bool ok);

/* The evidence from the last look, as bits of MigEvidence. For tests and messages. */
unsigned mig_settle_evidence(const MigSettle *settle);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a migration, as a table over what both ends report. */
#include "libmigrate/core/verdict.h"

#include "libmigrate/core/table.h"

/* Theory of Operation
 *
 * Both ends are asked, *the source first*: the guest goes from source to target and never back by itself. If the source no
 * longer has it, the target, asked later, cannot miss it. The two answers pick a cell of `cells`; a cell names a rule; a
 * rule has an answer for each of four situations:
 *
 *   active     libvirt at the source still has the migration job: nothing is final, unless the domain cannot come back
 *              whatever the job does.
 *   ended      no job, and nobody saw it complete.
 *   never      no job, and the guest is known not to have run at the target.
 *   completed  no job, and libvirt reported that the migration completed.
 *
 * Absence is no evidence. A guest that is at neither end was shut down, or someone has migrated it to a third node. GONE
 * requires knowing that it ended (`ended`): libvirt reported it, at one end or the other. Otherwise the verdict is LEFT,
 * which claims no more than that.
 *
 * An answer is a verdict, or says who has to act next: an end that does not answer, libvirt, the agent by one of the
 * actions of settle.c, or an operator. The verdict itself changes nothing.
 *
 * What the states prove:
 *  - A source that runs without a job has won: libvirt resumes it only after the migration failed or was cancelled. If the
 *    target started the guest all the same (libvirt 9 can lose the reply to Finish and then resumes the source), the target
 *    reports it: SPLIT.
 *  - A source that is paused without a job proves nothing by itself. A libvirtd that is killed between the end of the stream
 *    and Confirm leaves one behind, and the guest may have run, and ended, at the target since. The source's copy would then
 *    be out of date: it must not be resumed unless the guest is known never to have run there.
 *  - A source in post-copy can never go back.
 *  - A target that runs normally has all of the memory. In post-copy it does not, until it says otherwise. A target paused
 *    by its owner has arrived if the source released it: a copy that waits for its memory is paused by the migration. Only
 *    the target's libvirtd ever starts its CPUs, when the source's libvirtd asks it to finish.
 *  - Absent and shut off mean the same here: there is no QEMU. */

static const char *const end_state_names[] = {
    [MIG_END_UNKNOWN] = "unknown",
    [MIG_END_ABSENT] = "absent",
    [MIG_END_INACTIVE] = "inactive",
    [MIG_END_RUNNING] = "running",
    [MIG_END_PAUSED] = "paused",
    [MIG_END_PAUSED_MIGRATION] = "paused_migration",
    [MIG_END_RUNNING_POSTCOPY] = "running_postcopy",
    [MIG_END_PAUSED_POSTCOPY] = "paused_postcopy",
    [MIG_END_RUNNING_POSTCOPY_FAILED] = "running_postcopy_failed",
    [MIG_END_PAUSED_POSTCOPY_FAILED] = "paused_postcopy_failed",
    [MIG_END_CRASHED] = "crashed",
};
TABLE_COVERS(end_state_names, MIG_END_STATE_COUNT);

static const char *const verdict_names[] = {
    [MIG_VERDICT_WAIT] = "WAIT",           [MIG_VERDICT_SUCCEEDED] = "SUCCEEDED",
    [MIG_VERDICT_AT_SOURCE] = "AT_SOURCE", [MIG_VERDICT_RECOVER] = "RECOVER",
    [MIG_VERDICT_GONE] = "GONE",           [MIG_VERDICT_LEFT] = "LEFT",
    [MIG_VERDICT_SPLIT] = "SPLIT",
};
TABLE_COVERS(verdict_names, MIG_VERDICT_COUNT);

static const char *const awaits_names[] = {
    [MIG_AWAITS_NOBODY] = "nobody",   [MIG_AWAITS_SOURCE] = "source", [MIG_AWAITS_TARGET] = "target",
    [MIG_AWAITS_LIBVIRT] = "libvirt", [MIG_AWAITS_AGENT] = "agent",   [MIG_AWAITS_OPERATOR] = "operator",
};
TABLE_COVERS(awaits_names, MIG_AWAITS_COUNT);

typedef enum Rule {
  NONE_, /* 0: a forgotten cell; the test looks for it */
  BOTH_U,
  SRC_U,
  TGT_U,
  HERE,    /* runs at the source, nothing at the target */
  HERE_P,  /* paused by its owner at the source, nothing at the target */
  HERE_M,  /* alive at the source, an incoming copy not started yet at the target */
  TWO,     /* runs at the source, alive at the target */
  TWO_P,   /* paused by its owner at the source, alive at the target */
  TWO_X,   /* …, in post-copy or crashed at the target */
  MOVED,   /* nothing at the source, alive at the target */
  NOBODY,  /* nothing at either */
  CRASH_T, /* nothing at the source, crashed at the target */
  IN_M,    /* nothing at the source, an incoming copy not started yet at the target */
  IN_PC,   /* nothing at the source, post-copy not finished at the target */
  IN_PCF,  /* …, and it failed */
  SW_NO,   /* stopped for the switchover, nothing at the target */
  SW_R,    /* …, running at the target */
  SW_P,    /* …, paused by its owner at the target */
  SW_M,    /* …, and not started at the target */
  SW_PC,   /* …, and in post-copy at the target */
  SW_C,    /* …, and crashed at the target */
  PC_NO,   /* source in post-copy, nothing at the target */
  PC_R,    /* …, running or paused normally at the target */
  PC_M,
  PC_PC,  /* post-copy at both ends */
  PC_CUT, /* post-copy failed at one end or both */
  PC_C,
  PCF_NO, /* source's post-copy failed, nothing at the target */
  PCF_C,
  CR_NO, /* crashed at the source, nothing at the target */
  CR_ON, /* crashed at the source, alive at the target */
  CR_M,
  CR_PC,
  CR_CR,
  LEFT,    /* NOBODY, but unknown whether the guest ended or has moved on */
  PC_LEFT, /* PC_NO, likewise */
  TOLD,    /* stopped at the source, nothing at the target, where it ran */
  SENT_ON, /* IN_M or SW_M, and the guest ran at the target: a later migration stopped it there */
  RULE_COUNT
} Rule;

/* Rows: the source. Columns: the target, in the order of MigEndState:
 * unknown absent inactive running paused paused_migration run_postcopy paused_postcopy run_pc_failed
 * paused_pc_failed crashed
 */
static const unsigned char cells[][MIG_END_STATE_COUNT] = {
    /* clang-format off */
    [MIG_END_UNKNOWN] =                 {BOTH_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U, SRC_U},
    [MIG_END_ABSENT] =                  {TGT_U, NOBODY, NOBODY, MOVED, MOVED, IN_M, IN_PC, IN_PC, IN_PCF, IN_PCF, CRASH_T},
    [MIG_END_INACTIVE] =                {TGT_U, NOBODY, NOBODY, MOVED, MOVED, IN_M, IN_PC, IN_PC, IN_PCF, IN_PCF, CRASH_T},
    [MIG_END_RUNNING] =                 {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED] =                  {TGT_U, HERE_P, HERE_P, TWO_P, TWO_P, HERE_M, TWO_X, TWO_X, TWO_X, TWO_X, TWO_X},
    [MIG_END_PAUSED_MIGRATION] =        {TGT_U, SW_NO, SW_NO, SW_R, SW_P, SW_M, SW_PC, SW_PC, SW_PC, SW_PC, SW_C},
    [MIG_END_RUNNING_POSTCOPY] =        {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED_POSTCOPY] =         {TGT_U, PC_NO, PC_NO, PC_R, PC_R, PC_M, PC_PC, PC_PC, PC_CUT, PC_CUT, PC_C},
    [MIG_END_RUNNING_POSTCOPY_FAILED] = {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED_POSTCOPY_FAILED] =  {TGT_U, PCF_NO, PCF_NO, PC_R, PC_R, PC_M, PC_CUT, PC_CUT, PC_CUT, PC_CUT, PCF_C},
    [MIG_END_CRASHED] =                 {TGT_U, CR_NO, CR_NO, CR_ON, CR_ON, CR_M, CR_PC, CR_PC, CR_PC, CR_PC, CR_CR},
    /* clang-format on */
};
TABLE_COVERS(cells, MIG_END_STATE_COUNT);

typedef enum Situation { ACTIVE, ENDED, NEVER, COMPLETED, SITUATION_COUNT } Situation;

/* clang-format off */
#define STANDS(verdict, why) {MIG_VERDICT_##verdict, MIG_AWAITS_NOBODY, why}
#define WAITS(awaits, why)   {MIG_VERDICT_WAIT, MIG_AWAITS_##awaits, why}
#define RECOVERS(why)        {MIG_VERDICT_RECOVER, MIG_AWAITS_AGENT, why}
#define ON_THE_WAY           WAITS(LIBVIRT, "the migration is still in progress")
#define ALWAYS(...)          {__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__}
#define UNLESS_ACTIVE(...)   {ON_THE_WAY, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__}
/* Whether the guest ran at the target makes no difference: the other end says more. */
#define ENDS(ended, ...)     {ON_THE_WAY, ended, ended, __VA_ARGS__}
/* clang-format on */

static const MigVerdictAnswer answers[][SITUATION_COUNT] = {
    /* clang-format off */
    [NONE_] = ALWAYS(WAITS(OPERATOR, "no rule for this combination: please report it")),
    [BOTH_U] = ALWAYS(WAITS(SOURCE, "neither end answers: nothing is known")),
    [SRC_U] = ALWAYS(WAITS(SOURCE, "the source does not answer: unknown whether it still runs the guest")),
    [TGT_U] = ALWAYS(WAITS(TARGET, "the target does not answer: unknown whether it has the guest")),

    [HERE] = ENDS(STANDS(AT_SOURCE, "the source has the guest and no migration, the target has nothing"),
                  STANDS(AT_SOURCE, "the source has the guest and no migration, the target has nothing, although libvirt "
                                    "reported the migration as completed: the target gave up before it ran the guest")),
    [HERE_P] = {ON_THE_WAY,
                WAITS(OPERATOR, "the guest is paused at the source, the target has nothing, and it is unknown whether the "
                                "guest ran at the target in between: resume it at the source if it did not, otherwise "
                                "destroy it there"),
                STANDS(AT_SOURCE, "the source has the guest, paused, and no migration; the target has nothing"),
                WAITS(OPERATOR, "libvirt reported the migration as completed, but the target has nothing and the source "
                                "holds a paused copy, which may be out of date: resume it only if the guest never ran at "
                                "the target, otherwise destroy it")},
    [HERE_M] = ALWAYS(WAITS(LIBVIRT, "the source has the guest again; the target has not yet removed its stopped copy")),
    /* While there is a job, the two answers may be from before and after the switchover. Without one they are not. */
    [TWO] = {WAITS(LIBVIRT, "both ends report the guest while the migration is in progress: they were asked at different "
                            "moments"),
             STANDS(SPLIT, "both ends have a live copy of the guest: touch neither until you know which one is right"),
             STANDS(SPLIT, "both ends have a live copy of the guest: touch neither until you know which one is right"),
             STANDS(SPLIT, "both ends have a live copy of the guest although the migration completed: touch neither until "
                           "you know which one is right")},
    [TWO_P] = UNLESS_ACTIVE(WAITS(OPERATOR, "the target has the guest, and the source holds a paused copy without a "
                                            "migration: do not resume that copy; destroy it once you know that the "
                                            "target's is right")),
    [TWO_X] = UNLESS_ACTIVE(WAITS(OPERATOR, "the source holds a paused copy of the guest without a migration, and the "
                                            "target's copy crashed or lacks part of its memory: destroy the wrong one")),

    [MOVED] = ENDS(STANDS(SUCCEEDED, "the target has the guest, the source has released it"),
                   STANDS(SUCCEEDED, "the migration completed: the target has the guest, the source has released it")),
    [NOBODY] = ENDS(STANDS(GONE, "the guest is stopped at both ends: it was shut down or destroyed during the migration"),
                    STANDS(GONE, "the guest migrated and has since been stopped at the target")),
    [CRASH_T] = ENDS(STANDS(GONE, "the guest crashed at the target, which keeps the crashed domain; the source has released "
                                  "it"),
                     STANDS(GONE, "the guest migrated and then crashed at the target, which keeps the crashed domain")),
    [IN_M] = ENDS(WAITS(LIBVIRT, "the source no longer has the guest, and the target's copy is stopped by a migration: it "
                                 "never started, or a later migration took the guest on from there"),
                  WAITS(LIBVIRT, "the migration completed; the target has not started the guest yet")),
    [IN_PC] = ENDS(WAITS(LIBVIRT, "the source has released the guest; the target has not finished post-copy yet"),
                   WAITS(LIBVIRT, "the migration completed; the target has not finished post-copy yet")),
    [IN_PCF] = ENDS(WAITS(OPERATOR, "post-copy failed at the target and the source no longer has the guest: memory is "
                                    "missing; destroy it at the target once you have looked at it"),
                    WAITS(LIBVIRT, "the migration completed; the target has not noticed yet")),

    /* libvirt resumes the source of a failed migration before it ends the job. A source that stays stopped without a job
     * was left by a libvirtd that was killed at the wrong moment. */
    [SW_NO] = {ON_THE_WAY,
               WAITS(OPERATOR, "the migration ended, the target has nothing, the guest is left stopped at the source, and it "
                               "is unknown whether it ran at the target in between: resume it at the source if it did not, "
                               "otherwise destroy it there"),
               WAITS(AGENT, "the migration ended before the guest could run at the target, and left it stopped at the "
                            "source"),
               WAITS(OPERATOR, "libvirt reported the migration as completed, but the target has nothing and the source holds "
                               "a stopped copy, which may be out of date: resume it only if the guest never ran at the "
                               "target, otherwise destroy it")},
    [SW_R] = ENDS(STANDS(SUCCEEDED, "the target runs the guest; the source holds a copy stopped by the migration: do not "
                                    "resume that copy"),
                  STANDS(SUCCEEDED, "the migration completed and the target runs the guest; the source holds a copy stopped "
                                    "by the migration: do not resume that copy")),
    [SW_P] = ENDS(WAITS(OPERATOR, "the guest is paused at both ends, by the migration at the source and by someone at the "
                                  "target: resume it at the target if it had arrived there"),
                  STANDS(SUCCEEDED, "the migration completed and the target has the guest, paused; the source holds a copy "
                                    "stopped by the migration: do not resume that copy")),
    [SW_M] = ALWAYS(WAITS(LIBVIRT, "switching over: stopped by the migration at both ends")),
    [SW_PC] = ALWAYS(WAITS(LIBVIRT, "switching over to post-copy: the source does not report it yet")),
    [SW_C] = ENDS(WAITS(OPERATOR, "the guest crashed at the target and is stopped by the migration at the source: destroy "
                                  "both once you have looked at them"),
                  STANDS(GONE, "the guest migrated and then crashed at the target; the source holds a copy stopped by the "
                               "migration: do not resume that copy")),

    /* In post-copy only the target has the latest state of the guest: the source cannot take over. */
    /* With a job, PC_NO would be a failed post-copy. Without one, a libvirtd that was killed as it began took it back. */
    [PC_NO] = {WAITS(LIBVIRT, "the target has nothing any more; the source has not noticed yet"),
               WAITS(OPERATOR, "the source was left in post-copy without a migration, and the target has nothing: if the "
                               "guest never ran there, see whether the source can be resumed, otherwise destroy it"),
               WAITS(OPERATOR, "the source was left in post-copy without a migration, and the guest never ran at the target, "
                               "which has nothing: see whether the source can be resumed, otherwise destroy it"),
               STANDS(GONE, "the guest migrated and has since been stopped at the target; the source's copy cannot run")},
    [PC_R] = {WAITS(LIBVIRT, "post-copy is about to finish: the target has the guest, the source has not released it yet"),
              WAITS(LIBVIRT, "the target has the guest, and the source is still in post-copy"),
              WAITS(LIBVIRT, "the target has the guest, and the source is still in post-copy"),
              STANDS(SUCCEEDED, "the migration completed and the target has the guest; the source's copy cannot run")},
    [PC_M] = ALWAYS(WAITS(LIBVIRT, "the source is in post-copy, and the target has not started yet")),
    [PC_PC] = ALWAYS(WAITS(LIBVIRT, "in post-copy: the guest runs at the target, part of its memory is still at the source")),
    [PC_CUT] = ALWAYS(RECOVERS("post-copy was interrupted: the guest is at the target, part of its memory is still at the "
                               "source; the agent resumes post-copy once the link is back. Destroy neither end")),
    [PC_C] = {WAITS(LIBVIRT, "the guest crashed at the target; the source has not noticed yet"),
              STANDS(GONE, "the guest crashed at the target; the source's copy cannot run"),
              STANDS(GONE, "the guest crashed at the target; the source's copy cannot run"),
              STANDS(GONE, "the guest crashed at the target; the source's copy cannot run")},
    /* Its job stays in case someone resumes it, which nobody can any more. */
    [PCF_NO] = ALWAYS(STANDS(GONE, "the guest ended at the target while post-copy was interrupted; the source's copy cannot "
                                   "run")),
    [PCF_C] = ALWAYS(STANDS(GONE, "the guest crashed at the target while post-copy was interrupted; the source's copy cannot "
                                  "run")),

    [CR_NO] = UNLESS_ACTIVE(STANDS(GONE, "the guest crashed at the source, which keeps the crashed domain; the target has "
                                         "nothing")),
    [CR_ON] = ENDS(WAITS(OPERATOR, "the guest crashed at the source, but the target has it: destroy the wrong one"),
                   STANDS(SUCCEEDED, "the migration completed and the target has the guest; the source keeps a crashed "
                                     "copy")),
    [CR_M] = ALWAYS(WAITS(LIBVIRT, "the guest crashed at the source; the target has not yet removed its copy, which never "
                                   "ran")),
    [CR_PC] = UNLESS_ACTIVE(WAITS(OPERATOR, "the guest crashed at the source, but the target is in post-copy: destroy both "
                                            "once you have looked at them")),
    [CR_CR] = UNLESS_ACTIVE(STANDS(GONE, "the guest crashed, and both ends keep a crashed domain")),

    [LEFT] = ENDS(STANDS(LEFT, "neither end has the guest any more, and libvirt did not report that it ended: it was shut "
                               "down, or someone has since migrated it to another node"),
                  STANDS(LEFT, "the guest migrated to the target and is no longer there: it was shut down, or has since moved "
                               "on to another node")),
    [PC_LEFT] = ENDS(WAITS(OPERATOR, "the source is still in post-copy without a migration, the target has nothing, and it is "
                                     "unknown whether the guest ran there: if it did, destroy the source's copy"),
                     STANDS(LEFT, "the guest migrated to the target and is no longer there: it was shut down, or has since "
                                  "moved on to another node; the source's copy cannot run")),
    [TOLD] = ALWAYS(STANDS(LEFT, "the guest ran at the target and is no longer there; any copy at the source is out of date: "
                                 "do not resume it")),
    /* Its copy at the target continues if that migration fails, and is removed if it succeeds. */
    [SENT_ON] = UNLESS_ACTIVE(WAITS(LIBVIRT, "the guest ran at the target, where a later migration has stopped it: it has "
                                             "moved on from there, or is about to")),
    /* clang-format on */
};
TABLE_COVERS(answers, RULE_COUNT);

const char *mig_end_state_name(MigEndState state) {
  return table_name(end_state_names, MIG_END_STATE_COUNT, (int)state);
}

const char *mig_verdict_name(MigVerdict verdict) {
  return table_name(verdict_names, MIG_VERDICT_COUNT, (int)verdict);
}

const char *mig_awaits_name(MigAwaits awaits) {
  return table_name(awaits_names, MIG_AWAITS_COUNT, (int)awaits);
}

/* What the two states alone do not tell. */
static Rule refine(const MigVerdictInput *input, Rule rule) {
  bool old_copy = rule == HERE_P || rule == SW_NO || rule == PC_NO;

  if (input->job_active)
    return rule;
  if (input->told_it_ran && old_copy)
    return TOLD;
  if (input->told_it_ran && (rule == IN_M || rule == SW_M))
    return SENT_ON;
  if (rule == NOBODY && !input->ended)
    return LEFT;
  if (rule == PC_NO && !input->ended)
    return PC_LEFT;
  return rule;
}

const MigVerdictAnswer *mig_verdict_answer(const MigVerdictInput *input) {
  /* A state that is not in this table counts as unknown. */
  MigEndState source = (unsigned)input->source < MIG_END_STATE_COUNT ? input->source : MIG_END_UNKNOWN;
  MigEndState target = (unsigned)input->target < MIG_END_STATE_COUNT ? input->target : MIG_END_UNKNOWN;
  Situation situation = input->job_active        ? ACTIVE
                        : input->completed_event ? COMPLETED
                        : input->never_ran_there ? NEVER
                                                 : ENDED;

  return &answers[refine(input, (Rule)cells[source][target])][situation];
}

MigVerdict mig_verdict(const MigVerdictInput *input, const char **ret_why) {
  const MigVerdictAnswer *answer = mig_verdict_answer(input);

  if (ret_why)
    *ret_why = answer->why;
  return answer->verdict;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a move as a table over what both ends say. */
#include "libmigrate/core/verdict.h"

#include "libmigrate/core/table.h"

/* Theory of operation
 *
 * Both ends are asked, *the source first*: the guest goes from source to target and never back by itself, so
 * a source that no longer has it, and a target asked after that, cannot both have missed it. The two answers
 * pick a cell of `cells`; a cell names a rule; a rule has one answer for each of three situations:
 *
 *   active     libvirt at the source still has the migration job: nothing is final, except where the domain cannot come
 *              back whatever the job does.
 *   ended      no job, and nobody saw it complete.
 *   completed  no job, and libvirt said that the migration was completed.
 *
 * The verdict moves nothing. Where it says that a guest is stopped although it could run, that is for an
 * operator (or for a later step with evidence of its own) to act on; a wrong guess here would be two running
 * copies.
 *
 * What the states prove:
 *  - A source that runs without a job has won: QEMU lets it run only if the migration failed or was
 * cancelled, and its stream, without which the target's copy cannot start, is closed by then.
 *  - A source paused by the migration, or in post-copy, proves nothing on its own.
 *  - A target that runs normally has all of the memory. In post-copy it has not, until it says otherwise. A
 * target paused by its owner has arrived if the source let go of it: one that waits for its memory is paused
 * by the migration.
 *  - Absent and shut off are the same here: there is no QEMU. */

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
    [MIG_VERDICT_GONE] = "GONE",           [MIG_VERDICT_SPLIT] = "SPLIT",
};
TABLE_COVERS(verdict_names, MIG_VERDICT_COUNT);

typedef enum Rule {
  NONE_, /* 0: a cell that was forgotten; the test looks for it */
  BOTH_U,
  SRC_U,
  TGT_U,
  HERE,    /* alive at the source, nothing at the target */
  HERE_M,  /* …, an incoming copy that has not started at the target */
  TWO,     /* alive at both */
  MOVED,   /* nothing at the source, alive at the target */
  NOBODY,  /* nothing at either */
  CRASH_T, /* nothing at the source, crashed at the target */
  IN_M,    /* nothing at the source, an incoming copy that has not started */
  IN_PC,   /* nothing at the source, post-copy not ended at the target */
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
  PC_CUT, /* post-copy failed at one end at least */
  PC_C,
  PCF_NO, /* source's post-copy failed, nothing at the target */
  PCF_C,
  CR_NO, /* crashed at the source, nothing at the target */
  CR_ON, /* crashed at the source, alive at the target */
  CR_M,
  CR_PC,
  CR_CR,
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
    [MIG_END_PAUSED] =                  {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED_MIGRATION] =        {TGT_U, SW_NO, SW_NO, SW_R, SW_P, SW_M, SW_PC, SW_PC, SW_PC, SW_PC, SW_C},
    [MIG_END_RUNNING_POSTCOPY] =        {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED_POSTCOPY] =         {TGT_U, PC_NO, PC_NO, PC_R, PC_R, PC_M, PC_PC, PC_PC, PC_CUT, PC_CUT, PC_C},
    [MIG_END_RUNNING_POSTCOPY_FAILED] = {TGT_U, HERE, HERE, TWO, TWO, HERE_M, TWO, TWO, TWO, TWO, TWO},
    [MIG_END_PAUSED_POSTCOPY_FAILED] =  {TGT_U, PCF_NO, PCF_NO, PC_R, PC_R, PC_M, PC_CUT, PC_CUT, PC_CUT, PC_CUT, PCF_C},
    [MIG_END_CRASHED] =                 {TGT_U, CR_NO, CR_NO, CR_ON, CR_ON, CR_M, CR_PC, CR_PC, CR_PC, CR_PC, CR_CR},
    /* clang-format on */
};
TABLE_COVERS(cells, MIG_END_STATE_COUNT);

typedef enum Situation { ACTIVE, ENDED, COMPLETED, SITUATION_COUNT } Situation;

typedef struct Answer {
  MigVerdict verdict;
  const char *why;
} Answer;

#define WAIT      MIG_VERDICT_WAIT
#define SUCCEEDED MIG_VERDICT_SUCCEEDED
#define AT_SOURCE MIG_VERDICT_AT_SOURCE
#define RECOVER   MIG_VERDICT_RECOVER
#define GONE      MIG_VERDICT_GONE
#define SPLIT     MIG_VERDICT_SPLIT
#define ALWAYS(v, why)                                                                                       \
  { {v, why}, {v, why}, {v, why}, }
#define ON_THE_WAY                                                                                           \
  { WAIT, "the migration is still under way" }

static const Answer answers[][SITUATION_COUNT] = {
    [NONE_] = ALWAYS(WAIT, "no rule for this combination: please report it"),
    [BOTH_U] = ALWAYS(WAIT, "neither end answers: nothing is known"),
    [SRC_U] = ALWAYS(WAIT, "the source does not answer: whether it still runs the guest is not known"),
    [TGT_U] = ALWAYS(WAIT, "the target does not answer: whether it has the guest is not known"),

    [HERE] = {ON_THE_WAY,
              {AT_SOURCE, "the source has the guest and no migration, the target has nothing"},
              {AT_SOURCE, "the source has the guest and no migration, the target has nothing, although the "
                          "migration was said to be completed: the target gave it up before it ran there"}},
    [HERE_M] = {ON_THE_WAY,
                {WAIT,
                 "the source has the guest again; the target has not yet removed its copy, which never ran"},
                {WAIT,
                 "the source has the guest again; the target has not yet removed its copy, which never ran"}},
    /* While a job is there the two answers may be of before and after the switchover. Without one they are
       not. */
    [TWO] = {{WAIT, "both ends have the guest while the migration is under way: asked at different moments"},
             {SPLIT,
              "both ends have a live copy of the guest: touch neither until it is known which one is right"},
             {SPLIT,
              "both ends have a live copy of the guest although the migration was completed: touch neither "
              "until it is known which one is right"}},

    [MOVED] = {ON_THE_WAY,
               {SUCCEEDED, "the target has the guest, the source has let go of it"},
               {SUCCEEDED,
                "the migration was completed: the target has the guest, the source has let go of it"}},
    [NOBODY] = {ON_THE_WAY,
                {GONE,
                 "the guest is stopped at both ends: it was shut down or destroyed while it was moving"},
                {GONE, "the guest moved, and has been stopped at the target since"}},
    [CRASH_T] = {ON_THE_WAY,
                 {GONE,
                  "the guest crashed at the target, which keeps its remains; the source has let go of it"},
                 {GONE, "the guest moved, and crashed at the target, which keeps its remains"}},
    [IN_M] =
        {ON_THE_WAY,
         {WAIT,
          "the source has no guest any more, and the target's copy never started: the target will remove "
          "it if the guest was stopped at the source"},
         {WAIT, "the migration was completed; the target has not started the guest yet"}},
    [IN_PC] = {ON_THE_WAY,
               {WAIT, "the source has let go of the guest; the target has not yet ended its post-copy"},
               {WAIT, "the migration was completed; the target has not yet ended its post-copy"}},
    [IN_PCF] =
        {ON_THE_WAY,
         {WAIT, "post-copy failed at the target and the source has no guest any more: if the target does not "
                "end it by itself, memory is missing; destroy nothing before an operator has looked"},
         {WAIT, "the migration was completed; the target has not yet noticed"}},

    /* libvirt resumes a source whose migration failed before it ends the job; one that stays paused without a
     * job was left by a restart of libvirtd at the wrong moment. */
    [SW_NO] = {ON_THE_WAY,
               {AT_SOURCE,
                "the migration ended, the target has nothing, and the guest is left paused at the source: "
                "resume it there, if it did not run at the target and was stopped there"},
               {WAIT,
                "the migration was said to be completed, yet the target has nothing and the source holds a "
                "paused copy: it may be out of date; an operator must look before it is resumed"}},
    [SW_R] = {ON_THE_WAY,
              {SUCCEEDED,
               "the target runs the guest; the source holds a copy stopped by the migration, which must "
               "not be resumed"},
              {SUCCEEDED,
               "the migration was completed and the target runs the guest; the source holds a copy "
               "stopped by the migration, which must not be resumed"}},
    [SW_P] = {ON_THE_WAY,
              {WAIT,
               "the guest is paused at both ends: by the migration at the source, by somebody at the target"},
              {SUCCEEDED,
               "the migration was completed and the target has the guest, paused; the source holds a "
               "copy stopped by the migration, which must not be resumed"}},
    [SW_M] = ALWAYS(WAIT, "switching over: stopped by the migration at both ends"),
    [SW_PC] = ALWAYS(WAIT, "switching over to post-copy: the source does not say so yet"),
    [SW_C] =
        {ON_THE_WAY,
         {WAIT, "crashed at the target, and paused by the migration at the source: an operator must look"},
         {GONE,
          "the guest moved, and crashed at the target; the source holds a copy stopped by the migration, "
          "which must not be resumed"}},

    /* In post-copy the newest state of the guest is at the target alone: the source cannot take over. */
    [PC_NO] =
        {{WAIT, "the target has nothing any more; the source has not yet noticed"},
         {GONE, "the guest ended at the target before all of its memory had arrived; what the source holds "
                "cannot run"},
         {GONE,
          "the guest moved, and has been stopped at the target since; what the source holds cannot run"}},
    [PC_R] = {{WAIT, "post-copy is about to end: the target has the guest, the source has not let go yet"},
              {WAIT, "the target has the guest, and the source is still in post-copy"},
              {SUCCEEDED,
               "the migration was completed and the target has the guest; what the source holds cannot run"}},
    [PC_M] = ALWAYS(WAIT, "the source is in post-copy, and the target has not started yet"),
    [PC_PC] =
        ALWAYS(WAIT, "in post-copy: the guest is at the target, part of its memory still at the source"),
    [PC_CUT] =
        ALWAYS(RECOVER, "post-copy was cut: the guest is at the target, part of its memory still at the "
                        "source; to be resumed once the link is back. Destroy neither end"),
    [PC_C] = {{WAIT, "the guest crashed at the target; the source has not yet noticed"},
              {GONE, "the guest crashed at the target; what the source holds cannot run"},
              {GONE, "the guest crashed at the target; what the source holds cannot run"}},
    /* Its job stays for as long as somebody might resume it, which nobody can any more. */
    [PCF_NO] = ALWAYS(
        GONE, "the guest ended at the target while post-copy was cut; what the source holds cannot run"),
    [PCF_C] = ALWAYS(
        GONE, "the guest crashed at the target while post-copy was cut; what the source holds cannot run"),

    [CR_NO] = {ON_THE_WAY,
               {GONE, "the guest crashed at the source, which keeps its remains; the target has nothing"},
               {GONE, "the guest crashed at the source, which keeps its remains; the target has nothing"}},
    [CR_ON] = {ON_THE_WAY,
               {WAIT, "the guest crashed at the source, yet the target has it: an operator must look"},
               {SUCCEEDED,
                "the migration was completed and the target has the guest; the source keeps the remains "
                "of a crashed copy"}},
    [CR_M] = {ON_THE_WAY,
              {WAIT,
               "the guest crashed at the source; the target has not yet removed its copy, which never ran"},
              {WAIT,
               "the guest crashed at the source; the target has not yet removed its copy, which never ran"}},
    [CR_PC] = ALWAYS(
        WAIT, "the guest crashed at the source, yet the target is in post-copy: an operator must look"),
    [CR_CR] = {ON_THE_WAY,
               {GONE, "the guest crashed, and both ends keep remains of it"},
               {GONE, "the guest crashed, and both ends keep remains of it"}},
};
TABLE_COVERS(answers, RULE_COUNT);

const char *mig_end_state_name(MigEndState state) {
  return table_name(end_state_names, MIG_END_STATE_COUNT, (int)state);
}

const char *mig_verdict_name(MigVerdict verdict) {
  return table_name(verdict_names, MIG_VERDICT_COUNT, (int)verdict);
}

MigVerdict mig_verdict(const MigVerdictInput *input, const char **ret_why) {
  /* A state that this table does not know is one that was not understood. */
  MigEndState source = (unsigned)input->source < MIG_END_STATE_COUNT ? input->source : MIG_END_UNKNOWN;
  MigEndState target = (unsigned)input->target < MIG_END_STATE_COUNT ? input->target : MIG_END_UNKNOWN;
  Situation situation = input->job_active ? ACTIVE : input->completed_event ? COMPLETED : ENDED;
  const Answer *answer = &answers[cells[source][target]][situation];
  if (ret_why)
    *ret_why = answer->why;
  return answer->verdict;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What to do next about a migration whose outcome is not known yet. */
#include "libmigrate/core/settle-private.h"

#include "libmigrate/core/table.h"

/* Theory of Operation
 *
 * Whatever ended the migration's call, the agent asks both ends again and again; each look at them is a step. The step asks
 * verdict.c what the two answers mean, and says what to do: look again, act, or done.
 *
 * *Who is asked, for how long, what is reported.* Always both, the source first. An end that does not answer is asked again
 * for as long as it takes, since nobody else can know, and unknown is not failed; the plan names the end that does not
 * answer. States that libvirt will change by itself are watched; if one lasts longer than MIG_SETTLE_PATIENCE_MS with no job
 * left to change it, an operator is called. Pauses double from PAUSE_MIN_MS to PAUSE_MAX_MS while nothing changes.
 *
 * *A verdict needs a second look*, MIG_SETTLE_SECOND_LOOK_MS after the first and identical to it, because a single look can
 * be wrong about what comes next: a migration requested from a hung libvirtd begins when libvirtd resumes, although its
 * caller is gone; a target that answers late describes another moment than the source. One look is enough where nothing can
 * follow: the source has released the guest and the target runs it; or libvirt has been seen at the migration or has answered
 * its call, so that it cannot still begin, and the source runs the guest. While a pause by the agent is unanswered, a guest
 * that runs at the source proves nothing yet: it might be stopped after the job's end. If nobody is left to take the answer,
 * because the agent was killed or its connection broke, MIG_SETTLE_LATE_PAUSE_MS takes its place.
 *
 * *Actions.* `touches` lists for each action all the evidence it needs. What is not known is not there, so a missing answer,
 * an old record without these facts, or an agent that lost its memory prevents an action and never causes one. No action
 * makes a verdict come true: a source is resumed because it is known to be the only copy and the latest one; the next look
 * then finds it running, and that is the verdict.
 *
 * *Never ran there.* A copy that is stopped at the source is up to date if the guest did not run at the target. Absence is no
 * evidence of that: the guest may have run there and moved on to a third node, whose agent took its definition along; or it
 * may have been shut down, and a later start may have failed. So two conditions must hold.
 *  - Both ends were *watched* without a gap since a moment at which the guest was known not to have run at the target: the
 *    beginning, or a look at which this migration's job still existed and either the source ran the guest or the target's
 *    copy waited for the stream. The target is watched by libvirt's events, on one connection that has not broken; the source
 *    by its connection: after a restart libvirtd may have resumed the guest, and someone may have migrated it elsewhere. An
 *    agent that was away, or a connection that broke, is a gap, and only another such look closes it.
 *  - What is there fits. libvirt writes the target's definition (PERSIST_DEST) before it starts the CPUs there, and starts
 *    them nowhere else. So a target that was to define the domain and does not know it never got that far (if the source is
 *    still persistent; otherwise libvirt ignored the flag), and one whose definition is shut off because its last start
 *    failed gave up before that.
 * Otherwise an operator is asked, or a caller vouches (mig_settle_set_word()): the target's agent, which followed the
 * incoming copy, or a controller that knows where it has sent the guest since. Never against what the agent itself saw.
 *
 * *The same copy.* A guest may come back, or be started anew, while nobody looks. Then the copy at the source is another one,
 * with another libvirt ID, and this migration must not touch it. Nor must it touch a copy that was given back and stopped
 * again since: whoever stopped it had a reason. */

#define PAUSE_MIN_MS     100
#define PAUSE_MAX_MS     2000
#define WATCH_MS         1000
#define TRY_PAUSE_MIN_MS 500
#define TRY_PAUSE_MAX_MS 2000

#define EV(bit) MIG_EVIDENCE_##bit

static const struct {
  const char *name;
  unsigned needs;
  unsigned max_tries; /* 0: as often as it takes. Otherwise report the outcome without it, and what is left */
  unsigned call_after; /* tries until an operator is called; 0: never */
  const char *plan;
} touches[] = {
    [MIG_TOUCH_NONE] = {"none", 0, 0, 0, NULL},
    /* libvirt and QEMU refuse it where it is wrong, so one look is enough. */
    [MIG_TOUCH_RESUME_POST_COPY] = {"resume_post_copy", EV(CUT_POST_COPY), 0, 0,
                                    "resumes post-copy as soon as the link is back, retrying until then"},
    [MIG_TOUCH_RESUME_SOURCE] =
        {"resume_source",
         EV(NO_JOB) | EV(SOURCE_STOPPED) | EV(SAME_COPY) | EV(TARGET_NOTHING) | EV(NEVER_RAN_THERE) |
             EV(NOT_COMPLETED) | EV(RAN_BEFORE) | EV(SECOND_LOOK),
         0, 5, "resumes the guest at the source, where the failed migration left it stopped"},
    /* The source has the definition as well, so nothing is lost. */
    [MIG_TOUCH_UNDEFINE_TARGET] = {"undefine_target",
                                   EV(NO_JOB) | EV(SOURCE_ALIVE) | EV(SAME_COPY) | EV(SOURCE_DEFINED) |
                                       EV(TARGET_INACTIVE) | EV(WATCHED) | EV(DEFINED_BY_US) |
                                       EV(NOT_COMPLETED) | EV(SECOND_LOOK),
                                   3, 0,
                                   "removes the definition that the failed migration left at the target"},
    [MIG_TOUCH_UNDEFINE_SOURCE] = {"undefine_source",
                                   EV(NO_JOB) | EV(SOURCE_INACTIVE) | EV(SAME_COPY) | EV(TARGET_ALIVE) |
                                       EV(TARGET_DEFINED) | EV(TO_BE_UNDEFINED) | EV(SECOND_LOOK),
                                   3, 0, "removes the definition that the migration left at the source"},
};
TABLE_COVERS(touches, MIG_TOUCH_COUNT);

/* What the job waits for, unless something better is known. */
static const char *const plans[] = {
    [MIG_AWAITS_NOBODY] = "checks both ends a second time before it reports the outcome",
    [MIG_AWAITS_SOURCE] = "waits for the source's libvirtd to answer: only both ends together show the "
                          "outcome; touches nothing until then",
    [MIG_AWAITS_TARGET] = "waits for the target's libvirtd to answer: only both ends together show the "
                          "outcome; touches nothing until then",
    [MIG_AWAITS_LIBVIRT] = "watches both ends until libvirt has finished; touches nothing until then",
    [MIG_AWAITS_AGENT] = "checks both ends a second time before it acts",
    [MIG_AWAITS_OPERATOR] =
        "needs an operator: the agent touches nothing, and the job ends by itself once both ends agree.",
};
TABLE_COVERS(plans, MIG_AWAITS_COUNT);

const char *mig_touch_name(MigTouch touch) {
  return (unsigned)touch < MIG_TOUCH_COUNT ? touches[touch].name : NULL;
}

unsigned mig_touch_needs(MigTouch touch) {
  return (unsigned)touch < MIG_TOUCH_COUNT ? touches[touch].needs : 0;
}

void mig_settle_init(MigSettle *settle, const MigSettleRecord *record, uint64_t stayed_ms) {
  *settle = (MigSettle){
      .record = *record,
      .stayed_ms = stayed_ms,
      .absent_ms = record->target_was_absent ? stayed_ms : 0,
      .copy_seen = stayed_ms > 0,
      .pause_ms = PAUSE_MIN_MS,
  };
}

/* --- what is known --- */

static bool is_watched_since(const MigSettle *settle, uint64_t moment_ms) {
  uint64_t source_ms = settle->last.source_watched_since_ms, target_ms = settle->last.target_watched_since_ms;

  return moment_ms > 0 && source_ms > 0 && source_ms <= moment_ms && target_ms > 0 && target_ms <= moment_ms;
}

static bool is_watched(const MigSettle *settle) {
  return is_watched_since(settle, settle->stayed_ms);
}

static bool is_same_copy(const MigSettle *settle) {
  return settle->copy_seen && !settle->last.source_replaced;
}

static bool never_ran_there(const MigSettle *settle) {
  const MigSettleRecord *record = &settle->record;
  const MigSettleLook *look = &settle->last;
  bool never_defined = record->persist_target && look->source_defined && look->target == MIG_END_ABSENT;
  bool gave_up = look->target == MIG_END_INACTIVE && look->target_start_failed;

  return !record->seen_there && !settle->given_back &&
         (record->told_it_stayed || (is_watched(settle) && (never_defined || gave_up)));
}

/* A migration that failed, as libvirt reports, leaves its guest running or stopped by the migration. If the guest is
 * paused in another way, someone has paused it since, and it stays where it is. */
static bool was_given_back(const MigSettle *settle) {
  return !settle->record.seen_there && settle->last.call_failed && settle->last.source == MIG_END_PAUSED;
}

/* The guest ended where it was: at the target if it ran there, otherwise at the source. What ends at the source may
 * be the old copy of a guest that has migrated, unless it is known not to have. */
static bool has_ended(const MigSettle *settle) {
  const MigSettleRecord *record = &settle->record;
  bool was_there = record->seen_there || record->completed;

  return was_there ? settle->last.target_ended : settle->last.source_ended && is_watched(settle);
}

/* A guest that runs at the source under someone else's migration has been given back: this migration is over. */
static bool counts_as_job(const MigSettleLook *look) {
  return look->job_active && !(look->job_foreign && look->source == MIG_END_RUNNING);
}

static MigVerdictInput verdict_input(const MigSettle *settle) {
  const MigSettleLook *look = &settle->last;

  return (MigVerdictInput){.source = look->source,
                           .target = look->target,
                           .job_active = counts_as_job(look),
                           .completed_event = settle->record.completed,
                           .never_ran_there = never_ran_there(settle) || was_given_back(settle),
                           .ended = has_ended(settle),
                           .told_it_ran = settle->record.told_it_ran || settle->record.seen_there};
}

static bool seen_twice(const MigSettle *settle) {
  return settle->last.began_ms >= settle->same_since_ms + MIG_SETTLE_SECOND_LOOK_MS;
}

unsigned mig_settle_evidence(const MigSettle *settle) {
  const MigSettleRecord *record = &settle->record;
  const MigSettleLook *look = &settle->last;
  MigVerdictInput input = verdict_input(settle);
  MigVerdict verdict = settle->looked ? mig_verdict(&input, NULL) : MIG_VERDICT_WAIT;
  unsigned evidence = 0;

  if (!settle->looked)
    return 0;
  if (look->source != MIG_END_UNKNOWN && !look->job_active)
    evidence |= EV(NO_JOB);
  if (look->source == MIG_END_PAUSED_MIGRATION)
    evidence |= EV(SOURCE_STOPPED);
  if (verdict == MIG_VERDICT_AT_SOURCE)
    evidence |= EV(SOURCE_ALIVE);
  if (look->source != MIG_END_UNKNOWN && look->source_defined)
    evidence |= EV(SOURCE_DEFINED);
  if (look->source == MIG_END_INACTIVE)
    evidence |= EV(SOURCE_INACTIVE);
  if (look->target == MIG_END_ABSENT || look->target == MIG_END_INACTIVE)
    evidence |= EV(TARGET_NOTHING);
  if (look->target == MIG_END_INACTIVE)
    evidence |= EV(TARGET_INACTIVE);
  if (verdict == MIG_VERDICT_SUCCEEDED)
    evidence |= EV(TARGET_ALIVE);
  if (look->target != MIG_END_UNKNOWN && look->target_defined)
    evidence |= EV(TARGET_DEFINED);
  if (never_ran_there(settle))
    evidence |= EV(NEVER_RAN_THERE);
  if (!settle->record.completed)
    evidence |= EV(NOT_COMPLETED);
  if (record->ran_before || record->paused_by_agent)
    evidence |= EV(RAN_BEFORE);
  /* Once the guest has been there, others may have defined it. */
  if (!record->seen_there && record->persist_target && record->target_was_absent &&
      is_watched_since(settle, settle->absent_ms))
    evidence |= EV(DEFINED_BY_US);
  if (record->undefine_source)
    evidence |= EV(TO_BE_UNDEFINED);
  if (verdict == MIG_VERDICT_RECOVER)
    evidence |= EV(CUT_POST_COPY);
  if (is_watched(settle))
    evidence |= EV(WATCHED);
  if (is_same_copy(settle))
    evidence |= EV(SAME_COPY);
  if (seen_twice(settle))
    evidence |= EV(SECOND_LOOK);
  return evidence;
}

/* Its CPUs were started there, or it arrived paused by its owner. */
static bool has_guest(MigEndState target) {
  return target != MIG_END_UNKNOWN && target != MIG_END_ABSENT && target != MIG_END_INACTIVE &&
         target != MIG_END_PAUSED_MIGRATION;
}

/* A guest that the agent paused for the migration counts as stopped by the migration. */
static MigEndState source_as_it_counts(const MigSettle *settle, const MigSettleLook *look) {
  if (look->source == MIG_END_PAUSED && settle->record.paused_by_agent)
    return MIG_END_PAUSED_MIGRATION;
  return look->source;
}

static bool says_the_same(const MigSettleLook *a, const MigSettleLook *b) {
  return a->source == b->source && a->target == b->target && a->job_active == b->job_active &&
         a->job_foreign == b->job_foreign && a->source_replaced == b->source_replaced &&
         a->source_defined == b->source_defined && a->target_defined == b->target_defined &&
         a->target_start_failed == b->target_start_failed;
}

/* May a pause by the agent still take effect? Its call may be stuck in a hung libvirtd, or wait there for another
 * call. */
static bool may_be_paused_yet(const MigSettle *settle) {
  const MigSettleRecord *record = &settle->record;
  bool unanswered = record->paused_by_agent && !record->pause_answered;

  return settle->last.pausing ||
         (unanswered && settle->last.began_ms < settle->source_since_ms + MIG_SETTLE_LATE_PAUSE_MS);
}

static bool is_own_job(const MigSettleLook *look) {
  return look->job_active && !look->job_foreign;
}

/* What to remember from a look at the source. */
static void note_source(MigSettle *settle, const MigSettleLook *look) {
  bool alive = look->source != MIG_END_UNKNOWN && look->source != MIG_END_ABSENT &&
               look->source != MIG_END_INACTIVE && !look->source_replaced;

  settle->copy_seen = settle->copy_seen || alive;
  /* A copy at the target that waits for the stream has not run; events report what happens there afterwards. A copy
   * that a later migration left there is stopped as well, but waits for nothing. */
  if (is_own_job(look) && look->target == MIG_END_PAUSED_MIGRATION && look->target_incoming &&
      !look->source_replaced)
    settle->stayed_ms = look->ended_ms;
  if (look->source != MIG_END_RUNNING || look->source_replaced)
    return;
  if (is_own_job(look))
    settle->stayed_ms = look->began_ms > settle->stayed_ms ? look->began_ms : settle->stayed_ms;
  else if (!look->job_active && settle->call_taken && !may_be_paused_yet(settle))
    settle->given_back = true;
}

static void note_look(MigSettle *settle, const MigSettleLook *look) {
  MigSettleLook now = *look;

  now.source = source_as_it_counts(settle, look);
  if (!settle->looked || !says_the_same(&settle->last, &now) ||
      (look->completed && !settle->record.completed)) {
    settle->same_since_ms = look->ended_ms;
    settle->pause_ms = PAUSE_MIN_MS;
  }
  if (!settle->looked || settle->last.source == MIG_END_UNKNOWN)
    settle->source_since_ms = look->ended_ms;
  settle->record.completed = settle->record.completed || look->completed;
  settle->record.seen_there = settle->record.seen_there || look->target_had_guest || has_guest(look->target);
  settle->call_taken = settle->call_taken || look->call_taken || is_own_job(look);
  if (look->target == MIG_END_ABSENT)
    settle->absent_ms = look->began_ms;
  settle->last = now;
  settle->looked = true;
  note_source(settle, look);
  /* Whoever pauses it from now on has their own reasons. One look is not enough: the agent's pause may be stuck in
   * the socket of a hung libvirtd. */
  if (now.source == MIG_END_RUNNING && seen_twice(settle) && !may_be_paused_yet(settle))
    settle->record.paused_by_agent = false;
}

/* --- what follows --- */

/* The action for which all evidence is there, except perhaps the second look. */
static MigTouch find_touch(unsigned evidence) {
  for (int touch = MIG_TOUCH_NONE + 1; touch < MIG_TOUCH_COUNT; touch++)
    if ((touches[touch].needs & ~(evidence | EV(SECOND_LOOK))) == 0)
      return (MigTouch)touch;
  return MIG_TOUCH_NONE;
}

static unsigned until(uint64_t then_ms, uint64_t now_ms) {
  return then_ms > now_ms ? (unsigned)(then_ms - now_ms) : 1;
}

static void look_again(MigSettle *settle, MigSettleStep *step, unsigned at_most_ms) {
  step->next = MIG_SETTLE_LOOK;
  step->wait_ms = at_most_ms < settle->pause_ms ? at_most_ms : settle->pause_ms;
  settle->pause_ms = settle->pause_ms * 2 < PAUSE_MAX_MS ? settle->pause_ms * 2 : PAUSE_MAX_MS;
}

static unsigned until_second_look(const MigSettle *settle) {
  return until(settle->same_since_ms + MIG_SETTLE_SECOND_LOOK_MS, settle->last.ended_ms);
}

static void act(MigSettle *settle, MigTouch touch, unsigned evidence, MigSettleStep *step) {
  bool again = settle->touched == touch;

  step->touch = touch;
  step->awaits = MIG_AWAITS_AGENT;
  step->plan = touches[touch].plan;
  if (touches[touch].needs & ~evidence) {
    step->plan = plans[MIG_AWAITS_AGENT];
    look_again(settle, step, until_second_look(settle));
    return;
  }
  if (again && touches[touch].call_after && settle->tries >= touches[touch].call_after)
    step->awaits = MIG_AWAITS_OPERATOR;
  if (again && settle->last.ended_ms < settle->again_ms)
    look_again(settle, step, until(settle->again_ms, settle->last.ended_ms));
  else
    step->next = MIG_SETTLE_TOUCH;
}

static bool given_up(const MigSettle *settle, MigTouch touch) {
  return settle->touched == touch && touches[touch].max_tries && settle->tries >= touches[touch].max_tries;
}

static bool one_look_will_do(const MigSettle *settle, MigVerdict verdict) {
  const MigSettleLook *look = &settle->last;
  bool let_go = look->source == MIG_END_ABSENT || look->source == MIG_END_INACTIVE;

  return (verdict == MIG_VERDICT_SUCCEEDED && let_go && look->target == MIG_END_RUNNING) ||
         (verdict == MIG_VERDICT_AT_SOURCE && look->source == MIG_END_RUNNING && settle->call_taken &&
          !settle->record.paused_by_agent);
}

static void conclude(MigSettle *settle, unsigned evidence, MigSettleStep *step) {
  MigTouch touch = find_touch(evidence);

  /* An unanswered pause may yet stop a guest that was seen running. */
  bool pausing = may_be_paused_yet(settle) && step->verdict == MIG_VERDICT_AT_SOURCE;

  if (pausing || (!seen_twice(settle) && !one_look_will_do(settle, step->verdict))) {
    step->awaits = MIG_AWAITS_LIBVIRT;
    step->plan = plans[MIG_AWAITS_NOBODY];
    look_again(settle, step, pausing ? PAUSE_MAX_MS : until_second_look(settle));
    return;
  }
  if (touch != MIG_TOUCH_NONE && !given_up(settle, touch)) {
    act(settle, touch, evidence, step);
    return;
  }
  step->next = MIG_SETTLE_DONE;
  step->left = settle_what_is_left(settle, step->verdict, touch);
}

static void wait_on(MigSettle *settle, MigSettleStep *step) {
  bool lasts = settle->last.ended_ms >= settle->same_since_ms + MIG_SETTLE_PATIENCE_MS;

  /* The job of an interrupted post-copy stays and does nothing. */
  bool busy = settle->last.job_active && settle->last.source != MIG_END_PAUSED_POSTCOPY_FAILED;

  step->under_way = busy && is_own_job(&settle->last);
  /* The agent's action lacks evidence. */
  if (step->awaits == MIG_AWAITS_AGENT || (step->awaits == MIG_AWAITS_LIBVIRT && lasts && !busy))
    step->awaits = MIG_AWAITS_OPERATOR;
  step->plan = plans[step->awaits];
  if (step->under_way) {
    step->next = MIG_SETTLE_LOOK;
    step->wait_ms = WATCH_MS;
    settle->pause_ms = PAUSE_MIN_MS;
  } else {
    look_again(settle, step, PAUSE_MAX_MS);
  }
}

void mig_settle_step(MigSettle *settle, const MigSettleLook *look, MigSettleStep *ret_step) {
  const MigVerdictAnswer *answer;
  MigSettleStep step = {0};
  MigVerdictInput input;
  unsigned evidence;
  MigTouch touch;

  note_look(settle, look);
  input = verdict_input(settle);
  answer = mig_verdict_answer(&input);
  evidence = mig_settle_evidence(settle);
  touch = find_touch(evidence);
  step = (MigSettleStep){.verdict = answer->verdict, .awaits = answer->awaits, .why = answer->why};

  if (answer->awaits == MIG_AWAITS_NOBODY)
    conclude(settle, evidence, &step);
  else if (answer->awaits == MIG_AWAITS_AGENT && touch != MIG_TOUCH_NONE)
    act(settle, touch, evidence, &step);
  else
    wait_on(settle, &step);
  *ret_step = step;
}

uint64_t mig_settle_note_touched(MigSettle *settle, uint64_t now_ms, MigTouch touch, bool ok) {
  unsigned pause = TRY_PAUSE_MIN_MS;

  /* A post-copy that was resumed and interrupted again starts over. */
  settle->tries =
      settle->touched != touch || (ok && touch == MIG_TOUCH_RESUME_POST_COPY) ? 1 : settle->tries + 1;
  settle->touched = touch;
  for (unsigned i = 1; i < settle->tries && pause < TRY_PAUSE_MAX_MS; i++)
    pause *= 2;
  settle->again_ms = now_ms + (pause < TRY_PAUSE_MAX_MS ? pause : TRY_PAUSE_MAX_MS);
  /* What was seen before the action no longer counts. */
  settle->same_since_ms = now_ms;
  settle->pause_ms = PAUSE_MIN_MS;
  return settle->again_ms;
}

void mig_settle_set_word(MigSettle *settle, bool told_it_stayed, bool told_it_ran) {
  settle->record.told_it_stayed = told_it_stayed;
  settle->record.told_it_ran = told_it_ran;
}

void mig_settle_get_learnt(const MigSettle *settle, bool *ret_seen_there, bool *ret_completed) {
  *ret_seen_there = settle->record.seen_there;
  *ret_completed = settle->record.completed;
}

void mig_settle_set_paused(MigSettle *settle, bool paused_by_agent, bool pause_answered) {
  settle->record.paused_by_agent = paused_by_agent;
  settle->record.pause_answered = pause_answered;
  settle->source_since_ms = settle->last.ended_ms;
}

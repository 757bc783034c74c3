/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a migration into this node, as a table over what this node sees.
 *
 * Theory of Operation. Only the target's end is asked. That is less than verdict.c has, so the answers claim less:
 * that the guest is here, or that no copy of it is; never where it is instead. No action rests on them.
 *
 * A row is the domain's state here. A column is what was known before: nothing, that a copy arrived (its QEMU waits
 * for the stream), or that the guest ran here.
 *  - libvirt starts the CPUs of an incoming copy only when the source's libvirtd asks it to finish. So a copy that
 *    runs without an incoming job has arrived, and so has one that its owner had paused.
 *  - A copy that came and went without having run was discarded. Only the source knows why.
 *  - Only someone who watched all along knows that it did not run (`watched`: slot.c). A guest that ran here and was
 *    shut down looks the same: its definition is shut off or, if it was transient, absent. After a gap the answer is
 *    GONE and claims no more.
 *  - A domain that runs here and was not seen to arrive may have arrived while nobody looked: libvirt's reason for
 *    the running state says so. With another reason it was started here, and no migration can arrive. After a gap
 *    that is not certain either: a guest that arrived and was paused and resumed has that reason, too. */
#include "libmigrate/core/arrival.h"

#include "libmigrate/core/table.h"

typedef enum Rule {
  NONE_, /* 0: a forgotten cell; the test looks for it */
  UNSEEN,
  AWAITED,
  AWAITED_U,
  STARTING,
  WAITS,
  FINISHING,
  POSTCOPY,
  CUT,
  ARRIVED,
  ARRIVED_P,
  ARRIVED_ON,
  UNNOTICED,
  ENDED,
  GONE,
  STOPPED,
  CRASHED,
  TAKEN,
  TAKEN_U,
  RULE_COUNT
} Rule;

static const MigArrivalAnswer answers[] = {
    [NONE_] = {MIG_ARRIVAL_UNSEEN, "no rule for this combination: please report it"},
    [UNSEEN] = {MIG_ARRIVAL_UNSEEN, "the target's libvirtd does not answer"},
    [AWAITED] = {MIG_ARRIVAL_AWAITED, "no migration of it has arrived yet"},
    [AWAITED_U] = {MIG_ARRIVAL_AWAITED,
                   "it does not run at the target; unknown whether it came and went while nobody watched"},
    [STARTING] = {MIG_ARRIVAL_AWAITED, "it is being started, but not by a migration"},
    [WAITS] = {MIG_ARRIVAL_COMING, "the target's copy waits for the end of the stream"},
    [FINISHING] = {MIG_ARRIVAL_COMING,
                   "the target has its copy, and libvirt is about to finish the migration"},
    [POSTCOPY] = {MIG_ARRIVAL_POST_COPY,
                  "the guest runs at the target, and the rest of its memory is being transferred"},
    [CUT] =
        {MIG_ARRIVAL_CUT,
         "the guest is at the target without all of its memory, and post-copy failed: the source resumes it"},
    [ARRIVED] = {MIG_ARRIVAL_ARRIVED, "the guest runs at the target"},
    [ARRIVED_P] = {MIG_ARRIVAL_ARRIVED, "the guest is at the target, paused by its owner"},
    [ARRIVED_ON] = {MIG_ARRIVAL_ARRIVED, "the guest is at the target, and already migrating to another node"},
    [UNNOTICED] = {MIG_ARRIVAL_ARRIVED,
                   "the guest runs at the target, after a migration that nobody saw arrive"},
    [ENDED] = {MIG_ARRIVAL_ENDED,
               "the incoming copy is gone and never ran: the source ended the migration, or lost it"},
    [GONE] = {MIG_ARRIVAL_GONE,
              "the incoming copy is gone; unknown whether the guest ran at the target while nobody watched"},
    [STOPPED] = {MIG_ARRIVAL_STOPPED, "the guest arrived at the target and no longer runs"},
    [CRASHED] = {MIG_ARRIVAL_STOPPED, "the guest is at the target and has crashed"},
    [TAKEN] = {MIG_ARRIVAL_TAKEN, "it is alive at the target, but did not arrive by migration"},
    [TAKEN_U] =
        {MIG_ARRIVAL_TAKEN,
         "it is alive at the target; unknown whether it arrived while nobody watched or was started there"},
};
TABLE_COVERS(answers, RULE_COUNT);

typedef enum Known { NOTHING, CAME, RAN, KNOWN_COUNT } Known;

static const unsigned char cells[][KNOWN_COUNT] = {
    [MIG_END_UNKNOWN] = {UNSEEN, UNSEEN, UNSEEN},
    [MIG_END_ABSENT] = {AWAITED, ENDED, STOPPED},
    [MIG_END_INACTIVE] = {AWAITED, ENDED, STOPPED},
    [MIG_END_RUNNING] = {TAKEN, ARRIVED, ARRIVED},
    [MIG_END_PAUSED] = {TAKEN, ARRIVED_P, ARRIVED_P},
    [MIG_END_PAUSED_MIGRATION] = {STARTING, WAITS, WAITS},
    [MIG_END_RUNNING_POSTCOPY] = {POSTCOPY, POSTCOPY, POSTCOPY},
    [MIG_END_PAUSED_POSTCOPY] = {TAKEN, POSTCOPY, POSTCOPY},
    [MIG_END_RUNNING_POSTCOPY_FAILED] = {CUT, CUT, CUT},
    [MIG_END_PAUSED_POSTCOPY_FAILED] = {TAKEN, CUT, CUT},
    [MIG_END_CRASHED] = {TAKEN, CRASHED, CRASHED},
};
TABLE_COVERS(cells, MIG_END_STATE_COUNT);

/* Without a watch, less is known. */
static Rule without_watch(Known known, Rule rule) {
  switch (rule) {
  case CRASHED:
    return known == RAN ? CRASHED : TAKEN_U;
  case AWAITED:
    return AWAITED_U;
  case ENDED:
    return GONE;
  case TAKEN:
    return TAKEN_U;
  default:
    return rule;
  }
}

/* What the state alone does not tell. */
static Rule refine(const MigArrivalInput *input, Known known, Rule rule) {
  bool alive = input->state == MIG_END_RUNNING || input->state == MIG_END_PAUSED;
  bool booted = input->booted && input->state == MIG_END_RUNNING;
  /* Whatever arrived before: this domain was started anew. */
  bool other = booted || (input->started && !input->migrated);

  if (input->job_outgoing && input->state != MIG_END_UNKNOWN)
    rule = (known != NOTHING || input->migrated) && !other ? ARRIVED_ON : TAKEN;
  /* An incoming job proves that the copy arrived. */
  if (input->job_incoming && input->state == MIG_END_PAUSED_MIGRATION)
    return WAITS;
  if (input->job_incoming && alive)
    return FINISHING;
  if (other && (alive || input->state == MIG_END_CRASHED))
    return TAKEN;
  if (rule == TAKEN && input->migrated && input->state == MIG_END_RUNNING)
    return UNNOTICED;
  return input->watched ? rule : without_watch(known, rule);
}

const MigArrivalAnswer *mig_arrival_answer(const MigArrivalInput *input) {
  Known known = input->ran ? RAN : input->came ? CAME : NOTHING;
  unsigned state = (unsigned)input->state < MIG_END_STATE_COUNT ? (unsigned)input->state : MIG_END_UNKNOWN;

  return &answers[refine(input, known, (Rule)cells[state][known])];
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a migration into this node, as a table over what this node sees.
 *
 * Theory of Operation. The target's end alone is asked. That is less than verdict.c has, so less is said: that the guest is
 * here, or that no copy of it is; never where it is instead. Nothing is done on it.
 *
 * A row is the domain's state here. A column is what was known before: nothing, that a copy came (its QEMU waits for the
 * stream), or that the guest ran here.
 *  - libvirt starts the CPUs of an incoming copy when the source's libvirtd asks it to finish, and at no other time. So a
 *    copy that runs without an incoming job has arrived, and so has one that its owner had paused.
 *  - A copy that came and is gone without having run was thrown away. Why, only the source knows.
 *  - That it did not run is known only by who watched all along (`watched`: slot.c). A guest that ran here and was turned off
 *    looks the same: its definition is shut off, or, if it was transient, it is absent. After a gap it is gone, and no more
 *    is said.
 *  - A domain that runs here and was not seen to come may have come while nobody looked: libvirt's reason for its running
 *    says so. With another reason it was started here, and no migration can come; after a gap that is not sure either, since
 *    a guest that came and was paused and resumed has that reason, too. */
#include "libmigrate/core/arrival.h"

#include "libmigrate/core/table.h"

static const char *const names[] = {
    [MIG_ARRIVAL_UNSEEN] = "UNSEEN",   [MIG_ARRIVAL_AWAITED] = "AWAITED",
    [MIG_ARRIVAL_COMING] = "COMING",   [MIG_ARRIVAL_POST_COPY] = "POST_COPY",
    [MIG_ARRIVAL_CUT] = "CUT",         [MIG_ARRIVAL_ARRIVED] = "ARRIVED",
    [MIG_ARRIVAL_ENDED] = "ENDED",     [MIG_ARRIVAL_GONE] = "GONE",
    [MIG_ARRIVAL_STOPPED] = "STOPPED", [MIG_ARRIVAL_TAKEN] = "TAKEN",
};
TABLE_COVERS(names, MIG_ARRIVAL_COUNT);

typedef enum Rule {
  NONE_, /* 0: a cell that was forgotten; the test looks for it */
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
    [UNSEEN] = {MIG_ARRIVAL_UNSEEN, "this node's libvirtd does not answer"},
    [AWAITED] = {MIG_ARRIVAL_AWAITED, "no migration of it has come yet"},
    [AWAITED_U] = {MIG_ARRIVAL_AWAITED,
                   "nothing of it runs here; whether it came and went while nobody watched is not known"},
    [STARTING] = {MIG_ARRIVAL_AWAITED, "it is being started, and not by a migration"},
    [WAITS] = {MIG_ARRIVAL_COMING, "its copy waits here for the end of the stream"},
    [FINISHING] = {MIG_ARRIVAL_COMING, "its copy is here, and libvirt is about to end the migration"},
    [POSTCOPY] = {MIG_ARRIVAL_POST_COPY, "the guest runs here, and the rest of its memory is coming"},
    [CUT] = {MIG_ARRIVAL_CUT,
             "the guest is here without all of its memory, and post-copy failed: the source resumes it"},
    [ARRIVED] = {MIG_ARRIVAL_ARRIVED, "the guest runs here"},
    [ARRIVED_P] = {MIG_ARRIVAL_ARRIVED, "the guest is here, paused by its owner"},
    [ARRIVED_ON] = {MIG_ARRIVAL_ARRIVED, "the guest is here, and on its way to another node already"},
    [UNNOTICED] = {MIG_ARRIVAL_ARRIVED, "the guest runs here, by a migration that nobody saw come"},
    [ENDED] =
        {MIG_ARRIVAL_ENDED,
         "the copy that had come is gone, and never ran here: the source ended the migration, or lost it"},
    [GONE] = {MIG_ARRIVAL_GONE,
              "the copy that had come is gone; whether the guest ran here while nobody watched is not known"},
    [STOPPED] = {MIG_ARRIVAL_STOPPED, "the guest came here, and does not run any more"},
    [CRASHED] = {MIG_ARRIVAL_STOPPED, "its guest is here, and crashed"},
    [TAKEN] = {MIG_ARRIVAL_TAKEN, "it is alive here, and did not come by a migration"},
    [TAKEN_U] = {MIG_ARRIVAL_TAKEN,
                 "it is alive here; whether it came while nobody watched, or was started, is not known"},
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

const char *mig_arrival_name(MigArrival arrival) {
  return table_name(names, MIG_ARRIVAL_COUNT, (int)arrival);
}

/* What nobody watched is not known. */
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

/* What the state alone does not say. */
static Rule refine(const MigArrivalInput *input, Known known, Rule rule) {
  bool alive = input->state == MIG_END_RUNNING || input->state == MIG_END_PAUSED;
  bool booted = input->booted && input->state == MIG_END_RUNNING;
  /* Whatever came before: this is another life. */
  bool other = booted || (input->started && !input->migrated);

  if (input->job_outgoing && input->state != MIG_END_UNKNOWN)
    rule = (known != NOTHING || input->migrated) && !other ? ARRIVED_ON : TAKEN;
  /* That it is being migrated into is the proof that it came. */
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

bool mig_arrival_is_final(MigArrival arrival) {
  return arrival >= MIG_ARRIVAL_ARRIVED && arrival < MIG_ARRIVAL_COUNT;
}

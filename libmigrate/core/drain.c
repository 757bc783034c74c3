/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Emptying a node: which guest goes next, and where to.
 *
 * Theory of Operation. Within one priority, short migrations go first. If an operator or the node cuts the drain
 * short, it has then saved the most guests for its time; the first migrations show what the link carries before the
 * long ones are forecast; and a guest that hardly converges holds nobody up. The price is a tail: the longest
 * migration may run alone at the end, which takes longer if a single one cannot fill the link.
 *
 * A guest whose targets have no free place is in nobody's way: the next one that has a target goes. */
#include "libmigrate/core/drain.h"

#include <assert.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

MigDrainFit mig_drain_fit(const MigCheckReport *report) {
  if (report->blockers == 0)
    return MIG_DRAIN_FIT_YES;
  return mig_check_may_wait(report) ? MIG_DRAIN_FIT_NOT_NOW : MIG_DRAIN_FIT_NO;
}

/* --- the order --- */

uint64_t mig_drain_expected_ms(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link,
                               const MigPolicy *policy) {
  MigLinkFacts known = *link;
  MigPlan plan;

  if (known.bandwidth_bytes_per_s == 0)
    known.bandwidth_bytes_per_s = MIG_DRAIN_NOMINAL_BYTES_PER_S;
  if (!probe || probe->curve.n == 0)
    return (uint64_t)((double)memory_bytes * 1000.0 / (double)known.bandwidth_bytes_per_s);
  mig_plan(probe, memory_bytes, &known, policy, &plan);
  if (plan.forecast.best == MIG_WAY_COUNT)
    return MIG_DRAIN_NEVER_MS;
  return (uint64_t)(plan.forecast.ways[plan.forecast.best].total_s * 1000.0);
}

static bool has_room(const MigDrainGuest *guest, const MigDrainTarget *target) {
  return target->free_bytes == UINT64_MAX || target->free_bytes >= guest->memory_bytes;
}

/* Memory may become free there: a guest that is sent anyway waits for that. */
static MigDrainFit fit_now(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t i) {
  return guest->fits[i] == MIG_DRAIN_FIT_YES && !has_room(guest, &targets[i]) ? MIG_DRAIN_FIT_NOT_NOW
                                                                              : guest->fits[i];
}

static bool fits_anywhere(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t n_targets) {
  for (size_t i = 0; i < n_targets; i++)
    if (fit_now(guest, targets, i) == MIG_DRAIN_FIT_YES)
      return true;
  return false;
}

static int compare_numbers(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

/* Below 0: a goes before b. 0: in the given order. */
static int compare(const MigDrainGuest *a, const MigDrainGuest *b, const MigDrainTarget *targets,
                   size_t n_targets) {
  int order = compare_numbers(a->priority, b->priority);

  if (order == 0)
    order = compare_numbers(!fits_anywhere(a, targets, n_targets), !fits_anywhere(b, targets, n_targets));
  if (order == 0)
    order = compare_numbers(a->expected_ms, b->expected_ms);
  return order ? order : compare_numbers(a->memory_bytes, b->memory_bytes);
}

/* --- the target --- */

static bool is_open(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t i, MigDrainFit wanted) {
  return fit_now(guest, targets, i) == wanted && targets[i].places > 0 && !targets[i].held;
}

/* Is the free memory of every target known that this guest may go to now? Otherwise it cannot be compared. */
static bool memory_is_known(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t n_targets,
                            MigDrainFit wanted) {
  for (size_t i = 0; i < n_targets; i++)
    if (is_open(guest, targets, i, wanted) && targets[i].free_bytes == UINT64_MAX)
      return false;
  return true;
}

static bool is_better(const MigDrainTarget *a, const MigDrainTarget *b, bool by_memory) {
  if (by_memory && a->free_bytes != b->free_bytes)
    return a->free_bytes > b->free_bytes;
  return a->sent < b->sent;
}

/* Returns n_targets for none. */
static size_t choose_target(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t n_targets,
                            MigDrainFit wanted) {
  bool by_memory = memory_is_known(guest, targets, n_targets, wanted);
  size_t best = n_targets;

  for (size_t i = 0; i < n_targets; i++)
    if (is_open(guest, targets, i, wanted) &&
        (best == n_targets || is_better(&targets[i], &targets[best], by_memory)))
      best = i;
  return best;
}

static size_t choose_any_target(const MigDrainGuest *guest, const MigDrainTarget *targets, size_t n_targets) {
  size_t target = choose_target(guest, targets, n_targets, MIG_DRAIN_FIT_YES);

  /* If nothing better is left, let the queue wait for what waiting may clear. */
  if (target == n_targets && !fits_anywhere(guest, targets, n_targets))
    target = choose_target(guest, targets, n_targets, MIG_DRAIN_FIT_NOT_NOW);
  return target;
}

bool mig_drain_choose(const MigDrainGuest *guests, size_t n_guests, const MigDrainTarget *targets,
                      size_t n_targets, MigDrainChoice *ret_choice) {
  MigDrainChoice best = {n_guests, n_targets};

  for (size_t i = 0; i < n_guests; i++) {
    size_t target;

    if (!guests[i].waits ||
        (best.guest < n_guests && compare(&guests[i], &guests[best.guest], targets, n_targets) >= 0))
      continue;
    target = choose_any_target(&guests[i], targets, n_targets);
    if (target < n_targets)
      best = (MigDrainChoice){i, target};
  }
  if (best.guest == n_guests)
    return false;
  *ret_choice = best;
  return true;
}

bool mig_drain_is_stuck(const MigDrainFit *fits, size_t n_targets) {
  for (size_t i = 0; i < n_targets; i++)
    if (fits[i] != MIG_DRAIN_FIT_NO)
      return false;
  return true;
}

/* --- after a migration --- */

typedef struct CauseRow {
  MigDrainNext next;
  bool gives_up_target;
} CauseRow;

#define AGAIN     MIG_DRAIN_NEXT_AGAIN
#define ELSEWHERE MIG_DRAIN_NEXT_ELSEWHERE
#define STAY      MIG_DRAIN_NEXT_STAY
#define GONE      MIG_DRAIN_NEXT_GONE

static const CauseRow rows[] = {
    [MIG_CAUSE_NONE] = {STAY, false},
    /* someone did not want it */
    [MIG_CAUSE_USER_ABORT] = {STAY, false},
    [MIG_CAUSE_CANCELLED_ELSEWHERE] = {STAY, false},
    [MIG_CAUSE_HOST_SHUTDOWN] = {STAY, false},
    [MIG_CAUSE_NOT_WATCHED] = {STAY, false},
    /* the guest and its goals: another target would take the same time to end the same way */
    [MIG_CAUSE_DEADLINE] = {STAY, false},
    [MIG_CAUSE_NOT_CONVERGING] = {STAY, false},
    [MIG_CAUSE_GUEST_STOPPED] = {GONE, false},
    [MIG_CAUSE_OUTCOME_UNKNOWN] = {GONE, false},
    [MIG_CAUSE_DOMAIN_NOT_RUNNING] = {GONE, false},
    [MIG_CAUSE_DOMAIN_BUSY] = {STAY, false},
    [MIG_CAUSE_POST_COPY_FAILED] = {STAY, false},
    /* this node, for a while */
    [MIG_CAUSE_SOURCE_UNREACHABLE] = {AGAIN, false},
    [MIG_CAUSE_PENDING_TIMEOUT] = {AGAIN, false},
    /* the target, or the link to it */
    [MIG_CAUSE_NO_PROGRESS] = {ELSEWHERE, false},
    [MIG_CAUSE_LINK_STALLED] = {ELSEWHERE, false},
    [MIG_CAUSE_LINK_LOST] = {ELSEWHERE, false},
    [MIG_CAUSE_PREPARE_TIMEOUT] = {ELSEWHERE, false},
    [MIG_CAUSE_TARGET_UNREACHABLE] = {ELSEWHERE, true},
    [MIG_CAUSE_SAME_HOST] = {ELSEWHERE, true},
    [MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET] = {ELSEWHERE, false},
    [MIG_CAUSE_REFUSED] = {ELSEWHERE, false},
    [MIG_CAUSE_POLICY_CONFLICT] = {ELSEWHERE, false},
    [MIG_CAUSE_LIBVIRT_ERROR] = {ELSEWHERE, false},
    [MIG_CAUSE_INTERNAL] = {ELSEWHERE, false},
};
static_assert(ARRAY_SIZE(rows) == MIG_CAUSE_COUNT, "a row for each cause");

static const CauseRow *row_of(MigCause cause) {
  return &rows[(unsigned)cause < MIG_CAUSE_COUNT ? cause : MIG_CAUSE_NONE];
}

MigDrainNext mig_drain_next(MigPhase phase, MigCause cause, bool runs_here, unsigned tries) {
  MigDrainNext next = row_of(cause)->next;

  if (phase == MIG_PHASE_SUCCEEDED)
    return MIG_DRAIN_NEXT_MOVED;
  if (next == MIG_DRAIN_NEXT_GONE)
    return next;
  if (!runs_here || (next == MIG_DRAIN_NEXT_AGAIN && tries >= MIG_DRAIN_TRIES_MAX))
    return MIG_DRAIN_NEXT_STAY;
  return next;
}

bool mig_drain_gives_up_target(MigCause cause) {
  return row_of(cause)->gives_up_target;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One bandwidth for all running migrations.
 *
 * Theory of Operation. Dividing is one thing, getting there another. `wanted` is the division: the highest level that
 * all can have, each between its floor (its need, at least 1 MiB/s) and its ceiling. `given` is the most that a
 * migration may be using right now, and only that counts against the cap: a lower limit counts once libvirt has
 * accepted it, a higher one as soon as it is requested. So a newcomer waits until the others have been lowered, and
 * the sum never exceeds the cap.
 *
 * Everything is counted in whole MiB/s, since libvirt keeps limits that way and rounds up. */
#include "libmigrate/core/shares.h"

#include "libmigrate/core/types.h"

static uint64_t min_of(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t max_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* The way libvirt rounds. */
static uint64_t round_up(uint64_t bytes) {
  return (bytes + MIG_MIB_BYTES - 1) / MIG_MIB_BYTES * MIG_MIB_BYTES;
}

static uint64_t round_down(uint64_t bytes) {
  return bytes / MIG_MIB_BYTES * MIG_MIB_BYTES;
}

static uint64_t cap_of(const MigShares *shares) {
  return max_of(round_down(shares->cap), MIG_MIB_BYTES);
}

/* The least that it can be given, and the step size. */
static uint64_t unit_of(const MigShare *share) {
  return max_of(share->streams, 1) * MIG_MIB_BYTES;
}

static uint64_t in_units(const MigShare *share, uint64_t bytes) {
  return bytes / unit_of(share) * unit_of(share);
}

/* The most for one that cannot be changed later: its part if all places were taken. */
static uint64_t fixed_part(const MigShares *shares) {
  return cap_of(shares) / max_of(shares->at_most, 1);
}

static uint64_t ceiling_of(const MigShares *shares, const MigShare *share) {
  uint64_t most = share->fixed ? fixed_part(shares) : cap_of(shares);

  if (share->ceiling > 0)
    most = min_of(round_up(share->ceiling), most);
  return max_of(in_units(share, most), unit_of(share));
}

static bool is_settled(const MigShare *share) {
  return share->fixed && share->given > 0;
}

/* Whose needs count in a division. */
typedef enum Needs { NEEDS_OF_NONE, NEEDS_OF_BEGUN, NEEDS_OF_ALL } Needs;

static uint64_t floor_of(const MigShares *shares, const MigShare *share, Needs needs) {
  bool counts = needs == NEEDS_OF_ALL || (needs == NEEDS_OF_BEGUN && share->given > 0);
  uint64_t need = counts ? share->need + unit_of(share) - 1 : 0;

  return min_of(max_of(in_units(share, need), unit_of(share)), ceiling_of(shares, share));
}

static uint64_t at_level(const MigShares *shares, const MigShare *share, uint64_t level, Needs needs) {
  if (is_settled(share))
    return share->given;
  return min_of(max_of(in_units(share, level), floor_of(shares, share, needs)), ceiling_of(shares, share));
}

static uint64_t sum_at_level(const MigShares *shares, uint64_t level, Needs needs) {
  uint64_t sum = 0;

  for (size_t i = 0; i < shares->n; i++)
    sum += at_level(shares, shares->members[i], level, needs);
  return sum;
}

static Needs needs_that_fit(const MigShares *shares) {
  Needs needs = NEEDS_OF_ALL;

  while (needs != NEEDS_OF_NONE && sum_at_level(shares, 0, needs) > cap_of(shares))
    needs--;
  return needs;
}

void mig_shares_divide(MigShares *shares) {
  uint64_t cap = cap_of(shares), low = 0, high = cap / MIG_MIB_BYTES;
  Needs needs = needs_that_fit(shares);
  uint64_t level, left;

  /* The highest level at which all fit; with too many members even the lowest may be too high. */
  while (low < high) {
    uint64_t middle = low + (high - low + 1) / 2;

    if (sum_at_level(shares, middle * MIG_MIB_BYTES, needs) <= cap)
      low = middle;
    else
      high = middle - 1;
  }
  level = low * MIG_MIB_BYTES;
  left = sum_at_level(shares, level, needs);
  left = left < cap ? cap - left : 0;
  for (size_t i = 0; i < shares->n; i++) {
    MigShare *share = shares->members[i];
    uint64_t more = at_level(shares, share, level + MIG_MIB_BYTES, needs);

    share->wanted = at_level(shares, share, level, needs);
    /* The rest does not raise everybody to the next level: the first ones get it. */
    if (more > share->wanted && more - share->wanted <= left) {
      left -= more - share->wanted;
      share->wanted = more;
    }
  }
}

void mig_share_adopt(const MigShares *shares, MigShare *share, uint64_t begun_with) {
  share->given = share->fixed && begun_with > 0 ? begun_with : cap_of(shares);
  share->unsure = true;
}

uint64_t mig_shares_given(const MigShares *shares) {
  uint64_t sum = 0;

  for (size_t i = 0; i < shares->n; i++)
    sum += shares->members[i]->given;
  return sum;
}

static bool may_set(const MigShare *share) {
  return share->given > 0 && !share->fixed && share->steerable && share->asked == 0;
}

static MigShareStep set_step(MigShare *share, uint64_t value) {
  share->asked = value;
  share->given = max_of(share->given, value);
  return (MigShareStep){MIG_SHARE_STEP_SET, share, value};
}

static MigShare *find_to_lower(const MigShares *shares) {
  for (size_t i = 0; i < shares->n; i++)
    if (may_set(shares->members[i]) && shares->members[i]->wanted < shares->members[i]->given)
      return shares->members[i];
  return NULL;
}

/* The first member that waits to begin. */
static MigShare *find_newcomer(const MigShares *shares) {
  for (size_t i = 0; i < shares->n; i++)
    if (shares->members[i]->given == 0)
      return shares->members[i];
  return NULL;
}

static MigShare *find_to_raise(const MigShares *shares, uint64_t free) {
  for (size_t i = 0; i < shares->n; i++) {
    MigShare *share = shares->members[i];
    bool may_rise = share->wanted > share->given && free >= unit_of(share);

    if (may_set(share) && (may_rise || share->unsure))
      return share;
  }
  return NULL;
}

/* The least that is worth starting with. */
static uint64_t least_of(const MigShares *shares, const MigShare *share) {
  return max_of(round_up(shares->min), unit_of(share));
}

static MigShareStep begin_step(const MigShares *shares, MigShare *share, uint64_t free) {
  uint64_t value = min_of(share->wanted, in_units(share, free));
  uint64_t enough = share->patient ? share->wanted : min_of(least_of(shares, share), share->wanted);

  if (value == 0 || value < enough)
    return (MigShareStep){.kind = MIG_SHARE_STEP_NONE};
  share->given = value;
  return (MigShareStep){MIG_SHARE_STEP_BEGIN, share, value};
}

MigShareStep mig_shares_next(MigShares *shares) {
  uint64_t cap = cap_of(shares), used = mig_shares_given(shares), free = used < cap ? cap - used : 0;
  MigShare *share = find_to_lower(shares);

  if (share)
    return set_step(share, share->wanted);
  /* Nobody gets what a newcomer is waiting for. */
  share = find_newcomer(shares);
  if (share)
    return begin_step(shares, share, free);
  share = find_to_raise(shares, free);
  if (share)
    return set_step(share, min_of(share->wanted, share->given + in_units(share, free)));
  return (MigShareStep){.kind = MIG_SHARE_STEP_NONE};
}

void mig_share_done(MigShare *share, bool ok) {
  if (ok)
    share->given = share->asked;
  share->unsure = !ok;
  share->asked = 0;
}

bool mig_shares_have_room(const MigShares *shares, unsigned more) {
  uint64_t sum = more * max_of(round_up(shares->min), MIG_MIB_BYTES);

  for (size_t i = 0; i < shares->n; i++) {
    const MigShare *share = shares->members[i];
    uint64_t need = max_of(round_up(share->need), least_of(shares, share));

    sum += is_settled(share) || share->unsure ? share->given : min_of(need, ceiling_of(shares, share));
  }
  return sum <= cap_of(shares);
}

uint64_t mig_share_per_stream(const MigShare *share) {
  return share->given / max_of(share->streams, 1);
}

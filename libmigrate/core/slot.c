/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place that is held for a domain which is to come.
 *
 * Theory of Operation. It is held until something comes, somebody gives it back, or its time is over. From the moment that
 * a copy waits for the stream, time and people have no say any more: the source has, and what it does is seen here as in
 * arrival.c. A copy that comes after the time, or after a release that has not been carried out yet, is followed all the
 * same: it is there.
 *
 * The one thing that may be done at the end is to remove images that were made for the domain. A migration that begins at
 * that moment would copy into them. So where there are images, nothing of the domain must be seen twice, CLEAR_MS apart;
 * libvirt says that a copy starts before it hands any image to it. Where there are none, one look is enough. */
#include "libmigrate/core/slot.h"

#include "libmigrate/core/table.h"

#define CLEAR_MS 1000

static const char *const names[] = {
    [MIG_SLOT_OPEN] = "OPEN",       [MIG_SLOT_ARRIVED] = "ARRIVED", [MIG_SLOT_CANCELLED] = "CANCELLED",
    [MIG_SLOT_STOPPED] = "STOPPED", [MIG_SLOT_TAKEN] = "TAKEN",     [MIG_SLOT_RELEASED] = "RELEASED",
    [MIG_SLOT_EXPIRED] = "EXPIRED",
};
TABLE_COVERS(names, MIG_SLOT_END_COUNT);

const char *mig_slot_end_name(MigSlotEnd end) {
  return table_name(names, MIG_SLOT_END_COUNT, (int)end);
}

int mig_slot_end_from_name(const char *name) {
  return table_find(names, MIG_SLOT_END_COUNT, name);
}

/* What each arrival makes of the job, and when to look again although libvirt tells of changes by itself. */
static const struct {
  MigPhase phase;
  MigStage stage;
  MigSlotEnd end;
  uint64_t again_ms;
} rows[] = {
    [MIG_ARRIVAL_UNSEEN] = {MIG_PHASE_RECOVERING, MIG_STAGE_NONE, MIG_SLOT_OPEN, 1000},
    [MIG_ARRIVAL_AWAITED] = {MIG_PHASE_PENDING, MIG_STAGE_NONE, MIG_SLOT_OPEN, 30000},
    [MIG_ARRIVAL_COMING] = {MIG_PHASE_MIGRATING, MIG_STAGE_PRE_COPY, MIG_SLOT_OPEN, 2000},
    [MIG_ARRIVAL_POST_COPY] = {MIG_PHASE_MIGRATING, MIG_STAGE_POST_COPY, MIG_SLOT_OPEN, 1000},
    [MIG_ARRIVAL_CUT] = {MIG_PHASE_RECOVERING, MIG_STAGE_POST_COPY, MIG_SLOT_OPEN, 1000},
    [MIG_ARRIVAL_ARRIVED] = {MIG_PHASE_SUCCEEDED, MIG_STAGE_NONE, MIG_SLOT_ARRIVED, 0},
    [MIG_ARRIVAL_ENDED] = {MIG_PHASE_MIGRATING, MIG_STAGE_PRE_COPY, MIG_SLOT_CANCELLED, CLEAR_MS},
    [MIG_ARRIVAL_STOPPED] = {MIG_PHASE_FAILED, MIG_STAGE_NONE, MIG_SLOT_STOPPED, 0},
    [MIG_ARRIVAL_TAKEN] = {MIG_PHASE_FAILED, MIG_STAGE_NONE, MIG_SLOT_TAKEN, 0},
};
TABLE_COVERS(rows, MIG_ARRIVAL_COUNT);

bool mig_slot_release(MigSlot *slot) {
  if (slot->came || slot->ran)
    return false;
  if (slot->ending == MIG_SLOT_OPEN)
    slot->ending = MIG_SLOT_RELEASED;
  return true;
}

bool mig_slot_expire(MigSlot *slot, uint64_t now_ms, uint64_t expires_ms) {
  if (slot->came || slot->ran || slot->ending != MIG_SLOT_OPEN || now_ms < expires_ms)
    return false;
  slot->ending = MIG_SLOT_EXPIRED;
  return true;
}

static void note_seen(MigSlot *slot, MigArrival arrival) {
  bool here = arrival == MIG_ARRIVAL_COMING || arrival == MIG_ARRIVAL_POST_COPY ||
              arrival == MIG_ARRIVAL_CUT || arrival == MIG_ARRIVAL_ARRIVED;

  slot->came = slot->came || here;
  slot->ran = slot->ran || (here && arrival != MIG_ARRIVAL_COMING);
  /* It is not given back any more, nor late. */
  if (here)
    slot->ending = MIG_SLOT_OPEN;
}

/* Nothing of it is here: is that sure enough? */
static bool is_clear(MigSlot *slot, const MigSlotLook *look) {
  if (slot->clear++ == 0)
    slot->clear_ms = look->now_ms;
  return !look->images || (slot->clear >= 2 && look->now_ms >= slot->clear_ms + CLEAR_MS);
}

MigSlotAnswer mig_slot_step(MigSlot *slot, const MigSlotLook *look) {
  const MigArrivalInput input = {
      .state = look->state,
      .job_incoming = look->job_incoming,
      .job_outgoing = look->job_outgoing,
      .migrated = look->migrated,
      .came = slot->came,
      .ran = slot->ran,
  };
  const MigArrivalAnswer *seen = mig_arrival_answer(&input);
  MigSlotAnswer answer = {
      .arrival = seen->arrival,
      .why = seen->why,
      .phase = rows[seen->arrival].phase,
      .stage = rows[seen->arrival].stage,
      .end = rows[seen->arrival].end,
      .again_ms = rows[seen->arrival].again_ms,
  };
  bool nothing = look->state == MIG_END_ABSENT || look->state == MIG_END_INACTIVE;

  note_seen(slot, seen->arrival);
  if (!nothing)
    slot->clear = 0;
  if (seen->arrival == MIG_ARRIVAL_UNSEEN) {
    /* Nobody knows; nothing that was known before is given up. */
    answer.phase = slot->came || slot->ran ? MIG_PHASE_RECOVERING : MIG_PHASE_PENDING;
    answer.stage = slot->ran ? MIG_STAGE_POST_COPY : slot->came ? MIG_STAGE_PRE_COPY : MIG_STAGE_NONE;
  }
  if (seen->arrival == MIG_ARRIVAL_AWAITED && slot->ending != MIG_SLOT_OPEN) {
    answer.end = nothing ? slot->ending : MIG_SLOT_OPEN;
    answer.again_ms = CLEAR_MS;
  }
  if (seen->arrival == MIG_ARRIVAL_ENDED || (seen->arrival == MIG_ARRIVAL_AWAITED && answer.end)) {
    answer.clear_away = is_clear(slot, look);
    if (!answer.clear_away)
      answer.end = MIG_SLOT_OPEN;
  }
  return answer;
}

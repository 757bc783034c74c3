/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A slot: the place that a lease reserves for an incoming domain.
 *
 * Theory of Operation. The slot is held until a copy arrives, someone releases the lease, or it expires. Once a copy
 * waits for the stream, neither time nor people decide any more: the source does, and arrival.c shows what it does. A
 * copy that arrives after the expiry, or after a release that has not been carried out yet, is followed all the same:
 * it is there.
 *
 * The only action at the end is to remove images that were created for the domain. Such an image may be a guest's
 * only disk: the guest arrived, ran, and was shut down. No later look can find that, but libvirt's events report it
 * to whoever listens. So images may be removed only if
 *  - this process has watched since before they were created, without a gap: the same connection to libvirtd, no
 *    failed look. What is read back from a record was not watched.
 *  - no guest was seen or reported here: not even an earlier or later start of the domain, since it would have the
 *    same disks.
 *  - no definition either. libvirt 9 writes it before it starts an incoming guest's CPUs, so a definition suggests
 *    that a guest arrived. One that was here before looks the same, and counts as well.
 * The driver finds out at the last moment whether anybody wrote to them.
 *
 * Events and looks take different paths, so an event may lag slightly behind a look. A migration that begins just
 * when images are removed would copy into them. So to conclude that something did not happen takes two looks that
 * agree, AGREE_MS apart, with no sign of life between them. Only ends that rest on what was seen come at once: a
 * guest that is here, or was; and a released lease without images. libvirt reports the start of a copy before it
 * hands any image to it. */
#include "libmigrate/core/slot.h"

#include "libmigrate/core/table.h"

#define AGREE_MS 1000

static const char *const names[] = {
    [MIG_SLOT_OPEN] = "OPEN",         [MIG_SLOT_ARRIVED] = "ARRIVED", [MIG_SLOT_CANCELLED] = "CANCELLED",
    [MIG_SLOT_GONE] = "GONE",         [MIG_SLOT_STOPPED] = "STOPPED", [MIG_SLOT_TAKEN] = "TAKEN",
    [MIG_SLOT_RELEASED] = "RELEASED", [MIG_SLOT_EXPIRED] = "EXPIRED",
};
TABLE_COVERS(names, MIG_SLOT_END_COUNT);

const char *mig_slot_end_name(MigSlotEnd end) {
  return table_name(names, MIG_SLOT_END_COUNT, (int)end);
}

int mig_slot_end_from_name(const char *name) {
  return table_find(names, MIG_SLOT_END_COUNT, name);
}

/* What each arrival means for the job, and when to look again even though libvirt reports changes by itself. */
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
    [MIG_ARRIVAL_ENDED] = {MIG_PHASE_MIGRATING, MIG_STAGE_PRE_COPY, MIG_SLOT_CANCELLED, AGREE_MS},
    [MIG_ARRIVAL_GONE] = {MIG_PHASE_MIGRATING, MIG_STAGE_PRE_COPY, MIG_SLOT_GONE, AGREE_MS},
    [MIG_ARRIVAL_STOPPED] = {MIG_PHASE_MIGRATING, MIG_STAGE_PRE_COPY, MIG_SLOT_STOPPED, AGREE_MS},
    [MIG_ARRIVAL_TAKEN] = {MIG_PHASE_PENDING, MIG_STAGE_NONE, MIG_SLOT_TAKEN, AGREE_MS},
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

void mig_slot_doubt(MigSlot *slot) {
  slot->likely = MIG_SLOT_OPEN;
  slot->agreed = 0;
}

void mig_slot_watch(MigSlot *slot) {
  slot->watched = true;
}

bool mig_slot_gap(MigSlot *slot) {
  bool was = slot->watched;

  slot->watched = false;
  if (was)
    mig_slot_doubt(slot);
  return was;
}

static bool is_nothing(MigEndState state) {
  return state == MIG_END_UNKNOWN || state == MIG_END_ABSENT || state == MIG_END_INACTIVE;
}

bool mig_slot_hear(MigSlot *slot, const MigSlotNews *news) {
  const MigSlot before = *slot;
  bool guest = !is_nothing(news->state) && news->state != MIG_END_PAUSED_MIGRATION;

  /* A removed definition means that there was one. */
  slot->traces = slot->traces || guest || news->definition || news->state == MIG_END_ABSENT;
  if (news->arriving) {
    slot->came = true;
    slot->started = false;
  }
  slot->started = slot->started || news->started;
  /* A guest that its owner started here did not arrive by a migration; and such a start may go unseen in a gap. */
  slot->ran = slot->ran || (guest && slot->came && !slot->started && slot->watched);
  if (guest || news->arriving || news->definition || news->state == MIG_END_ABSENT)
    mig_slot_doubt(slot);
  return slot->came != before.came || slot->ran != before.ran || slot->traces != before.traces ||
         slot->started != before.started;
}

static void note_seen(MigSlot *slot, const MigSlotLook *look, MigArrival arrival) {
  bool here = arrival == MIG_ARRIVAL_COMING || arrival == MIG_ARRIVAL_POST_COPY ||
              arrival == MIG_ARRIVAL_CUT || arrival == MIG_ARRIVAL_ARRIVED;

  slot->came = slot->came || here;
  slot->ran = slot->ran || (here && arrival != MIG_ARRIVAL_COMING);
  slot->traces = slot->traces || (look->persistent && look->state != MIG_END_UNKNOWN) ||
                 look->state == MIG_END_INACTIVE ||
                 (!here && !is_nothing(look->state) && look->state != MIG_END_PAUSED_MIGRATION);
  /* Events come in order, but a look does not: something older may be reported after it. */
  slot->started = slot->started && !here;
  /* The release or expiry no longer applies. */
  if (here)
    slot->ending = MIG_SLOT_OPEN;
}

/* Is the end certain enough? */
static bool is_agreed(MigSlot *slot, const MigSlotLook *look, MigSlotEnd end) {
  bool at_once = end == MIG_SLOT_ARRIVED || (end == MIG_SLOT_STOPPED && slot->ran) ||
                 (end == MIG_SLOT_RELEASED && !look->images);

  if (end != slot->likely || end == MIG_SLOT_OPEN) {
    slot->likely = end;
    slot->agreed = 0;
    slot->agreed_ms = look->now_ms;
  }
  slot->agreed++;
  return at_once || (slot->agreed >= 2 && look->now_ms >= slot->agreed_ms + AGREE_MS);
}

static const char *find_keep(const MigSlot *slot) {
  if (slot->ran)
    return "the guest was at the target, and this is its disk";
  if (slot->started)
    return "the domain was started at the target, and this is its disk";
  if (!slot->watched)
    return "the agent or its connection to libvirtd was down for a time since the image was created, and the "
           "guest may have arrived and run meanwhile";
  if (slot->traces)
    return "the domain is or was defined or running at the target and may use it as its disk";
  return NULL;
}

MigSlotAnswer mig_slot_step(MigSlot *slot, const MigSlotLook *look) {
  const MigArrivalInput input = {
      .state = look->state,
      .job_incoming = look->job_incoming,
      .job_outgoing = look->job_outgoing,
      .migrated = look->migrated,
      .booted = look->booted,
      .came = slot->came,
      .ran = slot->ran,
      .started = slot->started,
      .watched = slot->watched,
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

  note_seen(slot, look, seen->arrival);
  if (seen->arrival == MIG_ARRIVAL_UNSEEN) {
    slot->watched = false;
    /* Unknown; keep what was known before. */
    answer.phase = slot->came || slot->ran ? MIG_PHASE_RECOVERING : MIG_PHASE_PENDING;
    answer.stage = slot->ran ? MIG_STAGE_POST_COPY : slot->came ? MIG_STAGE_PRE_COPY : MIG_STAGE_NONE;
  }
  if (seen->arrival == MIG_ARRIVAL_AWAITED && slot->ending != MIG_SLOT_OPEN) {
    answer.end = is_nothing(look->state) ? slot->ending : MIG_SLOT_OPEN;
    answer.again_ms = AGREE_MS;
  }
  if (seen->arrival == MIG_ARRIVAL_TAKEN && (slot->came || slot->ran)) {
    answer.phase = MIG_PHASE_MIGRATING;
    answer.stage = MIG_STAGE_PRE_COPY;
  }
  if (!is_agreed(slot, look, answer.end))
    answer.end = MIG_SLOT_OPEN;
  answer.nothing = answer.end == MIG_SLOT_CANCELLED || answer.end == MIG_SLOT_GONE ||
                   answer.end == MIG_SLOT_RELEASED || answer.end == MIG_SLOT_EXPIRED;
  answer.keep = find_keep(slot);
  return answer;
}

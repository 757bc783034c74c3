/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place that is held for a domain which is to come: how long, what becomes of it, and what may be removed then. */
#pragma once

#include "libmigrate/core/arrival.h"
#include "libmigrate/core/types.h"

/* How it ends. */
typedef enum MigSlotEnd {
  MIG_SLOT_OPEN,      /* it does not yet */
  MIG_SLOT_ARRIVED,   /* the guest is here */
  MIG_SLOT_CANCELLED, /* what had come is gone, and never ran here */
  MIG_SLOT_GONE,      /* what had come is gone, and whether it ran here is not known */
  MIG_SLOT_STOPPED,   /* the guest ran here, and does not any more */
  MIG_SLOT_TAKEN,     /* a domain of that UUID is alive here that did not come by a migration */
  MIG_SLOT_RELEASED,  /* given back */
  MIG_SLOT_EXPIRED,   /* nothing came in time */
  MIG_SLOT_END_COUNT
} MigSlotEnd;

/* "RELEASED". NULL out of range. */
const char *mig_slot_end_name(MigSlotEnd end);
/* -1: no such name. */
int mig_slot_end_from_name(const char *name);

/* All zero at first, and then mig_slot_watch(). The first five are to be remembered over a restart, and nothing else may be: a
 * process of before watched for itself. */
typedef struct MigSlot {
  bool came;    /* a copy that waits for a migration has been seen */
  bool ran;     /* the guest has been seen here: it ran, or was paused by its owner */
  bool traces;  /* more of it has been here than a copy that waits: a definition, or anything that is alive */
  bool started; /* it has been started here by somebody, and not by a migration, since a copy came last */
  MigSlotEnd ending;  /* RELEASED or EXPIRED: how it is to end once it is sure that nothing of it is here */
  bool watched;       /* since the beginning, and without a gap */
  MigSlotEnd likely;  /* the end that the looks so far agree on */
  unsigned agreed;    /* how many in a row do */
  uint64_t agreed_ms; /* when the first of them was */
} MigSlot;

/* From now on all that becomes of the domain here is seen by looks, or heard of by libvirt's events. */
void mig_slot_watch(MigSlot *slot);

/* Events may have been lost: the connection to libvirtd broke, or did not answer. True: until now there was no gap. */
bool mig_slot_gap(MigSlot *slot);

/* What libvirt tells of the domain. */
typedef struct MigSlotNews {
  MigEndState state; /* UNKNOWN: nothing of its state */
  bool arriving;     /* a copy begins to wait for a migration */
  bool started;      /* it was started, and not by a migration */
  bool definition;   /* what it has, or would have at its next start, changed */
} MigSlotNews;

/* True: something is known now that was not before, and is to be kept. */
bool mig_slot_hear(MigSlot *slot, const MigSlotNews *news);

/* It is to end. False: something has come already, and it cannot. Repeating it does no harm. */
bool mig_slot_release(MigSlot *slot);

/* True: its time is over now, and was not before. What has come has time. Monotonic times. */
bool mig_slot_expire(MigSlot *slot, uint64_t now_ms, uint64_t expires_ms);

/* One look at the domain's end here. */
typedef struct MigSlotLook {
  uint64_t now_ms; /* monotonic */
  MigEndState state;
  bool job_incoming;
  bool job_outgoing;
  bool migrated;
  bool booted;
  bool persistent; /* it is defined here, and not only running */
  bool images;     /* were made for it, and are to be removed if it does not come */
} MigSlotLook;

typedef struct MigSlotAnswer {
  MigArrival arrival;
  const char *why; /* static, the end of a sentence */
  MigPhase phase;  /* pending, migrating or recovering: while it is open */
  MigStage stage;
  MigSlotEnd end;
  bool nothing; /* it has ended, and nothing of it runs here */
  const char *
      keep; /* why images that were made for it must stay, the end of a sentence; NULL: they may be removed, if
                      * nobody wrote to them. Meant where it has ended */
  uint64_t again_ms; /* while it is open: look again after so long, if nothing is heard before */
} MigSlotAnswer;

/* What the looks agreed on (`likely`) is in doubt again, as after something that was tried and failed, and by itself after what
 * was heard, or a gap. */
void mig_slot_doubt(MigSlot *slot);

/* What follows from a look. One that failed (MIG_END_UNKNOWN) is a gap. */
MigSlotAnswer mig_slot_step(MigSlot *slot, const MigSlotLook *look);

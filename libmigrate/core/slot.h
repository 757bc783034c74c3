/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place that is held for a domain which is to come: how long, what becomes of it, and what may be cleared away then. */
#pragma once

#include "libmigrate/core/arrival.h"
#include "libmigrate/core/types.h"

/* How it ends. */
typedef enum MigSlotEnd {
  MIG_SLOT_OPEN,      /* it does not yet */
  MIG_SLOT_ARRIVED,   /* the guest is here */
  MIG_SLOT_CANCELLED, /* what had come is gone, and never ran here */
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

/* All zero at first. The first three are to be remembered over a restart. */
typedef struct MigSlot {
  bool came;         /* a copy that waits for a migration has been seen */
  bool ran;          /* it has been seen to run here */
  MigSlotEnd ending; /* RELEASED or EXPIRED: how it is to end once it is sure that nothing of it is here */
  unsigned clear;    /* looks in a row that saw nothing of it */
  uint64_t clear_ms; /* when the first of these was */
} MigSlot;

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
  bool images; /* were made for it, and are to be removed if it does not come */
} MigSlotLook;

typedef struct MigSlotAnswer {
  MigArrival arrival;
  const char *why; /* static, the end of a sentence */
  MigPhase phase;  /* pending, migrating or recovering: while it is open */
  MigStage stage;
  MigSlotEnd end;
  bool clear_away;   /* it has ended, and nothing of it was here: what was made for it may be removed */
  uint64_t again_ms; /* while it is open: look again after so long, if nothing is heard before */
} MigSlotAnswer;

/* What follows from a look. */
MigSlotAnswer mig_slot_step(MigSlot *slot, const MigSlotLook *look);

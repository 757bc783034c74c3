/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A slot: the place that a lease reserves for an incoming domain. How long it lasts, how it ends, and what may be
 * removed then. */
#pragma once

#include "libmigrate/core/arrival.h"
#include "libmigrate/core/types.h"

/* How it ends. */
typedef enum MigSlotEnd {
  MIG_SLOT_OPEN,      /* not ended yet */
  MIG_SLOT_ARRIVED,   /* the guest is here */
  MIG_SLOT_CANCELLED, /* the incoming copy is gone and never ran here */
  MIG_SLOT_GONE,      /* the incoming copy is gone; unknown whether it ran here */
  MIG_SLOT_STOPPED,   /* the guest ran here and no longer does */
  MIG_SLOT_TAKEN,     /* a domain with that UUID is alive here, but did not arrive by migration */
  MIG_SLOT_RELEASED,  /* the lease was released */
  MIG_SLOT_EXPIRED,   /* nothing arrived in time */
  MIG_SLOT_END_COUNT
} MigSlotEnd;

/* "RELEASED". NULL out of range. */
const char *mig_slot_end_name(MigSlotEnd end);
/* -1: no such name. */
int mig_slot_end_from_name(const char *name);

/* Starts as all zero, followed by mig_slot_watch(). Keep the first five across a restart, and nothing else: an
 * earlier process watched only for itself. */
typedef struct MigSlot {
  bool came;          /* a copy that waits for a migration has been seen */
  bool ran;           /* the guest has been seen here: it ran, or was paused by its owner */
  bool traces;        /* more than a waiting copy has been here: a definition, or anything alive */
  bool started;       /* since the last copy arrived, someone started it here, other than by migration */
  MigSlotEnd ending;  /* RELEASED or EXPIRED: how to end once it is certain that nothing is here */
  bool watched;       /* since the beginning, and without a gap */
  MigSlotEnd likely;  /* the end that the looks so far agree on */
  unsigned agreed;    /* how many looks in a row agree */
  uint64_t agreed_ms; /* when the first of them was */
} MigSlot;

/* From now on looks or libvirt's events show everything that happens to the domain here. */
void mig_slot_watch(MigSlot *slot);

/* Events may have been lost: the connection to libvirtd broke or did not answer. True: there was no gap before this. */
bool mig_slot_gap(MigSlot *slot);

/* What a libvirt event says about the domain. */
typedef struct MigSlotNews {
  MigEndState state; /* UNKNOWN: says nothing of its state */
  bool arriving;     /* a copy starts to wait for a migration */
  bool started;      /* it was started, other than by migration */
  bool definition;   /* its live or persistent definition changed */
} MigSlotNews;

/* True: there is news to keep in the record. */
bool mig_slot_hear(MigSlot *slot, const MigSlotNews *news);

/* Release the lease. False: too late, something has arrived already. Repeating it does no harm. */
bool mig_slot_release(MigSlot *slot);

/* True: the lease has just expired. It cannot expire once something has arrived. Monotonic times. */
bool mig_slot_expire(MigSlot *slot, uint64_t now_ms, uint64_t expires_ms);

/* One look at the domain on this node. */
typedef struct MigSlotLook {
  uint64_t now_ms; /* monotonic */
  MigEndState state;
  bool job_incoming;
  bool job_outgoing;
  bool migrated;
  bool booted;
  bool persistent; /* it is defined here, not just running */
  bool images;     /* were created for it, to be removed if it does not arrive */
} MigSlotLook;

typedef struct MigSlotAnswer {
  MigArrival arrival;
  const char *why; /* static, ends a sentence */
  MigPhase phase;  /* while it is open: pending, migrating or recovering */
  MigStage stage;
  MigSlotEnd end;
  bool nothing; /* it has ended, and nothing of the domain runs here */
  /* Once it has ended: why images that were created for it must stay, as the end of a sentence; NULL: they may be removed
   * if nobody wrote to them. */
  const char *keep;
  uint64_t again_ms; /* while it is open: look again after this time, or when there is news */
} MigSlotAnswer;

/* What the looks agreed on (`likely`) is in doubt again. Call this after a failed attempt; news and gaps do it by
 * themselves. */
void mig_slot_doubt(MigSlot *slot);

/* What follows from a look. A failed look (MIG_END_UNKNOWN) is a gap. */
MigSlotAnswer mig_slot_step(MigSlot *slot, const MigSlotLook *look);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which waiting job may start now, and why the others wait. A structure over jobs that the caller owns. */
#pragma once

#include "libmigrate/core/policy.h"
#include "libmigrate/core/tree.h"

/* Why a job does not start. */
typedef enum MigAdmission {
  MIG_ADMISSION_START, /* nothing holds it: it starts with the next step */
  MIG_ADMISSION_OUTGOING_LIMIT,
  MIG_ADMISSION_TARGET_LIMIT,
  MIG_ADMISSION_BANDWIDTH_LIMIT,
  MIG_ADMISSION_NODE,        /* a condition of this node, which the caller knows */
  MIG_ADMISSION_TARGET_HELD, /* a condition of its target, seen by a job that went there */
  MIG_ADMISSION_HELD,        /* a condition of its own */
  MIG_ADMISSION_INCOMING_LIMIT,
  MIG_ADMISSION_CORDONED,
  MIG_ADMISSION_COUNT
} MigAdmission;

const char *mig_admission_name(MigAdmission admission);

/* May one more come in, with `incoming` leases and migrations, and a limit (0 counts as 1)? */
MigAdmission mig_admit_incoming(unsigned incoming, unsigned max_incoming, bool cordoned);

/* How long until it is looked at again what held a job: doubled with each time, from the first to the second. */
#define MIG_RETRY_MIN_MS 1000
#define MIG_RETRY_MAX_MS 30000

/* So many jobs at a time look whether what held them is over. */
#define MIG_PROBES_MAX 4

typedef struct MigWaiting MigWaiting;

/* What one target lets through. All of it is the queue's, but `limit` until it is used. */
typedef struct MigLane {
  MigTreeNode node; /* in queue->open, or queue->held_lanes */
  MigTree ready;    /* MigWaiting.in_lane */
  MigWaiting *head; /* of ready, while it is in queue->open */
  unsigned limit;   /* 0: none */
  unsigned running;
  unsigned jobs; /* in any state: 0: the caller may forget the lane */
  bool held;
  MigWaiting *probing; /* looks whether it is still held */
  unsigned tries;
  uint64_t held_since_ms, tried_ms, retry_ms;
} MigLane;

typedef enum MigWaitingState {
  MIG_WAITING_OUT, /* in no queue */
  MIG_WAITING_READY,
  MIG_WAITING_HELD,
  MIG_WAITING_PROBING, /* being looked at, without a place */
  MIG_WAITING_RUNNING  /* has a place */
} MigWaitingState;

/* One job, inside what the caller keeps of it. The first three are the caller's, to be set before it is pushed; `seq` is
 * the order of arrival, and differs for each. */
struct MigWaiting {
  MigPriority priority;
  uint64_t arrived_ms; /* in any clock that goes on over a restart */
  uint64_t seq;

  MigTreeNode in_order; /* while it waits */
  MigTreeNode in_lane;  /* READY: in lane->ready; HELD: in queue->held */
  MigLane *lane;
  uint64_t key;
  MigWaitingState state;
  unsigned tries;
  uint64_t queued_ms, held_since_ms, retry_ms;
};

typedef struct MigQueueLimits {
  unsigned max_outgoing; /* 0 counts as 1: a queue that never moves is what cordoning is for */
  /* One class of priority is worth so much waiting; 0: waiting is worth nothing. */
  uint64_t aging_ms;
} MigQueueLimits;

typedef struct MigQueue {
  MigQueueLimits limits;
  MigAdmission gate;  /* START: open; BANDWIDTH_LIMIT, NODE: nothing starts. The caller's to set */
  MigTree order;      /* MigWaiting.in_order: all that wait */
  MigTree open;       /* MigLane.node: lanes that have a place and somebody ready */
  MigTree held;       /* MigWaiting.in_lane, by when they are looked at again */
  MigTree held_lanes; /* MigLane.node, likewise */
  unsigned running;
  unsigned probing;
} MigQueue;

/* Nobody is in. Times that are given to a queue (now_ms) are of one monotonic clock. */
void mig_queue_init(MigQueue *queue, const MigQueueLimits *limits);

/* Other limits, with jobs in: who has a place keeps it, and those that wait are in the order of the new ones. O(n log n) if
 * the aging has changed. */
void mig_queue_set_limits(MigQueue *queue, const MigQueueLimits *limits);

void mig_lane_init(MigLane *lane, unsigned limit);
void mig_queue_set_lane_limit(MigQueue *queue, MigLane *lane, unsigned limit);

/* A job begins to wait for its turn. A lane that is held is looked at soon again. */
void mig_queue_push(MigQueue *queue, MigWaiting *job, MigLane *lane, uint64_t now_ms);

/* A job that runs already, whatever the limits say of it: of before a restart. */
void mig_queue_enter(MigQueue *queue, MigWaiting *job, MigLane *lane);

/* A job that is in gets another priority. */
void mig_queue_set_priority(MigQueue *queue, MigWaiting *job, MigPriority priority);

/* A job is over, in whatever state it was. Does nothing to one that is in no queue. */
void mig_queue_remove(MigQueue *queue, MigWaiting *job);

typedef enum MigTurn {
  MIG_TURN_NONE,
  MIG_TURN_START, /* the job has a place now */
  MIG_TURN_PROBE  /* the job is to look whether what held it, or its target, is over; it has no place */
} MigTurn;

/* One step: whose turn is it? To be repeated until it is nobody's. O(log n). The job's checks follow; then one of the
 * three below, or mig_queue_remove(). */
MigTurn mig_queue_next(MigQueue *queue, uint64_t now_ms, MigWaiting **ret_job);

/* Its checks found nothing that keeps it, so its target is held by nothing either. True: it has a place. False, of a
 * probe: there is none, and it waits again. */
bool mig_queue_passed(MigQueue *queue, MigWaiting *job, uint64_t now_ms);

/* What keeps a job for now concerns… */
typedef enum MigHold {
  MIG_HOLD_NONE,   /* it will not go away by waiting */
  MIG_HOLD_JOB,    /* this job alone; its target answered */
  MIG_HOLD_TARGET, /* all that go to its target */
  MIG_HOLD_NODE,   /* this node; nothing was learned of the target */
  MIG_HOLD_COUNT
} MigHold;

/* Its checks found something that waiting can cure: it gives its place back and waits again. `hold` is not NONE. */
void mig_queue_hold(MigQueue *queue, MigWaiting *job, MigHold hold, uint64_t now_ms);

/* Of a job that waits: what keeps it. Always true of this moment; of several reasons the one that is hardest to cure. */
MigAdmission mig_queue_why(const MigQueue *queue, const MigWaiting *job);

/* 1: nobody who waits comes before it. 0: it does not wait. O(log n). */
unsigned mig_queue_position(const MigWaiting *job);

/* Since when a condition has held it, its own or its target's, and when that is looked at again. 0: none does. */
uint64_t mig_queue_held_since_ms(const MigWaiting *job);
uint64_t mig_queue_retry_ms(const MigWaiting *job);

/* The first of all that wait, and the one after it; NULL: there is none. */
MigWaiting *mig_queue_first(const MigQueue *queue);
MigWaiting *mig_queue_after(const MigWaiting *job);

static inline unsigned mig_queue_waiting(const MigQueue *queue) {
  return mig_tree_count(&queue->order);
}

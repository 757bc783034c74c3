/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which waiting job may start now, and why the others wait. A queue of jobs that the caller owns. */
#pragma once

#include "libmigrate/core/policy.h"
#include "libmigrate/core/tree.h"

/* Why a job does not start. */
typedef enum MigAdmission {
  MIG_ADMISSION_START, /* nothing keeps it: it starts with the next step */
  MIG_ADMISSION_OUTGOING_LIMIT,
  MIG_ADMISSION_TARGET_LIMIT,
  MIG_ADMISSION_BANDWIDTH_LIMIT,
  MIG_ADMISSION_NODE,        /* a condition of this node, known to the caller */
  MIG_ADMISSION_TARGET_HELD, /* a condition of its target, found by a job for that target */
  MIG_ADMISSION_HELD,        /* a condition of the job itself */
  MIG_ADMISSION_INCOMING_LIMIT,
  MIG_ADMISSION_CORDONED,
  MIG_ADMISSION_COUNT
} MigAdmission;

const char *mig_admission_name(MigAdmission admission);

/* May one more come in, given `incoming` leases and migrations, and a limit (0 counts as 1)? */
MigAdmission mig_admit_incoming(unsigned incoming, unsigned max_incoming, bool cordoned);

/* How long a job is held until the next check: from MIN to MAX, doubled each time. */
#define MIG_RETRY_MIN_MS 1000
#define MIG_RETRY_MAX_MS 30000

/* How many held jobs may check again at the same time. */
#define MIG_PROBES_MAX 4

typedef struct MigWaiting MigWaiting;

/* The jobs for one target. All of it belongs to the queue, except `limit` before first use. */
typedef struct MigLane {
  MigTreeNode node; /* in queue->open, or queue->held_lanes */
  MigTree ready;    /* MigWaiting.in_lane */
  MigWaiting *head; /* of ready, while it is in queue->open */
  unsigned limit;   /* 0: none */
  unsigned running;
  unsigned jobs; /* in any state; 0: the caller may drop the lane */
  bool held;
  MigWaiting *probing; /* the job that checks whether the lane is still held */
  unsigned tries;
  uint64_t held_since_ms, tried_ms, retry_ms;
} MigLane;

typedef enum MigWaitingState {
  MIG_WAITING_OUT, /* in no queue */
  MIG_WAITING_READY,
  MIG_WAITING_HELD,
  MIG_WAITING_PROBING, /* checking again, without a place */
  MIG_WAITING_RUNNING  /* has a place */
} MigWaitingState;

/* One job, embedded in the caller's own struct. The caller sets the first three before pushing it; `seq` is the order
 * of arrival and unique. */
struct MigWaiting {
  MigPriority priority;
  uint64_t arrived_ms; /* on any clock that continues across a restart */
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
  unsigned max_outgoing; /* 0 counts as 1: to stop the queue, cordon the node */
  /* Waiting this long raises a job by one priority class; 0: waiting does not count. */
  uint64_t aging_ms;
} MigQueueLimits;

typedef struct MigQueue {
  MigQueueLimits limits;
  MigAdmission gate;  /* set by the caller. START: open; BANDWIDTH_LIMIT, NODE: nothing starts */
  MigTree order;      /* MigWaiting.in_order: all waiting jobs */
  MigTree open;       /* MigLane.node: lanes with a free place and a ready job */
  MigTree held;       /* MigWaiting.in_lane, by the time of the next check */
  MigTree held_lanes; /* MigLane.node, likewise */
  unsigned running;
  unsigned probing;
} MigQueue;

/* Starts empty. All times given to a queue (now_ms) are on one monotonic clock. */
void mig_queue_init(MigQueue *queue, const MigQueueLimits *limits);

/* Changes the limits while jobs are queued: whoever has a place keeps it, and waiting jobs are reordered. O(n log n)
 * if the aging changes. */
void mig_queue_set_limits(MigQueue *queue, const MigQueueLimits *limits);

void mig_lane_init(MigLane *lane, unsigned limit);
void mig_queue_set_lane_limit(MigQueue *queue, MigLane *lane, unsigned limit);

/* A job starts to wait for its turn. A held lane is checked again soon. */
void mig_queue_push(MigQueue *queue, MigWaiting *job, MigLane *lane, uint64_t now_ms);

/* Adds a job that runs already, from before a restart, whatever the limits. */
void mig_queue_enter(MigQueue *queue, MigWaiting *job, MigLane *lane);

/* Changes the priority of a queued job. */
void mig_queue_set_priority(MigQueue *queue, MigWaiting *job, MigPriority priority);

/* Removes a job in any state. Does nothing if it is not in the queue. */
void mig_queue_remove(MigQueue *queue, MigWaiting *job);

typedef enum MigTurn {
  MIG_TURN_NONE,
  MIG_TURN_START, /* the job has a place now */
  MIG_TURN_PROBE  /* the job checks again whether it or its target is still held; it has no place */
} MigTurn;

/* One step: whose turn is it? Repeat until it is nobody's. O(log n). The caller then runs the job's checks, and calls
 * mig_queue_passed(), mig_queue_hold() or mig_queue_remove(). */
MigTurn mig_queue_next(MigQueue *queue, uint64_t now_ms, MigWaiting **ret_job);

/* The job's checks passed, so nothing holds its target either. True: it has a place. False, for a probe: there is no
 * free place, and it waits again. */
bool mig_queue_passed(MigQueue *queue, MigWaiting *job, uint64_t now_ms);

/* What keeps a job for now concerns… */
typedef enum MigHold {
  MIG_HOLD_NONE,   /* waiting will not clear it */
  MIG_HOLD_JOB,    /* this job alone; its target answered */
  MIG_HOLD_TARGET, /* all jobs for its target */
  MIG_HOLD_NODE,   /* this node; nothing was learned about the target */
  MIG_HOLD_COUNT
} MigHold;

/* Its checks found something that waiting can clear: it gives its place back and waits again. `hold` is not NONE. */
void mig_queue_hold(MigQueue *queue, MigWaiting *job, MigHold hold, uint64_t now_ms);

/* Why a waiting job waits. Always true at this moment; of several reasons, the hardest to clear. */
MigAdmission mig_queue_why(const MigQueue *queue, const MigWaiting *job);

/* 1: first of the waiting jobs. 0: it does not wait. O(log n). */
unsigned mig_queue_position(const MigWaiting *job);

/* Since when a condition of its own or its target's has held it, and when that is checked again. 0: nothing holds it. */
uint64_t mig_queue_held_since_ms(const MigWaiting *job);
uint64_t mig_queue_retry_ms(const MigWaiting *job);

/* The first waiting job, and the next one; NULL: none. */
MigWaiting *mig_queue_first(const MigQueue *queue);
MigWaiting *mig_queue_after(const MigWaiting *job);

static inline unsigned mig_queue_waiting(const MigQueue *queue) {
  return mig_tree_count(&queue->order);
}

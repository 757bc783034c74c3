/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which waiting job may start now, and why the others wait.
 *
 * Theory of Operation. Each job has a key, and the lowest key goes first:
 *
 *     key = time of arrival + priority class × aging
 *
 * Waiting for `aging` raises a job by one priority class: a job of the next higher class overtakes it only if it arrived less
 * than `aging` later, and nothing that arrived more than four times `aging` later ever does. Keys do not change while jobs
 * wait, so the order is kept in a tree and needs no sorting; a job's position gets worse only by new arrivals.
 *
 * Jobs for one target form a lane. A lane with a free place and a ready job is open; the open lanes are ordered by their first
 * job. So the next to start is the first job of the first open lane, and a target that is full or down is in nobody's way.
 *
 * When a job's checks find something that waiting can clear, the job or its whole lane is held for a time that doubles with
 * each attempt. Then one job checks again (a *probe*), without a place, so that held jobs take nothing from those that could
 * run: if nothing keeps it any more it takes a free place, or waits in its order for one.
 *
 * A job is READY (in its lane's tree), HELD (in the queue's tree, by time), PROBING or RUNNING. In the first two states it
 * waits and is in `order` as well, which knows its position. Every step is a few tree operations. */
#include "libmigrate/core/admission.h"

#include "libmigrate/core/table.h"

static const char *const admission_names[] = {
    [MIG_ADMISSION_START] = "NEXT",
    [MIG_ADMISSION_OUTGOING_LIMIT] = "OUTGOING_LIMIT",
    [MIG_ADMISSION_TARGET_LIMIT] = "TARGET_LIMIT",
    [MIG_ADMISSION_BANDWIDTH_LIMIT] = "BANDWIDTH_LIMIT",
    [MIG_ADMISSION_NODE] = "NODE",
    [MIG_ADMISSION_TARGET_HELD] = "TARGET_HELD",
    [MIG_ADMISSION_HELD] = "HELD",
    [MIG_ADMISSION_INCOMING_LIMIT] = "INCOMING_LIMIT",
    [MIG_ADMISSION_CORDONED] = "CORDONED",
};
TABLE_COVERS(admission_names, MIG_ADMISSION_COUNT);

const char *mig_admission_name(MigAdmission admission) {
  return table_name(admission_names, MIG_ADMISSION_COUNT, (int)admission);
}

static bool has_place(unsigned taken, unsigned limit) {
  return taken < (limit > 0 ? limit : 1);
}

MigAdmission mig_admit_incoming(unsigned incoming, unsigned max_incoming, bool cordoned) {
  if (cordoned)
    return MIG_ADMISSION_CORDONED;
  return has_place(incoming, max_incoming) ? MIG_ADMISSION_START : MIG_ADMISSION_INCOMING_LIMIT;
}

/* --- orders --- */

#define CONTAINER(member_, type, member) ((type *)((char *)(member_)-offsetof(type, member)))
#define BY_ORDER(member_)                CONTAINER(member_, MigWaiting, in_order)
#define BY_LANE(member_)                 CONTAINER(member_, MigWaiting, in_lane)
#define LANE(member_)                    CONTAINER(member_, MigLane, node)

static int compare_numbers(uint64_t a, uint64_t b) {
  return a < b ? -1 : a > b;
}

static int compare_keys(const MigWaiting *a, const MigWaiting *b) {
  int order = compare_numbers(a->key, b->key);

  return order ? order : compare_numbers(a->seq, b->seq);
}

static int compare_order(const MigTreeNode *a, const MigTreeNode *b) {
  return compare_keys(BY_ORDER(a), BY_ORDER(b));
}

static int compare_ready(const MigTreeNode *a, const MigTreeNode *b) {
  return compare_keys(BY_LANE(a), BY_LANE(b));
}

static int compare_open(const MigTreeNode *a, const MigTreeNode *b) {
  return compare_keys(LANE(a)->head, LANE(b)->head);
}

static int compare_held(const MigTreeNode *a, const MigTreeNode *b) {
  int order = compare_numbers(BY_LANE(a)->retry_ms, BY_LANE(b)->retry_ms);

  return order ? order : compare_numbers(BY_LANE(a)->seq, BY_LANE(b)->seq);
}

static int compare_held_lanes(const MigTreeNode *a, const MigTreeNode *b) {
  int order = compare_numbers(LANE(a)->retry_ms, LANE(b)->retry_ms);

  return order ? order : compare_keys(LANE(a)->head, LANE(b)->head);
}

/* Without aging, the class alone counts before the time of arrival. */
static uint64_t key_of(const MigQueue *queue, const MigWaiting *job) {
  if (queue->limits.aging_ms == 0)
    return ((uint64_t)job->priority << 56) | (job->arrived_ms & ((UINT64_C(1) << 56) - 1));
  return job->arrived_ms + (uint64_t)job->priority * queue->limits.aging_ms;
}

/* --- lanes --- */

static MigWaiting *first_of_lane(const MigLane *lane) {
  MigTreeNode *first = mig_tree_first(&lane->ready);

  return first ? BY_LANE(first) : NULL;
}

static bool is_full(const MigLane *lane) {
  return lane->limit > 0 && lane->running >= lane->limit;
}

/* A lane is in a tree by its first job or by its time: take it out before either changes… */
static void take_lane(MigQueue *queue, MigLane *lane) {
  if (mig_tree_holds(&lane->node))
    mig_tree_remove(lane->held ? &queue->held_lanes : &queue->open, &lane->node);
}

/* … and put it back where it belongs. */
static void put_lane(MigQueue *queue, MigLane *lane) {
  lane->head = first_of_lane(lane);
  if (lane->held && !lane->probing && lane->head)
    mig_tree_insert(&queue->held_lanes, &lane->node);
  else if (!lane->held && lane->head && !is_full(lane))
    mig_tree_insert(&queue->open, &lane->node);
}

void mig_lane_init(MigLane *lane, unsigned limit) {
  *lane = (MigLane){.limit = limit};
  mig_tree_init(&lane->ready, compare_ready);
}

void mig_queue_set_lane_limit(MigQueue *queue, MigLane *lane, unsigned limit) {
  take_lane(queue, lane);
  lane->limit = limit;
  put_lane(queue, lane);
}

static uint64_t pause_ms(unsigned tries) {
  uint64_t pause = MIG_RETRY_MIN_MS;

  while (--tries > 0 && pause < MIG_RETRY_MAX_MS)
    pause *= 2;
  return pause < MIG_RETRY_MAX_MS ? pause : MIG_RETRY_MAX_MS;
}

/* With the lane taken out. */
static void hold_lane(MigLane *lane, uint64_t now_ms) {
  if (!lane->held) {
    lane->held = true;
    lane->held_since_ms = now_ms;
    lane->tries = 0;
  }
  lane->tries++;
  lane->tried_ms = now_ms;
  lane->retry_ms = now_ms + pause_ms(lane->tries);
}

/* --- jobs in and out --- */

void mig_queue_init(MigQueue *queue, const MigQueueLimits *limits) {
  *queue = (MigQueue){.limits = *limits, .gate = MIG_ADMISSION_START};
  mig_tree_init(&queue->order, compare_order);
  mig_tree_init(&queue->open, compare_open);
  mig_tree_init(&queue->held, compare_held);
  mig_tree_init(&queue->held_lanes, compare_held_lanes);
}

/* With the lane taken out. */
static void make_ready(MigWaiting *job) {
  job->state = MIG_WAITING_READY;
  job->held_since_ms = 0;
  job->tries = 0;
  mig_tree_insert(&job->lane->ready, &job->in_lane);
}

void mig_queue_push(MigQueue *queue, MigWaiting *job, MigLane *lane, uint64_t now_ms) {
  job->key = key_of(queue, job);
  job->lane = lane;
  job->queued_ms = now_ms;
  take_lane(queue, lane);
  lane->jobs++;
  make_ready(job);
  /* Whoever submits a new job may have fixed the problem. */
  if (lane->held && lane->retry_ms > lane->tried_ms + MIG_RETRY_MIN_MS)
    lane->retry_ms = lane->tried_ms + MIG_RETRY_MIN_MS;
  put_lane(queue, lane);
  mig_tree_insert(&queue->order, &job->in_order);
}

void mig_queue_enter(MigQueue *queue, MigWaiting *job, MigLane *lane) {
  job->key = key_of(queue, job);
  job->lane = lane;
  job->state = MIG_WAITING_RUNNING;
  take_lane(queue, lane);
  lane->jobs++;
  lane->running++;
  put_lane(queue, lane);
  queue->running++;
}

/* Undoes a job's state, with its lane taken out. */
static void leave_state(MigQueue *queue, MigWaiting *job) {
  MigLane *lane = job->lane;

  switch (job->state) {
  case MIG_WAITING_READY:
    mig_tree_remove(&lane->ready, &job->in_lane);
    break;
  case MIG_WAITING_HELD:
    mig_tree_remove(&queue->held, &job->in_lane);
    break;
  case MIG_WAITING_PROBING:
    queue->probing--;
    if (lane->probing == job)
      lane->probing = NULL;
    break;
  case MIG_WAITING_RUNNING:
    queue->running--;
    lane->running--;
    break;
  case MIG_WAITING_OUT:
    break;
  }
}

void mig_queue_remove(MigQueue *queue, MigWaiting *job) {
  MigLane *lane = job->lane;

  if (job->state == MIG_WAITING_OUT)
    return;
  take_lane(queue, lane);
  leave_state(queue, job);
  lane->jobs--;
  put_lane(queue, lane);
  if (mig_tree_holds(&job->in_order))
    mig_tree_remove(&queue->order, &job->in_order);
  job->state = MIG_WAITING_OUT;
  job->lane = NULL;
}

void mig_queue_set_priority(MigQueue *queue, MigWaiting *job, MigPriority priority) {
  bool waits = mig_tree_holds(&job->in_order);

  take_lane(queue, job->lane);
  if (waits)
    mig_tree_remove(&queue->order, &job->in_order);
  if (job->state == MIG_WAITING_READY)
    mig_tree_remove(&job->lane->ready, &job->in_lane);
  job->priority = priority;
  job->key = key_of(queue, job);
  if (job->state == MIG_WAITING_READY)
    mig_tree_insert(&job->lane->ready, &job->in_lane);
  if (waits)
    mig_tree_insert(&queue->order, &job->in_order);
  put_lane(queue, job->lane);
}

/* The jobs are ordered by keys from the old aging. Each is found in its trees by its old key and put back by its new
 * one; the trees compare only keys, so they are in order after each. */
static void order_anew(MigQueue *queue) {
  MigTree done;

  mig_tree_init(&done, compare_order);
  for (MigTreeNode *node; (node = mig_tree_first(&queue->order));) {
    mig_queue_set_priority(queue, BY_ORDER(node), BY_ORDER(node)->priority);
    mig_tree_remove(&queue->order, node);
    mig_tree_insert(&done, node);
  }
  while (mig_tree_first(&done)) {
    MigTreeNode *node = mig_tree_first(&done);

    mig_tree_remove(&done, node);
    mig_tree_insert(&queue->order, node);
  }
}

void mig_queue_set_limits(MigQueue *queue, const MigQueueLimits *limits) {
  bool other_order = limits->aging_ms != queue->limits.aging_ms;

  queue->limits = *limits;
  if (other_order)
    order_anew(queue);
}

/* --- turns --- */

static void begin_probe(MigQueue *queue, MigWaiting *job) {
  MigLane *lane = job->lane;

  take_lane(queue, lane);
  leave_state(queue, job);
  job->state = MIG_WAITING_PROBING;
  if (lane->held)
    lane->probing = job;
  put_lane(queue, lane);
  mig_tree_remove(&queue->order, &job->in_order);
  queue->probing++;
}

/* The job is due, but its lane is still held: it checks again with the lane. */
static void join_lane(MigQueue *queue, MigWaiting *job) {
  take_lane(queue, job->lane);
  leave_state(queue, job);
  make_ready(job);
  put_lane(queue, job->lane);
}

static MigWaiting *next_probe(MigQueue *queue, uint64_t now_ms) {
  for (;;) {
    MigTreeNode *node = mig_tree_first(&queue->held), *lane_node = mig_tree_first(&queue->held_lanes);
    MigWaiting *job = node && BY_LANE(node)->retry_ms <= now_ms ? BY_LANE(node) : NULL;
    MigLane *lane = lane_node && LANE(lane_node)->retry_ms <= now_ms ? LANE(lane_node) : NULL;

    if (job && job->lane->held) {
      join_lane(queue, job);
      continue;
    }
    if (!job || (lane && lane->retry_ms < job->retry_ms))
      return lane ? lane->head : NULL;
    return job;
  }
}

static void start(MigQueue *queue, MigWaiting *job) {
  MigLane *lane = job->lane;

  take_lane(queue, lane);
  leave_state(queue, job);
  job->state = MIG_WAITING_RUNNING;
  lane->running++;
  put_lane(queue, lane);
  queue->running++;
  if (mig_tree_holds(&job->in_order))
    mig_tree_remove(&queue->order, &job->in_order);
}

MigTurn mig_queue_next(MigQueue *queue, uint64_t now_ms, MigWaiting **ret_job) {
  MigTreeNode *open = mig_tree_first(&queue->open);
  MigWaiting *job;

  if (open && queue->gate == MIG_ADMISSION_START && has_place(queue->running, queue->limits.max_outgoing)) {
    job = LANE(open)->head;
    start(queue, job);
    *ret_job = job;
    return MIG_TURN_START;
  }
  if (queue->gate == MIG_ADMISSION_NODE || queue->probing >= MIG_PROBES_MAX)
    return MIG_TURN_NONE;
  job = next_probe(queue, now_ms);
  if (!job)
    return MIG_TURN_NONE;
  begin_probe(queue, job);
  *ret_job = job;
  return MIG_TURN_PROBE;
}

/* Back to waiting, as READY or HELD, with its lane taken out. */
static void wait_again(MigQueue *queue, MigWaiting *job, bool held, uint64_t now_ms) {
  leave_state(queue, job);
  job->key = key_of(queue, job); /* the aging may have changed since */
  if (held) {
    if (job->held_since_ms == 0)
      job->held_since_ms = now_ms;
    job->tries++;
    job->retry_ms = now_ms + pause_ms(job->tries);
    job->state = MIG_WAITING_HELD;
    mig_tree_insert(&queue->held, &job->in_lane);
  } else {
    make_ready(job);
  }
  mig_tree_insert(&queue->order, &job->in_order);
}

bool mig_queue_passed(MigQueue *queue, MigWaiting *job, uint64_t now_ms) {
  MigLane *lane = job->lane;
  bool placed = job->state == MIG_WAITING_RUNNING;

  take_lane(queue, lane);
  lane->held = false;
  if (!placed && !is_full(lane) && queue->gate == MIG_ADMISSION_START &&
      has_place(queue->running, queue->limits.max_outgoing)) {
    leave_state(queue, job);
    job->state = MIG_WAITING_RUNNING;
    lane->running++;
    queue->running++;
    placed = true;
  } else if (!placed) {
    wait_again(queue, job, false, now_ms);
  }
  job->held_since_ms = 0;
  job->tries = 0;
  put_lane(queue, lane);
  return placed;
}

void mig_queue_hold(MigQueue *queue, MigWaiting *job, MigHold hold, uint64_t now_ms) {
  MigLane *lane = job->lane;

  take_lane(queue, lane);
  wait_again(queue, job, hold != MIG_HOLD_TARGET, now_ms);
  if (hold == MIG_HOLD_TARGET)
    hold_lane(lane, now_ms);
  else if (hold == MIG_HOLD_JOB)
    lane->held = false;
  put_lane(queue, lane);
}

/* --- why and where jobs wait --- */

MigAdmission mig_queue_why(const MigQueue *queue, const MigWaiting *job) {
  if (job->state == MIG_WAITING_HELD)
    return MIG_ADMISSION_HELD;
  if (job->lane && job->lane->held)
    return MIG_ADMISSION_TARGET_HELD;
  if (queue->gate == MIG_ADMISSION_NODE)
    return MIG_ADMISSION_NODE;
  if (job->lane && is_full(job->lane))
    return MIG_ADMISSION_TARGET_LIMIT;
  if (!has_place(queue->running, queue->limits.max_outgoing))
    return MIG_ADMISSION_OUTGOING_LIMIT;
  return queue->gate;
}

unsigned mig_queue_position(const MigWaiting *job) {
  return mig_tree_holds(&job->in_order) ? mig_tree_rank(&job->in_order) + 1 : 0;
}

uint64_t mig_queue_held_since_ms(const MigWaiting *job) {
  if (job->state == MIG_WAITING_HELD)
    return job->held_since_ms;
  if (job->state != MIG_WAITING_READY || !job->lane->held)
    return 0;
  return job->lane->held_since_ms > job->queued_ms ? job->lane->held_since_ms : job->queued_ms;
}

uint64_t mig_queue_retry_ms(const MigWaiting *job) {
  if (job->state == MIG_WAITING_HELD)
    return job->retry_ms;
  return job->state == MIG_WAITING_READY && job->lane->held ? job->lane->retry_ms : 0;
}

MigWaiting *mig_queue_first(const MigQueue *queue) {
  MigTreeNode *first = mig_tree_first(&queue->order);

  return first ? BY_ORDER(first) : NULL;
}

MigWaiting *mig_queue_after(const MigWaiting *job) {
  MigTreeNode *next = mig_tree_next(&job->in_order);

  return next ? BY_ORDER(next) : NULL;
}

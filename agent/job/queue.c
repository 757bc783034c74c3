/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The waiting jobs, on top of core's queue.
 *
 * Theory of Operation. core/admission.c decides whose turn it is. This file adds what core does not know: targets, each of which
 * is a lane; the limits that the configuration sets for them; and the words for what a job waits for. A condition that a
 * job's checks found belongs to the job or to its lane, as core was told, and ends with the hold. A lane lives as long as it
 * has jobs. Main thread only. */
#include "agent/job/queue.h"

#include <inttypes.h>
#include <string.h>

typedef struct Lane {
  MigLane lane; /* the first member */
  char *uri;
  char *name;       /* the target's, for people */
  const char *rule; /* the setting that limits it */
  JobCondition *condition;
} Lane;

struct JobQueue {
  const Config *config;
  MigQueue queue;
  GHashTable *lanes; /* uri → Lane */
  const char *gate_reason;
  char *gate_message;
};

static void condition_free(JobCondition *condition) {
  if (!condition)
    return;
  g_clear_error(&condition->error);
  g_free(condition);
}

static void lane_free(gpointer data) {
  Lane *lane = data;

  condition_free(lane->condition);
  g_free(lane->uri);
  g_free(lane->name);
  g_free(lane);
}

static MigQueueLimits limits_of(const Config *config) {
  return (MigQueueLimits){.max_outgoing = config->max_outgoing, .aging_ms = config->priority_aging_ms};
}

JobQueue *job_queue_new(const Config *config) {
  const MigQueueLimits limits = limits_of(config);
  JobQueue *queue = g_new0(JobQueue, 1);

  queue->config = config;
  queue->lanes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, lane_free);
  mig_queue_init(&queue->queue, &limits);
  return queue;
}

void job_queue_free(JobQueue *queue) {
  if (!queue)
    return;
  g_hash_table_unref(queue->lanes);
  g_free(queue->gate_message);
  g_free(queue);
}

/* --- lanes --- */

/* If several [Target]s have the same URI, the strictest limit applies: they are one host. */
static unsigned limit_of_target(const Config *config, const char *uri, const char **ret_rule) {
  unsigned limit = config->max_per_target;

  *ret_rule = "MaxPerTarget=";
  for (guint i = 0; i < config->targets->len; i++) {
    const ConfigTarget *target = config->targets->pdata[i];

    if (target->max_outgoing == 0 || strcmp(target->libvirt_uri, uri) != 0)
      continue;
    if (limit == 0 || g_str_equal(*ret_rule, "MaxPerTarget=") || target->max_outgoing < limit) {
      limit = target->max_outgoing;
      *ret_rule = "MaxOutgoing= of its [Target]";
    }
  }
  return limit;
}

static Lane *find_or_add_lane(JobQueue *queue, const Job *job) {
  Lane *lane = g_hash_table_lookup(queue->lanes, job->target_uri);

  if (lane)
    return lane;
  lane = g_new0(Lane, 1);
  lane->uri = g_strdup(job->target_uri);
  lane->name = g_strdup(job->target_name ? job->target_name : job->target_uri);
  mig_lane_init(&lane->lane, limit_of_target(queue->config, lane->uri, &lane->rule));
  g_hash_table_insert(queue->lanes, lane->uri, lane);
  return lane;
}

void job_queue_apply_config(JobQueue *queue) {
  const MigQueueLimits limits = limits_of(queue->config);
  GHashTableIter iter;
  gpointer value;

  mig_queue_set_limits(&queue->queue, &limits);
  g_hash_table_iter_init(&iter, queue->lanes);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    Lane *lane = value;

    mig_queue_set_lane_limit(&queue->queue, &lane->lane,
                             limit_of_target(queue->config, lane->uri, &lane->rule));
  }
}

static Lane *lane_of(const Job *job) {
  return (Lane *)job->place.waiting.lane;
}

static void forget_lane_if_empty(JobQueue *queue, Lane *lane) {
  if (lane->lane.jobs == 0)
    g_hash_table_remove(queue->lanes, lane->uri);
}

/* Any step may have ended the hold. */
static void tidy_condition(JobCondition **condition, bool held) {
  if (!held)
    g_clear_pointer(condition, condition_free);
}

/* --- jobs in and out --- */

static void prepare_waiting(Job *job) {
  job->place.waiting.priority = (MigPriority)mig_policy_get(&job->policy, MIG_POLICY_PRIORITY);
  job->place.waiting.arrived_ms = (uint64_t)(job->created_usec / 1000);
  job->place.waiting.seq = job->seq;
}

void job_queue_push(JobQueue *queue, Job *job, uint64_t now_ms) {
  prepare_waiting(job);
  mig_queue_push(&queue->queue, &job->place.waiting, &find_or_add_lane(queue, job)->lane, now_ms);
}

void job_queue_enter(JobQueue *queue, Job *job) {
  prepare_waiting(job);
  mig_queue_enter(&queue->queue, &job->place.waiting, &find_or_add_lane(queue, job)->lane);
}

bool job_queue_try_enter(JobQueue *queue, Job *job) {
  Lane *lane = find_or_add_lane(queue, job);

  if (queue->queue.running >= MAX(queue->config->max_outgoing, 1) ||
      (lane->lane.limit > 0 && lane->lane.running >= lane->lane.limit)) {
    forget_lane_if_empty(queue, lane);
    return false;
  }
  job_queue_enter(queue, job);
  return true;
}

void job_queue_remove(JobQueue *queue, Job *job) {
  Lane *lane = lane_of(job);

  if (!lane)
    return;
  mig_queue_remove(&queue->queue, &job->place.waiting);
  g_clear_pointer(&job->place.condition, condition_free);
  forget_lane_if_empty(queue, lane);
}

void job_queue_update(JobQueue *queue, Job *job) {
  if (lane_of(job))
    mig_queue_set_priority(&queue->queue, &job->place.waiting,
                           (MigPriority)mig_policy_get(&job->policy, MIG_POLICY_PRIORITY));
}

/* --- turns --- */

static Job *job_of(const MigWaiting *waiting) {
  return waiting ? (Job *)((char *)(uintptr_t)waiting - G_STRUCT_OFFSET(Job, place.waiting)) : NULL;
}

MigTurn job_queue_next(JobQueue *queue, uint64_t now_ms, Job **ret_job) {
  MigWaiting *waiting = NULL;
  MigTurn turn = mig_queue_next(&queue->queue, now_ms, &waiting);

  if (turn != MIG_TURN_NONE)
    *ret_job = job_of(waiting);
  return turn;
}

bool job_queue_passed(JobQueue *queue, Job *job, uint64_t now_ms) {
  bool placed = mig_queue_passed(&queue->queue, &job->place.waiting, now_ms);

  tidy_condition(&job->place.condition, false);
  tidy_condition(&lane_of(job)->condition, false);
  return placed;
}

void job_queue_hold(JobQueue *queue, Job *job, MigHold hold, const char *reason, MigCause cause,
                    const GError *error, uint64_t now_ms) {
  Lane *lane = lane_of(job);
  JobCondition **condition = hold == MIG_HOLD_TARGET ? &lane->condition : &job->place.condition;

  mig_queue_hold(&queue->queue, &job->place.waiting, hold, now_ms);
  g_clear_pointer(condition, condition_free);
  *condition = g_new0(JobCondition, 1);
  **condition = (JobCondition){
      .reason = g_intern_string(reason), .cause = cause, .error = error ? g_error_copy(error) : NULL};
  (*condition)->tries = hold == MIG_HOLD_TARGET ? lane->lane.tries : job->place.waiting.tries;
  tidy_condition(&job->place.condition, job->place.waiting.state == MIG_WAITING_HELD);
  tidy_condition(&lane->condition, lane->lane.held);
}

void job_queue_set_gate(JobQueue *queue, MigAdmission gate, const char *reason, const char *message) {
  queue->queue.gate = gate;
  queue->gate_reason = reason;
  g_free(queue->gate_message);
  queue->gate_message = g_strdup(message);
}

/* --- explanations --- */

unsigned job_queue_count_running(const JobQueue *queue) {
  return queue->queue.running;
}

Job *job_queue_first(const JobQueue *queue) {
  return job_of(mig_queue_first(&queue->queue));
}

Job *job_queue_after(const Job *job) {
  return job_of(mig_queue_after(&job->place.waiting));
}

unsigned job_queue_position(const Job *job) {
  return mig_queue_position(&job->place.waiting);
}

unsigned job_queue_limit_of_target(const JobQueue *queue, const char *uri) {
  const char *rule;

  return limit_of_target(queue->config, uri, &rule);
}

MigHold job_queue_held(const JobQueue *queue, const Job *job) {
  switch (mig_queue_why(&queue->queue, &job->place.waiting)) {
  case MIG_ADMISSION_HELD:
    return MIG_HOLD_JOB;
  case MIG_ADMISSION_TARGET_HELD:
    return MIG_HOLD_TARGET;
  default:
    return MIG_HOLD_NONE;
  }
}

static const JobCondition *condition_of(const JobQueue *queue, const Job *job) {
  switch (mig_queue_why(&queue->queue, &job->place.waiting)) {
  case MIG_ADMISSION_HELD:
    return job->place.condition;
  case MIG_ADMISSION_TARGET_HELD:
    return lane_of(job)->condition;
  default:
    return NULL;
  }
}

static bool is_gate(MigAdmission why) {
  return why == MIG_ADMISSION_NODE || why == MIG_ADMISSION_BANDWIDTH_LIMIT;
}

const char *job_queue_reason(const JobQueue *queue, const Job *job) {
  MigAdmission why = mig_queue_why(&queue->queue, &job->place.waiting);
  const JobCondition *condition = condition_of(queue, job);

  if (condition)
    return condition->reason;
  return is_gate(why) ? queue->gate_reason : mig_admission_name(why);
}

static char *explain_limit(const JobQueue *queue, const Job *job, MigAdmission why) {
  const Lane *lane = lane_of(job);

  switch (why) {
  case MIG_ADMISSION_OUTGOING_LIMIT:
    return g_strdup_printf("%u of at most %u migrations out of this node are running (MaxOutgoing=)",
                           queue->queue.running, queue->config->max_outgoing);
  case MIG_ADMISSION_TARGET_LIMIT:
    return g_strdup_printf("%u of at most %u migrations to %s are running (%s)", lane->lane.running,
                           lane->lane.limit, lane->name, lane->rule);
  case MIG_ADMISSION_NODE:
  case MIG_ADMISSION_BANDWIDTH_LIMIT:
    return g_strdup(queue->gate_message);
  default:
    return g_strdup("next in the queue");
  }
}

/* While this node's libvirtd is away, nothing is checked again. */
static char *explain_condition(const JobQueue *queue, const JobCondition *condition, uint64_t retry_ms,
                               uint64_t now_ms) {
  const char *text = condition->error ? condition->error->message : mig_cause_describe(condition->cause);
  uint64_t left_s = retry_ms > now_ms ? (retry_ms - now_ms + 999) / 1000 : 0;

  if (queue->queue.gate == MIG_ADMISSION_NODE)
    return g_strdup_printf("%s (checked %u time%s; next check when this node's libvirtd answers)", text,
                           condition->tries, condition->tries == 1 ? "" : "s");

  return g_strdup_printf("%s (checked %u time%s; next check in %" PRIu64 " s)", text, condition->tries,
                         condition->tries == 1 ? "" : "s", left_s);
}

void job_queue_explain(const JobQueue *queue, const Job *job, uint64_t now_ms, JobPending *ret_pending) {
  const JobCondition *condition = condition_of(queue, job);

  *ret_pending = (JobPending){
      .reason = job_queue_reason(queue, job),
      .condition = condition,
      .held_since_ms = condition ? mig_queue_held_since_ms(&job->place.waiting) : 0,
      .retry_ms = condition ? mig_queue_retry_ms(&job->place.waiting) : 0,
  };
  ret_pending->message = condition
                             ? explain_condition(queue, condition, ret_pending->retry_ms, now_ms)
                             : explain_limit(queue, job, mig_queue_why(&queue->queue, &job->place.waiting));
}

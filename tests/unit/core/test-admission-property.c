/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The queue under random arrivals, limits and failures, beside a model that is slow and plain.
 *
 * A seed makes a node: its limits, targets that are away for a while or let only so many in, jobs that come in bursts
 * with any priority, some with a condition of their own that passes. Under a virtual clock the queue is asked for turns as
 * the agent does; now and then limits and the aging are changed, as by a reload, or the agent is killed and reads its
 * records. After each moment:
 *   - no limit is exceeded: places in all, places of a target, probes; of a limit that was lowered, or is that of an agent
 *     which was killed, nobody begins beyond it;
 *   - who starts is the first by priority and age of all that could;
 *   - each reason that a waiting job is given is true, and none is that it is its turn;
 *   - positions are those of a sort;
 * and in the end nobody is left, within a time that the work itself takes.
 *
 * Beside that, one who comes last in a node that is never idle again is followed until it is his turn. */
#include "libmigrate/core/admission.h"

#include "tests/unit/core/rows.h"

#include <inttypes.h>

#define SEEDS     400
#define JOBS_MAX  160
#define LANES_MAX 6
#define NEVER     UINT64_MAX

typedef enum ModelState { TO_COME, WAITS, CHECKING, MOVING, OVER } ModelState;

typedef struct ModelJob {
  MigWaiting waiting; /* the first member */
  ModelState state;
  unsigned lane;
  uint64_t come_ms;
  bool placed;           /* while CHECKING: it was given a place with its turn */
  bool held;             /* by a condition of its own */
  uint64_t condition_ms; /* that lasts until then */
  uint64_t until_ms;     /* the end of what it is at */
  bool fails;            /* its checks find what waiting cannot cure */
} ModelJob;

typedef struct ModelLane {
  MigLane lane;
  bool held;
  uint64_t away_from_ms, away_until_ms;
  unsigned excess; /* so many have a place, of before the limit was so low; 0: not more than it */
} ModelLane;

typedef struct Model {
  uint64_t random;
  MigQueue queue;
  unsigned max_outgoing;
  uint64_t aging_ms;
  ModelLane lanes[LANES_MAX];
  unsigned n_lanes;
  ModelJob jobs[JOBS_MAX];
  unsigned n_jobs;
  uint64_t now_ms;
  uint64_t gate_from_ms, gate_until_ms; /* no share of the bandwidth is free */
  unsigned excess;                      /* as of a lane */
  unsigned long starts, probes, changes, kills;
} Model;

static uint64_t draw(Model *model, uint64_t below) {
  model->random ^= model->random << 13;
  model->random ^= model->random >> 7;
  model->random ^= model->random << 17;
  return below ? (model->random >> 11) % below : 0;
}

static bool chance(Model *model, unsigned pct) {
  return draw(model, 100) < pct;
}

static const uint64_t agings[] = {0, 1000, 20000, 300000};

static void make(Model *model, uint64_t seed) {
  uint64_t come_ms = 1;

  *model = (Model){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  for (int i = 0; i < 8; i++)
    draw(model, 0);
  model->max_outgoing = (unsigned)draw(model, 6);
  model->aging_ms = agings[draw(model, LENGTH(agings))];
  mig_queue_init(&model->queue,
                 &(MigQueueLimits){.max_outgoing = model->max_outgoing, .aging_ms = model->aging_ms});
  model->n_lanes = 1 + (unsigned)draw(model, LANES_MAX);
  for (unsigned i = 0; i < model->n_lanes; i++) {
    ModelLane *lane = &model->lanes[i];

    mig_lane_init(&lane->lane, (unsigned)draw(model, 4));
    if (chance(model, 40)) {
      lane->away_from_ms = draw(model, 60000);
      lane->away_until_ms = lane->away_from_ms + draw(model, 200000);
    }
  }
  if (chance(model, 30)) {
    model->gate_from_ms = draw(model, 60000);
    model->gate_until_ms = model->gate_from_ms + draw(model, 60000);
  }
  model->n_jobs = 1 + (unsigned)draw(model, JOBS_MAX);
  for (unsigned i = 0; i < model->n_jobs; i++) {
    ModelJob *job = &model->jobs[i];

    come_ms += chance(model, 60) ? 0 : draw(model, 4000);
    job->come_ms = come_ms;
    job->lane = (unsigned)draw(model, model->n_lanes);
    job->fails = chance(model, 10);
    job->condition_ms = chance(model, 10) ? come_ms + draw(model, 120000) : 0;
    job->waiting = (MigWaiting){.priority = (MigPriority)draw(model, MIG_PRIORITY_COUNT),
                                .arrived_ms = UINT64_C(1700000000000) + come_ms,
                                .seq = i + 1};
  }
}

/* --- what is so, plainly --- */

static unsigned limit_of(const Model *model) {
  return model->max_outgoing > 0 ? model->max_outgoing : 1;
}

static bool has_place(const ModelJob *job) {
  return job->state == MOVING || (job->state == CHECKING && job->placed);
}

static unsigned placed(const Model *model, int lane) {
  unsigned n = 0;

  for (unsigned i = 0; i < model->n_jobs; i++)
    n += has_place(&model->jobs[i]) && (lane < 0 || model->jobs[i].lane == (unsigned)lane);
  return n;
}

static bool lane_is_full(const Model *model, unsigned lane) {
  unsigned limit = model->lanes[lane].lane.limit;

  return limit > 0 && placed(model, (int)lane) >= limit;
}

/* Below 0: a goes first. By the words of the manual, not by the key that the queue keeps. */
static int compare(const Model *model, const MigWaiting *a, const MigWaiting *b) {
  if (model->aging_ms == 0 && a->priority != b->priority)
    return a->priority < b->priority ? -1 : 1;
  if (model->aging_ms > 0) {
    /* b is of a class so many worse, and may have waited that many times the aging longer. */
    int64_t worse = (int64_t)b->priority - (int64_t)a->priority;
    int64_t longer = (int64_t)a->arrived_ms - (int64_t)b->arrived_ms;
    int64_t ahead = worse * (int64_t)model->aging_ms - longer;

    if (ahead != 0)
      return ahead > 0 ? -1 : 1;
  } else if (a->arrived_ms != b->arrived_ms) {
    return a->arrived_ms < b->arrived_ms ? -1 : 1;
  }
  return a->seq < b->seq ? -1 : 1;
}

static bool could_start(const Model *model, const ModelJob *job) {
  return job->state == WAITS && !job->held && !model->lanes[job->lane].held &&
         !lane_is_full(model, job->lane);
}

static void assert_is_the_first(const Model *model, const ModelJob *started) {
  assert_true(could_start(model, started));
  assert_true(placed(model, -1) < limit_of(model));
  for (unsigned i = 0; i < model->n_jobs; i++) {
    const ModelJob *job = &model->jobs[i];

    if (job == started || !could_start(model, job))
      continue;
    assert_true(compare(model, &started->waiting, &job->waiting) < 0);
    /* No starvation: nobody is passed by one who came more than four classes' worth later. */
    if (model->aging_ms > 0)
      assert_true(started->waiting.arrived_ms <= job->waiting.arrived_ms + 4 * model->aging_ms);
  }
}

static void assert_reason_is_true(const Model *model, const ModelJob *job) {
  switch (mig_queue_why(&model->queue, &job->waiting)) {
  case MIG_ADMISSION_OUTGOING_LIMIT:
    assert_true(placed(model, -1) >= limit_of(model));
    return;
  case MIG_ADMISSION_TARGET_LIMIT:
    assert_true(lane_is_full(model, job->lane));
    return;
  case MIG_ADMISSION_BANDWIDTH_LIMIT:
    assert_true(model->now_ms >= model->gate_from_ms && model->now_ms < model->gate_until_ms);
    return;
  case MIG_ADMISSION_TARGET_HELD:
    assert_true(model->lanes[job->lane].held);
    assert_true(mig_queue_held_since_ms(&job->waiting) > 0);
    return;
  case MIG_ADMISSION_HELD:
    assert_true(job->held);
    assert_true(mig_queue_held_since_ms(&job->waiting) > 0);
    return;
  default:
    fail_msg("job %" PRIu64 " waits, and is told that it is its turn", job->waiting.seq);
  }
}

static void assert_position_is_that_of_a_sort(const Model *model, const ModelJob *job) {
  unsigned before = 0;

  for (unsigned i = 0; i < model->n_jobs; i++)
    before += model->jobs[i].state == WAITS && &model->jobs[i] != job &&
              compare(model, &model->jobs[i].waiting, &job->waiting) < 0;
  assert_int_equal(mig_queue_position(&job->waiting), before + 1);
}

static unsigned larger(unsigned a, unsigned b) {
  return a > b ? a : b;
}

/* What is beyond a limit gets less, and never more. */
static void follow_excess(Model *model) {
  if (placed(model, -1) < model->excess)
    model->excess = placed(model, -1);
  for (unsigned i = 0; i < model->n_lanes; i++)
    if (placed(model, (int)i) < model->lanes[i].excess)
      model->lanes[i].excess = placed(model, (int)i);
}

static void assert_all_is_so(Model *model) {
  unsigned waiting = 0, probing = 0;

  assert_true(placed(model, -1) <= larger(limit_of(model), model->excess));
  follow_excess(model);
  assert_int_equal(model->queue.running, placed(model, -1));
  for (unsigned i = 0; i < model->n_lanes; i++) {
    unsigned limit = model->lanes[i].lane.limit;

    assert_true(limit == 0 || placed(model, (int)i) <= larger(limit, model->lanes[i].excess));
  }
  for (unsigned i = 0; i < model->n_jobs; i++) {
    const ModelJob *job = &model->jobs[i];

    waiting += job->state == WAITS;
    probing += job->state == CHECKING && !job->placed;
    if (job->state == WAITS) {
      assert_reason_is_true(model, job);
      if (chance(model, 10))
        assert_position_is_that_of_a_sort(model, job);
    } else {
      assert_int_equal(mig_queue_position(&job->waiting), 0);
    }
  }
  assert_true(probing <= MIG_PROBES_MAX);
  assert_int_equal(mig_queue_waiting(&model->queue), waiting);
}

/* --- what happens --- */

static void begin_checks(Model *model, MigWaiting *waiting, MigTurn turn) {
  ModelJob *job = (ModelJob *)waiting;

  if (turn == MIG_TURN_START) {
    assert_is_the_first(model, job);
    model->starts++;
  } else {
    /* Looked at only when something held it, and not before its time. */
    assert_true(job->state == WAITS && (job->held || model->lanes[job->lane].held));
    model->probes++;
  }
  job->state = CHECKING;
  job->placed = turn == MIG_TURN_START;
  job->until_ms = model->now_ms + 1 + draw(model, 3000);
}

static void finish(Model *model, ModelJob *job) {
  mig_queue_remove(&model->queue, &job->waiting);
  job->state = OVER;
  job->until_ms = NEVER;
}

static void hold(Model *model, ModelJob *job, MigHold what) {
  mig_queue_hold(&model->queue, &job->waiting, what, model->now_ms);
  job->state = WAITS;
  job->until_ms = NEVER;
  job->held = what != MIG_HOLD_TARGET;
  model->lanes[job->lane].held = what == MIG_HOLD_TARGET;
}

static void end_checks(Model *model, ModelJob *job) {
  ModelLane *lane = &model->lanes[job->lane];

  if (model->now_ms >= lane->away_from_ms && model->now_ms < lane->away_until_ms) {
    hold(model, job, MIG_HOLD_TARGET);
  } else if (job->fails) {
    finish(model, job);
  } else if (model->now_ms < job->condition_ms) {
    hold(model, job, MIG_HOLD_JOB);
  } else {
    lane->held = job->held = false;
    if (mig_queue_passed(&model->queue, &job->waiting, model->now_ms)) {
      job->state = MOVING;
      job->until_ms = model->now_ms + 1 + draw(model, 20000);
    } else {
      assert_false(job->placed);
      job->state = WAITS;
      job->until_ms = NEVER;
    }
  }
}

/* The queue may give a held job back to its lane by itself, once the lane is held as well. */
static void follow_rejoining(Model *model) {
  for (unsigned i = 0; i < model->n_jobs; i++)
    if (model->jobs[i].state == WAITS && model->jobs[i].held &&
        model->jobs[i].waiting.state == MIG_WAITING_READY) {
      assert_true(model->lanes[model->jobs[i].lane].held);
      model->jobs[i].held = false;
    }
}

static void take_turns(Model *model) {
  MigWaiting *job;
  MigTurn turn;

  model->queue.gate = model->now_ms >= model->gate_from_ms && model->now_ms < model->gate_until_ms
                          ? MIG_ADMISSION_BANDWIDTH_LIMIT
                          : MIG_ADMISSION_START;
  while ((turn = mig_queue_next(&model->queue, model->now_ms, &job)) != MIG_TURN_NONE) {
    follow_rejoining(model);
    begin_checks(model, job, turn);
  }
  follow_rejoining(model);
}

static void happen(Model *model) {
  for (unsigned i = 0; i < model->n_jobs; i++) {
    ModelJob *job = &model->jobs[i];

    if (job->state == TO_COME && job->come_ms <= model->now_ms) {
      job->state = WAITS;
      job->until_ms = NEVER;
      mig_queue_push(&model->queue, &job->waiting, &model->lanes[job->lane].lane, model->now_ms);
    } else if (job->state == CHECKING && job->until_ms <= model->now_ms) {
      end_checks(model, job);
    } else if (job->state == MOVING && job->until_ms <= model->now_ms) {
      finish(model, job);
    } else if (job->state != TO_COME && job->state != OVER && chance(model, 1) && chance(model, 10)) {
      finish(model, job); /* aborted, at whatever it is */
    } else if (job->state == WAITS && chance(model, 1)) {
      mig_queue_set_priority(&model->queue, &job->waiting, (MigPriority)draw(model, MIG_PRIORITY_COUNT));
    }
  }
}

static void note_excess(Model *model) {
  model->excess = placed(model, -1);
  for (unsigned i = 0; i < model->n_lanes; i++)
    model->lanes[i].excess = placed(model, (int)i);
}

/* As by a reload. */
static void change_limits(Model *model) {
  model->max_outgoing = (unsigned)draw(model, 6);
  model->aging_ms = agings[draw(model, LENGTH(agings))];
  mig_queue_set_limits(&model->queue,
                       &(MigQueueLimits){.max_outgoing = model->max_outgoing, .aging_ms = model->aging_ms});
  for (unsigned i = 0; i < model->n_lanes; i++)
    mig_queue_set_lane_limit(&model->queue, &model->lanes[i].lane, (unsigned)draw(model, 4));
  note_excess(model);
  model->changes++;
}

/* Of the queue nothing is left; what moves goes on, and all the rest waits again, with what the records have of it. */
static void kill_agent(Model *model) {
  const MigQueueLimits limits = model->queue.limits;

  mig_queue_init(&model->queue, &limits);
  for (unsigned i = 0; i < model->n_lanes; i++) {
    mig_lane_init(&model->lanes[i].lane, model->lanes[i].lane.limit);
    model->lanes[i].held = false;
  }
  for (unsigned i = 0; i < model->n_jobs; i++) {
    ModelJob *job = &model->jobs[i];
    MigLane *lane = &model->lanes[job->lane].lane;

    if (job->state == TO_COME || job->state == OVER)
      continue;
    job->waiting = (MigWaiting){
        .priority = job->waiting.priority, .arrived_ms = job->waiting.arrived_ms, .seq = job->waiting.seq};
    if (job->state == MOVING) {
      mig_queue_enter(&model->queue, &job->waiting, lane);
      continue;
    }
    job->state = WAITS;
    job->held = job->placed = false;
    job->until_ms = NEVER;
    mig_queue_push(&model->queue, &job->waiting, lane, model->now_ms);
  }
  note_excess(model);
  model->kills++;
}

/* When something happens next, by itself or since a time to look again has come. */
static uint64_t next_ms(const Model *model) {
  uint64_t next = NEVER;

  for (unsigned i = 0; i < model->n_jobs; i++) {
    const ModelJob *job = &model->jobs[i];
    uint64_t at = job->state == TO_COME ? job->come_ms
                  : job->state == WAITS ? mig_queue_retry_ms(&job->waiting)
                                        : job->until_ms;

    if (job->state != OVER && at > model->now_ms && at < next)
      next = at;
  }
  if (model->now_ms < model->gate_until_ms && model->gate_until_ms < next)
    next = model->gate_until_ms;
  return next;
}

static bool is_over(const Model *model) {
  for (unsigned i = 0; i < model->n_jobs; i++)
    if (model->jobs[i].state != OVER)
      return false;
  return true;
}

/* All the work one after the other, and what may have to be waited for before it. */
static uint64_t bound_ms(const Model *model) {
  uint64_t last = model->jobs[model->n_jobs - 1].come_ms;

  return last + 60000 + 200000 + 120000 + MIG_RETRY_MAX_MS + (uint64_t)model->n_jobs * (20000 + 4 * 3000);
}

static void random_nodes(void **state) {
  static Model model;
  unsigned long starts = 0, probes = 0, changes = 0, kills = 0;

  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    make(&model, seed);
    print_message("# seed %" PRIu64 "\n", seed);
    while (!is_over(&model)) {
      uint64_t next = next_ms(&model);

      if (next == NEVER)
        fail_msg("seed %" PRIu64 ": jobs wait, and nothing will happen", seed);
      model.now_ms = next;
      happen(&model);
      if (chance(&model, 1))
        change_limits(&model);
      if (chance(&model, 1) && chance(&model, 30))
        kill_agent(&model);
      take_turns(&model);
      assert_all_is_so(&model);
      assert_true(model.now_ms <= bound_ms(&model));
    }
    assert_int_equal(model.queue.running + model.queue.probing, 0);
    for (unsigned i = 0; i < model.n_lanes; i++)
      assert_int_equal(model.lanes[i].lane.jobs, 0);
    starts += model.starts;
    probes += model.probes;
    changes += model.changes;
    kills += model.kills;
  }
  /* The dice were not so kind that nothing was tried. */
  assert_true(starts > 10000 && probes > 1000 && changes > 400 && kills > 100);
}

/* --- an endless stream --- */

enum { STREAM = 4000 };

static const struct Stream {
  const char *name;
  MigPriority patient; /* the class of the one who waits */
  MigPriority stream;  /* of those who keep coming, more than can ever be served */
  uint64_t aging_ms;
  unsigned fails_pct; /* of the stream */
  bool same_target;
} streams[] = {
    {"the lowest class waits for the highest", MIG_PRIORITY_DEFAULT, MIG_PRIORITY_RUNNING, 60000, 0, true},
    {"the lowest for the next", MIG_PRIORITY_DEFAULT, MIG_PRIORITY_MAINTENANCE, 60000, 0, true},
    {"for those of another target", MIG_PRIORITY_DEFAULT, MIG_PRIORITY_CRITICAL, 60000, 0, false},
    {"for many that fail", MIG_PRIORITY_DEFAULT, MIG_PRIORITY_RUNNING, 60000, 70, true},
    {"for its own class", MIG_PRIORITY_USER, MIG_PRIORITY_USER, 60000, 0, true},
    {"for a lower one", MIG_PRIORITY_CRITICAL, MIG_PRIORITY_DEFAULT, 60000, 0, true},
    {"without aging, for its own class", MIG_PRIORITY_USER, MIG_PRIORITY_USER, 0, 0, true},
};

/* One place; each takes a second, and one comes each half a second: what waits gets ever more. */
static void whoever_waits_has_his_turn(void **state) {
  const struct Stream *row = *state;
  static MigWaiting jobs[STREAM];
  uint64_t classes = row->patient > row->stream ? (uint64_t)(row->patient - row->stream) : 0, now_ms = 1000;
  MigWaiting patient, *running = NULL;
  MigLane lanes[2];
  Model dice = {.random = 12345};
  MigQueue queue;
  unsigned come = 0;

  memset(jobs, 0, sizeof jobs);
  mig_queue_init(&queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = row->aging_ms});
  mig_lane_init(&lanes[0], 0);
  mig_lane_init(&lanes[1], 0);
  patient = (MigWaiting){.priority = row->patient, .arrived_ms = 100 * 500, .seq = 1};
  for (; come < STREAM; now_ms += 500) {
    if (come == 100)
      mig_queue_push(&queue, &patient, &lanes[row->same_target ? 0 : 1], now_ms);
    jobs[come] = (MigWaiting){.priority = row->stream, .arrived_ms = come * 500, .seq = come + 10};
    mig_queue_push(&queue, &jobs[come], &lanes[0], now_ms);
    come++;
    if (running && (come % 2 == 0 || chance(&dice, row->fails_pct))) {
      mig_queue_remove(&queue, running);
      running = NULL;
    }
    if (!running && mig_queue_next(&queue, now_ms, &running) == MIG_TURN_START && running == &patient)
      return;
    /* By none who came more than that much later. */
    if (running)
      assert_true(running->arrived_ms <= patient.arrived_ms + classes * row->aging_ms);
  }
  fail_msg("%u came, and it was never its turn", come);
}

int main(void) {
  Tests tests = {0};

  tests_add(&tests, "random nodes keep the rules", random_nodes, NULL);
  TESTS_ADD_ROWS(&tests, whoever_waits_has_his_turn, streams);
  return tests_run(&tests, "admission-property");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose turn it is, and why the others wait. */
#include "libmigrate/core/admission.h"

#include "tests/unit/core/rows.h"

#define AGING_MS 300000

/* --- stories: a line of steps, and what is so afterwards --- */

enum { JOBS = 8, LANES = 3 };

typedef enum StepKind {
  STEP_END,
  STEP_PUSH,           /* job, of a priority, to a lane */
  STEP_TURN,           /* the next turn is of this kind, and this job's */
  STEP_NOBODY,         /* it is nobody's turn */
  STEP_PASSED,         /* job's checks passed, and it has a place */
  STEP_PASSED_WITHOUT, /* … and there is no place for it */
  STEP_HOLD,           /* job's checks found a condition of this kind */
  STEP_REMOVE,         /* job is over */
  STEP_ENTER,          /* job of before, in a lane */
  STEP_WAIT,           /* so many ms pass */
  STEP_GATE,           /* the caller closes or opens the gate */
  STEP_WHY,            /* job waits for this reason */
  STEP_POSITION        /* job has this position; 0: it does not wait */
} StepKind;

typedef struct Step {
  StepKind kind;
  int a; /* the job, but for WAIT, GATE and NOBODY */
  int b;
  int c;
} Step;

typedef struct Story {
  const char *name;
  unsigned max_outgoing;
  unsigned lane_limit; /* of lane 1 */
  uint64_t aging_ms;
  Step steps[24];
} Story;

#define PUSH(job, priority, lane)                                                                            \
  { STEP_PUSH, job, MIG_PRIORITY_##priority, lane }
#define START(job)                                                                                           \
  { STEP_TURN, job, MIG_TURN_START, 0 }
#define PROBE(job)                                                                                           \
  { STEP_TURN, job, MIG_TURN_PROBE, 0 }
#define NOBODY                                                                                               \
  { STEP_NOBODY, 0, 0, 0 }
#define PASSED(job)                                                                                          \
  { STEP_PASSED, job, 0, 0 }
#define PASSED_WITHOUT(job)                                                                                  \
  { STEP_PASSED_WITHOUT, job, 0, 0 }
#define HOLD(job, what)                                                                                      \
  { STEP_HOLD, job, MIG_HOLD_##what, 0 }
#define REMOVE(job)                                                                                          \
  { STEP_REMOVE, job, 0, 0 }
#define ENTER(job, lane)                                                                                     \
  { STEP_ENTER, job, MIG_PRIORITY_DEFAULT, lane }
#define WAIT(ms)                                                                                             \
  { STEP_WAIT, ms, 0, 0 }
#define GATE(why)                                                                                            \
  { STEP_GATE, MIG_ADMISSION_##why, 0, 0 }
#define WHY(job, why)                                                                                        \
  { STEP_WHY, job, MIG_ADMISSION_##why, 0 }
#define POSITION(job, position)                                                                              \
  { STEP_POSITION, job, position, 0 }

static const Story stories[] = {
    {"an idle node starts one", 2, 0, AGING_MS, {PUSH(0, USER, 0), START(0), NOBODY}},
    {"a limit of two takes a second, and no third",
     2,
     0,
     AGING_MS,
     {PUSH(0, USER, 0), PUSH(1, USER, 0), PUSH(2, USER, 0), START(0), START(1), NOBODY,
      WHY(2, OUTGOING_LIMIT), POSITION(2, 1), POSITION(1, 0)}},
    {"a limit of none is one, not a queue that never moves",
     0,
     0,
     AGING_MS,
     {PUSH(0, USER, 0), PUSH(1, USER, 0), START(0), NOBODY, WHY(1, OUTGOING_LIMIT)}},
    {"who ran before a restart counts, even beyond the limit",
     1,
     0,
     AGING_MS,
     {ENTER(0, 0), ENTER(1, 0), PUSH(2, USER, 0), NOBODY, REMOVE(0), NOBODY, WHY(2, OUTGOING_LIMIT),
      REMOVE(1), START(2)}},
    {"the older of equals comes first",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 0), PUSH(1, USER, 0), START(0), REMOVE(0), START(1)}},
    {"priority comes before age",
     1,
     0,
     AGING_MS,
     {PUSH(0, DEFAULT, 0), PUSH(1, CRITICAL, 0), PUSH(2, MAINTENANCE, 0), PUSH(3, RUNNING, 0),
      PUSH(4, USER, 0), POSITION(3, 1), POSITION(1, 2), POSITION(4, 3), POSITION(2, 4), POSITION(0, 5),
      START(3), NOBODY}},
    {"a job that has waited for a class's worth is passed by that class no more",
     1,
     0,
     AGING_MS,
     {PUSH(0, DEFAULT, 0), WAIT(AGING_MS - 1), PUSH(1, MAINTENANCE, 0), WAIT(2), PUSH(2, MAINTENANCE, 0),
      POSITION(1, 1), POSITION(0, 2), POSITION(2, 3)}},
    {"after four classes' worth nothing passes it",
     1,
     0,
     AGING_MS,
     {PUSH(0, DEFAULT, 0), WAIT(4 * AGING_MS + 1), PUSH(1, RUNNING, 0), START(0), NOBODY}},
    {"without aging a class always passes a lower one",
     1,
     0,
     0,
     {PUSH(0, DEFAULT, 0), PUSH(2, DEFAULT, 0), WAIT(100 * AGING_MS), PUSH(1, MAINTENANCE, 0), START(1),
      REMOVE(1), START(0)}},
    {"a full target stands in nobody's way",
     4,
     1,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), PUSH(2, USER, 0), START(0), START(2), NOBODY, WHY(1, TARGET_LIMIT),
      POSITION(1, 1), REMOVE(2), NOBODY, REMOVE(0), START(1)}},
    {"a target that is away holds all that go there, and nobody else",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), PUSH(2, DEFAULT, 0), START(0), HOLD(0, TARGET), START(2), NOBODY,
      WHY(0, TARGET_HELD), WHY(1, TARGET_HELD), POSITION(0, 1), POSITION(1, 2)}},
    {"one job looks whether the target is back, without a place",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), PUSH(2, USER, 0), START(0), HOLD(0, TARGET), START(2), NOBODY,
      WAIT(MIG_RETRY_MIN_MS), PROBE(0), NOBODY, POSITION(0, 0), POSITION(1, 1), PASSED_WITHOUT(0),
      WHY(0, OUTGOING_LIMIT), WHY(1, OUTGOING_LIMIT), REMOVE(2), START(0), NOBODY}},
    {"a probe that passes takes a place that is free",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS), PROBE(0), PASSED(0),
      PUSH(1, USER, 0), NOBODY, WHY(1, OUTGOING_LIMIT)}},
    {"the pause doubles with each time",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS - 1), NOBODY, WAIT(1), PROBE(0),
      HOLD(0, TARGET), WAIT(2 * MIG_RETRY_MIN_MS - 1), NOBODY, WAIT(1), PROBE(0), HOLD(0, TARGET),
      WAIT(4 * MIG_RETRY_MIN_MS - 1), NOBODY, WAIT(1), PROBE(0)}},
    {"a new job has a target that is held looked at soon",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS), PROBE(0), HOLD(0, TARGET),
      WAIT(MIG_RETRY_MIN_MS), NOBODY, PUSH(1, DEFAULT, 1), WHY(1, TARGET_HELD), PROBE(0)}},
    {"a condition of one job holds no other to the same target",
     2,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), START(0), HOLD(0, JOB), START(1), NOBODY, WHY(0, HELD),
      POSITION(0, 1), WAIT(MIG_RETRY_MIN_MS), PROBE(0), PASSED(0), NOBODY}},
    {"the checks of a probe that reached the target free the others",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS), PROBE(0),
      HOLD(0, JOB), WHY(0, HELD), START(1)}},
    {"a condition of the node says nothing of the target",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS), PROBE(0),
      HOLD(0, NODE), WHY(0, HELD), WHY(1, TARGET_HELD), PROBE(1)}},
    {"when the probe of a target is over, the next one looks",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), START(0), HOLD(0, TARGET), WAIT(MIG_RETRY_MIN_MS), PROBE(0),
      REMOVE(0), PROBE(1)}},
    {"a job that was held goes with its target, should that be held now",
     2,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), PUSH(1, USER, 1), START(0), START(1), HOLD(0, JOB), WAIT(500), HOLD(1, TARGET),
      WAIT(MIG_RETRY_MIN_MS - 500), NOBODY, WHY(0, TARGET_HELD), WAIT(500), PROBE(0), WHY(1, TARGET_HELD),
      PASSED(0), START(1)}},
    {"no share of the bandwidth starts nobody, but looks",
     4,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), START(0), HOLD(0, TARGET), PUSH(1, USER, 0), GATE(BANDWIDTH_LIMIT), NOBODY,
      WHY(1, BANDWIDTH_LIMIT), WAIT(MIG_RETRY_MIN_MS), PROBE(0), PASSED_WITHOUT(0), WHY(0, BANDWIDTH_LIMIT),
      NOBODY, GATE(START), START(0), START(1)}},
    {"a condition of the node stops all, probes as well",
     4,
     0,
     AGING_MS,
     {PUSH(0, USER, 1), START(0), HOLD(0, TARGET), PUSH(1, USER, 0), GATE(NODE), WAIT(MIG_RETRY_MIN_MS),
      NOBODY, WHY(1, NODE), WHY(0, TARGET_HELD), GATE(START), START(1), PROBE(0)}},
    {"only so many look at a time",
     5,
     0,
     AGING_MS,
     {PUSH(0, USER, 0), PUSH(1, USER, 0), PUSH(2, USER, 0), PUSH(3, USER, 0),
      PUSH(4, USER, 0), START(0),         START(1),         START(2),
      START(3),         START(4),         HOLD(0, JOB),     HOLD(1, JOB),
      HOLD(2, JOB),     HOLD(3, JOB),     HOLD(4, JOB),     WAIT(MIG_RETRY_MIN_MS),
      PROBE(0),         PROBE(1),         PROBE(2),         PROBE(3),
      NOBODY,           REMOVE(1),        PROBE(4)}},
    {"one that is held may end",
     1,
     0,
     AGING_MS,
     {PUSH(0, USER, 0), START(0), HOLD(0, JOB), REMOVE(0), REMOVE(0), WAIT(MIG_RETRY_MAX_MS), NOBODY,
      PUSH(1, USER, 0), START(1)}},
};

typedef struct Stage {
  MigQueue queue;
  MigLane lanes[LANES];
  MigWaiting jobs[JOBS];
  uint64_t now_ms;
  uint64_t seq;
} Stage;

static void take_turn(Stage *stage, int job, MigTurn turn) {
  MigWaiting *next = NULL;

  assert_int_equal(mig_queue_next(&stage->queue, stage->now_ms, &next), turn);
  if (turn != MIG_TURN_NONE)
    assert_int_equal(next - stage->jobs, job);
}

static void arrive(Stage *stage, const Step *step) {
  stage->jobs[step->a] = (MigWaiting){
      .priority = (MigPriority)step->b, .arrived_ms = 1000000 + stage->now_ms, .seq = ++stage->seq};
  if (step->kind == STEP_PUSH)
    mig_queue_push(&stage->queue, &stage->jobs[step->a], &stage->lanes[step->c], stage->now_ms);
  else
    mig_queue_enter(&stage->queue, &stage->jobs[step->a], &stage->lanes[step->c]);
}

static void take_step(Stage *stage, const Step *step) {
  switch (step->kind) {
  case STEP_PUSH:
  case STEP_ENTER:
    arrive(stage, step);
    break;
  case STEP_TURN:
    take_turn(stage, step->a, (MigTurn)step->b);
    break;
  case STEP_NOBODY:
    take_turn(stage, 0, MIG_TURN_NONE);
    break;
  case STEP_PASSED:
  case STEP_PASSED_WITHOUT:
    assert_int_equal(mig_queue_passed(&stage->queue, &stage->jobs[step->a], stage->now_ms),
                     step->kind == STEP_PASSED);
    break;
  case STEP_HOLD:
    mig_queue_hold(&stage->queue, &stage->jobs[step->a], (MigHold)step->b, stage->now_ms);
    break;
  case STEP_REMOVE:
    mig_queue_remove(&stage->queue, &stage->jobs[step->a]);
    break;
  case STEP_WAIT:
    stage->now_ms += (uint64_t)step->a;
    break;
  case STEP_GATE:
    stage->queue.gate = (MigAdmission)step->a;
    break;
  case STEP_WHY:
    assert_int_equal(mig_queue_why(&stage->queue, &stage->jobs[step->a]), step->b);
    break;
  case STEP_POSITION:
    assert_int_equal(mig_queue_position(&stage->jobs[step->a]), step->b);
    break;
  case STEP_END:
    break;
  }
}

static void story(void **state) {
  const Story *row = *state;
  Stage stage = {.now_ms = 5000};

  mig_queue_init(&stage.queue,
                 &(MigQueueLimits){.max_outgoing = row->max_outgoing, .aging_ms = row->aging_ms});
  for (int i = 0; i < LANES; i++)
    mig_lane_init(&stage.lanes[i], i == 1 ? row->lane_limit : 0);
  for (size_t i = 0; i < LENGTH(row->steps) && row->steps[i].kind != STEP_END; i++) {
    print_message("# step %zu\n", i + 1);
    take_step(&stage, &row->steps[i]);
  }
}

/* --- single ones --- */

static void a_hold_has_its_times(void **state) {
  Stage stage = {.now_ms = 5000};

  mig_queue_init(&stage.queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = AGING_MS});
  mig_lane_init(&stage.lanes[0], 0);
  arrive(&stage, &(Step)PUSH(0, USER, 0));
  assert_int_equal(mig_queue_held_since_ms(&stage.jobs[0]), 0);
  assert_int_equal(mig_queue_retry_ms(&stage.jobs[0]), 0);
  take_turn(&stage, 0, MIG_TURN_START);
  stage.now_ms = 7000;
  mig_queue_hold(&stage.queue, &stage.jobs[0], MIG_HOLD_TARGET, stage.now_ms);
  assert_int_equal(mig_queue_held_since_ms(&stage.jobs[0]), 7000);
  assert_int_equal(mig_queue_retry_ms(&stage.jobs[0]), 7000 + MIG_RETRY_MIN_MS);

  /* Held again it is held since the first time; who comes later, since then. */
  stage.now_ms = 8000;
  take_turn(&stage, 0, MIG_TURN_PROBE);
  mig_queue_hold(&stage.queue, &stage.jobs[0], MIG_HOLD_TARGET, stage.now_ms);
  assert_int_equal(mig_queue_held_since_ms(&stage.jobs[0]), 7000);
  stage.now_ms = 8500;
  arrive(&stage, &(Step)PUSH(1, USER, 0));
  assert_int_equal(mig_queue_held_since_ms(&stage.jobs[1]), 8500);
  assert_int_equal(mig_queue_retry_ms(&stage.jobs[1]), 8000 + MIG_RETRY_MIN_MS);
}

static void the_pause_has_an_end(void **state) {
  Stage stage = {.now_ms = 5000};

  mig_queue_init(&stage.queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = AGING_MS});
  mig_lane_init(&stage.lanes[0], 0);
  arrive(&stage, &(Step)PUSH(0, USER, 0));
  take_turn(&stage, 0, MIG_TURN_START);
  mig_queue_hold(&stage.queue, &stage.jobs[0], MIG_HOLD_JOB, stage.now_ms);
  for (int i = 0; i < 100; i++) {
    uint64_t retry_ms = mig_queue_retry_ms(&stage.jobs[0]);

    assert_true(retry_ms - stage.now_ms <= MIG_RETRY_MAX_MS);
    stage.now_ms = retry_ms;
    take_turn(&stage, 0, MIG_TURN_PROBE);
    mig_queue_hold(&stage.queue, &stage.jobs[0], MIG_HOLD_JOB, stage.now_ms);
  }
  assert_int_equal(mig_queue_retry_ms(&stage.jobs[0]) - stage.now_ms, MIG_RETRY_MAX_MS);
  assert_int_equal(mig_queue_held_since_ms(&stage.jobs[0]), 5000);
}

static void a_priority_may_change(void **state) {
  Stage stage = {.now_ms = 5000};

  mig_queue_init(&stage.queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = AGING_MS});
  for (int i = 0; i < LANES; i++)
    mig_lane_init(&stage.lanes[i], 0);
  for (int i = 0; i < 4; i++)
    arrive(&stage, &(Step)PUSH(i, USER, i % 2));
  mig_queue_set_priority(&stage.queue, &stage.jobs[3], MIG_PRIORITY_CRITICAL);
  mig_queue_set_priority(&stage.queue, &stage.jobs[0], MIG_PRIORITY_DEFAULT);
  assert_int_equal(mig_queue_position(&stage.jobs[3]), 1);
  assert_int_equal(mig_queue_position(&stage.jobs[0]), 4);
  take_turn(&stage, 3, MIG_TURN_START);
  /* It counts once it waits again. */
  mig_queue_set_priority(&stage.queue, &stage.jobs[3], MIG_PRIORITY_MAINTENANCE);
  mig_queue_hold(&stage.queue, &stage.jobs[3], MIG_HOLD_JOB, stage.now_ms);
  assert_int_equal(mig_queue_position(&stage.jobs[3]), 3);
  mig_queue_set_priority(&stage.queue, &stage.jobs[3], MIG_PRIORITY_RUNNING);
  assert_int_equal(mig_queue_position(&stage.jobs[3]), 1);
  assert_int_equal(mig_queue_why(&stage.queue, &stage.jobs[3]), MIG_ADMISSION_HELD);
  take_turn(&stage, 1, MIG_TURN_START);
}

static void a_limit_of_a_target_may_change(void **state) {
  Stage stage = {.now_ms = 5000};

  mig_queue_init(&stage.queue, &(MigQueueLimits){.max_outgoing = 8, .aging_ms = AGING_MS});
  mig_lane_init(&stage.lanes[0], 1);
  arrive(&stage, &(Step)PUSH(0, USER, 0));
  arrive(&stage, &(Step)PUSH(1, USER, 0));
  take_turn(&stage, 0, MIG_TURN_START);
  take_turn(&stage, 0, MIG_TURN_NONE);
  mig_queue_set_lane_limit(&stage.queue, &stage.lanes[0], 2);
  take_turn(&stage, 1, MIG_TURN_START);
  arrive(&stage, &(Step)PUSH(2, USER, 0));
  mig_queue_set_lane_limit(&stage.queue, &stage.lanes[0], 1);
  take_turn(&stage, 0, MIG_TURN_NONE);
  assert_int_equal(mig_queue_why(&stage.queue, &stage.jobs[2]), MIG_ADMISSION_TARGET_LIMIT);
  mig_queue_set_lane_limit(&stage.queue, &stage.lanes[0], 0);
  take_turn(&stage, 2, MIG_TURN_START);
}

static void the_aging_may_change(void **state) {
  enum { OLD, URGENT, OTHER };
  MigWaiting jobs[] = {{.priority = MIG_PRIORITY_DEFAULT, .arrived_ms = 1000, .seq = 1},
                       {.priority = MIG_PRIORITY_CRITICAL, .arrived_ms = 11000, .seq = 2},
                       {.priority = MIG_PRIORITY_DEFAULT, .arrived_ms = 12000, .seq = 3}};
  static const struct {
    uint64_t aging_ms;
    unsigned position[3];
  } rows[] = {{1000, {1, 2, 3}}, {60000, {2, 1, 3}}, {0, {2, 1, 3}}, {1000, {1, 2, 3}}};
  MigWaiting *next;
  MigLane lanes[2];
  MigQueue queue;

  mig_queue_init(&queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = 1000});
  mig_lane_init(&lanes[0], 0);
  mig_lane_init(&lanes[1], 0);
  for (int i = 0; i < 3; i++)
    mig_queue_push(&queue, &jobs[i], &lanes[i % 2], 20000);
  for (size_t row = 0; row < LENGTH(rows); row++) {
    mig_queue_set_limits(&queue, &(MigQueueLimits){.max_outgoing = 1, .aging_ms = rows[row].aging_ms});
    for (int i = 0; i < 3; i++)
      assert_int_equal(mig_queue_position(&jobs[i]), rows[row].position[i]);
  }
  /* One that has a place has the new order's place when it waits again. */
  assert_int_equal(mig_queue_next(&queue, 20000, &next), MIG_TURN_START);
  assert_ptr_equal(next, &jobs[OLD]);
  mig_queue_set_limits(&queue, &(MigQueueLimits){.max_outgoing = 2, .aging_ms = 60000});
  assert_int_equal(mig_queue_next(&queue, 20000, &next), MIG_TURN_START);
  assert_ptr_equal(next, &jobs[URGENT]);
  mig_queue_hold(&queue, &jobs[URGENT], MIG_HOLD_JOB, 20000);
  mig_queue_hold(&queue, &jobs[OLD], MIG_HOLD_JOB, 20000);
  assert_int_equal(mig_queue_position(&jobs[URGENT]), 1);
  assert_int_equal(mig_queue_position(&jobs[OLD]), 2);
  assert_int_equal(mig_queue_position(&jobs[OTHER]), 3);
}

static const struct Incoming {
  const char *name;
  unsigned incoming, limit;
  bool cordoned;
  MigAdmission expected;
} incomings[] = {
    {"an idle node takes one in", 0, 1, false, MIG_ADMISSION_START},
    {"a limit of two takes a second in", 1, 2, false, MIG_ADMISSION_START},
    {"a limit of two does not take a third in", 2, 2, false, MIG_ADMISSION_INCOMING_LIMIT},
    {"a limit of none takes one in", 0, 0, false, MIG_ADMISSION_START},
    {"a cordoned node takes none in", 0, 2, true, MIG_ADMISSION_CORDONED},
};

static void incoming(void **state) {
  const struct Incoming *row = *state;

  assert_int_equal(mig_admit_incoming(row->incoming, row->limit, row->cordoned), row->expected);
}

static void answers_have_names(void **state) {
  for (int i = 0; i < MIG_ADMISSION_COUNT; i++)
    assert_non_null(mig_admission_name((MigAdmission)i));
  assert_null(mig_admission_name(MIG_ADMISSION_COUNT));
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, story, stories);
  TESTS_ADD_ROWS(&tests, incoming, incomings);
  tests_add(&tests, "a hold has its times", a_hold_has_its_times, NULL);
  tests_add(&tests, "the pause has an end", the_pause_has_an_end, NULL);
  tests_add(&tests, "a priority may change", a_priority_may_change, NULL);
  tests_add(&tests, "the aging may change", the_aging_may_change, NULL);
  tests_add(&tests, "a limit of a target may change", a_limit_of_a_target_may_change, NULL);
  tests_add(&tests, "answers have names", answers_have_names, NULL);
  return tests_run(&tests, "admission");
}

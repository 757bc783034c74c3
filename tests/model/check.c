/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model check: what must hold for every migration, in millions of random steps.
 *
 * Theory of Operation. A case is one job. Its seed draws the setup and then one event after another from all that may happen
 * at that moment: a step of libvirt's protocol or of the agent, a fault, its repair, something that the guest's owner does.
 * After a while the faults stop, everything is repaired, and only the protocol and the agent go on: then the job must end
 * within END_STEPS, or wait for an operator in one of the states below; the operator does what the job asks, and then it
 * must end. After each step:
 *
 *  - Two copies run only if libvirt itself let them (it can: libvirtd.c), never because of the agent.
 *  - Each action of the agent is checked against the truth when libvirtd executes it: never an old copy, never while the
 *    target could still start it, never the only definition.
 *  - What is declared is true, and stays true: no migration of the agent's begins after the job's end.
 *
 * If a case breaks one of these, the program prints its steps, and `model-check --case SEED` prints them again. */
#include "tests/model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define END_STEPS     4000
#define STEPS_MAX     (2 * END_STEPS + 200)
#define EVENTS_MAX    80
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

typedef enum Times { TIMES_GOOD, TIMES_QUIET, TIMES_BAD } Times;

/* All events, in one table. */
static Event events[EVENTS_MAX];
static size_t n_events;

/* The states in which a job may wait for an operator: what libvirt can leave behind so that nobody else can know, or do,
 * what is right. `never`: the agent knows that the guest did not run at the target. */
static const struct OperatorState {
  MigEndState source, target;
  const char *because;
} operator_states[] = {
    {MIG_END_PAUSED_MIGRATION, MIG_END_ABSENT, "the guest may have run at the target and ended there"},
    {MIG_END_PAUSED_MIGRATION, MIG_END_INACTIVE, "likewise"},
    {MIG_END_PAUSED, MIG_END_ABSENT, "likewise, and somebody, or a refused resume, left it paused"},
    {MIG_END_PAUSED, MIG_END_INACTIVE, "likewise"},
    {MIG_END_PAUSED, MIG_END_RUNNING,
     "libvirt could not resume it because the target runs it; or its owner paused it"},
    {MIG_END_PAUSED, MIG_END_PAUSED, "paused before the migration, and libvirtd was killed before Confirm"},
    {MIG_END_PAUSED_MIGRATION, MIG_END_PAUSED, "somebody has paused it at the target since"},
    {MIG_END_PAUSED, MIG_END_RUNNING_POSTCOPY_FAILED, "post-copy cut, and the source given up"},
    {MIG_END_ABSENT, MIG_END_RUNNING_POSTCOPY_FAILED, "the source is gone in post-copy: memory is missing"},
    {MIG_END_INACTIVE, MIG_END_RUNNING_POSTCOPY_FAILED, "likewise"},
    {MIG_END_ABSENT, MIG_END_PAUSED_POSTCOPY_FAILED, "likewise, of a guest that was paused"},
    {MIG_END_INACTIVE, MIG_END_PAUSED_POSTCOPY_FAILED, "likewise"},
    {MIG_END_ABSENT, MIG_END_PAUSED_MIGRATION, "a later migration left a copy at the target"},
    {MIG_END_INACTIVE, MIG_END_PAUSED_MIGRATION, "likewise"},
    {MIG_END_PAUSED_MIGRATION, MIG_END_PAUSED_MIGRATION, "likewise, and this one left a copy at the source"},
    {MIG_END_RUNNING, MIG_END_PAUSED_MIGRATION, "likewise, and the guest came home"},
    {MIG_END_PAUSED, MIG_END_PAUSED_MIGRATION, "likewise, and was paused by its owner"},
    {MIG_END_PAUSED_POSTCOPY, MIG_END_ABSENT,
     "libvirtd was killed as post-copy began, and QEMU cannot go back"},
    {MIG_END_PAUSED_POSTCOPY, MIG_END_INACTIVE, "likewise"},
};

static struct Coverage {
  uint64_t cases, steps, ended, refused, called, looks;
  uint64_t outcomes[MIG_VERDICT_COUNT];
  uint64_t cells[MIG_END_STATE_COUNT][MIG_END_STATE_COUNT][4];
  uint64_t touched[MIG_TOUCH_COUNT];
  uint64_t events[EVENTS_MAX];
  uint64_t faults[EVENTS_MAX][PHASE_COUNT];
  uint64_t operators[LENGTH(operator_states)];
  uint64_t split;
} coverage;

typedef struct Trace {
  unsigned char event[STEPS_MAX];
  unsigned n;
} Trace;

static void collect_events(void) {
  const Event *(*const sources[])(size_t *) = {world_events, libvirtd_events, call_events,
                                               agent_events, fault_events,    other_events};

  for (size_t i = 0; i < LENGTH(sources); i++) {
    size_t n;
    const Event *list = sources[i](&n);

    for (size_t j = 0; j < n && n_events < EVENTS_MAX; j++)
      events[n_events++] = list[j];
  }
}

/* How likely an event of each kind is, in percent, in quiet and in bad times: otherwise nothing would ever finish. */
static const unsigned char shares[][KIND_COUNT] = {
    [TIMES_GOOD] = {[KIND_WORLD] = 60, [KIND_AGENT] = 40},
    [TIMES_QUIET] = {[KIND_WORLD] = 55,
                     [KIND_AGENT] = 23,
                     [KIND_STEER] = 8,
                     [KIND_FAULT] = 4,
                     [KIND_HEAL] = 9,
                     [KIND_OWNER] = 1},
    [TIMES_BAD] = {[KIND_WORLD] = 45,
                   [KIND_AGENT] = 21,
                   [KIND_STEER] = 8,
                   [KIND_FAULT] = 10,
                   [KIND_HEAL] = 14,
                   [KIND_OWNER] = 2},
};

static unsigned draw_kind(World *world, Times times) {
  unsigned at = model_random(world, 100);

  for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
    if (at < shares[times][kind])
      return kind;
    at -= shares[times][kind];
  }
  return KIND_WORLD;
}

/* Picks one of a kind's possible events, by weight. False: there is none. */
static bool draw_event(World *world, unsigned kind, unsigned *ret_at) {
  unsigned total = 0, at;
  bool may[EVENTS_MAX];

  for (unsigned i = 0; i < n_events; i++) {
    may[i] = events[i].kind == kind && events[i].may(world);
    total += may[i] ? events[i].weight : 0;
  }
  if (total == 0)
    return false;
  at = model_random(world, total);
  for (unsigned i = 0; i < n_events; i++) {
    if (may[i] && at < events[i].weight) {
      *ret_at = i;
      return true;
    }
    at -= may[i] ? events[i].weight : 0;
  }
  return false;
}

/* "Time passes" is always possible. */
static unsigned choose(World *world, Times times) {
  unsigned at = 0;

  while (!draw_event(world, draw_kind(world, times), &at))
    ;
  return at;
}

static void note_look(const World *world, bool after) {
  const Agent *agent = &world->agent;
  const MigSettleLook *look = &agent->settle.last;
  int situation;

  if (!after)
    return;
  situation = look->job_active                                                     ? 0
              : agent->settle.record.completed                                     ? 3
              : mig_settle_evidence(&agent->settle) & MIG_EVIDENCE_NEVER_RAN_THERE ? 2
                                                                                   : 1;
  coverage.cells[look->source][look->target][situation]++;
  coverage.looks++;
}

static void check_copies(World *world) {
  if (world->source.cpus + world->target.cpus + world->elsewhere > 1 && !world->others_resumed_both)
    model_violation(world, "two copies run");
}

static void step(World *world, Times times, Trace *trace) {
  unsigned at = choose(world, times);
  bool decides = world->agent.stage == AGENT_DECIDE;

  coverage.steps++;
  coverage.events[at]++;
  if (events[at].kind == KIND_FAULT)
    coverage.faults[at][world->source.phase ? world->source.phase : world->target.phase]++;
  if (trace->n < STEPS_MAX)
    trace->event[trace->n++] = (unsigned char)at;
  world->now_ms += model_random(world, 8) ? model_random(world, 50) : model_random(world, 600);
  world_take_due_calls(world);
  if (events[at].happen && events[at].may(world))
    events[at].happen(world);
  note_look(world, decides && world->agent.stage != AGENT_DECIDE && world->agent.stage != AGENT_OFF);
  check_copies(world);
}

/* --- a case --- */

static const struct OperatorState *find_operator_state(const World *world) {
  const MigSettleLook *look = &world->agent.look;

  for (size_t i = 0; i < LENGTH(operator_states); i++)
    if (look->source == operator_states[i].source && look->target == operator_states[i].target)
      return &operator_states[i];
  return NULL;
}

/* And what it saw is still true. */
static bool waits_for_operator(const World *world) {
  const Agent *agent = &world->agent;

  return agent->stage == AGENT_WAIT && agent->step.awaits == MIG_AWAITS_OPERATOR &&
         agent->look.source == end_state(&world->source) && agent->look.target == end_state(&world->target);
}

/* Nothing but the agent's looks can happen any more. */
static bool at_rest(const World *world) {
  for (unsigned i = 0; i < n_events; i++)
    if (events[i].kind == KIND_WORLD && events[i].happen && events[i].may(world))
      return false;
  return true;
}

static void call_operator(World *world) {
  const struct OperatorState *state = find_operator_state(world);

  if (!state) {
    model_violation(world, "the job waits for an operator in a state that is not on the list: %s, %s",
                    mig_end_state_name(world->agent.look.source),
                    mig_end_state_name(world->agent.look.target));
    return;
  }
  coverage.called++;
  coverage.operators[state - operator_states]++;
  if (!fault_operator_acts(world))
    model_violation(world, "an operator was called but has nothing to do: %s, %s",
                    mig_end_state_name(state->source), mig_end_state_name(state->target));
}

/* Long enough for the agent to look again and find that nothing changes. */
#define OPERATOR_AFTER_MS 10000

static bool is_over(const World *world) {
  /* An abandoned query may outlive its job. */
  return world->violation[0] || (world->agent.stage == AGENT_DONE && world->agent.lost == CALL_NONE);
}

static void finish(World *world, Trace *trace) {
  uint64_t called_ms = 0;
  unsigned rest = 0;

  fault_heal_all(world);
  for (unsigned i = 0; i < END_STEPS && !world->violation[0]; i++) {
    if (world->agent.stage == AGENT_DONE && ++rest > 20)
      return;
    if (waits_for_operator(world) && at_rest(world) && world->now_ms > called_ms + OPERATOR_AFTER_MS) {
      call_operator(world);
      called_ms = world->now_ms;
    }
    step(world, TIMES_GOOD, trace);
  }
  if (!world->violation[0])
    model_violation(world, "the job never ends: source %s, target %s, awaits %s",
                    mig_end_state_name(world->agent.look.source),
                    mig_end_state_name(world->agent.look.target), mig_awaits_name(world->agent.step.awaits));
}

static void run_case(uint64_t seed, ShellFault fault, World *world, Trace *trace) {
  Times times;
  unsigned n;

  trace->n = 0;
  world_init(world, seed);
  world->fault = fault;
  agent_start(world);
  times = model_random(world, 3) ? TIMES_QUIET : TIMES_BAD;
  n = 10 + model_random(world, 150);
  for (unsigned i = 0; i < n && !is_over(world); i++)
    step(world, times, trace);
  finish(world, trace);

  coverage.cases++;
  if (world->agent.done && !world->agent.refused) {
    coverage.ended++;
    coverage.outcomes[world->agent.outcome]++;
  }
  coverage.refused += world->agent.refused;
  coverage.split += world->others_resumed_both;
  for (int i = 0; i < MIG_TOUCH_COUNT; i++)
    coverage.touched[i] += world->touched[i];
}

/* --- output --- */

static void tell_state(const World *world) {
  static const char *const daemons[] = {"", " (hung)", " (down)"};
  static const char *const streams[] = {"no stream",        "pre-copy",     "sent",
                                        "loaded",           "post-copy",    "post-copy done",
                                        "post-copy paused", "stream broken"};

  printf("# %8" PRIu64 " ms  %s%s%s | %s%s%s | %s%s", world->now_ms,
         mig_end_state_name(end_state(&world->source)), world->source.job ? ", job" : "",
         daemons[world->source.daemon], mig_end_state_name(end_state(&world->target)),
         world->target.job ? ", job" : "", daemons[world->target.daemon], streams[world->stream],
         world->link ? "" : ", link cut");
  printf("%s%s%s", world->elsewhere ? " | runs elsewhere" : "",
         world->foreign ? " | its owner migrates it" : "", world->ran_there ? " | ran there" : "");
  if (world->agent.stage == AGENT_WAIT || world->agent.stage == AGENT_DONE)
    printf(" | %s, awaits %s", mig_verdict_name(world->agent.step.verdict),
           mig_awaits_name(world->agent.step.awaits));
  printf("\n");
}

/* Runs the same case again, and prints its steps. */
static void tell_case(uint64_t seed, ShellFault fault) {
  static Trace trace, unused;
  static World world, again;
  bool quiet = false;

  run_case(seed, fault, &world, &trace);
  world_init(&again, seed);
  again.fault = fault;
  agent_start(&again);
  printf("# case %" PRIu64 ": %s%s%s%s%s%s%s%s\n", seed, again.setup.persistent ? "persistent" : "transient",
         again.setup.target_had_it ? ", defined at the target" : "",
         again.setup.paused_before ? ", paused before" : "", again.setup.persist_target ? ", persist" : "",
         again.setup.undefine_source ? ", undefine" : "",
         again.setup.allow_post_copy ? ", post-copy allowed" : "", again.setup.locks ? ", locks" : "",
         again.setup.third ? ", a third node" : "");
  Times times = model_random(&again, 3) ? TIMES_QUIET : TIMES_BAD;
  unsigned n = 10 + model_random(&again, 150);
  unused.n = 0;
  for (unsigned i = 0; i < n && !is_over(&again); i++) {
    step(&again, times, &unused);
    printf("# %s\n", events[unused.event[unused.n - 1]].name);
    tell_state(&again);
  }
  if (!again.violation[0]) {
    unsigned from = unused.n, same = 0;

    printf("# --- the faults end\n");
    finish(&again, &unused);
    for (unsigned i = from; i < unused.n; i++) {
      quiet = i > from + 150 && i + 30 < unused.n;
      if (quiet && !same++)
        printf("# …\n");
      if (!quiet)
        printf("# %s\n", events[unused.event[i]].name);
    }
    tell_state(&again);
  }
  printf("# VIOLATION: %s\n", again.violation[0] ? again.violation : "none");
}

static void tell_cells(void) {
  static const char *const situations[] = {"job active", "ended", "never ran there", "completed"};
  unsigned reached = 0;

  for (int source = 0; source < MIG_END_STATE_COUNT; source++)
    for (int target = 0; target < MIG_END_STATE_COUNT; target++)
      for (int situation = 0; situation < 4; situation++)
        reached += coverage.cells[source][target][situation] > 0;
  printf("# cells of the verdict table reached: %u of %u\n", reached,
         MIG_END_STATE_COUNT * MIG_END_STATE_COUNT * 4);
  for (int situation = 0; situation < 4; situation++) {
    printf("#   %s:", situations[situation]);
    for (int source = 0; source < MIG_END_STATE_COUNT; source++)
      for (int target = 0; target < MIG_END_STATE_COUNT; target++)
        if (coverage.cells[source][target][situation])
          printf(" %s/%s", mig_end_state_name((MigEndState)source), mig_end_state_name((MigEndState)target));
    printf("\n");
  }
}

static void tell_faults(void) {
  static const char *const phases[] = {"none",    "begin",   "perform", "performed", "cancelled",
                                       "confirm", "prepare", "finish",  "pc_failed", "resumed"};

  printf("# faults, by libvirt's phase:\n#   %-32s", "");
  for (int phase = 0; phase < PHASE_COUNT; phase++)
    printf(" %9s", phases[phase]);
  printf("\n");
  for (unsigned i = 0; i < n_events; i++) {
    if (events[i].kind != KIND_FAULT)
      continue;
    printf("#   %-32s", events[i].name);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
      printf(" %9" PRIu64, coverage.faults[i][phase]);
    printf("\n");
  }
}

static void tell_events(void) {
  printf("# events:");
  for (unsigned i = 0; i < n_events; i++)
    printf("%s %s %" PRIu64, i ? "," : "", events[i].name, coverage.events[i]);
  printf("\n");
}

static void tell_coverage(void) {
  tell_events();
  printf("# %" PRIu64 " steps, %" PRIu64 " cases, %" PRIu64 " looks at both ends, %" PRIu64
         " refused before they moved\n",
         coverage.steps, coverage.cases, coverage.looks, coverage.refused);
  printf("# outcomes:");
  for (int i = 0; i < MIG_VERDICT_COUNT; i++)
    if (coverage.outcomes[i])
      printf(" %s %" PRIu64, mig_verdict_name((MigVerdict)i), coverage.outcomes[i]);
  printf("; libvirt let it run at both ends in %" PRIu64 "\n# actions:", coverage.split);
  for (int i = 1; i < MIG_TOUCH_COUNT; i++)
    printf(" %s %" PRIu64, mig_touch_name((MigTouch)i), coverage.touched[i]);
  printf("\n# operators called: %" PRIu64 "\n", coverage.called);
  for (size_t i = 0; i < LENGTH(operator_states); i++)
    if (coverage.operators[i])
      printf("#   %s, %s: %" PRIu64 " (%s)\n", mig_end_state_name(operator_states[i].source),
             mig_end_state_name(operator_states[i].target), coverage.operators[i],
             operator_states[i].because);
  tell_faults();
  tell_cells();
}

/* --- the checks --- */

static bool holds(uint64_t seed, uint64_t steps, ShellFault fault, uint64_t *ret_bad, char *ret_why) {
  static Trace trace;
  static World world;
  uint64_t until = coverage.steps + steps;

  for (uint64_t i = 0; coverage.steps < until; i++) {
    run_case(seed + i, fault, &world, &trace);
    if (world.violation[0]) {
      *ret_bad = seed + i;
      strcpy(ret_why, world.violation);
      return false;
    }
  }
  return true;
}

/* Did everything that may happen occur, often enough? A model in which nothing goes wrong proves nothing. */
static bool covers_all(void) {
  bool ok = true;

  for (unsigned i = 0; i < n_events; i++)
    if (coverage.events[i] == 0) {
      printf("# never happened: %s\n", events[i].name);
      ok = false;
    }
  for (int i = 1; i < MIG_TOUCH_COUNT; i++)
    if (coverage.touched[i] == 0) {
      printf("# never done: %s\n", mig_touch_name((MigTouch)i));
      ok = false;
    }
  return ok;
}

static int test;

static bool report(bool ok, const char *name) {
  printf("%s %d - %s\n", ok ? "ok" : "not ok", ++test, name);
  return ok;
}

/* The agent with a fault in its own steps. */
static bool finds_shell_faults(uint64_t seed, uint64_t steps) {
  static const char *const names[] = {
      [SHELL_RECORDS_AFTER_START] = "finds an agent that writes its record after the start",
      [SHELL_FORGETS_ITS_PAUSE] = "finds an agent that forgets that it paused the guest",
      [SHELL_ACTS_ON_LOST_QUESTIONS] = "finds an agent that acts after it has given up a query",
      [SHELL_ABORTS_WHAT_IS_NOT_ITS] = "finds an agent that aborts whatever migration runs at the source",
      [SHELL_TAKES_ANY_COMPLETION] = "finds an agent that takes another migration's completion for its own",
      [SHELL_TAKES_ANY_END] = "finds an agent that takes the end of any copy for the guest's",
      [SHELL_WATCHES_WITH_GAPS] = "finds an agent that does not notice a gap in its watch",
  };
  char why[sizeof(((World *)0)->violation)];
  bool ok = true;
  uint64_t bad;

  for (int fault = SHELL_RIGHT + 1; fault < SHELL_FAULT_COUNT; fault++) {
    bool found = !holds(seed, steps, (ShellFault)fault, &bad, why);

    if (found)
      printf("# case %" PRIu64 ": %s\n", bad, why);
    ok &= report(found, names[fault]);
  }
  return ok;
}

int model_check(int argc, char **argv) {
  bool mutant = argc > 1 && strcmp(argv[1], "--mutant") == 0,
       tell = argc > 2 && strcmp(argv[1], "--case") == 0;
  int first = mutant || tell ? 2 : 1;
  uint64_t number = argc > first ? strtoull(argv[first], NULL, 10) : 1000000;
  uint64_t seed = argc > first + 1 ? strtoull(argv[first + 1], NULL, 10) : 1;
  char why[sizeof(((World *)0)->violation)];
  uint64_t bad = 0;
  bool ok;

  setvbuf(stdout, NULL, _IOLBF, 0);
  collect_events();
  if (tell) {
    tell_case(number, SHELL_RIGHT);
    return 0;
  }
  if (mutant) {
    printf("1..1\n");
    ok = !holds(seed, number, SHELL_RIGHT, &bad, why);
    if (ok)
      printf("# found in case %" PRIu64 " after %" PRIu64 " steps: %s\n", bad, coverage.steps, why);
    return report(ok, "the fault is found") ? 0 : 1;
  }

  printf("1..%d\n", 1 + SHELL_FAULT_COUNT);
  ok = holds(seed, number, SHELL_RIGHT, &bad, why);
  if (!ok)
    tell_case(bad, SHELL_RIGHT);
  report(ok, "the agent never causes a copy too many or too few, every job ends, every outcome is true");
  tell_coverage();
  ok &= report(covers_all(), "everything that may happen occurred");
  ok &= finds_shell_faults(seed, 4 * number);
  return ok ? 0 : 1;
}

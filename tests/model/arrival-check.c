/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model check of a migration's target: what must hold for each lease and its image, in millions of random steps.
 *
 * Theory of Operation. A case is one lease. Its seed draws the setup and then one event after another: something arrives,
 * vanishes, runs or moves on; its owner acts; libvirtd hangs, dies, starts; the agent looks, gets events, is killed, stays down.
 * Then the faults end, and the lease must end within END_STEPS. After each step:
 *
 *  - No image is removed that a guest ran with or that anybody wrote to: it may be the only disk.
 *  - What is declared at the end is true: that the copy "never ran here", that "nothing came", that it was "started, and not by a
 *    migration". After a gap the agent declares none of these.
 *
 * Removed images are counted: otherwise an agent that does nothing would pass.
 *
 *   arrival-check [STEPS [SEED]]      checks
 *   arrival-check --case SEED         prints one case, step by step
 *   arrival-check --mutant STEPS      succeeds if a violation is found: the core is a faulty one
 */
#include "tests/model/arrival-model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define END_STEPS     3000
#define EVENTS_MAX    64
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

static Event events[EVENTS_MAX];
static size_t n_events;

static struct Coverage {
  uint64_t cases, steps, removed, kept, raced;
  uint64_t events[EVENTS_MAX];
  uint64_t ends[MIG_SLOT_END_COUNT][2];
} coverage;

static void add_events(const Event *list, size_t n) {
  for (size_t i = 0; i < n && n_events < EVENTS_MAX; i++)
    events[n_events++] = list[i];
}

static void collect_events(void) {
  size_t n;
  const Event *list = arrival_world_events(&n);

  add_events(list, n);
  list = arrival_agent_events(&n);
  add_events(list, n);
}

typedef enum Times { TIMES_GOOD, TIMES_QUIET, TIMES_BAD } Times;

static const unsigned char shares[][KIND_COUNT] = {
    [TIMES_GOOD] = {[KIND_WORLD] = 50, [KIND_AGENT] = 50},
    [TIMES_QUIET] =
        {[KIND_WORLD] = 50, [KIND_AGENT] = 40, [KIND_FAULT] = 2, [KIND_HEAL] = 5, [KIND_OWNER] = 3},
    [TIMES_BAD] =
        {[KIND_WORLD] = 42, [KIND_AGENT] = 32, [KIND_FAULT] = 8, [KIND_HEAL] = 10, [KIND_OWNER] = 8},
};

static unsigned draw_kind(World *world, Times times) {
  unsigned at = arrival_random(world, 100);

  for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
    if (at < shares[times][kind])
      return kind;
    at -= shares[times][kind];
  }
  return KIND_WORLD;
}

/* Picks one of a kind, by weight; "time passes" is always possible. */
static unsigned choose(World *world, Times times) {
  for (;;) {
    unsigned kind = draw_kind(world, times), total = 0, at;
    bool may[EVENTS_MAX];

    for (unsigned i = 0; i < n_events; i++) {
      may[i] = events[i].kind == kind && events[i].may(world);
      total += may[i] ? events[i].weight : 0;
    }
    if (total == 0)
      continue;
    at = arrival_random(world, total);
    for (unsigned i = 0; i < n_events; i++) {
      if (may[i] && at < events[i].weight)
        return i;
      at -= may[i] ? events[i].weight : 0;
    }
  }
}

static unsigned step(World *world, Times times) {
  unsigned at = choose(world, times);

  world->now_ms += arrival_random(world, 8) ? arrival_random(world, 40) : arrival_random(world, 600);
  arrival_world_tell_due(world);
  arrival_agent_notice_due(world);
  if (events[at].may(world))
    events[at].happen(world);
  coverage.steps++;
  coverage.events[at]++;
  return at;
}

static bool is_over(const World *world) {
  return world->violation[0] || world->agent.record.done;
}

static void tell(const World *world, unsigned at) {
  static const char *const lives[] = {"nothing", "copy",   "post-copy", "post-copy cut",
                                      "running", "paused", "crashed"};
  static const char *const daemons[] = {"", ", libvirtd hangs", ", libvirtd is down"};

  printf("# %-48s %8" PRIu64 " ms  %s%s%s | agent %s%s%s%s%s%s%s%s\n", events[at].name, world->now_ms,
         lives[world->life], world->defined ? ", defined" : "", daemons[world->daemon],
         world->agent.up ? "up" : "off", world->agent.connected ? ", connected" : "",
         world->agent.slot.watched ? ", watches" : "", world->agent.slot.came ? ", came" : "",
         world->agent.slot.ran ? ", ran" : "", world->agent.slot.traces ? ", traces" : "",
         world->agent.done ? ", end: " : "", world->agent.done ? mig_slot_end_name(world->agent.end) : "");
}

static void run_case(uint64_t seed, ShellFault fault, World *world, bool aloud) {
  Times times;
  unsigned n;

  arrival_world_init(world, seed, fault);
  arrival_agent_begin(world);
  times = arrival_random(world, 3) ? TIMES_QUIET : TIMES_BAD;
  n = 10 + arrival_random(world, 150);
  if (aloud)
    printf("# case %" PRIu64 ":%s%s%s%s%s\n", seed, world->setup.persist ? " persistent" : " transient",
           world->setup.had_definition ? ", defined before" : "", world->setup.images ? ", an image" : "",
           world->setup.idle ? ", idle" : "", world->setup.was_paused ? ", paused" : "");
  for (unsigned i = 0; i < n && !is_over(world); i++) {
    unsigned at = step(world, times);

    if (aloud)
      tell(world, at);
  }
  /* No more faults, and nothing new begins. */
  arrival_world_heal(world);
  world->at_source = false;
  for (unsigned i = 0; i < END_STEPS && !is_over(world); i++) {
    unsigned at;

    if (!world->agent.up)
      for (unsigned j = 0; j < n_events; j++)
        if (events[j].kind == KIND_HEAL && events[j].may(world))
          events[j].happen(world);
    at = step(world, TIMES_GOOD);
    if (aloud)
      tell(world, at);
  }
  if (!is_over(world))
    arrival_violation(world, "the lease never ends");
  coverage.cases++;
  coverage.removed += world->removed;
  coverage.kept += world->kept;
  coverage.raced += world->raced;
  if (world->agent.done)
    coverage.ends[world->agent.end][world->agent.slot.watched]++;
  if (aloud)
    printf("# VIOLATION: %s\n", world->violation[0] ? world->violation : "none");
}

static bool holds(uint64_t seed, uint64_t steps, ShellFault fault, uint64_t *ret_bad) {
  static World world;
  uint64_t until = coverage.steps + steps;

  for (uint64_t i = 0; coverage.steps < until; i++) {
    run_case(seed + i, fault, &world, false);
    if (world.violation[0]) {
      *ret_bad = seed + i;
      return false;
    }
  }
  return true;
}

static unsigned number, failed;

static void ok(bool good, const char *what) {
  printf("%sok %u - %s\n", good ? "" : "not ", ++number, what);
  failed += !good;
}

static void tell_coverage(void) {
  printf("# %" PRIu64 " steps, %" PRIu64 " leases; images removed: %" PRIu64 ", left: %" PRIu64
         ", removed as a copy began: %" PRIu64 "\n",
         coverage.steps, coverage.cases, coverage.removed, coverage.kept, coverage.raced);
  for (int end = 1; end < MIG_SLOT_END_COUNT; end++)
    printf("#   %-10s %9" PRIu64 " watched, %9" PRIu64 " after a gap\n", mig_slot_end_name((MigSlotEnd)end),
           coverage.ends[end][1], coverage.ends[end][0]);
}

static bool everything_happened(void) {
  bool all = coverage.removed > coverage.cases / 100 && coverage.kept > 0;

  for (size_t i = 0; i < n_events; i++) {
    if (coverage.events[i] == 0)
      printf("# never: %s\n", events[i].name);
    all = all && coverage.events[i] > 0;
  }
  for (int end = 1; end < MIG_SLOT_END_COUNT; end++)
    all = all && coverage.ends[end][0] + coverage.ends[end][1] > 0;
  return all;
}

static int find_mutant(uint64_t steps, uint64_t seed) {
  uint64_t bad = 0;
  bool found = !holds(seed, steps, SHELL_RIGHT, &bad);
  World world;

  printf("1..1\n%sok 1 - the fault in the core is found\n", found ? "" : "not ");
  if (found) {
    run_case(bad, SHELL_RIGHT, &world, true);
    printf("# after %" PRIu64 " steps\n", coverage.steps);
  }
  return found ? 0 : 1;
}

int arrival_check(int argc, char **argv) {
  static const char *const faults[] = {
      [SHELL_HEARS_NO_EVENT] = "finds an agent that gets no events",
      [SHELL_SEES_NO_BREAK] = "finds one that does not notice a broken connection",
      [SHELL_REMEMBERS_ITS_WATCH] = "finds one that takes another process's watch for its own",
      [SHELL_REMOVES_WHAT_WAS_WRITTEN] = "finds one that removes a written image",
      [SHELL_REMOVES_BY_AN_OLD_LOOK] = "finds one that removes after an old look",
  };
  bool mutant = argc > 1 && strcmp(argv[1], "--mutant") == 0;
  bool one = argc > 2 && strcmp(argv[1], "--case") == 0;
  int at = mutant || one ? 2 : 1;
  uint64_t steps = argc > at ? strtoull(argv[at], NULL, 10) : 5000000;
  uint64_t seed = argc > at + 1 ? strtoull(argv[at + 1], NULL, 10) : 1;
  uint64_t bad = 0;
  static World world;

  collect_events();
  if (one) {
    run_case(steps, argc > 3 ? (ShellFault)atoi(argv[3]) : SHELL_RIGHT, &world, true);
    return world.violation[0] != 0;
  }
  if (mutant)
    return find_mutant(steps, seed);
  ok(holds(seed, steps, SHELL_RIGHT, &bad),
     "no image that may be the only disk is removed, and what is declared is true");
  if (failed)
    run_case(bad, SHELL_RIGHT, &world, true);
  tell_coverage();
  ok(everything_happened(), "everything that may happen occurred");
  for (int fault = 1; fault < SHELL_FAULT_COUNT; fault++)
    ok(!holds(seed, steps, (ShellFault)fault, &bad), faults[fault]);
  printf("1..%u\n", number);
  return failed != 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The moves by which the simulator is held against the lab: what to run there, and what it says itself.
 *
 *   sim-check-lab list         a line each: name, working set in MiB, rate in MiB/s, virsh's options
 *   sim-check-lab run NAME     JSON: total_ms, downtime_ms, silence_ms, mib */
#include "tests/sim/engine.h"
#include "tests/sim/virsh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_MIB 256
/* compare-with-lab sets the lab's link to it. tbf counts whole Ethernet frames. */
#define LINK_MBIT 400

static const struct Case {
  const char *name;
  uint64_t ws_mib, rate_mib;
  const Strategy *strategy;
  const char *options;
} cases[] = {
    {"idle", 0, 0, &strategy_virsh, ""},
    {"calm", 64, 20, &strategy_virsh, ""},
    {"near", 100, 40, &strategy_virsh, ""},
    {"calm-post-copy", 64, 20, &strategy_virsh_post_copy, "--postcopy --postcopy-after-precopy"},
    {"hopeless-post-copy", 100, 200, &strategy_virsh_post_copy, "--postcopy --postcopy-after-precopy"},
    {"hopeless-pause", 100, 200, &strategy_virsh_suspend, "--timeout 4 --timeout-suspend"},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static void run(const struct Case *c) {
  static SimResult result;
  SimScenario scenario = {
      .name = c->name,
      .guest = {.memory_bytes = MEMORY_MIB * MIG_MIB_BYTES,
                .phases = {{0, {{c->ws_mib * MIG_MIB_BYTES, c->rate_mib * MIG_MIB_BYTES}}}}},
      .link = {.bytes_per_s = (uint64_t)LINK_MBIT * 125000 * 1448 / 1514},
  };
  sim_run(&scenario, c->strategy, &result);
  printf("{\"total_ms\": %" PRIu64 ", \"downtime_ms\": %" PRIu64 ", \"silence_ms\": %" PRIu64
         ", \"lost_ms\": %" PRIu64 ", \"mib\": %" PRIu64 ", \"passes\": %" PRIu64 "}\n",
         result.total_ms, result.downtime_ms, result.longest_silence_ms, result.lost_work_ms,
         result.wire_bytes / MIG_MIB_BYTES, result.iterations);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "list")) {
    for (size_t i = 0; i < CASES; i++)
      printf("%s %" PRIu64 " %" PRIu64 " %s\n", cases[i].name, cases[i].ws_mib, cases[i].rate_mib,
             cases[i].options);
    return 0;
  }
  for (size_t i = 0; argc == 3 && !strcmp(argv[1], "run") && i < CASES; i++)
    if (!strcmp(argv[2], cases[i].name)) {
      run(&cases[i]);
      return 0;
    }
  fprintf(stderr, "usage: sim-check-lab list | run NAME\n");
  return 2;
}

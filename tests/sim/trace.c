/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A simulated migration in words. Rounded so that neither compiler nor libm shows. */
#include "tests/sim/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double mib(uint64_t bytes) {
  return (double)bytes / (double)MIG_MIB_BYTES;
}

static const char *outcome(const SimEvent *event) {
  static const char *const names[] = {
      [SIM_OUTCOME_DONE] = "", [SIM_OUTCOME_REFUSED] = " - refused", [SIM_OUTCOME_TOO_LATE] = " - too late"};
  return names[event->outcome];
}

static void print_start(FILE *file, const StrategyStart *start) {
  fputs("start:", file);
  if (start->post_copy)
    fputs(" may go to post-copy,", file);
  if (start->auto_converge)
    fprintf(file, " auto-converge from %u %% by %u,",
            start->throttle_initial_pct ? start->throttle_initial_pct : 20,
            start->throttle_increment_pct ? start->throttle_increment_pct : 10);
  fprintf(file, " downtime limit %" PRIu64 " ms\n", start->downtime_ms ? start->downtime_ms : 300);
}

static void print_event(FILE *file, const SimEvent *event) {
  const MigSample *sample = &event->sample;
  fprintf(file, "%9.1f s  %s", (double)event->at_ms / 1000.0, mig_action_name(event->action.kind));
  if (event->action.kind == MIG_ACTION_SET_DOWNTIME)
    fprintf(file, " %" PRIu64 " ms", event->action.downtime_ms);
  if (event->action.kind == MIG_ACTION_ABORT)
    fprintf(file, " %s", mig_cause_name(event->action.cause));
  fprintf(file, "%s\n", outcome(event));
  if (!sample->valid)
    fputs("             saw: no statistics\n", file);
  else
    fprintf(file,
            "             saw: pass %" PRIu64
            ", %.0f MiB of memory remain, dirty %.0f MiB/s, link %.0f MiB/s, "
            "throttle %" PRIu64 " %%%s\n",
            sample->iteration, mib(sample->memory_remaining_bytes), mib(sample->dirty_rate_bytes_per_s),
            mib(sample->bandwidth_bytes_per_s), sample->throttle_pct,
            event->cut_ms > 0 ? ", the link is cut" : "");
  fprintf(file, "             said: %s\n", event->action.message);
}

void sim_trace_print(FILE *file, const SimScenario *scenario, const SimResult *result) {
  fprintf(file, "== %s/%s: %s\n", scenario->group, scenario->name, scenario->what);
  if (scenario->goals)
    fprintf(file, "goals: %s\n", scenario->goals);
  print_start(file, &result->start);
  for (unsigned i = 0; i < result->action_count && i < SIM_EVENTS; i++)
    print_event(file, &result->events[i]);
  if (result->action_count > SIM_EVENTS)
    fprintf(file, "... %u more\n", result->action_count - SIM_EVENTS);
  fprintf(file,
          "end: %s%s%s after %.1f s, downtime %" PRIu64 " ms, longest silence %" PRIu64
          " ms, lost %.1f s of work, ",
          sim_end_name(result->end), result->cause ? " " : "",
          result->cause ? mig_cause_name(result->cause) : "", (double)result->total_ms / 1000.0,
          result->downtime_ms, result->longest_silence_ms, (double)result->lost_work_ms / 1000.0);
  fprintf(file, "%.0f MiB, %" PRIu64 " passes", mib(result->wire_bytes), result->iterations);
  if (result->max_throttle_pct > 0)
    fprintf(file, ", throttle up to %u %%", result->max_throttle_pct);
  if (result->over_cap_ms > 0)
    fprintf(file, ", above what is permitted for %.1f s", (double)result->over_cap_ms / 1000.0);
  fputs("\n\n", file);
}

void sim_trace_comment(const SimScenario *scenario, const SimResult *result) {
  char *course = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&course, &size);
  if (!memory)
    return;
  sim_trace_print(memory, scenario, result);
  fclose(memory);
  for (char *save = NULL, *line = strtok_r(course, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
    printf("# %s\n", line);
  free(course);
}

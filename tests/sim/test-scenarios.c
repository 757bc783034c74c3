/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Our monitor on every scenario: the actions are those that were read and found good, in golden/GROUP.txt.
 *
 *   test-sim-scenarios                 compares; says which golden file differs, and where
 *   REGEN=1 test-sim-scenarios         writes them anew: read the difference before it is committed
 *   test-sim-scenarios GROUP[/NAME]    prints */
#include "tests/sim/scenarios.h"
#include "tests/sim/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUPS 32

static void print_group(FILE *file, const char *group) {
  SimResult result;
  for (size_t i = 0; i < sim_scenario_count; i++)
    if (!strcmp(sim_scenarios[i].group, group)) {
      sim_run(&sim_scenarios[i], &strategy_handoffd, &result);
      sim_trace_print(file, &sim_scenarios[i], &result);
    }
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = NULL;
  size_t size = 0;
  if (!file)
    return strdup("");
  if (getdelim(&text, &size, '\0', file) < 0)
    *(text = realloc(text, 1)) = '\0';
  fclose(file);
  return text;
}

/* The first line that differs, of both. */
static void print_difference(const char *was, const char *is) {
  unsigned line = 1;
  const char *was_line = was, *is_line = is;
  for (; *was && *was == *is; was++, is++)
    if (*was == '\n') {
      line++;
      was_line = was + 1;
      is_line = is + 1;
    }
  print_message("line %u\n  golden: %.*s\n  now:    %.*s\n", line, (int)strcspn(was_line, "\n"), was_line,
                (int)strcspn(is_line, "\n"), is_line);
}

static void test_group(void **state) {
  const char *group = *state, *directory = getenv("SIM_GOLDEN");
  char path[4096], *text = NULL;
  size_t size = 0;
  snprintf(path, sizeof(path), "%s/%s.txt", directory ? directory : "tests/sim/golden", group);
  FILE *memory = open_memstream(&text, &size);
  assert_non_null(memory);
  print_group(memory, group);
  fclose(memory);

  if (getenv("REGEN")) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(text, 1, size, file);
    assert_int_equal(fclose(file), 0);
  } else {
    char *golden = read_file(path);
    bool same = !strcmp(golden, text);
    if (!same)
      print_difference(golden, text);
    free(golden);
    if (!same) {
      free(text);
      fail_msg("%s differs; with REGEN=1 it is written anew", path);
    }
  }
  free(text);
}

static void test_every_scenario_is_sound(void **state) {
  for (size_t i = 0; i < sim_scenario_count; i++) {
    MigPolicy policy;
    assert_true(sim_policy(&sim_scenarios[i], &policy));
    for (size_t j = 0; j < i; j++)
      assert_false(!strcmp(sim_scenarios[i].group, sim_scenarios[j].group) &&
                   !strcmp(sim_scenarios[i].name, sim_scenarios[j].name));
  }
}

static int print_named(const char *name) {
  SimResult result;
  int printed = 0;
  for (size_t i = 0; i < sim_scenario_count; i++) {
    const SimScenario *scenario = &sim_scenarios[i];
    size_t length = strlen(scenario->group);
    if (strncmp(name, scenario->group, length) ||
        (name[length] && (name[length] != '/' || strcmp(name + length + 1, scenario->name))))
      continue;
    sim_run(scenario, &strategy_handoffd, &result);
    sim_trace_print(stdout, scenario, &result);
    printed++;
  }
  return printed > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[GROUPS + 1] = {cmocka_unit_test(test_every_scenario_is_sound)};
  size_t n = 1;
  if (argc > 1)
    return print_named(argv[1]);
  for (size_t i = 0; i < sim_scenario_count; i++)
    if (i == 0 || strcmp(sim_scenarios[i].group, sim_scenarios[i - 1].group)) {
      assert_true(n <= GROUPS);
      tests[n++] = (struct CMUnitTest){sim_scenarios[i].group, test_group, NULL, NULL,
                                       (void *)(uintptr_t)sim_scenarios[i].group};
    }
  return _cmocka_run_group_tests("sim-scenarios", tests, n, NULL, NULL);
}

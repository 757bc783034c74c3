/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a table of rows as one test each, so that the report names the row that fails. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* A group of tests under construction. */
typedef struct Tests {
  struct CMUnitTest *list;
  size_t count;
} Tests;

static inline void tests_add(Tests *tests, const char *name, CMUnitTestFunction function, const void *row) {
  tests->list = realloc(tests->list, (tests->count + 1) * sizeof(*tests->list));
  if (!tests->list)
    abort();
  tests->list[tests->count++] =
      (struct CMUnitTest){.name = name, .test_func = function, .initial_state = (void *)row};
}

/* Each row begins with `const char *name`. */
#define TESTS_ADD_ROWS(tests, function, rows)                                                                \
  do {                                                                                                       \
    for (size_t row_ = 0; row_ < LENGTH(rows); row_++)                                                       \
      tests_add(tests, (rows)[row_].name, function, &(rows)[row_]);                                          \
  } while (0)

static inline int tests_run(Tests *tests, const char *group) {
  int failed = _cmocka_run_group_tests(group, tests->list, tests->count, NULL, NULL);
  free(tests->list);
  return failed;
}

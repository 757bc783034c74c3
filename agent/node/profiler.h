/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures each running guest now and then, so that no migration has to begin with that. Main thread only. */
#pragma once

#include <stdint.h>

typedef struct Node Node;
typedef struct Profiler Profiler;

/* Measurements since the agent started. */
typedef struct Profiling {
  unsigned measured, failed;
  uint64_t took_ms; /* all of them, one after the other */
} Profiling;

Profiler *profiler_new(Node *node);

/* NULL is fine. */
void profiler_free(Profiler *profiler);

/* Call it several times a second. */
void profiler_tick(Profiler *profiler);

const Profiling *profiler_count(const Profiler *profiler);

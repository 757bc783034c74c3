/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A simulated migration in words: how it was started, each action with what was seen, its end. */
#pragma once

#include "tests/sim/engine.h"

#include <stdio.h>

void sim_trace_print(FILE *file, const SimScenario *scenario, const SimResult *result);

/* The same to stdout, as TAP comments. */
void sim_trace_comment(const SimScenario *scenario, const SimResult *result);

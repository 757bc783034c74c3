/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Migrations worth watching, by group. */
#pragma once

#include "tests/sim/engine.h"

extern const SimScenario sim_scenarios[];
extern const size_t sim_scenario_count;

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Another configuration for an agent that runs. */
#pragma once

#include "agent/daemon/agent.h"

/* Reads the configuration anew, as config_load(path). It holds at once and as a whole, or, where anything in it is not
 * understood, not at all: true, or false. Either is said in the journal. Jobs keep the goals that they were accepted with. */
bool reload_config(Agent *agent, const char *path);

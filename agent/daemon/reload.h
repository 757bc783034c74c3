/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reloads the configuration of a running agent. */
#pragma once

#include "agent/daemon/agent.h"

/* Reads the configuration again, as config_load(path) does. True: it takes effect at once and as a whole. False: something in
 * it is invalid, and all of the old one stays. Both are logged. Jobs keep the goals they were accepted with. */
bool reload_config(Agent *agent, const char *path);

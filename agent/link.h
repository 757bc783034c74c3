/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What earlier moves tell of the link to a target. */
#pragma once

#include "agent/agent.h"

/* Learned from the newest moves to that target that are kept; 0: there are none. */
uint64_t link_bandwidth_bytes_per_s(const Agent *agent, const char *target_uri);

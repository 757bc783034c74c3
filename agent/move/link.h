/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What earlier migrations tell about the link to a target. */
#pragma once

#include "agent/move/mover.h"

/* The bandwidth as configured, otherwise as learned from the newest kept migrations to that target; 0 where unknown. */
void link_recall(const Mover *mover, const char *target_uri, MigLinkFacts *ret_facts);

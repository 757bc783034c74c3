/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What earlier moves tell of the link to a target. */
#pragma once

#include "agent/move/mover.h"

/* The bandwidth as configured, else as learned from the newest moves to that target that are kept; what is not known is 0. */
void link_recall(const Mover *mover, const char *target_uri, MigLinkFacts *ret_facts);

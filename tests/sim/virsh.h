/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* virsh's ways, for the comparison with the lab. */
#pragma once

#include "tests/sim/strategy.h"

/* --timeout counts seconds; short, for the lab's sake. */
#define VIRSH_SUSPEND_AFTER_MS 4000

extern const Strategy strategy_virsh;
extern const Strategy strategy_virsh_post_copy;
extern const Strategy strategy_virsh_suspend;

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock that limits and intervals are counted by. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in milliseconds: of this boot, and standing still while the host is suspended. */
uint64_t clock_now_ms(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock for limits and intervals. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in milliseconds: valid within this boot; it stops while the host is suspended. */
uint64_t clock_now_ms(void);

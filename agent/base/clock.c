/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monotonic clock. */
#include "agent/base/clock.h"

#include <glib.h>

uint64_t clock_now_ms(void) {
  return (uint64_t)g_get_monotonic_time() / 1000;
}

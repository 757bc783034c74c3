/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many calls that were refused the journal is told of. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Denials Denials;

Denials *denials_new(void);
void denials_free(Denials *denials);

/* Is this one to be told? Of each user the first DENIALS_OF_UID in DENIALS_PERIOD_MS are, and of so many users; *ret_untold is
 * how many were not in the period before, to be told once. */
bool denials_note(Denials *denials, uid_t uid, uint64_t now_ms, unsigned *ret_untold);

#define DENIALS_OF_UID    10
#define DENIALS_USERS     64
#define DENIALS_PERIOD_MS 30000

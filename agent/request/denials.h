/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits the journal messages about refused calls. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Denials Denials;

Denials *denials_new(void);
void denials_free(Denials *denials);

/* Shall this refusal be logged? In each DENIALS_PERIOD_MS the first DENIALS_OF_UID of a user are, for up to DENIALS_USERS
 * users. *ret_untold is how many were not logged in the previous period; report it once. */
bool denials_note(Denials *denials, uid_t uid, uint64_t now_ms, unsigned *ret_untold);

#define DENIALS_OF_UID    10
#define DENIALS_USERS     64
#define DENIALS_PERIOD_MS 30000

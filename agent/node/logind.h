/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* logind, where there is one: announces and delays a shutdown of the host. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Logind Logind;

/* Called on the main context. With `begins` the host is about to shut down, and logind waits at most delay_ms for the lock to
 * be released; without, the shutdown was cancelled. */
typedef void (*LogindFunc)(bool begins, uint64_t delay_ms, gpointer user_data);

/* Connects to the system bus in the background, and retries. Never fails: without a bus or without logind there is no lock
 * and no announcement. */
Logind *logind_new(GMainContext *context, LogindFunc func, gpointer user_data);

/* Releases the lock. NULL is fine. */
void logind_free(Logind *logind);

/* Takes or releases the lock that delays a shutdown. Call it several times a second: it also retries what failed. */
void logind_want_lock(Logind *logind, bool wanted);

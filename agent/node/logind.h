/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* logind, where there is one: delays a shutdown of the host, and tells of it. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Logind Logind;

/* The host is about to go down (`begins`), and logind waits for delay_ms at most for the lock to be given back; or that was
 * called off. On the main context. */
typedef void (*LogindFunc)(bool begins, uint64_t delay_ms, gpointer user_data);

/* Connects to the system bus in the background, and again and again. Never fails: without a bus, or without logind, there
 * is no lock, and nobody is told of a shutdown. */
Logind *logind_new(GMainContext *context, LogindFunc func, gpointer user_data);

/* Gives the lock back. NULL is fine. */
void logind_free(Logind *logind);

/* Takes or gives back the lock that delays a shutdown. To be called often, some times a second: it also tries again what did not
 * work. */
void logind_want_lock(Logind *logind, bool wanted);

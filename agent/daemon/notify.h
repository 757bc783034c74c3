/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service manager is told: ready, a line of status, that the main loop lives. */
#pragma once

#include <glib.h>

typedef struct Notify Notify;

/* Feeds the watchdog from the main loop, where the service manager wants that. */
Notify *notify_new(GMainContext *context);
void notify_free(Notify *notify);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Notify, notify_free)

void notify_ready(Notify *notify);
/* The configuration is read again; notify_ready() when that is over. */
void notify_reloading(Notify *notify);
void notify_status(Notify *notify, const char *status);
/* `moving` migrations go on without the agent. */
void notify_stopping(Notify *notify, unsigned moving);

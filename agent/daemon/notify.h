/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notifications to the service manager: readiness, a line of status, the watchdog. */
#pragma once

#include <glib.h>

typedef struct Notify Notify;

/* Feeds the watchdog from the main loop, if the service manager has enabled it. */
Notify *notify_new(GMainContext *context);
void notify_free(Notify *notify);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Notify, notify_free)

void notify_ready(Notify *notify);
/* The configuration is being reloaded; call notify_ready() afterwards. */
void notify_reloading(Notify *notify);
void notify_status(Notify *notify, const char *status);
/* `moving` migrations continue without the agent. */
void notify_stopping(Notify *notify, unsigned moving);

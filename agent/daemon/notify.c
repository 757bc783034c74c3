/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notifications to the service manager. */
#include "agent/daemon/notify.h"

#include "libmigrate/core/plain.h"

#include <systemd/sd-daemon.h>

struct Notify {
  GSource *watchdog;
};

static gboolean feed_watchdog(gpointer user_data) {
  sd_notify(0, "WATCHDOG=1");
  return G_SOURCE_CONTINUE;
}

Notify *notify_new(GMainContext *context) {
  Notify *notify = g_new0(Notify, 1);
  uint64_t usec = 0;

  if (sd_watchdog_enabled(0, &usec) > 0 && usec > 0) {
    notify->watchdog = g_timeout_source_new((guint)MAX(usec / 2000, 1));
    g_source_set_callback(notify->watchdog, feed_watchdog, NULL, NULL);
    g_source_attach(notify->watchdog, context);
  }
  return notify;
}

void notify_free(Notify *notify) {
  if (!notify)
    return;
  if (notify->watchdog) {
    g_source_destroy(notify->watchdog);
    g_source_unref(notify->watchdog);
  }
  g_free(notify);
}

void notify_ready(Notify *notify) {
  sd_notify(0, "READY=1");
}

void notify_reloading(Notify *notify) {
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT, g_get_monotonic_time());
}

/* A newline would start another assignment, and the service manager trusts this service. */
void notify_status(Notify *notify, const char *status) {
  g_autofree char *line = g_strdup(status);

  mig_text_make_plain(line);
  sd_notifyf(0, "STATUS=%s", line);
}

void notify_stopping(Notify *notify, unsigned moving) {
  sd_notifyf(0,
             "STOPPING=1\nSTATUS=Stopping; %u migration%s in progress continue%s in libvirtd, and the next "
             "start takes %s over",
             moving, moving == 1 ? "" : "s", moving == 1 ? "s" : "", moving == 1 ? "it" : "them");
}

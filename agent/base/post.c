/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Posts from a thread to a main loop. */
#include "agent/base/post.h"

void post_to(GMainContext *context, GSourceFunc func, gpointer data, GDestroyNotify free_data) {
  GSource *source = g_idle_source_new();

  g_source_set_priority(source, G_PRIORITY_DEFAULT);
  g_source_set_callback(source, func, data, free_data);
  g_source_attach(source, context);
  g_source_unref(source);
}

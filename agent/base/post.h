/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Posts from a thread to a main loop. */
#pragma once

#include <glib.h>

/* Calls `func` once on the context, in the order of the posts; frees `data` afterwards, or when the context ends. Safe on any
 * thread. */
void post_to(GMainContext *context, GSourceFunc func, gpointer data, GDestroyNotify free_data);

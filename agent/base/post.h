/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a thread to a main loop. */
#pragma once

#include <glib.h>

/* `func` is called once on the context, in the order of the calls, and `data` freed then, or when the context ends. From any
 * thread. */
void post_to(GMainContext *context, GSourceFunc func, gpointer data, GDestroyNotify free_data);

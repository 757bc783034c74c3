/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Drain, WatchDrain and AbortDrain: the node is emptied. */
#include "agent/drain/drain.h"

#include "agent/method/methods.h"

void methods_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  drain_answer_begin(user_data, call, parameters);
}

void methods_watch_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  drain_answer_watch(user_data, call);
}

void methods_abort_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  drain_answer_abort(user_data, call);
}

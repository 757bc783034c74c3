/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Drain, WatchDrain and AbortDrain: forwarded to drain/drain-calls.c, which answers them. */
#include "agent/method/methods.h"

#include "agent/drain/drain.h"

void methods_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const Methods *methods = user_data;

  drain_answer_begin(methods->drains, call, parameters);
}

void methods_watch_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const Methods *methods = user_data;

  drain_answer_watch(methods->drains, call);
}

void methods_abort_drain(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const Methods *methods = user_data;

  drain_answer_abort(methods->drains, call);
}

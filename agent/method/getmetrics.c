/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetMetrics: the metrics in Prometheus's text format. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"

void methods_get_metrics(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  g_autofree char *text = metrics_text(methods->node, reply_may_read_jobs(methods->requests, call));

  varlink_call_reply(call, json_pack("{ss}", "text", text), false);
}

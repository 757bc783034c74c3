/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cordon and Uncordon: does this node take new work? */
#include "agent/method/methods.h"

#include "agent/node/cordon.h"
#include "agent/request/reply.h"

#include <string.h>

#define REASON_MAX 500

static void on_saved(const char *id, const GError *error, gpointer user_data) {
  g_autoptr(VarlinkCall) call = user_data;

  if (error)
    reply_error(call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else
    varlink_call_reply(call, json_object(), false);
}

void methods_cordon(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const char *reason = json_string_of(parameters, "reason");
  g_autofree char *by = reply_describe_peer(call);
  Methods *methods = user_data;

  if (reason && strlen(reason) > REASON_MAX) {
    varlink_call_invalid_parameter(call, "reason");
    return;
  }
  cordon_begin(methods->node, reason, by, on_saved, varlink_call_ref(call));
}

void methods_uncordon(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autofree char *by = reply_describe_peer(call);
  const Methods *methods = user_data;

  cordon_end(methods->node, by, on_saved, varlink_call_ref(call));
}

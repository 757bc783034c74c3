/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Complete: forces a migration to its switchover, by a pause or by post-copy. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"

void methods_complete(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = reply_take_job(methods->requests, call, parameters);
  g_autofree char *who = reply_describe_peer(call);
  const char *refusal;
  MigActionKind kind;

  if (!job)
    return;
  kind = g_strcmp0(json_string_of(parameters, "by"), "post_copy") == 0 ? MIG_ACTION_START_POST_COPY
                                                                       : MIG_ACTION_PAUSE;
  refusal = lifecycle_complete(methods->mover, job, kind, who);
  if (refusal)
    reply_refuse_end(call, job, refusal);
  else
    reply_when_saved(methods->requests, job, call);
}

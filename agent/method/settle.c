/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settle: a caller says whether the guest ran at the target. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"

void methods_settle(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = reply_take_job(methods->requests, call, parameters);
  g_autofree char *who = reply_describe_peer(call);
  const char *refusal;

  if (!job)
    return;
  refusal = lifecycle_settle(methods->mover, job, json_bool_of(parameters, "ran_at_target"), who);
  if (refusal)
    reply_refuse_end(call, job, refusal);
  else
    reply_when_saved(methods->requests, job, call);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Abort: ends a job, with the guest at the source. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"

void methods_abort(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  g_autoptr(Caller) caller = caller_new(varlink_call_get_peer(call));
  Job *job = reply_take_job(methods->requests, call, parameters);
  LifecycleAbort outcome;

  if (!job)
    return;
  outcome = lifecycle_abort(methods->mover, job, caller);
  if (outcome == LIFECYCLE_ABORT_ASKED)
    reply_when_saved(methods->requests, job, call);
  else
    reply_refuse_abort(call, job, outcome);
}

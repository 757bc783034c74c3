/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Get: one job. */
#include "agent/method/methods.h"

#include "agent/request/reply.h"
#include "agent/request/view.h"

void methods_get(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = reply_take_job(methods->requests, call, parameters);

  if (!job)
    return;
  if (!job_is_final(job)) {
    varlink_call_reply(call, view_job_reply(methods->requests, job, JOB_DETAIL_FULL), false);
    return;
  }
  if (!job->watch.final_reply)
    job->watch.final_reply =
        varlink_encode_reply(view_job_reply(methods->requests, job, JOB_DETAIL_FULL), false);
  varlink_call_reply_encoded(call, job->watch.final_reply, false);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetHistory: one job with the history of its migration. */
#include "agent/method/methods.h"

#include "agent/job/recorder.h"
#include "agent/request/reply.h"
#include "agent/request/view.h"

static void on_samples(Agent *agent, const char *id, json_t *samples, gpointer user_data) {
  Job *job = job_table_find_id(agent->jobs, id);
  VarlinkCall *call = user_data;
  json_t *reply;

  if (!job) {
    json_decref(samples);
    reply_error(call, "NoSuchJob", json_pack("{ss}", "job", id));
    return;
  }
  reply = view_job_reply(agent, job, JOB_VIEW_FULL);
  json_object_set_new(reply, "samples", samples);
  varlink_call_reply(call, reply, false);
}

void methods_get_history(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = reply_take_job(agent, call, parameters);

  if (!job)
    return;
  if (!recorder_get(agent, job, on_samples, varlink_call_ref(call), (GDestroyNotify)varlink_call_unref)) {
    /* More wait for the disk than there may be connections of one user: it hangs. */
    reply_error(call, "TooManyConnections", json_pack("{si}", "limit", HISTORY_READS_MAX));
    varlink_call_unref(call);
  }
}

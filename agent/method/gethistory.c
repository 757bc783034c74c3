/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetHistory: one job with the history of its migration. */
#include "agent/method/methods.h"

#include "agent/job/recorder.h"
#include "agent/request/reply.h"
#include "agent/request/view.h"

typedef struct HistoryCall {
  const Methods *methods;
  VarlinkCall *call;
} HistoryCall;

static void question_free(gpointer data) {
  HistoryCall *question = data;

  varlink_call_unref(question->call);
  g_free(question);
}

static void on_samples(const char *id, json_t *samples, gpointer user_data) {
  const HistoryCall *question = user_data;
  Job *job = job_table_find_id(question->methods->jobs->table, id);
  json_t *reply;

  if (!job) {
    json_decref(samples);
    reply_error(question->call, "NoSuchJob", json_pack("{ss}", "job", id));
    return;
  }
  reply = view_job_reply(question->methods->requests, job, JOB_DETAIL_FULL);
  json_object_set_new(reply, "samples", samples);
  varlink_call_reply(question->call, reply, false);
}

void methods_get_history(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = reply_take_job(methods->requests, call, parameters);
  HistoryCall *question;

  if (!job)
    return;
  question = g_new0(HistoryCall, 1);
  *question = (HistoryCall){methods, varlink_call_ref(call)};
  if (!recorder_get(methods->jobs, job, on_samples, question, question_free)) {
    /* More calls wait for the disk than one user may have connections: the disk hangs. */
    reply_error(call, "TooManyConnections", json_pack("{si}", "limit", HISTORY_READS_MAX));
    question_free(question);
  }
}

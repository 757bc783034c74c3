/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to the answers to calls: errors, and a job. */
#include "agent/request/reply.h"

#include "agent/config/config-policy.h"
#include "agent/job/caller.h"
#include "agent/move/lifecycle.h"
#include "agent/request/access.h"
#include "agent/request/view.h"

#define INTERFACE "io.handoffd.Agent"

char *reply_describe_peer(const VarlinkCall *call) {
  g_autoptr(Caller) caller = caller_new(varlink_call_get_peer(call));

  return caller_describe(caller);
}

bool reply_may_read_jobs(const Requests *requests, const VarlinkCall *call) {
  return access_allowed(varlink_call_get_peer(call), INTERFACE ".List", requests->config->public_read,
                        requests->group_gid);
}

void reply_error(VarlinkCall *call, const char *name, json_t *parameters) {
  g_autofree char *full = g_strconcat(INTERFACE ".", name, NULL);

  varlink_call_error(call, full, parameters);
}

bool reply_refuse_conflict(VarlinkCall *call, const MigPolicy *policy) {
  const MigPolicyFacts nothing_known = {0};
  const MigConflict *conflict = NULL;
  json_t *keys;

  if (mig_policy_conflicts(policy, &nothing_known, &conflict, 1) == 0)
    return false;
  keys = json_array();
  for (size_t i = 0; i < G_N_ELEMENTS(conflict->keys); i++)
    if (conflict->keys[i] < MIG_POLICY_KEY_COUNT)
      json_array_append_new(keys, json_string(mig_policy_key_info(conflict->keys[i])->name));
  reply_error(call, "PolicyConflict",
              json_pack("{so ss ss}", "keys", keys, "code", conflict->code, "message", conflict->message));
  return true;
}

Job *reply_find_job(Requests *requests, VarlinkCall *call, const char *text) {
  g_autoptr(GPtrArray) candidates = NULL;
  json_t *ids;
  Job *job = NULL;

  switch (job_table_find(requests->jobs->table, text, &job, &candidates)) {
  case JOB_LOOKUP_FOUND:
    return job;
  case JOB_LOOKUP_NONE:
    reply_error(call, "NoSuchJob", json_pack("{ss}", "job", text));
    return NULL;
  case JOB_LOOKUP_AMBIGUOUS:
    ids = json_array();
    for (guint i = 0; i < candidates->len; i++)
      json_array_append_new(ids, json_string(((Job *)candidates->pdata[i])->id));
    reply_error(call, "AmbiguousJob", json_pack("{ss so}", "job", text, "candidates", ids));
    return NULL;
  }
  return NULL;
}

Job *reply_take_job(Requests *requests, VarlinkCall *call, json_t *parameters) {
  return reply_find_job(requests, call, json_string_of(parameters, "job"));
}

typedef struct SavedReply {
  Requests *requests;
  VarlinkCall *call;
  ReplySavedFunc saved;
} SavedReply;

static void on_saved_reply(const char *id, const GError *error, gpointer user_data) {
  g_autofree SavedReply *reply = user_data;
  g_autoptr(VarlinkCall) call = reply->call;

  if (error)
    reply_error(call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else
    reply->saved(reply->requests, call, job_table_find_id(reply->requests->jobs->table, id), id);
}

void reply_after_saving(Requests *requests, Job *job, VarlinkCall *call, ReplySavedFunc saved) {
  SavedReply *reply = g_new0(SavedReply, 1);

  *reply = (SavedReply){requests, varlink_call_ref(call), saved};
  jobs_save(requests->jobs, job, on_saved_reply, reply);
}

static void reply_with_job(Requests *requests, VarlinkCall *call, Job *job, const char *id) {
  if (job)
    varlink_call_reply(call, view_job_reply(requests, job, JOB_DETAIL_FULL), false);
  else
    reply_error(call, "NoSuchJob", json_pack("{ss}", "job", id));
}

void reply_when_saved(Requests *requests, Job *job, VarlinkCall *call) {
  reply_after_saving(requests, job, call, reply_with_job);
}

void reply_refuse_abort(VarlinkCall *call, const Job *job, LifecycleAbort why) {
  static const char *const messages[] = {
      [LIFECYCLE_ABORT_ASKED] = "",
      [LIFECYCLE_ABORT_OVER] = "the job has already ended",
      [LIFECYCLE_ABORT_POST_COPY] = ("the guest already runs at the target, and its newest memory is there: "
                                     "aborting now would lose the guest; let the migration finish"),
      [LIFECYCLE_ABORT_INCOMING] =
          "it has begun to arrive, and only the source's agent can end the migration: abort its job there",
  };

  reply_error(call, "NotAbortable",
              json_pack("{ss ss ss ss}", "job", job->id, "phase", mig_phase_name(job->phase), "stage",
                        mig_stage_name(job->stage), "message", messages[why]));
}

void reply_refuse_end(VarlinkCall *call, const Job *job, const char *message) {
  reply_error(call, "NotPossible",
              json_pack("{ss ss ss ss}", "job", job->id, "phase", mig_phase_name(job->phase), "stage",
                        mig_stage_name(job->stage), "message", message));
}

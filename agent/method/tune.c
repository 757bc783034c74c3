/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tune: changes the goals of an unfinished job. */
#include "agent/method/methods.h"

#include "agent/request/params.h"
#include "agent/request/reply.h"

void methods_tune(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  Job *job = reply_take_job(methods->requests, call, parameters);
  g_autofree char *who = reply_describe_peer(call);
  const char *key;
  MigPolicy changes, merged;
  char message[200];

  if (!job || !params_take_policy(call, parameters, &changes))
    return;
  if (job_is_final(job)) {
    params_refuse_policy(call, "", "the job has already finished");
    return;
  }
  if (job->lease) {
    params_refuse_policy(
        call, "", "the migration comes from another node, whose agent controls it: tune the job there");
    return;
  }
  merged = job->policy;
  mig_policy_merge(&merged, &changes);
  if (reply_refuse_conflict(call, &merged))
    return;
  if (!lifecycle_tune(methods->mover, job, &changes, who, &key)) {
    g_snprintf(message, sizeof message,
               "cannot be changed while the job is %s: it is fixed when the migration starts",
               mig_phase_name(job->phase));
    params_refuse_policy(call, key, message);
    return;
  }
  reply_when_saved(methods->requests, job, call);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Start and Prepare have in common: the request key, the limit of jobs, the answer. */
#include "agent/request/request-key.h"

#include "agent/job/log.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/request/reply.h"
#include "agent/request/view.h"

#include <string.h>

#define REQUEST_KEY_MAX 128

void request_key_clear(RequestKey *key) {
  g_clear_pointer(&key->key, g_free);
  g_clear_pointer(&key->digest, g_free);
}

/* Of all that the caller asked for but the key itself. */
static char *digest_of(json_t *parameters) {
  json_t *copy = json_copy(parameters);
  char *text, *digest;

  json_object_del(copy, "request_key");
  text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
  digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
  free(text);
  json_decref(copy);
  return digest;
}

bool request_key_take(VarlinkCall *call, json_t *parameters, RequestKey *ret_key) {
  const char *key = json_string_value(json_object_get(parameters, "request_key"));
  bool ok = true;

  for (const char *p = key; p && *p; p++)
    ok = ok && g_ascii_isprint(*p);
  if (key && (!ok || !*key || strlen(key) > REQUEST_KEY_MAX)) {
    varlink_call_invalid_parameter(call, "request_key");
    return false;
  }
  *ret_key = (RequestKey){.key = g_strdup(key), .digest = digest_of(parameters)};
  return true;
}

void accept_reply(Agent *agent, VarlinkCall *call, const Job *job, bool created) {
  varlink_call_reply(
      call, json_pack("{so sb}", "job", view_job(agent, job, JOB_VIEW_FULL), "created", (int)created), false);
}

typedef struct Repeated {
  Agent *agent;
  VarlinkCall *call;
} Repeated;

static void on_repeated_saved(const char *id, const GError *error, gpointer user_data) {
  g_autofree Repeated *repeated = user_data;
  g_autoptr(VarlinkCall) call = repeated->call;
  Job *job = job_table_find_id(repeated->agent->jobs, id);

  if (error || !job)
    reply_error(call, "StoreFailed",
                json_pack("{ss}", "message", error ? error->message : "the job is gone"));
  else if (!incoming_wait_until_made(job, call))
    accept_reply(repeated->agent, call, job, false);
}

bool accept_answer_known(Agent *agent, VarlinkCall *call, const RequestKey *key) {
  Job *job = key->key ? job_table_find_request_key(agent->jobs, key->key) : NULL;
  Repeated *repeated;

  if (!job)
    return false;
  if (g_strcmp0(job->request_digest, key->digest) != 0) {
    reply_error(call, "RequestKeyConflict", json_pack("{ss ss}", "request_key", key->key, "job", job->id));
    return true;
  }
  if (job->durable) {
    if (!incoming_wait_until_made(job, call))
      accept_reply(agent, call, job, false);
    return true;
  }
  repeated = g_new0(Repeated, 1);
  repeated->agent = agent;
  repeated->call = varlink_call_ref(call);
  lifecycle_save(agent, job, on_repeated_saved, repeated);
  return true;
}

bool accept_has_room(Agent *agent, VarlinkCall *call) {
  unsigned unfinished = job_table_count_unfinished(agent->jobs);

  if (unfinished + agent->starting <= agent->config->max_jobs)
    return true;
  log_message(LOG_WARNING, NAMES_MESSAGE_LIMIT_REACHED, NULL, 0,
              "%u jobs are unfinished: no more are taken (MaxJobs=%u)", unfinished, agent->config->max_jobs);
  reply_error(call, "TooManyJobs", json_pack("{si}", "limit", (int)agent->config->max_jobs));
  return false;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to Start and Prepare: the request key, the limit of jobs, the answer. */
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

/* Of all parameters except the key itself. */
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
  const char *key = json_string_of(parameters, "request_key");
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

void request_reply(Requests *requests, VarlinkCall *call, const Job *job, bool created) {
  varlink_call_reply(
      call, json_pack("{so sb}", "job", view_job(requests, job, JOB_DETAIL_FULL), "created", (int)created),
      false);
}

/* --- leases whose images are being created --- */

void request_refuse_lease(VarlinkCall *call, const Job *job) {
  reply_error(call, "Refused",
              json_pack("{s[{ss sb sb ss ss}]}", "findings", "code", "IMAGE_NOT_MADE", "blocks", 1,
                        "transient", 0, "seen", job->failure.message ? job->failure.message : "", "remedy",
                        "Check the storage pool there, or create the images manually."));
}

static void answer_waiting(Requests *requests, Job *job) {
  GPtrArray *waiting = job->lease->waiting;

  for (guint i = 0; i < waiting->len; i++) {
    if (job->failure.cause != MIG_CAUSE_NONE)
      request_refuse_lease(waiting->pdata[i], job);
    else
      request_reply(requests, waiting->pdata[i], job, false);
  }
  g_ptr_array_set_size(waiting, 0);
}

static bool wait_until_made(Job *job, VarlinkCall *call) {
  if (!job->lease || job->phase != MIG_PHASE_PREPARING || job->lease->slot.came)
    return false;
  g_ptr_array_add(job->lease->waiting, varlink_call_ref(call));
  return true;
}

void request_on_job(Job *job, JobChange change, gpointer requests) {
  if (change == JOB_CHANGE_LEASED)
    answer_waiting(requests, job);
}

/* --- repeated requests --- */

static void answer_repeated(Requests *requests, VarlinkCall *call, Job *job, const char *id) {
  if (!job)
    reply_error(call, "StoreFailed", json_pack("{ss}", "message", "the job no longer exists"));
  else if (!wait_until_made(job, call))
    request_reply(requests, call, job, false);
}

bool request_answer_known(Requests *requests, VarlinkCall *call, const RequestKey *key) {
  Job *job = key->key ? job_table_find_request_key(requests->jobs->table, key->key) : NULL;

  if (!job)
    return false;
  if (g_strcmp0(job->request_digest, key->digest) != 0) {
    reply_error(call, "RequestKeyConflict", json_pack("{ss ss}", "request_key", key->key, "job", job->id));
    return true;
  }
  if (job->durable)
    answer_repeated(requests, call, job, NULL);
  else
    reply_after_saving(requests, job, call, answer_repeated);
  return true;
}

bool request_has_room(Requests *requests, VarlinkCall *call) {
  unsigned unfinished = job_table_count_unfinished(requests->jobs->table);

  if (unfinished + requests->jobs->starting <= requests->config->max_jobs)
    return true;
  log_message(LOG_WARNING, NAMES_MESSAGE_LIMIT_REACHED, NULL, 0,
              "%u unfinished jobs; refusing new ones (MaxJobs=%u)", unfinished, requests->config->max_jobs);
  reply_error(call, "TooManyJobs", json_pack("{si}", "limit", (int)requests->config->max_jobs));
  return false;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start: from what a caller asks for to a job on stable storage.
 *
 * Theory of Operation. What can be said at once is said at once (policy, target, a key that was used before).
 * Then libvirtd is asked for the domain, which takes a while, and the disk for the record, which does as well; in
 * between other calls run. So whatever could have changed meanwhile (the key, the domain's job) is looked at again
 * after the wait, and the job is in the table, and found by its key, before its record is written. A caller that
 * repeats its key while the first call still waits for the disk waits along. */
#include "agent/methods.h"

#include "agent/asked.h"
#include "agent/lifecycle.h"
#include "agent/log.h"
#include "agent/view.h"

#include <string.h>

#define REQUEST_KEY_MAX 128

typedef struct Start {
  Agent *agent;
  VarlinkCall *call;
  bool counted; /* in Agent.starting: no job of it is in the table yet */
  char *domain;
  char *target_name;
  char *target_uri;
  char *migrate_uri;
  AskedGoals asked;
  bool even_if_cordoned;
  char *request_key;
  char *digest;
} Start;

static void start_free(Start *start) {
  if (!start)
    return;
  if (start->counted)
    start->agent->starting--;
  g_clear_pointer(&start->call, varlink_call_unref);
  g_free(start->domain);
  g_free(start->target_name);
  g_free(start->target_uri);
  g_free(start->migrate_uri);
  asked_goals_clear(&start->asked);
  g_free(start->request_key);
  g_free(start->digest);
  g_free(start);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Start, start_free)

static const char *get_text(json_t *parameters, const char *key) {
  return json_string_value(json_object_get(parameters, key));
}

/* --- what can be said at once --- */

static bool take_request_key(Start *start, json_t *parameters) {
  const char *key = get_text(parameters, "request_key");
  bool ok = true;

  if (!key)
    return true;
  for (const char *p = key; *p; p++)
    ok = ok && g_ascii_isprint(*p);
  if (!ok || !*key || strlen(key) > REQUEST_KEY_MAX) {
    varlink_call_invalid_parameter(start->call, "request_key");
    return false;
  }
  start->request_key = g_strdup(key);
  return true;
}

static bool take_target(Start *start, json_t *parameters) {
  AskedTarget target;

  if (!asked_take_target(start->agent, start->call, parameters, &target))
    return false;
  start->target_name = g_strdup(target.name);
  start->target_uri = g_strdup(target.libvirt_uri);
  start->migrate_uri = g_strdup(target.migrate_uri);
  return true;
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

/* --- answers --- */

static void reply_with(VarlinkCall *call, const Agent *agent, const Job *job, bool created) {
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
    methods_error(call, "StoreFailed",
                  json_pack("{ss}", "message", error ? error->message : "the job is gone"));
  else
    reply_with(call, repeated->agent, job, false);
}

/* True: the key is known, and the call has been answered or will be. */
static bool answer_known_key(Start *start) {
  Job *job = start->request_key ? job_table_find_request_key(start->agent->jobs, start->request_key) : NULL;
  Repeated *repeated;

  if (!job)
    return false;
  if (g_strcmp0(job->request_digest, start->digest) != 0) {
    methods_error(start->call, "RequestKeyConflict",
                  json_pack("{ss ss}", "request_key", start->request_key, "job", job->id));
    return true;
  }
  if (job->durable) {
    reply_with(start->call, start->agent, job, false);
    return true;
  }
  repeated = g_new0(Repeated, 1);
  repeated->agent = start->agent;
  repeated->call = varlink_call_ref(start->call);
  lifecycle_save(start->agent, job, on_repeated_saved, repeated);
  return true;
}

static bool has_room(Start *start) {
  const Agent *agent = start->agent;
  unsigned unfinished = job_table_count_unfinished(agent->jobs);

  if (unfinished + agent->starting <= agent->config->max_jobs)
    return true;
  log_message(LOG_WARNING, NAMES_MESSAGE_LIMIT_REACHED, NULL, 0,
              "%u jobs are unfinished: no more are taken (MaxJobs=%u)", unfinished, agent->config->max_jobs);
  methods_error(start->call, "TooManyJobs", json_pack("{si}", "limit", (int)agent->config->max_jobs));
  return false;
}

/* Those who empty the node go on. */
static bool refuse_if_cordoned(const Start *start) {
  return !start->even_if_cordoned && cordon_refuse(start->agent, start->call);
}

/* --- after the waits --- */

static void on_accepted(Agent *agent, Job *job, const GError *error, gpointer user_data) {
  g_autoptr(Start) start = user_data;

  if (error)
    methods_error(start->call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else
    reply_with(start->call, agent, job, true);
}

static Job *make_job(Start *start, const MigDomainFacts *facts, const Goals *goals) {
  Job *job = job_new();

  job->request_key = g_strdup(start->request_key);
  job->request_digest = g_strdup(start->digest);
  job->domain_name = g_strdup(facts->name);
  g_strlcpy(job->domain_uuid, facts->uuid, sizeof job->domain_uuid);
  job->memory_bytes = facts->memory_bytes;
  job->target_name = g_strdup(start->target_name);
  job->target_uri = g_strdup(start->target_uri);
  job->migrate_uri = g_strdup(start->migrate_uri);
  job->policy = goals->policy;
  memcpy(job->policy_sources, goals->sources, sizeof job->policy_sources);
  job->policy_name = g_strdup(start->asked.policy_name);
  job->policy_matched = g_strdup(goals->matched ? goals->matched->name : NULL);
  return job;
}

static void on_domain(const LookupAnswer *answer, const GError *error, gpointer user_data) {
  g_autoptr(Start) start = user_data;
  Agent *agent = start->agent;
  Goals goals;
  Job *busy;

  if (error) {
    asked_reply_lookup_error(agent, start->call, start->domain, error);
    return;
  }
  if (answer_known_key(start))
    return;
  busy = job_table_find_active(agent->jobs, answer->facts.uuid);
  if (busy) {
    methods_error(start->call, "DomainBusy",
                  json_pack("{ss ss}", "domain", answer->facts.name, "job", busy->id));
    return;
  }
  if (refuse_if_cordoned(start) ||
      !asked_resolve_goals(agent, start->call, &start->asked, &answer->facts, &goals))
    return;
  agent->starting--;
  start->counted = false;
  lifecycle_accept(agent, make_job(start, &answer->facts, &goals), on_accepted, start);
  (void)g_steal_pointer(&start);
}

void methods_start(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(Start) start = g_new0(Start, 1);

  start->agent = user_data;
  start->agent->starting++;
  start->counted = true;
  start->call = varlink_call_ref(call);
  start->domain = g_strdup(get_text(parameters, "domain"));
  start->digest = digest_of(parameters);
  start->even_if_cordoned = json_is_true(json_object_get(parameters, "even_if_cordoned"));
  if (!take_request_key(start, parameters) || answer_known_key(start) || refuse_if_cordoned(start) ||
      !take_target(start, parameters) ||
      !asked_take_goals(start->agent, start->call, parameters, &start->asked) || !has_room(start))
    return;
  lookup_domain(start->agent->lookup, start->domain, false, on_domain, start);
  (void)g_steal_pointer(&start);
}

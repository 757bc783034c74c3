/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start: from what a caller asks for to a job on stable storage.
 *
 * Theory of Operation. What can be said at once is said at once (policy, target, a key that was used before).
 * Then libvirtd is asked for the domain, which takes a while, and the disk for the record, which does as well; in
 * between other calls run. So whatever could have changed meanwhile (the key, the domain's job) is looked at again
 * after the wait, and the job is in the table, and found by its key, before its record is written. A caller that
 * repeats its key while the first call still waits for the disk waits along. */
#include "agent/methods.h"

#include "agent/jobjson.h"
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
  char *policy_name;
  MigPolicy policy;
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
  g_free(start->policy_name);
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

/* libvirt can be told by a URI to run a program of the caller's choice, as the agent's user, to get through to the
 * target. The configuration may do that; a caller may not. */
static bool runs_a_program(GUri *uri) {
  static const char *const parameters[] = {"command", "netcat", "proxy"};
  g_autoptr(GHashTable) query = NULL;

  if (g_str_has_suffix(g_uri_get_scheme(uri), "+ext"))
    return true;
  if (!g_uri_get_query(uri))
    return false;
  query = g_uri_parse_params(g_uri_get_query(uri), -1, "&;", G_URI_PARAMS_CASE_INSENSITIVE, NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(parameters); i++)
    if (!query || g_hash_table_contains(query, parameters[i]))
      return true;
  return false;
}

/* NULL: a caller may name it as a target. */
static const char *find_fault_with_uri(const char *target) {
  g_autoptr(GUri) uri = NULL;

  if (!strstr(target, "://"))
    return "the configuration has no [Target] of that name, and it is no libvirt URI such as "
           "qemu+tls://node-b/system";
  uri = g_uri_parse(target, G_URI_FLAGS_NONE, NULL);
  if (!uri)
    return "it is no well-formed URI; one is qemu+tls://node-b/system";
  if (runs_a_program(uri))
    return "a URI that has the agent run a program (transport ext; command, netcat, proxy) is taken from a "
           "[Target] of "
           "the configuration only";
  return NULL;
}

static bool take_target(Start *start, json_t *parameters) {
  const char *target = get_text(parameters, "target");
  const char *migrate_uri = get_text(parameters, "migrate_uri");
  const ConfigTarget *configured = config_find_target(start->agent->config, target);
  const char *fault;

  if (configured) {
    start->target_name = g_strdup(configured->name);
    start->target_uri = g_strdup(configured->libvirt_uri);
    start->migrate_uri = g_strdup(migrate_uri ? migrate_uri : configured->migrate_uri);
    return true;
  }
  fault = find_fault_with_uri(target);
  if (fault) {
    methods_error(start->call, "NoSuchTarget", json_pack("{ss ss}", "target", target, "message", fault));
    return false;
  }
  start->target_uri = g_strdup(target);
  start->migrate_uri = g_strdup(migrate_uri);
  return true;
}

static bool take_policy(Start *start, json_t *parameters) {
  const char *name = get_text(parameters, "policy_name");
  const char *key = NULL;
  MigPolicy over;
  char message[200];

  start->policy = start->agent->config->policy;
  if (name) {
    const ConfigPolicy *named = config_find_policy(start->agent->config, name);

    if (!named) {
      methods_error(start->call, "NoSuchPolicy", json_pack("{ss}", "policy_name", name));
      return false;
    }
    start->policy_name = g_strdup(name);
    mig_policy_merge(&start->policy, &named->policy);
  }
  if (!policy_from_json(json_object_get(parameters, "policy"), &over, &key, message, sizeof message)) {
    methods_error(start->call, "InvalidPolicy", json_pack("{ss ss}", "key", key, "message", message));
    return false;
  }
  mig_policy_merge(&start->policy, &over);

  return !methods_refuse_conflict(start->call, &start->policy);
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
  unsigned unfinished = job_table_count_pending(agent->jobs) + job_table_count_running(agent->jobs);

  if (unfinished + agent->starting <= agent->config->max_jobs)
    return true;
  log_message(LOG_WARNING, NAMES_MESSAGE_LIMIT_REACHED, NULL, 0,
              "%u jobs are unfinished: no more are taken (MaxJobs=%u)", unfinished, agent->config->max_jobs);
  methods_error(start->call, "TooManyJobs", json_pack("{si}", "limit", (int)agent->config->max_jobs));
  return false;
}

static void reply_lookup_error(Start *start, const GError *error) {
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN))
    methods_error(start->call, "NoSuchDomain", json_pack("{ss}", "domain", start->domain));
  else
    methods_error(
        start->call, "HypervisorUnavailable",
        json_pack("{ss ss}", "uri", hypervisor_get_uri(start->agent->hypervisor), "message", error->message));
}

/* --- after the waits --- */

static void on_accepted(Agent *agent, Job *job, const GError *error, gpointer user_data) {
  g_autoptr(Start) start = user_data;

  if (error)
    methods_error(start->call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else
    reply_with(start->call, agent, job, true);
}

static Job *make_job(Start *start, const MigDomainFacts *facts) {
  Job *job = job_new();

  job->request_key = g_strdup(start->request_key);
  job->request_digest = g_strdup(start->digest);
  job->domain_name = g_strdup(facts->name);
  g_strlcpy(job->domain_uuid, facts->uuid, sizeof job->domain_uuid);
  job->memory_bytes = facts->memory_bytes;
  job->target_name = g_strdup(start->target_name);
  job->target_uri = g_strdup(start->target_uri);
  job->migrate_uri = g_strdup(start->migrate_uri);
  job->policy = start->policy;
  job->policy_name = g_strdup(start->policy_name);
  return job;
}

static void on_domain(const MigDomainFacts *facts, const GError *error, gpointer user_data) {
  g_autoptr(Start) start = user_data;
  Agent *agent = start->agent;
  Job *busy;

  if (error) {
    reply_lookup_error(start, error);
    return;
  }
  if (answer_known_key(start))
    return;
  busy = job_table_find_active(agent->jobs, facts->uuid);
  if (busy) {
    methods_error(start->call, "DomainBusy", json_pack("{ss ss}", "domain", facts->name, "job", busy->id));
    return;
  }
  agent->starting--;
  start->counted = false;
  lifecycle_accept(agent, make_job(start, facts), on_accepted, start);
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
  if (!take_request_key(start, parameters) || answer_known_key(start) || !take_target(start, parameters) ||
      !take_policy(start, parameters) || !has_room(start))
    return;
  lookup_domain(start->agent->lookup, start->domain, on_domain, start);
  (void)g_steal_pointer(&start);
}

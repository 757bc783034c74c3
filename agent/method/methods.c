/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods of io.handoffd.Agent: from a call's parameters to the agent's doing, and back to a reply. What is
 * not in the table is not served yet, and answers MethodNotImplemented. */
#include "agent/method/methods.h"

#include "agent/base/clock.h"
#include "agent/job/jobjson.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/request/access.h"
#include "agent/request/view.h"
#include "agent/request/watch.h"
#include "proto/interface.h"

#include <inttypes.h>
#include <string.h>

#define INTERFACE "io.handoffd.Agent"

char *methods_describe_peer(const VarlinkCall *call) {
  g_autoptr(Caller) caller = caller_new(varlink_call_get_peer(call));

  return caller_describe(caller);
}

bool methods_may_read_jobs(const Agent *agent, const VarlinkCall *call) {
  return access_allowed(varlink_call_get_peer(call), INTERFACE ".List", agent->config->public_read,
                        agent->group_gid);
}

void methods_error(VarlinkCall *call, const char *name, json_t *parameters) {
  g_autofree char *full = g_strconcat(INTERFACE ".", name, NULL);

  varlink_call_error(call, full, parameters);
}

static const char *get_text(json_t *parameters, const char *key) {
  return json_string_value(json_object_get(parameters, key));
}

bool methods_refuse_conflict(VarlinkCall *call, const MigPolicy *policy) {
  const MigPolicyFacts nothing_known = {0};
  const MigConflict *conflict = NULL;
  json_t *keys;

  if (mig_policy_conflicts(policy, &nothing_known, &conflict, 1) == 0)
    return false;
  keys = json_array();
  for (size_t i = 0; i < G_N_ELEMENTS(conflict->keys); i++)
    if (conflict->keys[i] < MIG_POLICY_KEY_COUNT)
      json_array_append_new(keys, json_string(mig_policy_key_info(conflict->keys[i])->name));
  methods_error(call, "PolicyConflict",
                json_pack("{so ss ss}", "keys", keys, "code", conflict->code, "message", conflict->message));
  return true;
}

Job *methods_find_job(Agent *agent, VarlinkCall *call, const char *text) {
  g_autoptr(GPtrArray) candidates = NULL;
  json_t *ids;
  Job *job = NULL;

  switch (job_table_find(agent->jobs, text, &job, &candidates)) {
  case JOB_LOOKUP_FOUND:
    return job;
  case JOB_LOOKUP_NONE:
    methods_error(call, "NoSuchJob", json_pack("{ss}", "job", text));
    return NULL;
  case JOB_LOOKUP_AMBIGUOUS:
    ids = json_array();
    for (guint i = 0; i < candidates->len; i++)
      json_array_append_new(ids, json_string(((Job *)candidates->pdata[i])->id));
    methods_error(call, "AmbiguousJob", json_pack("{ss so}", "job", text, "candidates", ids));
    return NULL;
  }
  return NULL;
}

static Job *find_job(Agent *agent, VarlinkCall *call, json_t *parameters) {
  return methods_find_job(agent, call, get_text(parameters, "job"));
}

static void method_get(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = find_job(agent, call, parameters);

  if (!job)
    return;
  if (!job_is_final(job)) {
    varlink_call_reply(call, view_job_reply(agent, job, JOB_VIEW_FULL), false);
    return;
  }
  if (!job->final_reply)
    job->final_reply = varlink_encode_reply(view_job_reply(agent, job, JOB_VIEW_FULL), false);
  varlink_call_reply_encoded(call, job->final_reply, false);
}

static void on_samples(Agent *agent, const char *id, json_t *samples, gpointer user_data) {
  Job *job = job_table_find_id(agent->jobs, id);
  VarlinkCall *call = user_data;
  json_t *reply;

  if (!job) {
    json_decref(samples);
    methods_error(call, "NoSuchJob", json_pack("{ss}", "job", id));
    return;
  }
  reply = view_job_reply(agent, job, JOB_VIEW_FULL);
  json_object_set_new(reply, "samples", samples);
  varlink_call_reply(call, reply, false);
}

static void method_get_history(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = find_job(agent, call, parameters);

  if (!job)
    return;
  if (!recorder_get(agent, job, on_samples, varlink_call_ref(call), (GDestroyNotify)varlink_call_unref)) {
    /* More wait for the disk than there may be connections of one user: it hangs. */
    methods_error(call, "TooManyConnections", json_pack("{si}", "limit", HISTORY_READS_MAX));
    varlink_call_unref(call);
  }
}

static void method_list(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  json_t *phases = json_object_get(parameters, "phases");
  const char *domain = get_text(parameters, "domain");
  const GPtrArray *all = job_table_all(agent->jobs);
  bool wanted[MIG_PHASE_COUNT];
  json_t *jobs = json_array();
  json_t *phase;
  size_t index;

  for (int i = 0; i < MIG_PHASE_COUNT; i++)
    wanted[i] = !json_is_array(phases);
  json_array_foreach (phases, index, phase)
    wanted[mig_phase_from_name(json_string_value(phase))] = true;
  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (!job->durable || !wanted[job->phase] ||
        (domain && strcmp(domain, job->domain_name) != 0 &&
         g_ascii_strcasecmp(domain, job->domain_uuid) != 0))
      continue;
    json_array_append_new(jobs, view_summary(agent, job));
  }
  varlink_call_reply(call, json_pack("{so}", "jobs", jobs), false);
}

static void method_watch(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = NULL;

  if (get_text(parameters, "job") && !(job = find_job(agent, call, parameters)))
    return;
  watch_add(agent, job, call);
}

/* --- answers that wait for the disk --- */

typedef struct SavedReply {
  Agent *agent;
  VarlinkCall *call;
} SavedReply;

static void on_saved_reply(const char *id, const GError *error, gpointer user_data) {
  g_autofree SavedReply *reply = user_data;
  g_autoptr(VarlinkCall) call = reply->call;
  Job *job = job_table_find_id(reply->agent->jobs, id);

  if (error)
    methods_error(call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else if (job)
    varlink_call_reply(call, view_job_reply(reply->agent, job, JOB_VIEW_FULL), false);
  else
    methods_error(call, "NoSuchJob", json_pack("{ss}", "job", id));
}

void methods_reply_when_saved(Agent *agent, Job *job, VarlinkCall *call) {
  SavedReply *reply = g_new0(SavedReply, 1);

  reply->agent = agent;
  reply->call = varlink_call_ref(call);
  lifecycle_save(agent, job, on_saved_reply, reply);
}

void methods_refuse_abort(VarlinkCall *call, const Job *job, LifecycleAbort why) {
  static const char *const messages[] = {
      [LIFECYCLE_ABORT_ASKED] = "",
      [LIFECYCLE_ABORT_OVER] = "the job is over already",
      [LIFECYCLE_ABORT_POST_COPY] =
          "the guest runs at the target already and its newest memory is there: ending the move now would "
          "lose the guest; let it finish",
      [LIFECYCLE_ABORT_INCOMING] =
          "it has begun to come, and the agent of its source alone can end that: abort its job there",
  };

  methods_error(call, "NotAbortable",
                json_pack("{ss ss ss ss}", "job", job->id, "phase", mig_phase_name(job->phase), "stage",
                          mig_stage_name(job->stage), "message", messages[why]));
}

static void method_abort(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  g_autoptr(Caller) caller = caller_new(varlink_call_get_peer(call));
  Job *job = find_job(agent, call, parameters);
  LifecycleAbort outcome;

  if (!job)
    return;
  outcome = lifecycle_abort(agent, job, caller);
  if (outcome == LIFECYCLE_ABORT_ASKED)
    methods_reply_when_saved(agent, job, call);
  else
    methods_refuse_abort(call, job, outcome);
}

static void method_tune(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = find_job(agent, call, parameters);
  g_autofree char *who = methods_describe_peer(call);
  const char *key = NULL;
  MigPolicy changes, merged;
  char message[200];

  if (!job)
    return;
  if (!policy_from_json(json_object_get(parameters, "policy"), &changes, &key, message, sizeof message)) {
    methods_error(call, "InvalidPolicy", json_pack("{ss ss}", "key", key, "message", message));
    return;
  }
  if (job_is_final(job)) {
    methods_error(call, "InvalidPolicy",
                  json_pack("{ss ss}", "key", "", "message", "the job is over already"));
    return;
  }
  if (job->lease) {
    methods_error(call, "InvalidPolicy",
                  json_pack("{ss ss}", "key", "", "message",
                            "it comes from another node, whose agent steers it: tune its job there"));
    return;
  }
  merged = job->policy;
  mig_policy_merge(&merged, &changes);
  if (methods_refuse_conflict(call, &merged))
    return;
  if (!lifecycle_tune(agent, job, &changes, who, &key)) {
    g_snprintf(message, sizeof message,
               "cannot be changed any more while the job is %s: it is fixed when the "
               "migration starts",
               mig_phase_name(job->phase));
    methods_error(call, "InvalidPolicy", json_pack("{ss ss}", "key", key, "message", message));
    return;
  }
  methods_reply_when_saved(agent, job, call);
}

static void refuse_complete(VarlinkCall *call, const Job *job, const char *message) {
  methods_error(call, "NotPossible",
                json_pack("{ss ss ss ss}", "job", job->id, "phase", mig_phase_name(job->phase), "stage",
                          mig_stage_name(job->stage), "message", message));
}

static void method_complete(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = find_job(agent, call, parameters);
  g_autofree char *who = methods_describe_peer(call);
  const char *refusal;
  MigActionKind kind;

  if (!job)
    return;
  kind =
      g_strcmp0(get_text(parameters, "by"), "post_copy") == 0 ? MIG_ACTION_START_POST_COPY : MIG_ACTION_PAUSE;
  refusal = lifecycle_complete(agent, job, kind, who);
  if (refusal)
    refuse_complete(call, job, refusal);
  else
    methods_reply_when_saved(agent, job, call);
}

static void method_settle(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = find_job(agent, call, parameters);
  g_autofree char *who = methods_describe_peer(call);
  const char *refusal;

  if (!job)
    return;
  refusal = lifecycle_settle(agent, job, json_is_true(json_object_get(parameters, "ran_at_target")), who);
  if (refusal)
    refuse_complete(call, job, refusal);
  else
    methods_reply_when_saved(agent, job, call);
}

/* --- the node --- */

static char *format_version(uint64_t version) {
  return g_strdup_printf("%" PRIu64 ".%" PRIu64 ".%" PRIu64, version / 1000000, version / 1000 % 1000,
                         version % 1000);
}

static json_t *config_targets(const Config *config) {
  json_t *targets = json_array();

  for (guint i = 0; i < config->targets->len; i++) {
    const ConfigTarget *target = config->targets->pdata[i];
    json_t *object = json_pack("{ss ss}", "name", target->name, "libvirt_uri", target->libvirt_uri);

    if (target->migrate_uri)
      json_object_set_new(object, "migrate_uri", json_string(target->migrate_uri));
    json_array_append_new(targets, object);
  }
  return targets;
}

/* Leases that wait for what is to come are in no queue. */
static unsigned count_leases(const Agent *agent) {
  const GPtrArray *all = job_table_all(agent->jobs);
  unsigned n = 0;

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    n += job->lease && job->phase == MIG_PHASE_PENDING;
  }
  return n;
}

static void method_get_node(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Agent *agent = user_data;
  const HypervisorState *state = hypervisor_get_state(agent->hypervisor);
  const Config *config = agent->config;
  json_t *policies = json_array();
  json_t *warnings = json_array();
  g_autofree char *incoming_at = incoming_uri(agent);
  uint64_t reserved_bytes;
  unsigned incoming = incoming_count(agent, &reserved_bytes);
  json_t *node, *changes;

  for (guint i = 0; i < config->policies->len; i++)
    json_array_append_new(policies, json_string(((ConfigPolicy *)config->policies->pdata[i])->name));
  for (guint i = 0; i < config->warnings->len; i++)
    json_array_append_new(warnings, json_string(config->warnings->pdata[i]));
  node = json_pack("{ss ss ss sb si si si si so so so so sI}", "hostname", agent->hostname, "agent_version",
                   HANDOFFD_VERSION, "libvirt_uri", hypervisor_get_uri(agent->hypervisor),
                   "libvirt_reachable", (int)state->reachable, "max_outgoing", (int)config->max_outgoing,
                   "outgoing_running", (int)job_queue_count_running(agent->queue), "pending",
                   (int)(job_table_count_pending(agent->jobs) - count_leases(agent)), "finished_kept",
                   (int)job_table_count_final(agent->jobs), "targets", config_targets(config), "policy",
                   policy_to_json(&config->node_policy.policy), "policies", policies, "warnings", warnings,
                   "started_usec_realtime", (json_int_t)agent->started_usec);
  json_object_set_new(node, "max_incoming", json_integer(config->max_incoming));
  json_object_set_new(node, "incoming", json_integer(incoming));
  json_object_set_new(node, "reserved_bytes", json_integer((json_int_t)reserved_bytes));
  json_object_set_new(node, "incoming_uri", json_string(incoming_at));
  if (state->reachable) {
    g_autofree char *libvirt = format_version(state->facts.libvirt_version);
    g_autofree char *hypervisor = format_version(state->facts.hypervisor_version);

    json_object_set_new(node, "libvirt_version", json_string(libvirt));
    json_object_set_new(node, "hypervisor_version", json_string(hypervisor));
  }
  if (config->max_bandwidth_bytes_per_s > 0)
    json_object_set_new(node, "max_bandwidth_bytes_per_s",
                        json_integer((json_int_t)config->max_bandwidth_bytes_per_s));
  changes = evaluator_count_to_json(agent->evaluator);
  if (changes)
    json_object_set_new(node, "pending_changes", changes);
  if (agent->cordon.on)
    json_object_set_new(node, "cordon", cordon_to_json(&agent->cordon));
  if (agent->drain)
    json_object_set_new(node, "drain", drain_to_json(agent));
  if (hangs_count(agent->hangs) > 0 && methods_may_read_jobs(agent, call))
    json_object_set_new(node, "hanging", hangs_to_json(agent->hangs, NULL));
  if (damaged_count(agent->damaged) > 0 && methods_may_read_jobs(agent, call))
    json_object_set_new(node, "damaged_records", damaged_to_json(agent->damaged));
  varlink_call_reply(call, node, false);
}

/* --- the table --- */

static const VarlinkMethod methods[] = {
    {"Start", methods_start, false},
    {"Prepare", methods_prepare, false},
    {"Release", methods_release, false},
    {"Get", method_get, false},
    {"List", method_list, false},
    {"Watch", method_watch, true},
    {"Complete", method_complete, false},
    {"Settle", method_settle, false},
    {"Check", methods_check, false},
    {"Forecast", methods_forecast, false},
    {"GetPolicy", methods_get_policy, false},
    {"Cordon", methods_cordon, false},
    {"Uncordon", methods_uncordon, false},
    {"Drain", methods_drain, true},
    {"WatchDrain", methods_watch_drain, true},
    {"AbortDrain", methods_abort_drain, false},
    {"Abort", method_abort, false},
    {"Tune", method_tune, false},
    {"GetNode", method_get_node, false},
    {"GetHistory", method_get_history, false},
    {"GetMetrics", methods_get_metrics, false},
    {"Evaluate", methods_evaluate, false},
};

/* The journal's message of a refusal, unless there were many. */
static void tell_denial(Agent *agent, const VarlinkPeer *peer, const char *method) {
  unsigned untold;
  bool tell = denials_note(agent->denials, peer->uid, clock_now_ms(), &untold);

  if (untold > 0)
    log_message(LOG_NOTICE, NAMES_MESSAGE_ACCESS_DENIED, NULL, 0,
                "%u more calls were refused to users who may not make them; not each is told", untold);
  if (!tell)
    return;

  g_autofree char *uid = g_strdup_printf("%u", (unsigned)peer->uid);
  g_autofree char *pid = g_strdup_printf("%d", (int)peer->pid);
  const LogField fields[] = {
      {NAMES_FIELD_METHOD, method}, {NAMES_FIELD_PEER_UID, uid}, {NAMES_FIELD_PEER_PID, pid}};

  log_message(LOG_NOTICE, NAMES_MESSAGE_ACCESS_DENIED, fields, G_N_ELEMENTS(fields),
              "uid %s (pid %s) may not call %s: it is neither root nor in the group %s", uid, pid, method,
              agent->config->group);
}

static bool authorize(const VarlinkPeer *peer, const char *method, gpointer user_data) {
  Agent *agent = user_data;

  if (access_allowed(peer, method, agent->config->public_read, agent->group_gid))
    return true;
  tell_denial(agent, peer, method);
  return false;
}

static VarlinkTrust trust(const VarlinkPeer *peer, gpointer user_data) {
  const Agent *agent = user_data;

  return access_is_trusted(peer, agent->group_gid) ? VARLINK_TRUSTED : VARLINK_STRANGER;
}

bool methods_register(Agent *agent, GError **error) {
  varlink_server_set_authorize(agent->server, authorize, agent);
  varlink_server_set_trust(agent->server, trust, agent);
  return varlink_server_add_interface(agent->server, io_handoffd_Agent_varlink, methods,
                                      G_N_ELEMENTS(methods), agent, error);
}

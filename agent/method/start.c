/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start: from a request to a job on stable storage.
 *
 * Theory of Operation. What can be answered at once is answered at once (policy, target, a request key that is known). Then
 * libvirtd looks up the domain, and the disk takes the record. Both take a while, and other calls run meanwhile. So
 * everything that may have changed (the key, the domain's job) is checked again after the wait for libvirtd, and the job is
 * in the table, where its key finds it, before its record is written. A caller that repeats its key while the first call
 * still waits for the disk waits for it too. */
#include "agent/method/methods.h"

#include "agent/base/clock.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/request/params.h"
#include "agent/request/reply.h"
#include "agent/request/request-key.h"

#include <string.h>

typedef struct Start {
  Methods *methods;
  uint64_t asked_ms;
  VarlinkCall *call;
  bool counted; /* in Jobs.starting: its job is not in the table yet */
  char *domain;
  char *target_name;
  char *target_uri;
  char *migrate_uri;
  GoalsParam asked;
  bool even_if_cordoned;
  Caller *caller;
  RequestKey key;
  bool looked; /* it was checked whether the domain's incoming migration has arrived */
} Start;

static void start_free(Start *start) {
  if (!start)
    return;
  if (start->counted)
    start->methods->jobs->starting--;
  g_clear_pointer(&start->call, varlink_call_unref);
  g_free(start->domain);
  g_free(start->target_name);
  g_free(start->target_uri);
  g_free(start->migrate_uri);
  goals_param_clear(&start->asked);
  caller_free(start->caller);
  request_key_clear(&start->key);
  g_free(start);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Start, start_free)

/* --- answers without a wait --- */

static bool take_target(Start *start, json_t *parameters) {
  TargetParam target;

  if (!params_take_target(start->methods->requests, start->call, parameters, &target))
    return false;
  start->target_name = g_strdup(target.name);
  start->target_uri = g_strdup(target.libvirt_uri);
  start->migrate_uri = g_strdup(target.migrate_uri);
  return true;
}

/* Those who empty the node set even_if_cordoned. */
static bool refuse_if_cordoned(const Start *start) {
  return !start->even_if_cordoned && cordon_refuse(start->methods->node, start->call);
}

/* --- after the waits --- */

static void on_accepted(Job *job, const GError *error, gpointer user_data) {
  g_autoptr(Start) start = user_data;

  if (error)
    reply_error(start->call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else
    request_reply(start->methods->requests, start->call, job, true);
}

static Job *make_job(const Start *start, const MigDomainFacts *facts, const Goals *goals) {
  Job *job = job_new_for(&(JobRequest){
      .asked_ms = start->asked_ms,
      .caller = start->caller,
      .domain_name = facts->name,
      .domain_uuid = facts->uuid,
      .memory_bytes = facts->memory_bytes,
      .target_name = start->target_name,
      .target_uri = start->target_uri,
      .migrate_uri = start->migrate_uri,
      .goals = goals,
      .policy_name = start->asked.policy_name,
      .policy_matched = goals->matched ? goals->matched->name : NULL,
  });

  job->request_key = g_strdup(start->key.key);
  job->request_digest = g_strdup(start->key.digest);
  return job;
}

static void start_free_notify(gpointer start) {
  start_free(start);
}

static void on_domain(gpointer task, const GError *error, gpointer user_data);

static void look_up(gpointer user_data) {
  Start *start = user_data;

  lookup_domain(start->methods->lookups, start->domain, false, on_domain, start);
}

static void on_domain(gpointer task, const GError *error, gpointer user_data) {
  const LookupAnswer *answer = task;
  g_autoptr(Start) start = user_data;
  Methods *methods = start->methods;
  Goals goals;
  Job *busy;

  if (error) {
    reply_lookup_error(methods->requests, start->call, start->domain, error);
    return;
  }
  if (request_answer_known(methods->requests, start->call, &start->key))
    return;
  busy = job_table_find_active(methods->jobs->table, answer->facts.uuid);
  /* It may have just arrived, and its incoming job does not know it yet. */
  if (busy && busy->lease && !start->looked) {
    start->looked = true;
    incoming_look(methods->mover, busy, look_up, g_steal_pointer(&start), start_free_notify);
    return;
  }
  if (busy) {
    reply_error(start->call, "DomainBusy",
                json_pack("{ss ss}", "domain", answer->facts.name, "job", busy->id));
    return;
  }
  if (refuse_if_cordoned(start) ||
      !params_resolve_goals(methods->requests, start->call, &start->asked, &answer->facts, &goals))
    return;
  methods->jobs->starting--;
  start->counted = false;
  lifecycle_accept(methods->mover, make_job(start, &answer->facts, &goals), on_accepted, start);
  (void)g_steal_pointer(&start);
}

void methods_start(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(Start) start = g_new0(Start, 1);

  start->methods = user_data;
  start->asked_ms = clock_now_ms();
  start->methods->jobs->starting++;
  start->counted = true;
  start->call = varlink_call_ref(call);
  start->domain = g_strdup(json_string_of(parameters, "domain"));
  start->even_if_cordoned = json_bool_of(parameters, "even_if_cordoned");
  if (!request_key_take(call, parameters, &start->key) ||
      request_answer_known(start->methods->requests, call, &start->key) || refuse_if_cordoned(start) ||
      !take_target(start, parameters) ||
      !params_take_goals(start->methods->requests, call, parameters, &start->asked) ||
      !request_has_room(start->methods->requests, call))
    return;
  start->caller = caller_new(varlink_call_get_peer(call));
  look_up(g_steal_pointer(&start));
}

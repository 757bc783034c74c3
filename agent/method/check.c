/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Check: can this domain be migrated to that target? */
#include "agent/method/methods.h"

#include "agent/job/jobjson.h"
#include "agent/request/access.h"
#include "agent/request/params.h"

typedef struct Check {
  Methods *methods;
  VarlinkCall *call;
  char *domain;
  GoalsParam asked;
  bool even_if_cordoned;
} Check;

static void check_free(Check *check) {
  if (!check)
    return;
  varlink_call_unref(check->call);
  g_free(check->domain);
  goals_param_clear(&check->asked);
  g_free(check);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Check, check_free)

/* What Start would refuse (a busy domain, a cordon) is a finding here. */
static void on_asked(const MigCheckInput *answers, const GError *error, gpointer user_data) {
  g_autoptr(Check) check = user_data;
  const Methods *methods = check->methods;
  g_autofree MigCheckReport *report = NULL;
  MigCheckInput input;
  const Job *busy;
  Goals goals;

  if (error) {
    reply_lookup_error(check->methods->requests, check->call, check->domain, error);
    return;
  }
  if (!params_find_goals(check->methods->requests, check->call, &check->asked, answers->domain, &goals))
    return;
  busy = job_table_find_active(methods->jobs->table, answers->domain->uuid);
  input = *answers;
  input.policy = &goals.policy;
  input.busy_job = busy ? busy->id : NULL;
  input.cordon = methods->node->cordon.on && !check->even_if_cordoned ? methods->node->cordon.reason : NULL;
  report = g_new(MigCheckReport, 1);
  mig_check(&input, report);
  varlink_call_reply(check->call,
                     json_pack("{so sb}", "findings", check_report_to_json(report), "can_move",
                               (int)(report->blockers == 0)),
                     false);
}

/* Callers who may only read can make the agent connect only to targets of its configuration. */
static bool may_ask(const Methods *methods, VarlinkCall *call, const TargetParam *target) {
  if (target->name || access_allowed(varlink_call_get_peer(call), "io.handoffd.Agent.Start",
                                     methods->config->public_read, methods->requests->group_gid))
    return true;
  varlink_call_permission_denied(call);
  return false;
}

void methods_check(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(Check) check = g_new0(Check, 1);
  TargetParam target;

  check->methods = user_data;
  check->call = varlink_call_ref(call);
  check->domain = g_strdup(json_string_of(parameters, "domain"));
  check->even_if_cordoned = json_bool_of(parameters, "even_if_cordoned");
  if (!params_take_target(check->methods->requests, call, parameters, &target) ||
      !may_ask(check->methods, call, &target) ||
      !params_take_goals(check->methods->requests, call, parameters, &check->asked))
    return;
  survey_call(check->methods->surveys, check->domain, target.libvirt_uri,
              check->methods->config->prepare_timeout_ms, on_asked, check);
  (void)g_steal_pointer(&check);
}

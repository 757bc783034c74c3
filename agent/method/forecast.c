/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forecast: how would a migration go? Nothing is migrated. */
#include "agent/method/methods.h"

#include "agent/job/jobjson.h"
#include "agent/move/link.h"
#include "agent/request/params.h"
#include "agent/request/reply.h"

typedef struct Outlook {
  Methods *methods;
  VarlinkCall *call;
  char *domain;
  GoalsParam asked;
  MigPolicy policy;
  MigLinkFacts link;
  char *target_uri;
} Outlook;

static void outlook_free(Outlook *outlook) {
  if (!outlook)
    return;
  varlink_call_unref(outlook->call);
  g_free(outlook->domain);
  g_free(outlook->target_uri);
  goals_param_clear(&outlook->asked);
  g_free(outlook);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Outlook, outlook_free)

static json_t *outlook_to_json(const Outlook *outlook, const MigDomainFacts *facts, const MigPlan *plan) {
  const MigForecast *forecast = &plan->forecast;
  const MigWayForecast *way = &forecast->ways[MIN(forecast->best, MIG_WAY_COUNT - 1)];
  bool open = forecast->best != MIG_WAY_COUNT;
  uint64_t s_per_gib = mig_policy_get(&outlook->policy, MIG_POLICY_COMPLETION_TIMEOUT_S_PER_GIB);
  const MigDirtyPoint *first = &plan->probe.curve.points[0];
  char text[600];
  json_t *object;

  mig_forecast_describe(forecast, text, sizeof text);
  object = json_pack("{ss sI sI sI sI sI sb ss}", "way", way_to_stage_name(forecast->best), "total_time_ms",
                     (json_int_t)(open ? way->total_s * 1000 : 0), "pause_ms",
                     (json_int_t)(open ? way->pause_s * 1000 : 0), "floor_ms",
                     (json_int_t)(forecast->floor_s * 1000), "dirty_rate_bytes_per_s",
                     (json_int_t)(first->s > 0 ? first->bytes / first->s : 0), "bandwidth_bytes_per_s",
                     (json_int_t)plan->bandwidth_bytes_per_s, "meets_policy", (int)open, "message", text);
  if (s_per_gib > 0)
    json_object_set_new(object, "deadline_ms",
                        json_integer((json_int_t)((double)s_per_gib * 1000.0 * (double)facts->memory_bytes /
                                                  (double)MIG_GIB_BYTES)));
  return object;
}

/* The forecast assumes that no other migration shares MaxBandwidth=. */
static void take_policy(Outlook *outlook, const MigPolicy *policy) {
  uint64_t max = outlook->methods->config->max_bandwidth_bytes_per_s;
  uint64_t own = mig_policy_get(policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S);

  outlook->policy = *policy;
  if (max > 0 && (own == 0 || max < own))
    outlook->policy.values[MIG_POLICY_BANDWIDTH_BYTES_PER_S] = max;
}

static bool has_bandwidth(const Outlook *outlook) {
  return outlook->link.bandwidth_bytes_per_s > 0 ||
         mig_policy_get(&outlook->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S) > 0;
}

static void refuse_without_bandwidth(const Outlook *outlook) {
  reply_error(outlook->call, "NoBandwidth", json_pack("{ss}", "target", outlook->target_uri));
}

static void on_measured(gpointer task, const GError *error, gpointer user_data) {
  const LookupAnswer *answer = task;
  g_autoptr(Outlook) outlook = user_data;
  MigPlan plan;
  Goals goals;

  if (error) {
    reply_lookup_error(outlook->methods->requests, outlook->call, outlook->domain, error);
    return;
  }
  if (!params_resolve_goals(outlook->methods->requests, outlook->call, &outlook->asked, &answer->facts,
                            &goals))
    return;
  take_policy(outlook, &goals.policy);
  if (!has_bandwidth(outlook)) {
    refuse_without_bandwidth(outlook);
    return;
  }
  if (answer->probe.curve.n == 0) {
    reply_error(outlook->call, "NotMeasurable",
                json_pack("{ss ss}", "domain", answer->facts.name, "message",
                          "the domain is not running, or is already being migrated"));
    return;
  }
  mig_plan(&answer->probe, answer->facts.memory_bytes, &outlook->link, &outlook->policy, &plan);
  varlink_call_reply(outlook->call, outlook_to_json(outlook, &answer->facts, &plan), false);
}

/* Could a policy that matches the domain set a bandwidth? If not, the call is refused before a measurement of seconds. */
static bool may_match_bandwidth(const Config *config) {
  for (guint i = 0; i < config->policies->len; i++) {
    const ConfigPolicy *policy = config->policies->pdata[i];

    if (config_policy_chooses(policy) &&
        (policy->policy.set & (UINT32_C(1) << MIG_POLICY_BANDWIDTH_BYTES_PER_S)))
      return true;
  }
  return false;
}

void methods_forecast(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(Outlook) outlook = g_new0(Outlook, 1);
  json_int_t bandwidth = json_integer_value(json_object_get(parameters, "bandwidth_bytes_per_s"));
  const Config *config;
  TargetParam target;
  Goals goals;

  outlook->methods = user_data;
  outlook->call = varlink_call_ref(call);
  outlook->domain = g_strdup(json_string_of(parameters, "domain"));
  if (!params_take_target(outlook->methods->requests, call, parameters, &target) ||
      !params_take_goals(outlook->methods->requests, call, parameters, &outlook->asked))
    return;
  config = outlook->methods->config;
  outlook->target_uri = g_strdup(target.libvirt_uri);
  link_recall(outlook->methods->mover, target.libvirt_uri, &outlook->link);
  if (bandwidth > 0)
    outlook->link.bandwidth_bytes_per_s = (uint64_t)bandwidth;
  goals_resolve(config, config_find_policy(config, outlook->asked.policy_name), &outlook->asked.over, NULL,
                &goals);
  take_policy(outlook, &goals.policy);
  if (!has_bandwidth(outlook) && !may_match_bandwidth(config)) {
    refuse_without_bandwidth(outlook);
    return;
  }
  lookup_domain(outlook->methods->lookups, outlook->domain, true, on_measured, outlook);
  (void)g_steal_pointer(&outlook);
}

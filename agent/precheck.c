/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checks before a move, as a thread makes them. */
#include "agent/precheck.h"

Precheck *precheck_new(void) {
  return g_new0(Precheck, 1);
}

void precheck_free(Precheck *precheck) {
  if (!precheck)
    return;
  mig_host_facts_clear(&precheck->source);
  mig_domain_facts_clear(&precheck->domain);
  mig_target_facts_clear(&precheck->target);
  g_clear_error(&precheck->target_error);
  g_free(precheck);
}

bool precheck_ask_source(Precheck *precheck, MigDriver *driver, Hypervisor *hypervisor, const char *domain,
                         unsigned connect_timeout_ms, GError **error) {
  HypervisorConn *conn = hypervisor_acquire(hypervisor, connect_timeout_ms, error);
  const MigDriverOps *ops = driver->ops;
  GError *failure = NULL;
  bool ok;

  if (!conn)
    return false;
  ok = ops->host_facts(hypervisor_conn_get(conn), &precheck->source, &failure) &&
       ops->survey_domain(hypervisor_conn_get(conn), domain, &precheck->domain, &failure);
  hypervisor_release(conn, failure);
  if (!ok)
    g_propagate_error(error, failure);
  return ok;
}

void precheck_ask_target(Precheck *precheck, MigDriver *driver, const char *target_uri,
                         unsigned connect_timeout_ms) {
  const MigDriverOps *ops = driver->ops;
  MigConn *conn = ops->open(driver, target_uri, connect_timeout_ms, NULL, NULL, &precheck->target_error);

  if (!conn)
    return;
  precheck->have_target = ops->survey_target(conn, &precheck->domain, &precheck->source, &precheck->target,
                                             &precheck->target_error);
  ops->close(conn);
}

void precheck_judge(Precheck *precheck, const char *target_uri, const MigPolicy *policy,
                    MigPolicyFacts *ret_facts) {
  MigCheckInput input = {
      .domain = &precheck->domain,
      .source = &precheck->source,
      .target = precheck->have_target ? &precheck->target : NULL,
      .target_uri = target_uri,
      .target_error = precheck->target_error ? precheck->target_error->message : NULL,
      .target_away = g_error_matches(precheck->target_error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) ||
                     g_error_matches(precheck->target_error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT),
      .policy = policy,
  };

  mig_check(&input, &precheck->report);
  mig_check_policy_facts(&input, ret_facts);
}

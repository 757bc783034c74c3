/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A worker's checks before its migration: facts about the domain and both hosts, and what prevents the migration. */
#include "agent/libvirtd/survey.h"
#include "agent/worker/worker-private.h"

#define PROBE_S         1
#define CHECK_TEXT_SIZE 4096

static MigCause cause_of_preparing(const GError *error) {
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN) ||
      g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NOT_RUNNING))
    return MIG_CAUSE_DOMAIN_NOT_RUNNING;
  return MIG_CAUSE_SOURCE_UNREACHABLE;
}

/* A libvirtd that does not answer now may answer later; a refusal stays. */
static MigHold hold_of(MigCause cause, const GError *error) {
  if (!g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) &&
      !g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT))
    return MIG_HOLD_NONE;
  return cause == MIG_CAUSE_TARGET_UNREACHABLE   ? MIG_HOLD_TARGET
         : cause == MIG_CAUSE_SOURCE_UNREACHABLE ? MIG_HOLD_NODE
                                                 : MIG_HOLD_NONE;
}

/* Takes `error`. */
static void refuse(Worker *worker, MigCause cause, GError *error) {
  worker_post(
      worker,
      &(WorkerReport){.kind = WORKER_REFUSED, .cause = cause, .hold = hold_of(cause, error), .error = error});
}

/* If waiting may help: it concerns the target if that does not answer, otherwise only this domain. */
static MigHold hold_of_check(const MigCheckReport *report, const GError *target_error) {
  if (!mig_check_may_wait(report))
    return MIG_HOLD_NONE;
  return target_error ? MIG_HOLD_TARGET : MIG_HOLD_JOB;
}

/* Refuses for blockers: the cause is that of the first one, the text lists them all. Takes the report. */
static void refuse_by_check(Worker *worker, const Survey *survey, MigCheckReport *report) {
  char text[CHECK_TEXT_SIZE];

  mig_check_describe(report, text, sizeof text);
  worker_post(worker, &(WorkerReport){.kind = WORKER_REFUSED,
                                      .cause = mig_check_cause(report),
                                      .hold = hold_of_check(report, survey->target_error),
                                      .reason = report->findings[0].code,
                                      /* Includes what libvirt said about the target. */
                                      .error = survey->target_error
                                                   ? g_error_copy(survey->target_error)
                                                   : g_error_new_literal(MIG_VIRT_ERROR,
                                                                         MIG_VIRT_ERROR_UNSUPPORTED, text),
                                      .evidence = g_strdup(text),
                                      .check = report});
}

/* A guest that cannot be measured is migrated nevertheless; the monitor learns on the way. */
static void measure(Worker *worker, MigProbe *probe) {
  HypervisorConn *conn = hypervisor_acquire(worker->hypervisor, worker->connect_timeout_ms, NULL);
  g_autoptr(GError) error = NULL;

  if (!conn)
    return;
  worker->driver->ops->probe_dirty_rate(conn->conn, worker->domain_uuid, PROBE_S, probe, &error);
  hypervisor_release(conn, error);
}

bool worker_prepare(Worker *worker, MigPolicyFacts *policy_facts) {
  g_autoptr(Survey) survey = survey_new();
  const MigDomainFacts *domain = &survey->domain;
  g_autofree MigCheckReport *report = g_new(MigCheckReport, 1);
  MigCheckInput input = {.target_uri = worker->target_uri, .policy = &worker->policy};
  MigSettleRecord record;
  MigProbe probe = {0};
  GError *error = NULL;

  if (!survey_ask(survey, worker->hypervisor, worker->domain_uuid, worker->target_uri,
                  worker->connect_timeout_ms, &error)) {
    refuse(worker, cause_of_preparing(error), error);
    return false;
  }
  survey_fill(survey, &input);
  mig_check(&input, report);
  mig_check_policy_facts(&input, policy_facts);
  if (report->blockers > 0) {
    refuse_by_check(worker, survey, g_steal_pointer(&report));
    return false;
  }
  record = (MigSettleRecord){
      .ran_before = domain->state == MIG_END_RUNNING,
      .persist_target = domain->persistent && mig_policy_get(&worker->policy, MIG_POLICY_PERSIST_TARGET),
      .undefine_source = domain->persistent && mig_policy_get(&worker->policy, MIG_POLICY_UNDEFINE_SOURCE),
      .target_was_absent = survey->target.domain_state == MIG_END_ABSENT,
  };
  if (!mig_profile_expect(&domain->profile, g_get_real_time(), &probe) && worker->probe)
    measure(worker, &probe);

  worker_watch_ends(worker);
  if (!worker_start_helpers(worker, &error)) {
    worker_post(worker, &(WorkerReport){.kind = WORKER_REFUSED,
                                        .cause = MIG_CAUSE_INTERNAL,
                                        .hold = MIG_HOLD_JOB,
                                        .reason = WORKER_NO_THREADS,
                                        .error = error});
    return false;
  }
  worker_set_record(worker, &record);
  worker_post(worker, &(WorkerReport){.kind = WORKER_PREPARED,
                                      .domain = survey->domain,
                                      .probe = probe,
                                      .record = record,
                                      .source_id = worker->source_id,
                                      .check = g_steal_pointer(&report)});
  survey->domain = (MigDomainFacts){0};
  if (worker_wait_for_order(worker) == WORKER_ORDER_GO)
    return true;
  worker_post(worker, &(WorkerReport){.kind = WORKER_CANCELLED});
  return false;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forecasts the migration of a domain of this host, then runs it and prints its progress:
 *
 *     cc example.c -o example $(pkg-config --cflags --libs libmigrate)
 *     ./example web3 qemu+tls://node-b/system 110M
 *
 * It may use 110 MiB/s of the link. Exit status: 0 the guest runs at the target, 1 it does not. */
#include <libmigrate/libmigrate.h>
#include <stdio.h>

typedef struct Move {
  const MigDriverOps *ops;
  MigConn *source, *target;
  MigMigrateRequest request;
  gint over;
} Move;

/* The call returns when the migration has ended, so it has a thread of its own. */
static gpointer migrate(gpointer data) {
  Move *move = data;
  g_autoptr(GError) error = NULL;

  if (!move->ops->migrate(move->source, &move->request, &error))
    g_printerr("%s\n", error->message);
  g_atomic_int_set(&move->over, 1);
  return NULL;
}

/* Reads, decides, acts. */
static void steer(const Move *move, MigMonitor *monitor, MigBandwidth *bandwidth, MigVcpus *vcpus) {
  MigSample sample = {0};
  MigAction action;
  bool ok = true;

  move->ops->job_stats(move->source, move->request.uuid, vcpus, &sample, NULL);
  sample.now_ms = (uint64_t)g_get_monotonic_time() / 1000;
  if (sample.active)
    sample.bandwidth_bytes_per_s =
        mig_bandwidth_update(bandwidth, sample.now_ms, sample.memory_processed_bytes);
  mig_monitor_step(monitor, &sample, &action);
  printf("%3u%%  %5.0f MiB left  %s\n", mig_monitor_percent(monitor),
         (double)sample.memory_remaining_bytes / MIG_MIB_BYTES, action.message);
  if (action.kind == MIG_ACTION_ABORT)
    ok = move->ops->abort_job(move->source, move->request.uuid, NULL, NULL);
  else if (action.kind == MIG_ACTION_SET_DOWNTIME)
    ok = move->ops->set_max_downtime(move->source, move->request.uuid, action.downtime_ms, NULL, NULL);
  if (!ok) /* The default goals allow no other action. */
    mig_monitor_note_refused(monitor, action.kind);
}

int main(int argc, char **argv) {
  Move move = {0};
  MigPolicy goals;
  g_auto(MigHostFacts) host = {0};
  g_auto(MigDomainFacts) domain = {0};
  g_auto(MigTargetFacts) target = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(MigDriver) driver = mig_driver_libvirt_new(&error);
  MigCheckReport report;
  MigProbe probe = {0};
  MigPlan plan;
  MigMonitor monitor;
  MigBandwidth bandwidth = {0};
  MigVcpus vcpus = {0};
  MigVerdict verdict = MIG_VERDICT_WAIT;
  const char *why = NULL;
  char text[2000];

  mig_policy_init(&goals);
  if (argc != 4)
    return g_printerr("usage: example DOMAIN TARGET-URI BYTES-PER-SECOND\n"), 1;
  if (mig_policy_set_text(&goals, "bandwidth_bytes_per_s", argv[3], text, sizeof text) != MIG_POLICY_OK)
    return g_printerr("%s\n", text), 1;

  /* What is there, and does anything keep the domain here? */
  move.ops = driver ? driver->ops : NULL;
  if (!driver || !(move.source = move.ops->open(driver, "qemu:///system", 10000, NULL, NULL, &error)) ||
      !(move.target = move.ops->open(driver, argv[2], 10000, NULL, NULL, &error)) ||
      !move.ops->host_facts(move.source, &host, &error) ||
      !move.ops->survey_domain(move.source, argv[1], &domain, &error) ||
      !move.ops->survey_target(move.target, &domain, &host, &target, &error))
    return g_printerr("%s\n", error->message), 1;
  mig_check(&(MigCheckInput){.domain = &domain, .source = &host, .target = &target, .policy = &goals},
            &report);
  mig_check_describe(&report, text, sizeof text);
  if (report.blockers > 0)
    return g_printerr("%s\n", text), 1;

  /* How will it go? */
  move.ops->probe_dirty_rate(move.source, domain.uuid, 1, &probe, NULL);
  mig_plan(&probe, domain.memory_bytes, &(MigLinkFacts){0}, &goals, &plan);
  mig_forecast_describe(&plan.forecast, text, sizeof text);
  printf("forecast: %s\n", text);

  /* The monitor keeps the goals; libvirt starts with the downtime limit of the plan. */
  mig_monitor_init(&monitor, &goals, (uint64_t)g_get_monotonic_time() / 1000, domain.memory_bytes, 0);
  mig_monitor_set_plan(&monitor, &plan);
  g_strlcpy(move.request.uuid, domain.uuid, sizeof move.request.uuid);
  move.request.target_uri = argv[2];
  move.request.policy = &goals;
  mig_policy_set(&goals, MIG_POLICY_MAX_DOWNTIME_MS, MAX(plan.downtime_ms, 1), text, sizeof text);
  g_thread_unref(g_thread_new("migrate", migrate, &move));
  for (; !g_atomic_int_get(&move.over); g_usleep(250 * 1000))
    steer(&move, &monitor, &bandwidth, &vcpus);

  /* Where is it now? Both ends have to say: a call that failed does not prove that the guest stayed. */
  for (int looks = 0; looks < 60 && verdict == MIG_VERDICT_WAIT; looks++, g_usleep(500 * 1000)) {
    MigDomainStatus here = {0}, there = {0}; /* MIG_END_UNKNOWN, if an end does not answer */

    move.ops->domain_status(move.source, domain.uuid, &here, NULL);
    move.ops->domain_status(move.target, domain.uuid, &there, NULL);
    verdict = mig_verdict(&(MigVerdictInput){here.state, there.state, .job_active = here.job_active}, &why);
  }
  printf("%s: %s\n", mig_verdict_name(verdict), why);
  move.ops->close(move.target);
  move.ops->close(move.source);
  return verdict == MIG_VERDICT_SUCCEEDED ? 0 : 1;
}

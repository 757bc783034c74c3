/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The metrics: counters, the current state, and the numbers of each migration in progress.
 *
 * Theory of Operation. Counters count events as they happen. The current state is read from the jobs themselves on each
 * request, so no missed change can make it wrong. The same text goes two ways: GetMetrics, and a file for node_exporter's
 * textfile collector that is rewritten every MetricsInterval=. A series that names a domain exists only while the domain is
 * being migrated, and only for those who may read jobs; readers of the file may. */
#include "agent/node/metrics.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/finish.h"
#include "agent/move/hangs.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/node/node.h"

/* In seconds. */
static const double wait_bounds[] = {0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600};
static const double duration_bounds[] = {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600};
static const double downtime_bounds[] = {0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30};
G_STATIC_ASSERT(G_N_ELEMENTS(wait_bounds) <= PROM_BOUNDS_MAX &&
                G_N_ELEMENTS(duration_bounds) <= PROM_BOUNDS_MAX &&
                G_N_ELEMENTS(downtime_bounds) <= PROM_BOUNDS_MAX);

/* --- events --- */

static void note_finished(Metrics *metrics, const Job *job) {
  metrics->finished[job->direction][job->phase][job->failure.cause]++;
  /* Only the source counts these: otherwise a sum over nodes would count them twice. */
  if (job->direction != MIG_DIRECTION_OUTGOING)
    return;
  if (job->started_usec > 0)
    prom_histogram_note(
        &metrics->wait, wait_bounds, G_N_ELEMENTS(wait_bounds),
        (double)(job->times.spent_ms[JOB_PART_QUEUED] + job->times.spent_ms[JOB_PART_CHECKS]) / 1e3);
  if (job->phase != MIG_PHASE_SUCCEEDED)
    return;
  prom_histogram_note(&metrics->duration, duration_bounds, G_N_ELEMENTS(duration_bounds),
                      (double)job->result.total_time_ms / 1e3);
  for (int part = 0; part < JOB_PART_COUNT; part++)
    metrics->part_ms[part] += job->times.spent_ms[part];
  if (job->result.have_downtime)
    prom_histogram_note(&metrics->downtime, downtime_bounds, G_N_ELEMENTS(downtime_bounds),
                        (double)job->result.downtime_ms / 1e3);
  if (job->result.have_transferred)
    metrics->transferred_bytes += job->result.transferred_bytes;
}

void metrics_on_job(Job *job, JobChange change, gpointer user_data) {
  Node *node = user_data;

  if (change == JOB_CHANGE_ACCEPTED)
    node->metrics.accepted++;
  else if (change == JOB_CHANGE_PHASE)
    node->metrics.recoveries += job->phase == MIG_PHASE_RECOVERING;
  else if (change == JOB_CHANGE_FINISHED)
    note_finished(&node->metrics, job);
}

/* --- the node --- */

static void append_gauge(GString *text, const char *name, const char *help, double value) {
  prom_family(text, name, PROM_GAUGE, help);
  prom_value(text, name, value);
}

static void append_counter(GString *text, const char *name, const char *help, uint64_t value) {
  prom_family(text, name, PROM_COUNTER, help);
  prom_value(text, name, (double)value);
}

static void append_node(GString *text, const Node *node) {
  const PromLabel version = {"version", HANDOFFD_VERSION};
  uint64_t reserved_bytes;
  unsigned incoming = incoming_count(node->mover, &reserved_bytes);

  prom_family(text, "handoffd_build_info", PROM_GAUGE, "Always 1; the version is a label.");
  prom_sample(text, "handoffd_build_info", &version, 1, 1);
  append_gauge(text, "handoffd_start_time_seconds",
               "When the agent started, in seconds since the Unix epoch.", (double)node->started_usec / 1e6);
  append_gauge(text, "handoffd_libvirt_up", "Whether this node's libvirtd answers.",
               hypervisor_get_state(node->mover->hypervisor)->reachable);
  append_gauge(text, "handoffd_cordoned", "Whether the node is cordoned: it takes no new work.",
               node->cordon.on);
  append_gauge(text, "handoffd_store_up",
               "Whether the last write of a job's record to stable storage succeeded.",
               !node->jobs->store_failing);
  append_gauge(text, "handoffd_damaged_records", "Records that could not be read and need an operator.",
               damaged_count(node->jobs->damaged));
  append_gauge(text, "handoffd_outgoing_limit", "How many migrations out of this node may run at a time.",
               node->config->max_outgoing);
  append_gauge(text, "handoffd_incoming_limit",
               "How many leases and migrations into this node there may be at a time.",
               node->config->max_incoming);
  append_gauge(text, "handoffd_incoming", "Leases and migrations into this node.", incoming);
  append_gauge(text, "handoffd_incoming_reserved_bytes",
               "Memory reserved for leases and migrations into this node.", (double)reserved_bytes);
  append_counter(text, "handoffd_profile_measurements_total",
                 "Measurements of what running guests dirty (ProfileInterval=).",
                 profiler_count(node->profiler)->measured);
  prom_family(text, "handoffd_profile_measurement_seconds_total", PROM_COUNTER,
              "How long these took, one after the other.");
  prom_value(text, "handoffd_profile_measurement_seconds_total",
             (double)profiler_count(node->profiler)->took_ms / 1e3);
}

/* --- jobs --- */

static void append_phases(GString *text, const Node *node) {
  const GPtrArray *all = job_table_all(node->jobs->table);
  unsigned counts[MIG_DIRECTION_COUNT][MIG_PHASE_COUNT] = {{0}};
  int64_t now_usec = g_get_real_time(), oldest_usec = now_usec;

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (!job->durable)
      continue;
    counts[job->direction][job->phase]++;
    if (job->phase == MIG_PHASE_PENDING && job->direction == MIG_DIRECTION_OUTGOING)
      oldest_usec = MIN(oldest_usec, job->pending_since_usec);
  }
  prom_family(text, "handoffd_jobs", PROM_GAUGE,
              "Jobs by phase; finished jobs are counted while they are kept.");
  for (int direction = 0; direction < MIG_DIRECTION_COUNT; direction++)
    for (int phase = 0; phase < MIG_PHASE_COUNT; phase++) {
      const PromLabel labels[] = {{"direction", mig_direction_name((MigDirection)direction)},
                                  {"phase", mig_phase_name((MigPhase)phase)}};

      prom_sample(text, "handoffd_jobs", labels, G_N_ELEMENTS(labels), counts[direction][phase]);
    }
  append_gauge(text, "handoffd_job_oldest_wait_seconds",
               "How long the longest-waiting job has been waiting; 0 if none is.",
               (double)(now_usec - oldest_usec) / 1e6);
  append_gauge(text, "handoffd_libvirt_calls_hanging",
               "Overdue calls to a libvirtd, this node's or a target's.", hangs_count(node->mover->hangs));
}

/* Every usual combination is there from the start, so that its first event shows as an increase. */
static void append_finished(GString *text, const Metrics *metrics) {
  prom_family(text, "handoffd_jobs_finished_total", PROM_COUNTER,
              "Finished jobs by outcome; the cause of a success is NONE.");
  for (int direction = 0; direction < MIG_DIRECTION_COUNT; direction++)
    for (int phase = MIG_PHASE_SUCCEEDED; phase < MIG_PHASE_COUNT; phase++)
      for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++) {
        uint64_t n = metrics->finished[direction][phase][cause];
        MigPhase usual =
            cause == MIG_CAUSE_NONE ? MIG_PHASE_SUCCEEDED : finish_phase_of_cause((MigCause)cause);
        const PromLabel labels[] = {{"direction", mig_direction_name((MigDirection)direction)},
                                    {"phase", mig_phase_name((MigPhase)phase)},
                                    {"cause", mig_cause_name((MigCause)cause)}};

        if (n > 0 || (int)usual == phase)
          prom_sample(text, "handoffd_jobs_finished_total", labels, G_N_ELEMENTS(labels), (double)n);
      }
}

static void append_actions(GString *text, const Mover *mover) {
  prom_family(text, "handoffd_actions_total", PROM_COUNTER,
              "Actions that the monitor decided on for running migrations.");
  for (int kind = MIG_ACTION_NONE + 1; kind < MIG_ACTION_COUNT; kind++)
    prom_sample(text, "handoffd_actions_total", &(PromLabel){"action", mig_action_name((MigActionKind)kind)},
                1, (double)mover->actions[kind]);
  prom_family(text, "handoffd_domain_actions_total", PROM_COUNTER,
              "Actions on a domain while the outcome of its migration was open, and whether they succeeded.");
  for (int touch = MIG_TOUCH_NONE + 1; touch < MIG_TOUCH_COUNT; touch++)
    for (int done = 0; done < 2; done++) {
      const PromLabel labels[] = {{"action", mig_touch_name((MigTouch)touch)},
                                  {"result", done ? "done" : "failed"}};

      prom_sample(text, "handoffd_domain_actions_total", labels, G_N_ELEMENTS(labels),
                  (double)mover->touches[touch][done]);
    }
}

static void append_moves(GString *text, const Node *node) {
  const Metrics *metrics = &node->metrics;

  append_counter(text, "handoffd_jobs_accepted_total", "Accepted migration requests.", metrics->accepted);
  append_finished(text, metrics);
  append_counter(text, "handoffd_recoveries_total",
                 "How often a job lost sight of its migration and had to recover.", metrics->recoveries);
  append_actions(text, node->mover);
  append_counter(text, "handoffd_migration_transferred_bytes_total",
                 "Bytes transferred by migrations that succeeded.", metrics->transferred_bytes);
  prom_histogram(text, "handoffd_job_wait_seconds", "Time from the request to the start of the migration.",
                 &metrics->wait, wait_bounds, G_N_ELEMENTS(wait_bounds));
  prom_histogram(text, "handoffd_migration_duration_seconds",
                 "Time from the request to the end, for migrations that succeeded.", &metrics->duration,
                 duration_bounds, G_N_ELEMENTS(duration_bounds));
  prom_family(text, "handoffd_migration_part_seconds_total", PROM_COUNTER,
              "The same time, by its parts, which add up to it.");
  for (int part = 0; part < JOB_PART_COUNT; part++)
    prom_sample(text, "handoffd_migration_part_seconds_total",
                &(PromLabel){"part", job_part_name((JobPart)part)}, 1, (double)metrics->part_ms[part] / 1e3);
  prom_histogram(text, "handoffd_migration_downtime_seconds", "Downtime of the guest at the switchover.",
                 &metrics->downtime, downtime_bounds, G_N_ELEMENTS(downtime_bounds));
}

/* --- each migration in progress --- */

static const struct {
  const char *name;
  const char *help;
} running[] = {
    {"handoffd_migration_elapsed_seconds", "Time since the migration started."},
    {"handoffd_migration_progress_ratio", "Progress from 0 to 1; never decreases."},
    {"handoffd_migration_memory_remaining_bytes", "Memory still to be sent in this pass."},
    {"handoffd_migration_disk_remaining_bytes", "Disk data still to be copied."},
    {"handoffd_migration_processed_bytes", "Memory and disk data processed so far."},
    {"handoffd_migration_bandwidth_bytes_per_second", "Bandwidth of the migration stream, smoothed."},
    {"handoffd_migration_dirty_rate_bytes_per_second", "Rate at which the guest dirties its memory."},
    {"handoffd_migration_iteration", "Number of the current pass over the memory."},
    {"handoffd_migration_throttle_ratio", "How much the guest's CPUs are throttled, from 0 to 1."},
    {"handoffd_migration_expected_downtime_seconds", "Downtime that QEMU expects."},
};

/* In the order of the rows. */
static double running_value(const Job *job, size_t row) {
  const MigSample *sample = &job->sample;
  const double values[] = {
      (double)MAX(g_get_real_time() - job->started_usec, 0) / 1e6,
      job->percent / 100.0,
      (double)sample->memory_remaining_bytes,
      (double)sample->disk_remaining_bytes,
      (double)(sample->memory_processed_bytes + sample->disk_processed_bytes),
      (double)sample->bandwidth_bytes_per_s,
      (double)sample->dirty_rate_bytes_per_s,
      (double)sample->iteration,
      (double)sample->throttle_pct / 100.0,
      (double)sample->expected_downtime_ms / 1e3,
  };

  G_STATIC_ASSERT(G_N_ELEMENTS(values) == G_N_ELEMENTS(running));
  return values[row];
}

static bool is_moving(const Job *job) {
  return job->durable && (job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING);
}

static void append_running(GString *text, const Node *node) {
  const GPtrArray *all = job_table_all(node->jobs->table);
  g_autoptr(GPtrArray) moving = g_ptr_array_new();

  for (guint i = 0; i < all->len; i++)
    if (is_moving(all->pdata[i]))
      g_ptr_array_add(moving, all->pdata[i]);
  prom_family(text, "handoffd_migration_info", PROM_GAUGE, "Always 1, for each migration in progress.");
  for (guint i = 0; i < moving->len; i++) {
    const Job *job = moving->pdata[i];
    const PromLabel labels[] = {
        {"domain", job->domain_name},
        {"job_id", job->id},
        {"direction", mig_direction_name(job->direction)},
        {"phase", mig_phase_name(job->phase)},
        {"stage", mig_stage_name(job->stage)},
        {"target", job->target_name ? job->target_name : job->target_uri},
    };

    prom_sample(text, "handoffd_migration_info", labels, G_N_ELEMENTS(labels), 1);
  }
  for (size_t row = 0; row < G_N_ELEMENTS(running); row++) {
    prom_family(text, running[row].name, PROM_GAUGE, running[row].help);
    for (guint i = 0; i < moving->len; i++) {
      const Job *job = moving->pdata[i];
      const PromLabel labels[] = {{"domain", job->domain_name}, {"job_id", job->id}};

      if (job->have_sample)
        prom_sample(text, running[row].name, labels, G_N_ELEMENTS(labels), running_value(job, row));
    }
  }
}

/* --- output --- */

char *metrics_text(const Node *node, bool jobs) {
  GString *text = g_string_sized_new(16384);

  append_node(text, node);
  append_phases(text, node);
  append_moves(text, node);
  if (jobs)
    append_running(text, node);
  return g_string_free(text, FALSE);
}

void metrics_close(Node *node) {
  text_file_free(node->metrics.file);
  node->metrics.file = NULL;
}

/* Logged when writing starts to fail, and when it works again. */
static void say_whether_it_is_written(Node *node) {
  const LogField fields[] = {{NAMES_FIELD_PATH, node->config->metrics_file}};
  g_autofree char *error = text_file_get_error(node->metrics.file);

  if (node->metrics.failing == (error != NULL))
    return;
  node->metrics.failing = error != NULL;
  if (error)
    log_message(LOG_WARNING, NAMES_MESSAGE_METRICS_FAILED, fields, G_N_ELEMENTS(fields),
                "cannot write the metrics, retrying: %s", error);
  else
    log_message(LOG_INFO, NULL, fields, G_N_ELEMENTS(fields), "the metrics can be written again");
}

void metrics_tick(Node *node) {
  const char *path = node->config->metrics_file;
  uint64_t now_ms = clock_now_ms();

  if (g_strcmp0(path, node->metrics.file ? text_file_get_path(node->metrics.file) : NULL) != 0) {
    metrics_close(node);
    node->metrics.file = path ? text_file_new(path) : NULL;
    node->metrics.due_ms = 0;
  }
  if (!node->metrics.file)
    return;
  say_whether_it_is_written(node);
  if (now_ms < node->metrics.due_ms)
    return;
  node->metrics.due_ms = now_ms + node->config->metrics_interval_ms;
  text_file_write(node->metrics.file, metrics_text(node, true));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A job's way through its phases.
 *
 * Theory of Operation. Everything here runs on the main thread and only reacts: to a client, to a report of a
 * job's worker, to an event of libvirt, to the clock. A job is accepted once its record is durable; it is admitted
 * when a place is free; its worker prepares; the record says "migrating" on stable storage *before* the worker is
 * told to go, so that an agent that is killed and started again knows which domains may be on their way. From
 * there on only a verdict from both ends ends the job.
 *
 * The first cause: whoever wants or sees the end first (a client's abort, the monitor, the migration's own error)
 * notes it; it becomes the job's failure if the verdict is that the domain did not move. */
#include "agent/lifecycle.h"

#include "agent/jobjson.h"
#include "agent/log.h"
#include "agent/view.h"
#include "agent/watch.h"
#include "agent/worker.h"
#include "libmigrate/core/admission.h"
#include "libmigrate/core/monitor.h"

#include <inttypes.h>
#include <string.h>

struct JobRun {
  Agent *agent;
  Job *job;
  Worker *worker;
  MigMonitor monitor;
  bool monitoring;
  bool go_given; /* the migration may be under way */
  uint64_t prepare_until_ms;
  GError *error;   /* what the migration's call said, and nobody had asked for an end before */
  bool have_final; /* from libvirt's event */
  MigFinalStats final;
  bool silent; /* libvirtd does not answer the steerer; said once */
};

/* How long after a record could not be written it is tried again. */
#define RECORD_RETRY_MS 5000

static void on_report(Worker *worker, const WorkerReport *report, gpointer user_data);

/* --- records and watchers --- */

static void on_saved(const char *id, const GError *error, gpointer user_data) {
  Agent *agent = user_data;
  const LogField fields[] = {{NAMES_FIELD_JOB_ID, id}};

  if (error && !agent->store_failing)
    log_message(LOG_ERR, NAMES_MESSAGE_STORE_FAILED, fields, G_N_ELEMENTS(fields),
                "the record of job %s is not on stable storage, and is tried again: %s", id, error->message);
  agent->store_failing = error != NULL;
  if (error) {
    Job *job = job_table_find_id(agent->jobs, id);

    if (job)
      job->record_due_ms = agent_now_ms() + RECORD_RETRY_MS;
  }
}

void lifecycle_save(Agent *agent, Job *job, StoreDoneFunc done, gpointer user_data) {
  job->record_due_ms = 0;
  store_write(agent->store, job->id, job_to_record(job, agent->boot_id), done ? done : on_saved,
              done ? user_data : agent);
}

/* Tells whoever watches of a change of state. */
static void announce(Agent *agent, Job *job) {
  job->revision++;
  watch_notify(agent, job, true);
  if (agent->status_changed)
    agent->status_changed(agent);
}

/* The job's state changed: to whoever watches, and to stable storage. */
static void state_changed(Agent *agent, Job *job) {
  announce(agent, job);
  lifecycle_save(agent, job, NULL, NULL);
}

static void enter_phase(Agent *agent, Job *job, MigPhase phase, const char *message) {
  MigPhase from = job->phase;

  job_set_phase(job, phase, "%s", message);
  job_table_note_phase(agent->jobs, from, phase);
}

static void forget_old_jobs(Agent *agent) {
  int64_t before = g_get_real_time() - (int64_t)agent->config->keep_finished_s * G_USEC_PER_SEC;
  Job *job;

  while ((job = job_table_find_expired(agent->jobs, agent->config->keep_finished, before))) {
    watch_forget(agent, job);
    store_remove(agent->store, job->id);
    job_table_remove(agent->jobs, job);
  }
}

/* --- the end of a job --- */

static void run_free(struct JobRun *run) {
  worker_free(run->worker);
  g_clear_error(&run->error);
  g_free(run);
}

static char *format_ms(bool have, uint64_t ms) {
  return have ? g_strdup_printf("%.1f s", (double)ms / 1000.0) : g_strdup("unknown");
}

static void log_end(const Job *job) {
  g_autofree char *total = format_ms(job->have_total_time, job->total_time_ms);

  if (job->phase == MIG_PHASE_SUCCEEDED && job->have_downtime)
    log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_SUCCEEDED, "moved to %s in %s, stopped for %" PRIu64 " ms",
            job->target_name ? job->target_name : job->target_uri, total, job->downtime_ms);
  else if (job->phase == MIG_PHASE_SUCCEEDED)
    log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_SUCCEEDED, "moved to %s in %s, downtime unknown",
            job->target_name ? job->target_name : job->target_uri, total);
  else if (job->phase == MIG_PHASE_ABORTED)
    log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_ABORTED, "not moved (%s): %s",
            mig_cause_name(job->failure.cause), job->failure.message);
  else
    log_job(job, LOG_ERR, NAMES_MESSAGE_JOB_FAILED, "not moved (%s): %s", mig_cause_name(job->failure.cause),
            job->failure.message);
}

/* Takes `evidence`. The job stays in the table for now: lifecycle_tick() forgets old ones. */
static void finish(Agent *agent, Job *job, MigPhase phase, const char *running_at, char *evidence) {
  g_autofree char *message = NULL;

  g_free(job->evidence);
  job->evidence = evidence;
  job->running_at = running_at;
  if (phase == MIG_PHASE_SUCCEEDED) {
    job->percent = 100;
    message = g_strdup_printf("runs at the target (%s)", evidence);
  } else {
    message = g_strdup_printf("%s: %s", mig_cause_name(job->failure.cause), job->failure.message);
  }
  g_clear_pointer(&job->run, run_free);
  enter_phase(agent, job, phase, message);
  log_end(job);
  state_changed(agent, job);
  lifecycle_admit(agent);
}

/* An end that somebody decided on is an abort; an end that came by itself is a failure. */
static MigPhase phase_of_cause(MigCause cause) {
  switch (cause) {
  case MIG_CAUSE_USER_ABORT:
  case MIG_CAUSE_DEADLINE:
  case MIG_CAUSE_NO_PROGRESS:
  case MIG_CAUSE_LINK_STALLED:
  case MIG_CAUSE_NOT_CONVERGING:
    return MIG_PHASE_ABORTED;
  default:
    return MIG_PHASE_FAILED;
  }
}

/* Nothing was moved, and nothing will be: no worker has been told to go. */
static void finish_unmoved(Agent *agent, Job *job) {
  finish(agent, job, phase_of_cause(job->failure.cause), "source", g_strdup("the migration was not started"));
}

/* --- from pending to preparing --- */

static void start_worker(Agent *agent, Job *job, bool reattach) {
  struct JobRun *run = g_new0(struct JobRun, 1);
  WorkerRequest request = {
      .name = job->id,
      .domain_uuid = job->domain_uuid,
      .target_uri = job->target_uri,
      .migrate_uri = job->migrate_uri,
      .policy = job->policy,
      .reattach = reattach,
      .connect_timeout_ms = agent->config->connect_timeout_ms,
      .poll_interval_ms = agent->config->poll_interval_ms,
  };

  run->agent = agent;
  run->job = job;
  run->go_given = reattach;
  run->prepare_until_ms = agent_now_ms() + agent->config->prepare_timeout_ms;
  job->run = run;
  run->worker = worker_start(agent->hypervisor, agent->driver, &request, agent->context, on_report, run);
}

void lifecycle_admit(Agent *agent) {
  Job *job;

  while (mig_admit(job_table_count_running(agent->jobs), agent->config->max_outgoing) ==
             MIG_ADMISSION_START &&
         (job = job_table_next_pending(agent->jobs))) {
    enter_phase(agent, job, MIG_PHASE_PREPARING, "checking the domain and the target");
    state_changed(agent, job);
    start_worker(agent, job, false);
  }
}

typedef struct Accepting {
  Agent *agent;
  LifecycleAcceptedFunc done;
  gpointer user_data;
} Accepting;

static void on_accepted(const char *id, const GError *error, gpointer user_data) {
  g_autofree Accepting *accepting = user_data;
  Agent *agent = accepting->agent;
  Job *job = job_table_find_id(agent->jobs, id);

  if (!job)
    return;
  if (error) {
    log_job(job, LOG_ERR, NAMES_MESSAGE_STORE_FAILED, "refused, since its record cannot be kept: %s",
            error->message);
    accepting->done(agent, job, error, accepting->user_data);
    store_remove(agent->store, job->id);
    job_table_remove(agent->jobs, job);
    return;
  }
  job->durable = true;
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_ACCEPTED, "to be moved to %s (job %.8s)",
          job->target_name ? job->target_name : job->target_uri, job->id);
  accepting->done(agent, job, NULL, accepting->user_data);
  lifecycle_admit(agent);
}

void lifecycle_accept(Agent *agent, Job *job, LifecycleAcceptedFunc done, gpointer user_data) {
  Accepting *accepting = g_new0(Accepting, 1);

  accepting->agent = agent;
  accepting->done = done;
  accepting->user_data = user_data;
  job_add_event(job, "accepted", MIG_CAUSE_NONE, "to be moved to %s",
                job->target_name ? job->target_name : job->target_uri);
  job_table_add(agent->jobs, job);
  lifecycle_save(agent, job, on_accepted, accepting);
}

/* --- from preparing to migrating --- */

static void start_monitor(struct JobRun *run) {
  Job *job = run->job;
  uint64_t deadline;

  mig_monitor_init(&run->monitor, &job->policy, job->started_ms, job->memory_bytes, job->disk_bytes);
  run->monitoring = true;
  deadline = mig_monitor_deadline_ms(&run->monitor);
  job->deadline_ms = deadline == UINT64_MAX ? 0 : deadline;
}

/* The record says that the domain may be on its way: now it may. */
static void on_start_recorded(const char *id, const GError *error, gpointer user_data) {
  Agent *agent = user_data;
  Job *job = job_table_find_id(agent->jobs, id);

  if (!job || !job->run || job->run->go_given)
    return;
  if (error) {
    on_saved(id, error, agent);
    job_note_failure(job, MIG_CAUSE_INTERNAL, NULL, "the start could not be put on stable storage: %s",
                     error->message);
    finish_unmoved(agent, job);
    return;
  }
  job->run->go_given = true;
  worker_go(job->run->worker);
}

static void on_prepared(struct JobRun *run, const WorkerReport *report) {
  Agent *agent = run->agent;
  Job *job = run->job;

  job->memory_bytes = report->domain.memory_bytes;
  job->disk_bytes = mig_policy_get(&job->policy, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_NONE
                        ? 0
                        : report->domain.local_disk_bytes;
  job->started_ms = agent_now_ms();
  job->started_usec = g_get_real_time();
  start_monitor(run);
  job->stage = MIG_STAGE_PRE_COPY;
  enter_phase(agent, job, MIG_PHASE_MIGRATING, "the checks passed; the migration begins");
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "the migration to %s begins, %" PRIu64 " MiB of memory",
          job->target_name ? job->target_name : job->target_uri, job->memory_bytes / MIG_MIB_BYTES);
  announce(agent, job);
  lifecycle_save(agent, job, on_start_recorded, agent);
}

static void on_refused(struct JobRun *run, const WorkerReport *report) {
  job_note_failure(run->job, report->cause, report->error, "%s", report->error->message);
  finish_unmoved(run->agent, run->job);
}

/* --- while migrating --- */

static void on_stage(struct JobRun *run, MigStage stage) {
  Job *job = run->job;

  job->stage = stage;
  job_add_event(job, "stage", MIG_CAUSE_NONE, "now in %s", mig_stage_name(stage));
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STAGE, "now in %s", mig_stage_name(stage));
  state_changed(run->agent, job);
}

static void take_action(struct JobRun *run, const MigAction *action) {
  Job *job = run->job;

  job_add_event(job, "decision", action->cause, "%s: %s", mig_action_name(action->kind), action->message);
  if (action->kind == MIG_ACTION_ABORT) {
    if (!run->error)
      job_note_failure(job, action->cause, NULL, "%s", action->message);
    log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_GUARD, "aborted by the agent: %s", action->message);
    g_free(job->next_action);
    job->next_action = g_strdup("waits for the migration to be cancelled");
  } else {
    log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_DECISION, "%s: %s", mig_action_name(action->kind),
            action->message);
  }
  worker_act(run->worker, action);
  state_changed(run->agent, job);
}

static void step_monitor(struct JobRun *run, const MigSample *sample) {
  Job *job = run->job;
  MigAction action;

  if (!run->monitoring)
    return;
  mig_monitor_step(&run->monitor, sample, &action);
  job->percent = MAX(job->percent, mig_monitor_percent(&run->monitor));
  if (sample->valid && sample->active && mig_monitor_stage(&run->monitor) != job->stage)
    on_stage(run, mig_monitor_stage(&run->monitor));
  if (action.kind != MIG_ACTION_NONE)
    take_action(run, &action);
}

static void note_silence(struct JobRun *run, const WorkerReport *report) {
  bool silent = !report->sample.valid;

  if (silent == run->silent)
    return;
  run->silent = silent;
  if (silent)
    job_add_event(run->job, "warning", MIG_CAUSE_NONE,
                  "libvirt does not tell how far it is: %s; the migration goes on "
                  "without that, its deadline holds",
                  report->error ? report->error->message : "no reason given");
  else
    job_add_event(run->job, "warning", MIG_CAUSE_NONE, "libvirt tells again how far it is");
  state_changed(run->agent, run->job);
}

static void on_sample(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  note_silence(run, report);
  if (report->sample.valid && report->sample.active) {
    job->sample = report->sample;
    job->have_sample = true;
    job->revision++;
  }
  step_monitor(run, &report->sample);
  watch_notify(run->agent, job, false);
}

static void on_acted(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;
  const char *what = mig_action_name(report->action.kind);

  if (report->action.kind == MIG_ACTION_NONE)
    what = "new bandwidth limit";
  if (!report->error) {
    job_add_event(job, "action", MIG_CAUSE_NONE, "%s: accepted by libvirt", what);
  } else {
    job_add_event(job, "warning", MIG_CAUSE_NONE, "%s: refused: %s", what, report->error->message);
    log_job(job, LOG_WARNING, NULL, "%s was refused: %s", what, report->error->message);
  }
  state_changed(run->agent, job);
}

/* --- the end of a migration --- */

static void on_returned(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (!report->error)
    return;
  job_add_event(job, "action", MIG_CAUSE_NONE, "the migration ended with an error, both ends are asked: %s",
                report->error->message);
  if (job->failure.cause == MIG_CAUSE_NONE)
    run->error = g_error_copy(report->error);
  state_changed(run->agent, job);
}

/* Of the migration's own error, when nobody had asked for an end. */
static MigCause cause_of_migration(const GError *error) {
  static const struct {
    MigVirtError error;
    MigCause cause;
  } causes[] = {
      {MIG_VIRT_ERROR_UNREACHABLE, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_TIMEOUT, MIG_CAUSE_LINK_LOST},
      {MIG_VIRT_ERROR_NO_DOMAIN, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_NOT_RUNNING, MIG_CAUSE_GUEST_STOPPED},
      {MIG_VIRT_ERROR_DENIED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_SAME_HOST, MIG_CAUSE_SAME_HOST},
      {MIG_VIRT_ERROR_EXISTS, MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET},
      {MIG_VIRT_ERROR_BUSY, MIG_CAUSE_DOMAIN_BUSY},
      {MIG_VIRT_ERROR_ABORTED, MIG_CAUSE_CANCELLED_ELSEWHERE},
      {MIG_VIRT_ERROR_UNSUPPORTED, MIG_CAUSE_REFUSED},
      {MIG_VIRT_ERROR_INVALID, MIG_CAUSE_REFUSED},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(causes); i++)
    if (g_error_matches(error, MIG_VIRT_ERROR, (gint)causes[i].error))
      return causes[i].cause;
  return MIG_CAUSE_LIBVIRT_ERROR;
}

/* The final count: libvirt's event at the source has it, else the target. */
static void take_final_stats(struct JobRun *run, const WorkerReport *report) {
  const MigFinalStats *final = run->have_final ? &run->final : report->have_final ? &report->final : NULL;
  Job *job = run->job;

  if (!final)
    return;
  job->have_total_time = final->total_time_ms > 0;
  job->total_time_ms = final->total_time_ms;
  job->have_downtime = final->have_downtime;
  job->downtime_ms = final->downtime_ms;
  job->have_transferred = final->transferred_bytes > 0;
  job->transferred_bytes = final->transferred_bytes;
}

static void settle_moved(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (job->failure.cause != MIG_CAUSE_NONE) {
    job_add_event(job, "warning", job->failure.cause,
                  "the end that was asked for (%s) came too late: it had moved",
                  mig_cause_name(job->failure.cause));
    job_clear_failure(job);
  }
  take_final_stats(run, report);
  if (!job->have_total_time && job->started_ms > 0) {
    job->have_total_time = true;
    job->total_time_ms = agent_now_ms() - job->started_ms;
  }
  finish(run->agent, job, MIG_PHASE_SUCCEEDED, "target", g_strdup(report->evidence));
}

static void settle_unmoved(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  if (run->error)
    job_note_failure(job, cause_of_migration(run->error), run->error, "%s", run->error->message);
  else
    job_note_failure(
        job, MIG_CAUSE_LIBVIRT_ERROR, NULL,
        "the migration ended while the agent was away, and libvirt no longer says why: see its log");
  finish(run->agent, job, phase_of_cause(job->failure.cause), "source", g_strdup(report->evidence));
}

static void settle_gone(struct JobRun *run, const WorkerReport *report) {
  job_note_failure(run->job, MIG_CAUSE_GUEST_STOPPED, run->error, "%s", report->evidence);
  finish(run->agent, run->job, MIG_PHASE_FAILED, "none", g_strdup(report->evidence));
}

static void settle_split(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  job_note_failure(job, MIG_CAUSE_INTERNAL, run->error,
                   "both ends have a live copy: touch neither before it is known which one is the guest (%s)",
                   report->evidence);
  log_job(job, LOG_CRIT, NAMES_MESSAGE_JOB_SPLIT, "both ends have a live copy; nothing was touched: %s",
          report->evidence);
  finish(run->agent, job, MIG_PHASE_FAILED, "unknown", g_strdup(report->evidence));
}

static void on_settled(struct JobRun *run, const WorkerReport *report) {
  switch (report->verdict) {
  case MIG_VERDICT_SUCCEEDED:
    settle_moved(run, report);
    return;
  case MIG_VERDICT_AT_SOURCE:
    settle_unmoved(run, report);
    return;
  case MIG_VERDICT_GONE:
    settle_gone(run, report);
    return;
  case MIG_VERDICT_SPLIT:
    settle_split(run, report);
    return;
  case MIG_VERDICT_WAIT:
  case MIG_VERDICT_RECOVER:
  case MIG_VERDICT_COUNT:
    break;
  }
  g_return_if_reached();
}

static void set_next_action(Job *job, const char *text) {
  g_free(job->next_action);
  job->next_action = g_strdup(text);
}

static void on_unsettled(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  set_next_action(job, "asks both ends until they agree; nothing is touched before");
  if (job->phase == MIG_PHASE_MIGRATING)
    enter_phase(run->agent, job, MIG_PHASE_RECOVERING, report->evidence);
  else
    job_add_event(job, "action", MIG_CAUSE_NONE, "%s", report->evidence);
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_OUTCOME_UNKNOWN, "where it runs is not settled yet: %s",
          report->evidence);
  state_changed(run->agent, job);
}

static void on_resuming(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  set_next_action(job, "resumes the post-copy as soon as the link is back, again and again");
  job->stage = MIG_STAGE_POST_COPY;
  if (job->phase == MIG_PHASE_MIGRATING)
    enter_phase(run->agent, job, MIG_PHASE_RECOVERING, report->evidence);
  else
    job_add_event(job, "action", MIG_CAUSE_NONE, "resume of the post-copy: %s",
                  report->error ? report->error->message : "done");
  log_job(job, LOG_WARNING, NAMES_MESSAGE_JOB_RECOVERING,
          "post-copy is cut (%s); the last try to resume it: %s", report->evidence,
          report->error ? report->error->message : "worked");
  state_changed(run->agent, job);
}

static void on_attached(struct JobRun *run, const WorkerReport *report) {
  Job *job = run->job;

  g_clear_pointer(&job->next_action, g_free);
  if (job->phase == MIG_PHASE_RECOVERING)
    enter_phase(run->agent, job, MIG_PHASE_MIGRATING, report->evidence);
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_ADOPTED, "the migration is under way, and is steered on: %s",
          report->evidence);
  state_changed(run->agent, job);
}

static void on_report(Worker *worker, const WorkerReport *report, gpointer user_data) {
  struct JobRun *run = user_data;

  switch (report->kind) {
  case WORKER_PREPARED:
    on_prepared(run, report);
    break;
  case WORKER_REFUSED:
    on_refused(run, report);
    break;
  case WORKER_CANCELLED:
    /* Whoever cancelled has finished the job, and freed the worker. */
    break;
  case WORKER_SAMPLE:
    on_sample(run, report);
    break;
  case WORKER_ACTED:
    on_acted(run, report);
    break;
  case WORKER_RETURNED:
    on_returned(run, report);
    break;
  case WORKER_ATTACHED:
    on_attached(run, report);
    break;
  case WORKER_UNSETTLED:
    on_unsettled(run, report);
    break;
  case WORKER_RESUMING:
    on_resuming(run, report);
    break;
  case WORKER_SETTLED:
    on_settled(run, report);
    break;
  }
}

/* --- what clients ask for --- */

LifecycleAbort lifecycle_abort(Agent *agent, Job *job, const char *who) {
  MigAction action = {.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_USER_ABORT};
  struct JobRun *run = job->run;

  if (job_is_final(job))
    return LIFECYCLE_ABORT_OVER;
  if (job->stage == MIG_STAGE_POST_COPY)
    return LIFECYCLE_ABORT_POST_COPY;
  if (job->abort_requested)
    return LIFECYCLE_ABORT_ASKED;

  job->abort_requested = true;
  job_add_event(job, "abort_requested", MIG_CAUSE_USER_ABORT, "asked for by %s", who);
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_ABORT_REQUESTED, "its end was asked for by %s", who);
  if (!run || !run->error)
    job_note_failure(job, MIG_CAUSE_USER_ABORT, NULL, "aborted on request of %s", who);
  if (!run || !run->go_given) {
    finish_unmoved(agent, job);
    return LIFECYCLE_ABORT_ASKED;
  }
  set_next_action(job, "waits for the migration to be cancelled");
  worker_act(run->worker, &action);
  state_changed(agent, job);
  return LIFECYCLE_ABORT_ASKED;
}

static bool may_tune(const Job *job, const MigPolicy *changes, const char **ret_key) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);

    if ((changes->set & (UINT32_C(1) << key)) && job->phase != MIG_PHASE_PENDING &&
        info->tunable != MIG_TUNABLE_ALWAYS) {
      *ret_key = info->name;
      return false;
    }
  }
  return true;
}

static char *describe_changes(const MigPolicy *changes) {
  g_autoptr(GString) text = g_string_new(NULL);

  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    char value[32];

    if (!(changes->set & (UINT32_C(1) << key)))
      continue;
    mig_policy_format(changes, (MigPolicyKey)key, value, sizeof value);
    g_string_append_printf(text, "%s%s=%s", text->len ? ", " : "",
                           mig_policy_key_info((MigPolicyKey)key)->name, value);
  }
  return g_string_free(g_steal_pointer(&text), FALSE);
}

bool lifecycle_tune(Agent *agent, Job *job, const MigPolicy *changes, const char *who, const char **ret_key) {
  const uint32_t bandwidth = (UINT32_C(1) << MIG_POLICY_BANDWIDTH_BYTES_PER_S) |
                             (UINT32_C(1) << MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S);
  const uint32_t downtime = UINT32_C(1) << MIG_POLICY_MAX_DOWNTIME_MS;
  g_autofree char *text = describe_changes(changes);
  struct JobRun *run = job->run;

  if (!may_tune(job, changes, ret_key))
    return false;
  mig_policy_merge(&job->policy, changes);
  if (run && run->monitoring) {
    uint64_t deadline;

    mig_monitor_set_policy(&run->monitor, &job->policy);
    deadline = mig_monitor_deadline_ms(&run->monitor);
    job->deadline_ms = deadline == UINT64_MAX ? 0 : deadline;
    if (changes->set & bandwidth)
      worker_set_bandwidth(run->worker, mig_policy_get(&job->policy, MIG_POLICY_BANDWIDTH_BYTES_PER_S),
                           mig_policy_get(&job->policy, MIG_POLICY_POST_COPY_BANDWIDTH_BYTES_PER_S));
    if (changes->set & downtime)
      worker_act(run->worker,
                 &(MigAction){.kind = MIG_ACTION_SET_DOWNTIME,
                              .downtime_ms = mig_policy_get(&job->policy, MIG_POLICY_MAX_DOWNTIME_MS)});
  }
  job_add_event(job, "tuned", MIG_CAUSE_NONE, "by %s: %s", who, text);
  log_job(job, LOG_NOTICE, NAMES_MESSAGE_JOB_TUNED, "goals changed by %s: %s", who, text);
  state_changed(agent, job);
  return true;
}

/* --- the start of the agent, the clock, libvirt's events --- */

void lifecycle_adopt(Agent *agent, Job *job) {
  switch (job->phase) {
  case MIG_PHASE_PREPARING:
    /* The record says "migrating" before anything moves: nothing did. */
    job_add_event(job, "agent_restarted", MIG_CAUSE_NONE, "the agent was restarted; the checks begin anew");
    start_worker(agent, job, false);
    break;
  case MIG_PHASE_MIGRATING:
    enter_phase(agent, job, MIG_PHASE_RECOVERING, "the agent was restarted; both ends are asked");
    G_GNUC_FALLTHROUGH;
  case MIG_PHASE_RECOVERING:
    start_worker(agent, job, true);
    if (job->started_ms > 0)
      start_monitor(job->run);
    if (job->abort_requested)
      worker_act(job->run->worker, &(MigAction){.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_USER_ABORT});
    state_changed(agent, job);
    break;
  default:
    break;
  }
}

static void tick_job(Agent *agent, Job *job, uint64_t now_ms, int64_t now_usec) {
  struct JobRun *run = job->run;

  if (job->phase == MIG_PHASE_PENDING && job->durable) {
    int64_t until = view_pending_until_usec(agent, job);

    if (until > 0 && now_usec >= until) {
      job_note_failure(
          job, MIG_CAUSE_PENDING_TIMEOUT, NULL,
          "no place was free within %u s (MaxOutgoing=%u): raise that limit or PendingTimeout=, or ask "
          "again later",
          agent->config->pending_timeout_ms / 1000, agent->config->max_outgoing);
      finish_unmoved(agent, job);
    }
  } else if (job->phase == MIG_PHASE_PREPARING && run && now_ms >= run->prepare_until_ms) {
    job_note_failure(job, MIG_CAUSE_PREPARE_TIMEOUT, NULL,
                     "the checks did not end within %u s: a libvirtd, of this node or of the target, hangs",
                     agent->config->prepare_timeout_ms / 1000);
    finish_unmoved(agent, job);
  } else if (run && run->monitoring) {
    step_monitor(run, &(MigSample){.now_ms = now_ms});
    if (run->silent)
      watch_notify(agent, job, false);
  }
}

void lifecycle_tick(Agent *agent) {
  g_autoptr(GPtrArray) unfinished = g_ptr_array_new();
  const GPtrArray *all = job_table_all(agent->jobs);
  int64_t now_usec = g_get_real_time();
  uint64_t now_ms = agent_now_ms();

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (job->record_due_ms > 0 && now_ms >= job->record_due_ms)
      lifecycle_save(agent, job, NULL, NULL);
    if (!job_is_final(job))
      g_ptr_array_add(unfinished, job);
  }
  /* A step may finish its job, which may remove final jobs from the table, but no unfinished one. */
  for (guint i = 0; i < unfinished->len; i++)
    tick_job(agent, unfinished->pdata[i], now_ms, now_usec);
  forget_old_jobs(agent);
}

void lifecycle_handle_event(Agent *agent, const MigVirtEvent *event) {
  Job *job = job_table_find_active(agent->jobs, event->uuid);
  struct JobRun *run = job ? job->run : NULL;

  if (!run || !run->go_given)
    return;
  if (event->kind == MIG_VIRT_EVENT_JOB_DONE) {
    if (event->success) {
      run->have_final = true;
      run->final = event->final;
    }
    worker_note_job_done(run->worker, event->success);
  } else if (event->kind == MIG_VIRT_EVENT_STATE) {
    worker_note_job_done(run->worker, false);
  }
}

bool lifecycle_detach(Job *job) {
  if (!job->run)
    return false;
  g_clear_pointer(&job->run, run_free);
  return true;
}

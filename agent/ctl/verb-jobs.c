/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl list, show and tune: the state of jobs. */
#include "agent/base/policyjson.h"
#include "agent/ctl/call.h"
#include "agent/ctl/findings.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/format.h"
#include "agent/ctl/print.h"
#include "agent/ctl/progress.h"

#include <string.h>

/* Number of finished jobs shown without --all. */
#define FINISHED_SHOWN 20

static bool phase_of(json_t *job, MigPhase *ret) {
  const char *name = json_string_of(job, "phase");
  int phase = name ? mig_phase_from_name(name) : MIG_ENUM_UNKNOWN;

  if (phase == MIG_ENUM_UNKNOWN)
    return false;
  *ret = (MigPhase)phase;
  return true;
}

/* "#2 OUTGOING_LIMIT until 12:34:56"; NULL: the job is not waiting. */
static char *waits_of(json_t *job) {
  const char *reason = json_string_of(job, "pending_reason");
  int64_t position = json_int_of(job, "queue_position");
  int64_t until_us = json_int_of(job, "pending_until_usec_realtime");
  bool soon = until_us < g_get_real_time() + 12 * 3600 * (int64_t)G_USEC_PER_SEC;

  if (!reason || position <= 0)
    return NULL;
  return g_strdup_printf("#%d %s%s%s", (int)position, reason, until_us > 0 ? " until " : "",
                         until_us <= 0 ? ""
                         : soon        ? format_clock(until_us).text
                                       : format_time(until_us).text);
}

static void add_summary(Table *table, json_t *job, MigPhase phase) {
  json_t *domain = json_object_get(job, "domain"), *target = json_object_get(job, "target");
  const char *id = json_string_of(job, "id"), *name = json_string_of(target, "name");
  const char *stage = json_string_of(job, "stage"), *cause = json_string_of(job, "cause");
  int64_t percent = json_int_of(job, "percent");
  bool final = mig_phase_is_final(phase);
  g_autofree char *waits = waits_of(job);
  const char *detail = waits ? waits : final ? cause : stage;

  if (!detail || strcmp(detail, "none") == 0 || strcmp(detail, "NONE") == 0)
    detail = "-";
  table_add(table, "%.8s", or_dash(id));
  table_add(table, "%s", or_dash(json_string_of(domain, "name")));
  if (g_strcmp0(json_string_of(job, "direction"), "incoming") == 0)
    table_add(table, "(this node)");
  else
    table_add(table, "%s", or_dash(name ? name : json_string_of(target, "libvirt_uri")));
  table_add(table, "%s", mig_phase_name(phase));
  table_add(table, "%s", detail);
  table_add(table, percent < 0 ? "-" : "%d%%", (int)percent);
  table_add(table, "%s", format_time(json_int_of(job, "created_usec_realtime")).text);
  table_add(table, "%s", format_duration_ms(json_int_of(job, "total_time_ms")).text);
  table_add(table, "%s", format_duration_ms(json_int_of(job, "downtime_ms")).text);
}

/* Sorts waiting jobs by their position in the queue. */
static int compare_positions(gconstpointer a, gconstpointer b) {
  int64_t one = json_int_of(*(json_t *const *)a, "queue_position");
  int64_t other = json_int_of(*(json_t *const *)b, "queue_position");

  return (one > other) - (one < other);
}

/* The agent returns the oldest first. Active jobs are printed in this order, then the queue, then the finished jobs,
 * newest first. */
static ExitStatus print_list(Ctl *ctl, json_t *reply) {
  static const char *const titles[] = {"JOB",  "DOMAIN",  "TARGET", "PHASE",    "STAGE/QUEUE/CAUSE",
                                       "DONE", "CREATED", "TIME",   "DOWNTIME", NULL};
  g_autoptr(Table) table = table_new(titles);
  g_autoptr(GPtrArray) waiting = g_ptr_array_new();
  json_t *jobs = json_object_get(reply, "jobs");
  size_t n_jobs = json_array_size(jobs), finished = 0;
  MigPhase phase;

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (n_jobs == 0) {
    term_print(&ctl->term, "No jobs.\n");
    return EXIT_DONE;
  }
  for (size_t i = 0; i < n_jobs; i++) {
    json_t *job = json_array_get(jobs, i);

    if (phase_of(job, &phase) && phase == MIG_PHASE_PENDING)
      g_ptr_array_add(waiting, job);
    else if (phase_of(job, &phase) && !mig_phase_is_final(phase))
      add_summary(table, job, phase);
  }
  g_ptr_array_sort(waiting, compare_positions);
  for (guint i = 0; i < waiting->len; i++)
    add_summary(table, waiting->pdata[i], MIG_PHASE_PENDING);
  for (size_t i = n_jobs; i > 0; i--) {
    json_t *job = json_array_get(jobs, i - 1);

    if (!phase_of(job, &phase) || !mig_phase_is_final(phase))
      continue;
    if (ctl->options.all || finished < FINISHED_SHOWN)
      add_summary(table, job, phase);
    finished++;
  }
  table_print(table, &ctl->term);
  if (!ctl->options.all && finished > FINISHED_SHOWN)
    term_print(&ctl->term, "%zu older jobs not shown; see handoffctl list --all\n",
               finished - FINISHED_SHOWN);
  return EXIT_DONE;
}

ExitStatus verb_list(Ctl *ctl) {
  const Options *options = &ctl->options;
  json_t *parameters = json_object();

  if (options->phases->len > 0) {
    json_t *phases = json_array();

    for (unsigned i = 0; i < options->phases->len; i++)
      json_array_append_new(phases, json_string(g_ptr_array_index(options->phases, i)));
    json_object_set_new(parameters, "phases", phases);
  }
  json_set_string(parameters, "domain", options->domain);
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.List", parameters, print_list);
}

/* A job on the target's side. */
static void print_incoming(Term *term, const JobView *job) {
  json_t *lease = json_object_get(job->json, "lease");

  print_field(term, "source", "%s", job->source ? job->source : "unknown (not announced)");
  print_field(term, "target", "this node (%s)", job_view_target(job));
  if (lease)
    print_field(term, "lease", "%s reserved; expires at %s unless the domain arrives",
                format_bytes(json_int_of(lease, "memory_bytes")).text,
                format_time(json_int_of(lease, "expires_usec_realtime")).text);
}

static void print_target(Term *term, const JobView *job) {
  if (job->target_name && job->target_uri)
    print_field(term, "target", "%s (%s)", job->target_name, job->target_uri);
  else
    print_field(term, "target", "%s", job_view_target(job));
  if (job->migrate_uri)
    print_field(term, "stream to", "%s", job->migrate_uri);
  if (json_string_of(job->json, "drain"))
    print_field(term, "drain", "%s: handoffctl drain", json_string_of(job->json, "drain"));
}

static void print_caller(Term *term, json_t *caller) {
  const char *unit = json_string_of(caller, "unit"), *comm = json_string_of(caller, "comm");

  if (caller)
    print_field(term, "requested by",
                "uid %" G_GINT64_FORMAT ", gid %" G_GINT64_FORMAT ", pid %" G_GINT64_FORMAT "%s%s%s%s",
                json_int_of(caller, "uid"), json_int_of(caller, "gid"), json_int_of(caller, "pid"),
                unit ? ", " : "", unit ? unit : "", comm ? ", " : "", comm ? comm : "");
}

static void print_times(Term *term, const JobView *job) {
  print_caller(term, json_object_get(job->json, "caller"));
  print_field(term, "created", "%s", format_time(job->created_us).text);
  if (job->started_us >= 0)
    print_field(term, "started", "%s", format_time(job->started_us).text);
  if (job->deadline_us >= 0)
    print_field(term, "deadline", "%s", format_time(job->deadline_us).text);
  if (job->finished_us >= 0)
    print_field(term, "finished", "%s", format_time(job->finished_us).text);
}

static void print_forecast(Term *term, const JobView *job) {
  if (job->forecast_way == MIG_STAGE_NONE)
    print_field(term, "forecast", "no permitted way to complete; shortest pause of pre-copy %s",
                format_duration_ms(job->forecast_floor_ms).text);
  else
    print_field(term, "forecast", "completes by %s, %s in total, pause %s; shortest pause of pre-copy %s",
                progress_way_words(job->forecast_way), format_duration_ms(job->forecast_total_ms).text,
                format_duration_ms(job->forecast_pause_ms).text,
                format_duration_ms(job->forecast_floor_ms).text);
}

static void print_pending(Term *term, const JobView *job) {
  print_field(term, "waiting for", "%s: %s", or_dash(job->pending_reason), job->pending_message);
  if (job->direction == MIG_DIRECTION_INCOMING)
    return;
  if (job->held_since_us >= 0)
    print_field(term, "held since", "%s", format_time(job->held_since_us).text);
  print_field(term, "queue", "position %" G_GINT64_FORMAT ", waiting since %s, %s%s",
              MAX(job->queue_position, 0), format_time(job->pending_since_us).text,
              job->pending_until_us >= 0 ? "times out at " : "no timeout",
              job->pending_until_us >= 0 ? format_time(job->pending_until_us).text : "");
}

static char *seconds_from_now(int64_t time_us, int64_t now_us) {
  int64_t ms = ABS(time_us - now_us) / 1000;

  return g_strdup_printf(time_us > now_us ? "in %s" : "%s ago", format_duration_ms(ms).text);
}

/* What holds up the job, and what is being tried. */
static void print_recovery(Term *term, const JobView *job) {
  int64_t now_us = g_get_real_time();
  g_autofree char *tried = NULL, *again = NULL;

  print_field(term, "recovering", "for %s, since %s",
              format_duration_ms((now_us - job->recovery_since_us) / 1000).text,
              format_time(job->recovery_since_us).text);
  if (job->recovery_evidence)
    print_field(term, "seen", "%s", job->recovery_evidence);
  if (job->recovery_tries < 1 || job->recovery_tried_us < 0)
    return;
  tried = seconds_from_now(job->recovery_tried_us, now_us);
  again = job->recovery_again_us > now_us ? seconds_from_now(job->recovery_again_us, now_us) : NULL;
  print_field(term, "attempts", "%" G_GINT64_FORMAT " attempt%s to resume post-copy, last one %s%s%s%s%s",
              job->recovery_tries, job->recovery_tries == 1 ? "" : "s", tried,
              job->recovery_error ? ": " : "", job->recovery_error ? job->recovery_error : "",
              again ? "; next attempt " : "", again ? again : "");
}

static void print_state(Term *term, const JobView *job) {
  ProgressInput input = {
      .job = job, .percent = MAX(job->percent, 0), .now_us = g_get_real_time(), .away_ms = -1};

  if (mig_phase_is_final(job->phase)) {
    print_field(term, "phase", "%s", mig_phase_name(job->phase));
    return;
  }
  print_field(term, "phase", "%s, %s", mig_phase_name(job->phase), progress_stage_words(job->stage));
  if (job->pending_message)
    print_pending(term, job);
  if (job->recovery_since_us >= 0)
    print_recovery(term, job);
  print_hanging(term, json_object_get(job->json, "hanging"));
  if (job->has_progress) {
    g_autofree char *line = progress_line(&input);

    print_field(term, "progress", "%s", line);
  }
  if (job->has_forecast && job->phase == MIG_PHASE_MIGRATING)
    print_forecast(term, job);
  if (job->memory_total >= 0)
    print_field(term, "memory", "%s of %s processed", format_bytes(job->memory_processed).text,
                format_bytes(job->memory_total).text);
  if (job->disk_total > 0)
    print_field(term, "disks", "%s of %s processed", format_bytes(job->disk_processed).text,
                format_bytes(job->disk_total).text);
  if (job->bandwidth_share > 0)
    print_field(term, "bandwidth",
                "%s/s, its share of MaxBandwidth=", format_bytes(job->bandwidth_share).text);
  if (job->next_action)
    print_field(term, "next", "%s", job->next_action);
}

static void print_events(Term *term, json_t *events) {
  json_t *event;
  size_t i;

  term_print(term, "events\n");
  json_array_foreach (events, i, event) {
    const char *kind = json_string_of(event, "kind"), *message = json_string_of(event, "message");

    term_print(term, "  %s  %-15s %s\n", format_time(json_int_of(event, "time_usec_realtime")).text,
               kind ? kind : "?", message ? message : "");
  }
}

static void print_job(Ctl *ctl, const JobView *job) {
  Term *term = &ctl->term;

  print_field(term, "job", "%s", job->id);
  print_field(term, "domain", "%s (%s)", job->domain, job->domain_uuid ? job->domain_uuid : "?");
  if (job->direction == MIG_DIRECTION_INCOMING)
    print_incoming(term, job);
  else
    print_target(term, job);
  print_state(term, job);
  print_times(term, job);
  if (job->request_key)
    print_field(term, "request key", "%s", job->request_key);
  if (job->policy_name)
    print_field(term, "policy", "%s, as requested", job->policy_name);
  if (job->policy_matched)
    print_field(term, "policy", "%s, chosen by Match=", job->policy_matched);
  print_policy(term, json_object_get(job->json, "policy"));
  /* The summary of a finished job includes its blockers. */
  findings_print(term, json_object_get(job->json, "findings"), mig_phase_is_final(job->phase));
  print_events(term, json_object_get(job->json, "events"));
  if (mig_phase_is_final(job->phase))
    follow_summary(term, job);
}

static ExitStatus take_shown(Ctl *ctl, json_t *reply) {
  JobView job;

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  if (!job_view_read(json_object_get(reply, "job"), &job))
    return ctl_fail(ctl, FAILURE_PROTOCOL, "the reply to Get contains no valid job.");
  print_job(ctl, &job);
  return EXIT_DONE;
}

ExitStatus verb_show(Ctl *ctl) {
  return ctl_ask(ctl, ctl_call, "io.handoffd.Agent.Get", json_pack("{s:s}", "job", ctl->options.args[0]),
                 take_shown);
}

/* The current values of the keys that were given. */
static ExitStatus print_tuned(Ctl *ctl, json_t *reply) {
  json_t *policy = json_object_get(json_object_get(reply, "job"), "policy");
  uint32_t given = ctl->options.policy.set;

  if (ctl_print_json(ctl, reply))
    return EXIT_DONE;
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const char *name = mig_policy_key_info((MigPolicyKey)key)->name;
    g_autofree char *text = print_value(json_object_get(policy, name));

    if (given & (UINT32_C(1) << key))
      term_print(&ctl->term, "%s=%s\n", name, text);
  }
  return EXIT_DONE;
}

ExitStatus verb_tune(Ctl *ctl) {
  const MigPolicy *policy = &ctl->options.policy;

  return ctl_ask(
      ctl, ctl_call, "io.handoffd.Agent.Tune",
      json_pack("{s:s, s:o}", "job", ctl->options.args[0], "policy", policy_to_json(policy, policy->set)),
      print_tuned);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcome of a finished job in words. */
#include "agent/ctl/findings.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/format.h"

#include <string.h>

typedef struct Whereabouts {
  const char *running_at;
  const char *text; /* after the domain's name */
} Whereabouts;

static const Whereabouts whereabouts[] = {
    {"source", "is still running on the source"},
    {"target", "is running on the target"},
    {"none", "is running on neither end"},
};

/* "web1 is still running on the source.", or whatever is known. */
static char *describe_whereabouts(const JobView *job) {
  for (size_t i = 0; i < G_N_ELEMENTS(whereabouts); i++) {
    if (g_strcmp0(job->running_at, whereabouts[i].running_at) == 0)
      return g_strdup_printf("%s %s.", job->domain, whereabouts[i].text);
  }
  return g_strdup_printf("It is not known where %s is running: check both ends before you start it anywhere.",
                         job->domain);
}

/* In the order in which they follow one another. */
static const struct {
  const char *key;
  const char *words;
} parts[] = {
    {"queued_ms", "waiting"},    {"checks_ms", "checks"},         {"begin_ms", "to begin"},
    {"disks_ms", "disks"},       {"first_pass_ms", "first pass"}, {"passes_ms", "further passes"},
    {"switch_ms", "switchover"}, {"post_copy_ms", "post-copy"},   {"settle_ms", "to settle"},
};

/* "6.8 s in all: 105 ms checks, 412 ms to begin, …" */
static void print_times(Term *term, const JobView *job) {
  json_t *object = json_object_get(json_object_get(job->json, "result"), "parts");
  const char *separator = ": ";

  if (job->total_time_ms < 0)
    return;
  term_print(term, "  %s in all", format_duration_ms(job->total_time_ms).text);
  for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
    int64_t part_ms = json_int_of(object, parts[i].key);

    if (part_ms <= 0)
      continue;
    term_print(term, "%s%s %s", separator, format_duration_ms(part_ms).text, parts[i].words);
    separator = ", ";
  }
  term_print(term, ".");
  if (json_is_false(json_object_get(object, "exact")))
    term_print(term, " The agent did not watch all the time: the sum is right, but the parts may be off.");
  if (job->libvirt_time_ms >= 0)
    term_print(term, " libvirt itself counts %s.", format_duration_ms(job->libvirt_time_ms).text);
  term_print(term, "\n");
}

static void print_downtime(Term *term, const JobView *job) {
  if (job->downtime_ms >= 0)
    term_print(term, "  Downtime %s", format_duration_ms(job->downtime_ms).text);
  else if (job->downtime_unknown)
    term_print(term, "  Downtime unknown: %s", job->downtime_unknown);
  else
    return;
  if (job->downtime_error_ms >= 0)
    term_print(term, ", give or take %s", format_duration_ms(job->downtime_error_ms).text);
  if (job->libvirt_downtime_ms >= 0)
    term_print(term, "; libvirt itself counts %s", format_duration_ms(job->libvirt_downtime_ms).text);
  term_print(term, ".\n");
}

static void print_numbers(Term *term, const JobView *job) {
  g_autoptr(GString) text = g_string_new(NULL);

  print_times(term, job);
  print_downtime(term, job);
  if (job->transferred_bytes >= 0)
    g_string_append_printf(text, ", %s transferred", format_bytes(job->transferred_bytes).text);
  if (job->iteration > 0)
    g_string_append_printf(text, ", %" G_GINT64_FORMAT " pass%s", job->iteration,
                           job->iteration == 1 ? "" : "es");
  if (text->len > 0)
    term_print(term, "  %s.\n", text->str + 2);
}

/* The failure message of a refused job consists of all blockers. */
static bool is_of_findings(const char *message, json_t *findings) {
  const char *code = json_string_of(json_array_get(findings, 0), "code");

  return code && g_str_has_prefix(message, code) && g_str_has_prefix(message + strlen(code), ": ");
}

static void print_reason(Term *term, const JobView *job) {
  json_t *findings = json_object_get(job->json, "findings");

  if (!job->failure_message || !*job->failure_message)
    return;
  if (is_of_findings(job->failure_message, findings))
    findings_print_blockers(term, findings);
  else
    term_print(term, "  %s\n", job->failure_message);
}

static void print_failure(Term *term, const JobView *job) {
  const char *stage =
      job->failure_stage && strcmp(job->failure_stage, "none") != 0 ? job->failure_stage : NULL;

  term_print(term, "  cause: %s", job->cause_name ? job->cause_name : "?");
  if (job->failure_phase)
    term_print(term, ", while %s%s%s", job->failure_phase, stage ? ", " : "", stage ? stage : "");
  term_print(term, "\n");
  print_reason(term, job);
  if (job->libvirt_message)
    term_print(term, "  libvirt: %s (code %" G_GINT64_FORMAT ")\n", job->libvirt_message, job->libvirt_code);
}

/* For an incoming domain that did not arrive, only its source knows where it is. */
static void print_incoming(Term *term, const JobView *job) {
  if (job->phase == MIG_PHASE_SUCCEEDED) {
    term_print(term, "%s has arrived and is now running on this node.\n", job->domain);
    print_numbers(term, job);
    return;
  }
  term_print(term, "%s did not arrive on this node.\n", job->domain);
  print_failure(term, job);
  if (job->evidence && *job->evidence)
    term_print(term, "  seen: %s\n", job->evidence);
}

void follow_summary(Term *term, const JobView *job) {
  g_autofree char *where = describe_whereabouts(job);

  if (job->direction == MIG_DIRECTION_INCOMING) {
    print_incoming(term, job);
    return;
  }
  if (job->phase == MIG_PHASE_SUCCEEDED) {
    if (g_strcmp0(job->running_at, "unknown") == 0)
      term_print(term,
                 "%s was migrated to %s, but is no longer there: it was shut down or migrated onward.\n",
                 job->domain, job_view_target(job));
    else
      term_print(term, "%s is now running on %s.\n", job->domain, job_view_target(job));
    print_numbers(term, job);
    return;
  }
  term_print(term, "The migration of %s to %s %s. %s\n", job->domain, job_view_target(job),
             job->phase == MIG_PHASE_ABORTED ? "was aborted" : "failed", where);
  print_failure(term, job);
  print_numbers(term, job);
  if (job->evidence && *job->evidence)
    term_print(term, "  seen: %s\n", job->evidence);
  term_print(term, "  next: %s\n", cause_next_step(job->has_failure ? job->cause : MIG_CAUSE_NONE));
}

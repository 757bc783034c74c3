/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the words of handoffctl that need no agent: help, usage errors, exit statuses, errors, summaries, progress. */
#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"
#include "agent/ctl/follow.h"
#include "agent/ctl/progress.h"
#include "proto/client.h"
#include "tests/unit/ctl/jobs.h"

#include <stdlib.h>
#include <string.h>

static Term term;

static void print_heading(const char *text) {
  printf("\n=== %s\n\n", text);
}

/* --- the command line --- */

static char *output_of(const char *line, ExitStatus *ret_status) {
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  Ctl ctl = {.term = {.out = out, .err = out}};

  *ret_status = ctl_run(&ctl, (int)g_strv_length(argv), argv);
  fclose(out);
  return text;
}

/* The policy keys are the same under every verb: once is enough. */
static char *policy_keys_of(const char *help) {
  const char *begin = strstr(help, "\nPolicy"), *end = begin ? strstr(begin, "\n\n") : NULL;

  return end ? g_strndup(begin, (gsize)(end - begin)) : g_strdup("");
}

static void print_help(void) {
  ExitStatus status;
  char *help = output_of("handoffctl --help", &status);
  g_autofree char *keys = policy_keys_of(help);

  print_heading("handoffctl --help");
  printf("%s", help);
  for (int verb = 0; verb < VERB_COUNT; verb++) {
    g_autofree char *line = g_strdup_printf("handoffctl help %s", options_verb((VerbId)verb)->name);
    g_autoptr(GString) text = g_string_new(NULL);
    char *of_verb = output_of(line, &status);

    g_string_assign(text, of_verb);
    if (*keys)
      g_string_replace(text, keys, "\n[policy keys as in handoffctl --help]", 1);
    print_heading(line);
    printf("%s", text->str);
    free(of_verb);
  }
  free(help);
}

static void print_usage_errors(void) {
  static const char *const lines[] = {
      "",
      "fly",
      "migrat web1 kvm2",
      "migrate web1",
      "settle web1",
      "migrate a b -o max_downtime=3",
      "migrate a b -o colour=red",
      "migrate a b -o max_downtime_ms",
      "migrate a b -o max_downtime_ms=long",
      "migrate a b -o tls=maybe",
      "migrate a b -o",
      "migrate a b --request-key ä",
      "migrate a b --request-key ",
      "list --json=yes",
      "list --fast",
      "list -x",
      "list --detach",
      "list --phase flying",
      "complete web1 --by magic",
      "forecast a b --bandwidth 0",
      "prepare a b --timeout never",
      "report web1 --svg ",
      "drain kvm2 --abort",
      "drain --detach",
      "drain --policy fast",
  };

  print_heading("usage errors");
  for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
    g_autofree char *line = g_strdup_printf("handoffctl%s%s", *lines[i] ? " " : "", lines[i]);
    ExitStatus status;
    char *text = output_of(line, &status);

    printf("$ %s\n%s", line, text);
    free(text);
  }
}

/* --- errors --- */

static void print_failure(const Failure *failure) {
  g_autofree char *text = failure_describe(failure);

  printf("%s (exit status %d)\n  %s\n", failure->error, (int)failure->status, text);
}

/* Each parameter says its own name. */
static json_t *example_parameters(void) {
  static const char *const names[] = {
      "by",          "candidates", "code",        "domain",  "drain",  "interface", "job",
      "key",         "keys",       "limit",       "message", "method", "parameter", "phase",
      "policy_name", "reason",     "request_key", "stage",   "target", "targets",
  };
  json_t *parameters = json_pack("{s:[{s:s, s:s, s:s}]}", "findings", "code", "CODE", "seen",
                                 "What was seen.", "remedy", "What would help.");

  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *value = g_strdup_printf("<%s>", names[i]);

    json_object_set_new(parameters, names[i], json_string(value));
  }
  return parameters;
}

static void print_errors(void) {
  json_t *parameters = example_parameters();

  print_heading("errors");
  for (unsigned i = 0; failure_error_name(i); i++) {
    g_auto(Failure) failure = {0};

    failure_set_reply(&failure, failure_error_name(i), parameters);
    print_failure(&failure);
  }
  json_decref(parameters);

  g_auto(Failure) unknown = {0};
  parameters = json_pack("{s:s}", "a", "b");
  failure_set_reply(&unknown, "org.example.Unknown", parameters);
  print_failure(&unknown);
  json_decref(parameters);
}

/* --- jobs --- */

static json_t *job_of(const char *changes) {
  g_autofree char *json = g_strdelimit(g_strdup(changes), "'", '"');

  return job_new(json_loads(json, 0, NULL));
}

static void print_causes(void) {
  print_heading("causes: exit status of a failed and of an aborted job, next step");
  for (int cause = 0; cause < MIG_CAUSE_COUNT; cause++)
    printf("%s (%d, %d)\n  %s\n", mig_cause_name((MigCause)cause),
           (int)exit_status_of_job(MIG_PHASE_FAILED, (MigCause)cause),
           (int)exit_status_of_job(MIG_PHASE_ABORTED, (MigCause)cause), cause_next_step((MigCause)cause));
}

#define FAILURE(cause)                                                                                       \
  "'failure':{'cause':'" cause "','phase':'migrating','stage':'pre_copy','message':'<message>'}"

static void print_summaries(void) {
  static const char *const jobs[] = {
      "{'phase':'succeeded','result':{'running_at':'target','total_time_ms':5012,'downtime_ms':41,"
      "'downtime_error_ms':2,'libvirt_downtime_ms':43,'libvirt_time_ms':4800,"
      "'parts':{'exact':true,'queued_ms':2,'checks_ms':105,'begin_ms':412,'disks_ms':31,'first_pass_ms':3900,"
      "'passes_ms':7,'switch_ms':41,'post_copy_ms':212,'settle_ms':302},'transferred_bytes':1234567890}}",
      "{'phase':'succeeded','progress':null,'result':{'running_at':'target','total_time_ms':5012,"
      "'parts':{'exact':false,'first_pass_ms':5012},'downtime_unknown':'<why>'}}",
      "{'phase':'succeeded','progress':null,'result':{'running_at':'unknown'}}",
      "{'phase':'aborted'," FAILURE(
          "USER_ABORT") ",'result':{'running_at':'source','evidence':'<evidence>'}}",
      "{'phase':'failed','progress':null,'failure':{'cause':'LIBVIRT_ERROR','phase':'preparing','stage':'"
      "none',"
      "'message':'<message>','libvirt_code':38,'libvirt_message':'<libvirt_message>'},"
      "'result':{'running_at':'source'}}",
      "{'phase':'failed','progress':null,'failure':{'cause':'REFUSED','phase':'preparing','message':'CODE: "
      "'},"
      "'findings':[{'code':'CODE','blocks':true,'seen':'What was seen.','remedy':'What would help.'}],"
      "'result':{'running_at':'source'}}",
      "{'phase':'failed','progress':null," FAILURE("LINK_LOST") ",'result':{'running_at':'unknown'}}",
      "{'phase':'failed','progress':null," FAILURE("GUEST_STOPPED") ",'result':{'running_at':'none'}}",
      "{'phase':'failed','progress':null," FAILURE("POST_COPY_FAILED") ",'result':{'running_at':'target'}}",
      "{'direction':'incoming','phase':'succeeded','result':{'total_time_ms':5012}}",
      "{'direction':'incoming','phase':'failed'," FAILURE(
          "LEASE_EXPIRED") ",'result':{'evidence':'<evidence>'}}",
  };

  print_heading("summaries of finished jobs");
  for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
    json_t *json = job_of(jobs[i]);
    JobView job;

    if (job_view_read(json, &job))
      follow_summary(&term, &job);
    json_decref(json);
  }
}

#define FORECAST(way) "'forecast':{'way':'" way "','total_time_ms':14001,'pause_ms':60,'floor_ms':55}"

static void print_progress(void) {
  static const struct {
    const char *changes;
    int64_t received_ms, away_ms;
  } jobs[] = {
      {"{'phase':'pending','progress':null,'pending':{'message':'<message>','queue_position':3}}", 0, -1},
      {"{'phase':'preparing','stage':'none','progress':null}", 0, -1},
      {"{}", 0, -1},
      {"{}", 4000, -1},
      {"{'progress':null}", 0, 7000},
      {"{'abort_requested':true,'progress':null}", 0, -1},
      {"{" FORECAST("pre_copy") "}", 0, -1},
      {"{" FORECAST("stop_and_copy") "}", 0, -1},
      {"{" FORECAST("none") "}", 0, -1},
      {"{'forecast':{'way':'pre_copy','total_time_ms':1}}", 0, -1},
      {"{'stage':'auto_converge','progress':{'throttle_pct':40}}", 0, -1},
      {"{'stage':'stop_and_copy','progress':null}", 0, -1},
      {"{'stage':'post_copy','progress':{'post_copy_requests':77}}", 0, -1},
      {"{'phase':'recovering','progress':null,'deadline_usec_realtime':null}", 0, -1},
  };

  print_heading("progress");
  for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
    json_t *json = job_of(jobs[i].changes);
    ProgressInput input = {.percent = 42,
                           .now_us = 70 * G_USEC_PER_SEC,
                           .received_ms = jobs[i].received_ms,
                           .away_ms = jobs[i].away_ms};
    JobView job;

    input.job = &job;
    if (job_view_read(json, &job)) {
      g_autofree char *line = progress_line(&input);

      printf("%s\n", line);
    }
    json_decref(json);
  }
}

int main(void) {
  term = (Term){.out = stdout, .err = stdout};
  printf("The words of handoffctl. tests/words/update writes this file.\n");
  print_help();
  print_usage_errors();
  print_errors();
  print_causes();
  print_summaries();
  print_progress();
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

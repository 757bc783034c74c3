/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl --help, generated from the tables. */
#include "agent/ctl/ctl.h"

#include <string.h>

/* The options of one verb, given by its bit; 0: those common to all verbs. Options of several verbs are listed under each. */
static void print_options(Term *term, const char *indent, unsigned verbs) {
  for (unsigned i = 0; options_option(i); i++) {
    const OptionInfo *row = options_option(i);
    g_autofree char *text = NULL;

    if (verbs ? !(row->verbs & verbs) : row->verbs != 0)
      continue;
    text = g_strdup_printf("%s%c%s--%s%s%s", row->short_name ? "-" : " ",
                           row->short_name ? row->short_name : ' ', row->short_name ? ", " : "  ", row->name,
                           row->argument ? " " : "", row->argument ? row->argument : "");
    term_print(term, "%s%-*s %s\n", indent, 26, text, row->summary);
  }
}

static void print_verbs(Term *term) {
  for (int i = 0; i < VERB_COUNT; i++) {
    const VerbInfo *verb = options_verb((VerbId)i);
    g_autofree char *synopsis = g_strdup_printf("%s %s", verb->name, verb->arguments);

    term_print(term, "  %-26s %s\n", synopsis, verb->summary);
    print_options(term, "      ", 1u << i);
  }
}

static void print_policy_keys(Term *term) {
  static const char *const tuned_when[] = {
      [MIG_TUNABLE_BEFORE_START] = "",
      [MIG_TUNABLE_TO_NO] =
          "; can be set to no during the migration, and back to yes if it was yes at the start",
      [MIG_TUNABLE_ALWAYS] = "; can be tuned during the migration",
  };

  for (int i = 0; i < MIG_POLICY_KEY_COUNT; i++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)i);
    MigPolicy policy;
    char text[64];
    g_autofree char *range = NULL;

    mig_policy_init(&policy);
    mig_policy_format(&policy, (MigPolicyKey)i, text, sizeof(text));
    switch (info->type) {
    case MIG_POLICY_TYPE_INT:
      range = g_strdup_printf("%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, info->min, info->max);
      break;
    case MIG_POLICY_TYPE_BOOL:
      range = g_strdup("yes or no");
      break;
    case MIG_POLICY_TYPE_ENUM:
      range = g_strjoinv(", ", (char **)info->enum_names);
      break;
    }
    term_print(term, "  %s=%s\n      %s (%s)%s\n", info->name, text, info->summary, range,
               tuned_when[info->tunable]);
  }
}

static void print_statuses(Term *term) {
  const ExitStatusInfo *statuses = exit_status_table();

  term_print(term, "\nExit status:\n");
  for (unsigned i = 0; statuses[i].summary; i++)
    term_print(term, "  %3d  %s\n", (int)statuses[i].status, statuses[i].summary);
}

static const struct {
  VerbId verb;
  const char *line;
} examples[] = {
    {VERB_CHECK, "handoffctl check web1 kvm2"},
    {VERB_FORECAST, "handoffctl forecast web1 kvm2 --bandwidth 100M"},
    {VERB_MIGRATE, "handoffctl migrate web1 qemu+tls://kvm2/system"},
    {VERB_MIGRATE, "handoffctl migrate web1 kvm2 -o max_downtime_ms=100 -o allow_post_copy=yes"},
    {VERB_MIGRATE, "handoffctl migrate web1 kvm2 --detach --request-key drain-17-web1"},
    {VERB_LIST, "handoffctl list --phase unfinished"},
    {VERB_LIST, "handoffctl -j list -a | jq -r '.jobs[] | select(.phase == \"failed\") | .id'"},
    {VERB_SHOW, "handoffctl show web1"},
    {VERB_WATCH, "handoffctl --json watch web1 | jq .job.progress.percent"},
    {VERB_ABORT, "handoffctl abort web1"},
    {VERB_COMPLETE, "handoffctl complete web1 --by pause"},
    {VERB_SETTLE, "handoffctl settle web1 --never-ran"},
    {VERB_TUNE, "handoffctl tune web1 bandwidth_bytes_per_s=500M"},
    {VERB_REPORT, "handoffctl report web1 --svg web1.svg"},
    {VERB_POLICY, "handoffctl policy web1"},
    {VERB_EVALUATE, "handoffctl evaluate"},
    {VERB_EVALUATE,
     "handoffctl -j evaluate web1 | jq -r '.domains[].changes[] | [.remedy, .code, .item] | @tsv'"},
    {VERB_PREPARE, "handoffctl prepare web1 kvm1 --make-disks -o copy_disks=all"},
    {VERB_DRAIN, "handoffctl drain kvm2 kvm3"},
    {VERB_CORDON, "handoffctl cordon disk 3 is failing"},
};

static void print_examples(Term *term, VerbId verb) {
  bool first = true;

  for (size_t i = 0; i < G_N_ELEMENTS(examples); i++) {
    if (verb != VERB_COUNT && examples[i].verb != verb)
      continue;
    term_print(term, "%s  %s\n", first ? "\nExamples:\n" : "", examples[i].line);
    first = false;
  }
}

#define ABOUT_TARGET                                                                                         \
  "TARGET is a libvirt URI (qemu+tls://kvm2/system) or the name of a [Target] in handoffd.conf.\n"
#define ABOUT_JOB       "JOB is a job id or its first digits, or the name or UUID of a domain (its newest job).\n"
#define ABOUT_DETACHING "Ctrl-C while following a migration detaches; the migration continues.\n"
#define ABOUT_POLICY                                                                                         \
  "Policy keys for -o KEY=VALUE and tune, with their defaults. They set the goals of a migration. Sizes "    \
  "take\n"                                                                                                   \
  "the suffixes K, M, G and T; times take ms, s, min and h.\n"

static bool takes_goals(VerbId verb) {
  for (unsigned i = 0; options_option(i); i++)
    if (options_option(i)->short_name == 'o' && (options_option(i)->verbs & (1u << verb)))
      return true;
  return verb == VERB_TUNE;
}

static void print_verb(Term *term, VerbId verb) {
  const VerbInfo *info = options_verb(verb);

  term_print(term, "handoffctl [OPTION...] %s %s\n\n%s\n\nOptions:\n", info->name, info->arguments,
             info->summary);
  print_options(term, "  ", 1u << verb);
  print_options(term, "  ", 0);
  if (strstr(info->arguments, "TARGET") || strstr(info->arguments, "JOB"))
    term_print(term, "\n");
  term_print(term, "%s%s%s", strstr(info->arguments, "TARGET") ? ABOUT_TARGET : "",
             strstr(info->arguments, "JOB") ? ABOUT_JOB : "",
             verb == VERB_MIGRATE || verb == VERB_WATCH || verb == VERB_DRAIN ? ABOUT_DETACHING : "");
  if (takes_goals(verb)) {
    term_print(term, "\n" ABOUT_POLICY);
    print_policy_keys(term);
  }
  print_examples(term, verb);
  term_print(term,
             "\nSee handoffctl(1) for details, and handoffctl --help for all verbs and exit statuses.\n");
}

void help_print(Term *term, VerbId verb) {
  if (verb != VERB_COUNT) {
    print_verb(term, verb);
    return;
  }
  term_print(
      term,
      "handoffctl [OPTION...] VERB [ARGUMENT...]\n\n"
      "Control handoffd, the live-migration agent of this node: migrate running domains to other nodes.\n"
      "handoffctl help VERB describes a single verb.\n\n"
      "Verbs:\n");
  print_verbs(term);
  term_print(term, "\nCommon options:\n");
  print_options(term, "  ", 0);
  term_print(term, "\n" ABOUT_TARGET ABOUT_JOB ABOUT_DETACHING "\n" ABOUT_POLICY);
  print_policy_keys(term);
  print_statuses(term);
  print_examples(term, VERB_COUNT);
}

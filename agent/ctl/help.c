/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handoffctl --help, from the tables. */
#include "agent/ctl/ctl.h"

/* Those of one verb, given by its bit; 0: those of all. An option of several verbs stands under each. */
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
               info->tunable == MIG_TUNABLE_ALWAYS ? "; can be tuned while it moves" : "");
  }
}

void help_print(Term *term) {
  const ExitStatusInfo *statuses = exit_status_table();

  term_print(term, "handoffctl [OPTION...] VERB [ARGUMENT...]\n\n"
                   "Moves running virtual machines by handoffd, the live-migration agent of this node.\n\n"
                   "Verbs:\n");
  print_verbs(term);
  term_print(term, "\nOptions of all verbs:\n");
  print_options(term, "  ", 0);
  term_print(
      term, "\nTARGET is a libvirt URI (qemu+tls://kvm2/system) or the name of a [Target] of handoffd.conf.\n"
            "JOB is an id, the first digits of one, or the name or UUID of a domain (its newest job).\n"
            "Ctrl-C while a move is followed detaches: the move goes on.\n\n"
            "Policy: the goals of a move, for -o KEY=VALUE and tune, with their defaults. Bytes take K, M, G "
            "and T;\n"
            "times ms, s, min and h.\n");
  print_policy_keys(term);
  term_print(term, "\nExit status:\n");
  for (unsigned i = 0; statuses[i].summary; i++)
    term_print(term, "  %3d  %s\n", (int)statuses[i].status, statuses[i].summary);
  term_print(term, "\nExamples:\n"
                   "  handoffctl migrate web1 qemu+tls://kvm2/system\n"
                   "  handoffctl migrate web1 kvm2 -o max_downtime_ms=100 -o allow_post_copy=yes\n"
                   "  handoffctl migrate web1 kvm2 --detach --request-key drain-17-web1\n"
                   "  handoffctl forecast web1 kvm2 --bandwidth 100M\n"
                   "  handoffctl report web1 --svg web1.svg\n"
                   "  handoffctl list --phase unfinished\n"
                   "  handoffctl tune web1 bandwidth_bytes_per_s=500M\n"
                   "  handoffctl --json watch web1 | jq .job.progress.percent\n");
}

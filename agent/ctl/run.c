/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A whole run, from the command line to the exit status. */
#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"

#include <assert.h>

typedef ExitStatus (*VerbRun)(Ctl *ctl);

static const VerbRun runs[] = {
    [VERB_MIGRATE] = verb_migrate,   [VERB_LIST] = verb_list,         [VERB_SHOW] = verb_show,
    [VERB_WATCH] = verb_watch,       [VERB_ABORT] = verb_abort,       [VERB_TUNE] = verb_tune,
    [VERB_NODE] = verb_node,         [VERB_COMPLETE] = verb_complete, [VERB_SETTLE] = verb_settle,
    [VERB_FORECAST] = verb_forecast, [VERB_REPORT] = verb_report,     [VERB_POLICY] = verb_policy,
    [VERB_CORDON] = verb_cordon,     [VERB_UNCORDON] = verb_uncordon, [VERB_CHECK] = verb_check,
    [VERB_METRICS] = verb_metrics,   [VERB_EVALUATE] = verb_evaluate, [VERB_PREPARE] = verb_prepare,
    [VERB_RELEASE] = verb_release,   [VERB_DRAIN] = verb_drain,
};
static_assert(G_N_ELEMENTS(runs) == VERB_COUNT, "a function for each verb");

static ExitStatus run_options(Ctl *ctl, int argc, char **argv) {
  g_autoptr(GError) error = NULL;

  if (!options_parse(&ctl->options, argc, argv, &error)) {
    term_error(&ctl->term, "%s", error->message);
    return EXIT_USAGE;
  }
  if (ctl->options.help) {
    help_print(&ctl->term, ctl->options.help_verb);
    return EXIT_DONE;
  }
  if (ctl->options.version) {
    term_print(&ctl->term, "handoffctl %s\n", HANDOFFD_VERSION);
    return EXIT_DONE;
  }
  return runs[ctl->options.verb](ctl);
}

ExitStatus ctl_run(Ctl *ctl, int argc, char **argv) {
  ExitStatus status = run_options(ctl, argc, argv);

  options_clear(&ctl->options);
  /* Output redirected to a full disk must not look like success. */
  if ((fflush(ctl->term.out) != 0 || ferror(ctl->term.out)) && status == EXIT_DONE) {
    term_error(&ctl->term, "Cannot write the output.");
    status = EXIT_INTERNAL;
  }
  return status;
}

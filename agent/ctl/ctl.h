/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every verb gets, the options and the terminal, and the verbs themselves. */
#pragma once

#include "agent/ctl/exitcode.h"
#include "agent/ctl/options.h"
#include "agent/ctl/term.h"

typedef struct Ctl {
  Options options;
  Term term;
} Ctl;

/* A whole run, from the command line to the exit status. */
ExitStatus ctl_run(Ctl *ctl, int argc, char **argv);

/* Each prints its output, including errors, and returns the exit status. */
ExitStatus verb_migrate(Ctl *ctl);
ExitStatus verb_list(Ctl *ctl);
ExitStatus verb_show(Ctl *ctl);
ExitStatus verb_watch(Ctl *ctl);
ExitStatus verb_abort(Ctl *ctl);
ExitStatus verb_complete(Ctl *ctl);
ExitStatus verb_settle(Ctl *ctl);
ExitStatus verb_tune(Ctl *ctl);
ExitStatus verb_check(Ctl *ctl);
ExitStatus verb_forecast(Ctl *ctl);
ExitStatus verb_report(Ctl *ctl);
ExitStatus verb_policy(Ctl *ctl);
ExitStatus verb_evaluate(Ctl *ctl);
ExitStatus verb_prepare(Ctl *ctl);
ExitStatus verb_release(Ctl *ctl);
ExitStatus verb_drain(Ctl *ctl);
ExitStatus verb_cordon(Ctl *ctl);
ExitStatus verb_uncordon(Ctl *ctl);
ExitStatus verb_metrics(Ctl *ctl);
ExitStatus verb_node(Ctl *ctl);

/* --help for one verb, or for all of them (VERB_COUNT). */
void help_print(Term *term, VerbId verb);

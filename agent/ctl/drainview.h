/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain as the agent described it: its progress on one line, what is news of it, and its end. */
#pragma once

#include "agent/ctl/exitcode.h"
#include "agent/ctl/term.h"

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* All that was told of one drain so far. */
typedef struct DrainView DrainView;

DrainView *drain_view_new(void);
void drain_view_free(DrainView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DrainView, drain_view_free)

/* Takes the parameters of one reply, and prints what is news, a line each (nothing to a NULL `term`). False: they cannot be
 * understood, or are of another drain. */
bool drain_view_take(DrainView *view, json_t *parameters, Term *term);

/* The last reply has come. */
bool drain_view_is_over(const DrainView *view);

/* "5 of 12 moved, 2 moving (web3 45 %, web4 12 %), 4 waiting, 1 cannot move"; with `width` above 0 cut to so many
 * columns. */
char *drain_view_progress(const DrainView *view, unsigned width);

/* What came of each domain, and of all of them. */
void drain_view_summary(const DrainView *view, Term *term);

/* Of one that is over. */
ExitStatus drain_view_status(const DrainView *view);

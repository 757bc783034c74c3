/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain as reported by the agent: its progress on one line, its news and its outcome. */
#pragma once

#include "agent/ctl/exitcode.h"
#include "agent/ctl/term.h"
#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>

/* Everything reported about one drain so far. */
typedef struct DrainView DrainView;

DrainView *drain_view_new(void);
void drain_view_free(DrainView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DrainView, drain_view_free)

/* Takes the parameters of one reply and prints the news, one line each (nothing if `term` is NULL). False: the parameters
 * are invalid or belong to another drain. */
bool drain_view_take(DrainView *view, json_t *parameters, Term *term);

/* The last reply has arrived. */
bool drain_view_is_over(const DrainView *view);

/* "5 of 12 migrated, 2 migrating (web3 45 %, web4 12 %), 4 waiting, 1 cannot be migrated"; truncated to `width` columns
 * if that is above 0. */
char *drain_view_progress(const DrainView *view, unsigned width);

/* Prints the outcome for each domain, and the totals. */
void drain_view_summary(const DrainView *view, Term *term);

/* The exit status for a drain that is over. */
ExitStatus drain_view_status(const DrainView *view);

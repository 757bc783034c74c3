/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a verb could not do what it was asked for: an error of the agent or of the way to it, as text, JSON,
 * status. */
#pragma once

#include "agent/ctl/exitcode.h"
#include "agent/ctl/term.h"

#include <glib.h>
#include <jansson.h>

typedef struct Failure {
  ExitStatus status;
  char *error;        /* full varlink name; those of this program begin with io.handoffd.Ctl */
  json_t *parameters; /* an object */
} Failure;

void failure_clear(Failure *failure);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Failure, failure_clear)

/* From an error that the agent answered. `parameters` may be NULL; takes a reference of its own. */
void failure_set_reply(Failure *failure, const char *error, json_t *parameters);

/* From an error of the client (VARLINK_CLIENT_ERROR). */
void failure_set_client(Failure *failure, const GError *error, const char *socket_path);

typedef enum FailureKind {
  FAILURE_PROTOCOL,  /* the agent answered something that this program does not understand */
  FAILURE_GONE,      /* it went away in the middle, for good */
  FAILURE_TIMED_OUT, /* it does not answer */
  FAILURE_OUTPUT,    /* what was to be written cannot be, or nobody reads it */
  FAILURE_NOTHING,   /* there is nothing of what was asked for */
} FailureKind;

/* From what happened here; `message` says what was seen. */
void failure_set_own(Failure *failure, FailureKind kind, const char *message);

/* A signal came; `what` is true of the world now. */
void failure_set_signal(Failure *failure, int signal_number, const char *what);

/* What was seen, and what would help; ends without a line end. */
char *failure_describe(const Failure *failure);

/* JSON goes to out, text to err. Returns the status. */
ExitStatus failure_report(const Failure *failure, Term *term, bool json);

/* For the tests: names of the errors that have a row, NULL after the last. */
const char *failure_error_name(unsigned row);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why a verb failed: an error from the agent or on the way to it, as text, JSON and exit status. */
#pragma once

#include "agent/ctl/exitcode.h"
#include "agent/ctl/term.h"
#include "proto/json.h"

#include <glib.h>

typedef struct Failure {
  ExitStatus status;
  char *error;        /* full varlink name; handoffctl's own begin with io.handoffd.Ctl */
  json_t *parameters; /* an object */
} Failure;

void failure_clear(Failure *failure);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Failure, failure_clear)

/* From an error reply of the agent. `parameters` may be NULL; takes its own reference. */
void failure_set_reply(Failure *failure, const char *error, json_t *parameters);

/* From a client error (VARLINK_CLIENT_ERROR). */
void failure_set_client(Failure *failure, const GError *error, const char *socket_path);

typedef enum FailureKind {
  FAILURE_PROTOCOL,  /* the reply could not be understood */
  FAILURE_GONE,      /* the agent went away and did not come back */
  FAILURE_TIMED_OUT, /* the agent does not answer */
  FAILURE_OUTPUT,    /* the output cannot be written, or nobody reads it */
  FAILURE_NOTHING,   /* there is nothing to draw */
} FailureKind;

/* From something that happened in handoffctl itself; `message` says what was seen. */
void failure_set_own(Failure *failure, FailureKind kind, const char *message);

/* A signal arrived; `what` describes the situation now. */
void failure_set_signal(Failure *failure, int signal_number, const char *what);

/* What was seen and what would help, without a trailing newline. */
char *failure_describe(const Failure *failure);

/* JSON goes to out, text to err. Returns the status. */
ExitStatus failure_report(const Failure *failure, Term *term, bool json);

/* For the tests: names of the errors that have a row; NULL after the last. */
const char *failure_error_name(unsigned row);

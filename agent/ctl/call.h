/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Talking to the agent: single calls with a timeout, and a stream that survives a restart of the agent. */
#pragma once

#include "agent/ctl/ctl.h"
#include "agent/ctl/failure.h"
#include "proto/json.h"

#include <stdbool.h>

/* Timeout of a single call, including the time to connect. */
#define CALL_TIMEOUT_MS 30000

/* How long a stream tries to reconnect to an agent that went away. */
#define STREAM_RECONNECT_MS 60000

/* One call, one reply. Takes `parameters`. On failure *failure says why; the caller reports it. */
bool ctl_call(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_parameters, Failure *failure);

/* The same, but retried once if the agent goes away before it replies: for calls that are safe to repeat. */
bool ctl_call_again(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_parameters,
                    Failure *failure);

/* One of these two. */
typedef bool (*CtlCall)(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_parameters,
                        Failure *failure);

/* Something in handoffctl itself failed: reports it. */
ExitStatus ctl_fail(Ctl *ctl, FailureKind kind, const char *message);

/* Prints a reply; returns the exit status. */
typedef ExitStatus (*CtlTake)(Ctl *ctl, json_t *reply);

/* A verb that is one call: its reply goes to `take`; a failure is reported. Takes `parameters`. */
ExitStatus ctl_ask(Ctl *ctl, CtlCall call, const char *method, json_t *parameters, CtlTake take);

/* With --json prints the reply as it is. False: print it in words. */
bool ctl_print_json(Ctl *ctl, json_t *reply);

/* What becomes of a stream's replies. */
typedef struct StreamTaker {
  /* Borrows the reply. *ret_done: no more are wanted. False: *failure says why. */
  bool (*take)(gpointer user_data, json_t *reply, bool *ret_done, Failure *failure);
  /* Several times a second, with the time for which the agent has been away, or -1. May be NULL. */
  void (*tick)(gpointer user_data, int64_t away_ms);
  const char *interrupted; /* the situation if a signal arrives */
} StreamTaker;

/* Calls and takes replies until `take` is done. If the agent goes away in between, tries to reconnect and repeats the call. Takes
 * `parameters`. False: *failure says why, which may be a signal. */
bool stream_follow(Ctl *ctl, const char *method, json_t *parameters, const StreamTaker *taker,
                   gpointer user_data, Failure *failure);

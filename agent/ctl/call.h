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

typedef struct Stream Stream;

typedef enum StreamEvent {
  STREAM_REPLY,       /* *ret_parameters is one */
  STREAM_END,         /* *ret_parameters is the last reply */
  STREAM_TICK,        /* nothing arrived within timeout_ms */
  STREAM_INTERRUPTED, /* interrupt_pending() */
  STREAM_FAILED       /* *failure says why */
} StreamEvent;

/* Takes `parameters`. Nothing is sent before the first stream_next(). */
Stream *stream_new(Ctl *ctl, const char *method, json_t *parameters);
void stream_free(Stream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Stream, stream_free)

/* Waits for at most timeout_ms. If the agent goes away, the stream tries to reconnect on each tick and repeats the
 * call. */
StreamEvent stream_next(Stream *stream, int timeout_ms, json_t **ret_parameters, Failure *failure);

/* How long the agent has been away; -1: connected. */
int64_t stream_away_ms(const Stream *stream);

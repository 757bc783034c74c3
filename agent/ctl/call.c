/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Talking to the agent: single calls with a timeout, and a stream that survives a restart of the agent. */
#include "agent/ctl/call.h"
#include "agent/ctl/interrupt.h"
#include "libmigrate/core/plain.h"
#include "proto/client.h"

#include <poll.h>
#include <string.h>

/* How often a wait checks for a signal. */
#define TICK_MS 200

/* How soon a signal that arrived just before a wait is noticed, and how often progress is drawn. */
#define STREAM_TICK_MS 250

#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS  2000

static int64_t now_ms(void) {
  return g_get_monotonic_time() / 1000;
}

static bool send_call(Ctl *ctl, const char *method, json_t *parameters, VarlinkCallFlags flags,
                      VarlinkClient **ret_client, GError **error) {
  g_autoptr(VarlinkClient) client = varlink_client_connect(ctl->options.socket_path, error);

  if (!client)
    return false;
  if (!varlink_client_send(client, method, json_incref(parameters), flags, error))
    return false;
  *ret_client = g_steal_pointer(&client);
  return true;
}

/* True: a reply, possibly an error reply. False without `error`: a signal arrived. */
static bool await_reply(VarlinkClient *client, int64_t until_ms, VarlinkReply *ret_reply, GError **error) {
  while (interrupt_pending() == 0) {
    int64_t left_ms = until_ms - now_ms();
    g_autoptr(GError) local = NULL;

    if (varlink_client_receive(client, (int)CLAMP(left_ms, 0, TICK_MS), ret_reply, &local))
      return true;
    if (g_error_matches(local, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_INTERRUPTED))
      continue;
    if (g_error_matches(local, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_TIMEOUT) && left_ms > 0)
      continue;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
  }
  return false;
}

static void make_plain(json_t *value) {
  json_t *element;
  const char *key;
  size_t i;

  if (json_is_string(value)) {
    g_autofree char *text = g_strdup(json_string_value(value));

    mig_text_make_plain(text);
    if (strcmp(text, json_string_value(value)) != 0)
      json_string_set(value, text);
  }
  json_object_foreach (value, key, element)
    make_plain(element);
  json_array_foreach (value, i, element)
    make_plain(element);
}

/* Keeps names and libvirtd errors on one line. JSON output gets them unchanged, and metrics consist of lines. */
static void make_reply_plain(const Ctl *ctl, const char *method, json_t *parameters) {
  if (!ctl->options.json && !g_str_has_suffix(method, ".GetMetrics"))
    make_plain(parameters);
}

/* The call never reached an agent. */
static bool is_absent(const GError *error) {
  return g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_CONNECT);
}

/* The call may have arrived and may have been carried out. */
static bool is_cut_off(const GError *error) {
  return g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_DISCONNECTED);
}

typedef enum CallResult { CALL_ANSWERED, CALL_SIGNAL, CALL_ERROR } CallResult;

static CallResult call_once(Ctl *ctl, const char *method, json_t *parameters, VarlinkReply *ret_reply,
                            GError **error) {
  int64_t until_ms = now_ms() + CALL_TIMEOUT_MS;
  g_autoptr(VarlinkClient) client = NULL;
  g_autoptr(GError) local = NULL;

  if (send_call(ctl, method, parameters, 0, &client, &local) &&
      await_reply(client, until_ms, ret_reply, &local))
    return CALL_ANSWERED;
  if (!local || interrupt_pending() != 0)
    return CALL_SIGNAL;
  g_propagate_error(error, g_steal_pointer(&local));
  return CALL_ERROR;
}

static void pause_ms(int ms) {
  /* Returns early on a signal, as intended. */
  (void)poll(NULL, 0, ms);
}

static bool call_tries(Ctl *ctl, const char *method, json_t *parameters /* taken */, unsigned repeats,
                       json_t **ret_parameters, Failure *failure) {
  int64_t give_up_ms = now_ms() + STREAM_RECONNECT_MS;
  int backoff_ms = BACKOFF_FIRST_MS;
  unsigned cut_off = 0;
  bool ok = false;

  for (;;) {
    g_auto(VarlinkReply) reply = {0};
    g_autoptr(GError) error = NULL;
    CallResult result = call_once(ctl, method, parameters, &reply, &error);

    if (result == CALL_ANSWERED) {
      make_reply_plain(ctl, method, reply.parameters);
      ok = !reply.error;
      if (ok)
        *ret_parameters = json_incref(reply.parameters);
      else
        failure_set_reply(failure, reply.error, reply.parameters);
      break;
    }
    if (result == CALL_SIGNAL) {
      failure_set_signal(failure, interrupt_pending(), "no answer yet.");
      break;
    }
    if (is_cut_off(error) && cut_off++ == 0 && repeats > 0 && !ctl->options.json)
      term_error(&ctl->term, "Lost the connection to the agent before it answered; retrying.");
    /* Do not wait for an agent that was not running in the first place. */
    if (cut_off == 0 || cut_off > repeats || !(is_cut_off(error) || is_absent(error)) ||
        now_ms() >= give_up_ms) {
      if (repeats > 0 && cut_off > 0)
        failure_set_own(failure, FAILURE_GONE, error->message);
      else
        failure_set_client(failure, error, ctl->options.socket_path);
      break;
    }
    pause_ms(backoff_ms);
    backoff_ms = MIN(backoff_ms * 2, BACKOFF_LAST_MS);
  }
  json_decref(parameters);
  return ok;
}

bool ctl_call(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_parameters, Failure *failure) {
  return call_tries(ctl, method, parameters, 0, ret_parameters, failure);
}

bool ctl_call_again(Ctl *ctl, const char *method, json_t *parameters, json_t **ret_parameters,
                    Failure *failure) {
  return call_tries(ctl, method, parameters, 1, ret_parameters, failure);
}

ExitStatus ctl_fail(Ctl *ctl, FailureKind kind, const char *message) {
  g_auto(Failure) failure = {0};

  failure_set_own(&failure, kind, message);
  return failure_report(&failure, &ctl->term, ctl->options.json);
}

ExitStatus ctl_ask(Ctl *ctl, CtlCall call, const char *method, json_t *parameters, CtlTake take) {
  g_auto(Failure) failure = {0};
  json_t *reply = NULL;
  ExitStatus status;

  if (!call(ctl, method, parameters, &reply, &failure))
    return failure_report(&failure, &ctl->term, ctl->options.json);
  status = take(ctl, reply);
  json_decref(reply);
  return status;
}

bool ctl_print_json(Ctl *ctl, json_t *reply) {
  if (ctl->options.json)
    term_print_json(&ctl->term, reply);
  return ctl->options.json;
}

typedef enum StreamEvent {
  STREAM_REPLY,       /* *ret_parameters is one */
  STREAM_TICK,        /* nothing arrived within STREAM_TICK_MS */
  STREAM_INTERRUPTED, /* interrupt_pending() */
  STREAM_FAILED       /* *failure says why */
} StreamEvent;

typedef struct Stream {
  Ctl *ctl;
  const char *method;
  json_t *parameters;
  VarlinkClient *client;
  bool answered;          /* at least one reply arrived: from then on, wait for an agent that is away */
  bool awaiting_first;    /* no reply on this connection yet */
  int64_t first_until_ms; /* deadline for the first reply */
  int64_t away_since_ms;  /* 0: connected */
  int64_t next_try_ms;
  int backoff_ms;
} Stream;

static int64_t stream_away_ms(const Stream *stream) {
  return stream->away_since_ms ? now_ms() - stream->away_since_ms : -1;
}

/* The connection is lost. False: give up; *failure says why. */
static bool stream_lost(Stream *stream, const GError *error, Failure *failure) {
  g_clear_pointer(&stream->client, varlink_client_free);
  if (!stream->answered) {
    failure_set_client(failure, error, stream->ctl->options.socket_path);
    return false;
  }
  if (!stream->away_since_ms) {
    stream->away_since_ms = now_ms();
    stream->backoff_ms = BACKOFF_FIRST_MS;
  }
  if (stream_away_ms(stream) >= STREAM_RECONNECT_MS) {
    failure_set_own(failure, FAILURE_GONE, error->message);
    return false;
  }
  stream->next_try_ms = now_ms() + stream->backoff_ms;
  stream->backoff_ms = MIN(stream->backoff_ms * 2, BACKOFF_LAST_MS);
  return true;
}

static StreamEvent stream_open(Stream *stream, Failure *failure) {
  int64_t wait_ms = stream->next_try_ms - now_ms();
  g_autoptr(GError) error = NULL;

  if (wait_ms > 0) {
    pause_ms((int)MIN(wait_ms, STREAM_TICK_MS));
    return STREAM_TICK;
  }
  if (send_call(stream->ctl, stream->method, stream->parameters, VARLINK_CALL_MORE, &stream->client,
                &error)) {
    stream->awaiting_first = true;
    stream->first_until_ms = now_ms() + CALL_TIMEOUT_MS;
    return STREAM_TICK;
  }
  if (interrupt_pending() != 0)
    return STREAM_INTERRUPTED;
  if (is_absent(error) || is_cut_off(error) || !stream->answered)
    return stream_lost(stream, error, failure) ? STREAM_TICK : STREAM_FAILED;
  failure_set_client(failure, error, stream->ctl->options.socket_path);
  return STREAM_FAILED;
}

static StreamEvent stream_next(Stream *stream, json_t **ret_parameters, Failure *failure) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (interrupt_pending() != 0)
    return STREAM_INTERRUPTED;
  if (!stream->client) {
    StreamEvent event = stream_open(stream, failure);

    if (!stream->client)
      return event;
  }
  if (varlink_client_receive(stream->client, STREAM_TICK_MS, &reply, &error)) {
    make_reply_plain(stream->ctl, stream->method, reply.parameters);
    if (reply.error) {
      failure_set_reply(failure, reply.error, reply.parameters);
      return STREAM_FAILED;
    }
    stream->answered = true;
    stream->awaiting_first = false;
    stream->away_since_ms = 0;
    *ret_parameters = json_incref(reply.parameters);
    if (reply.continues)
      return STREAM_REPLY;
    /* If the caller asks for more, this was not the real end: the agent is shutting down and will be back. */
    g_clear_pointer(&stream->client, varlink_client_free);
    stream->away_since_ms = now_ms();
    stream->backoff_ms = BACKOFF_LAST_MS;
    stream->next_try_ms = now_ms() + BACKOFF_LAST_MS / 2;
    return STREAM_REPLY;
  }
  if (interrupt_pending() != 0)
    return STREAM_INTERRUPTED;
  if (g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_INTERRUPTED))
    return STREAM_TICK;
  if (g_error_matches(error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_TIMEOUT)) {
    /* Later replies may be arbitrarily far apart, but a healthy agent sends the first one at once. */
    if (!stream->awaiting_first || now_ms() < stream->first_until_ms)
      return STREAM_TICK;
    return stream_lost(stream, error, failure) ? STREAM_TICK : STREAM_FAILED;
  }
  if (is_cut_off(error))
    return stream_lost(stream, error, failure) ? STREAM_TICK : STREAM_FAILED;
  failure_set_client(failure, error, stream->ctl->options.socket_path);
  return STREAM_FAILED;
}

bool stream_follow(Ctl *ctl, const char *method, json_t *parameters, const StreamTaker *taker,
                   gpointer user_data, Failure *failure) {
  Stream stream = {.ctl = ctl, .method = method, .parameters = parameters};
  bool ok = true, done = false;

  while (ok && !done) {
    json_t *reply = NULL;

    switch (stream_next(&stream, &reply, failure)) {
    case STREAM_REPLY:
      ok = taker->take(user_data, reply, &done, failure);
      json_decref(reply);
      break;
    case STREAM_TICK:
      if (taker->tick)
        taker->tick(user_data, stream_away_ms(&stream));
      break;
    case STREAM_INTERRUPTED:
      failure_set_signal(failure, interrupt_pending(), taker->interrupted);
      ok = false;
      break;
    case STREAM_FAILED:
      ok = false;
      break;
    }
    if (ok && !done && taker->tick && term_is_broken(&ctl->term)) {
      failure_set_own(failure, FAILURE_OUTPUT, "Migrations in progress continue.");
      ok = false;
    }
  }
  varlink_client_free(stream.client);
  json_decref(parameters);
  return ok;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls: finds the method, asks whether the peer may call it, sends replies. */
#include "proto/server-private.h"

#include <string.h>

#define SERVICE_ERROR(name) "org.varlink.service." name

#define SCRATCH_KEEP_BYTES ((guint)64 * 1024)

/* Indicates a bug of this program, so no interface has it. */
#define INTERNAL_ERROR SERVICE_ERROR("InternalError")

VarlinkCall *varlink_call_ref(VarlinkCall *call) {
  call->n_refs++;
  return call;
}

void varlink_call_unref(VarlinkCall *call) {
  if (!call)
    return;

  g_return_if_fail(call->n_refs > 0);
  if (--call->n_refs > 0)
    return;

  /* A caller does not wait forever, even if a reply was forgotten. */
  if (call->connection) {
    call->n_refs = 1;
    varlink_call_error(call, INTERNAL_ERROR, json_pack("{s:s}", "method", call->full_name));
  }
  g_ref_string_release(call->full_name);
  g_rc_box_release(call->peer);
  g_free(call);
}

const VarlinkPeer *varlink_call_get_peer(const VarlinkCall *call) {
  return &call->peer->public;
}

const char *varlink_call_get_method(const VarlinkCall *call) {
  return call->full_name;
}

bool varlink_call_wants_more(const VarlinkCall *call) {
  return call->more;
}

bool varlink_call_is_oneway(const VarlinkCall *call) {
  return call->oneway;
}

bool varlink_call_is_open(const VarlinkCall *call) {
  return call->connection && !call->connection->broken && !call->connection->hung_up;
}

size_t varlink_call_get_queued_bytes(const VarlinkCall *call) {
  return call->connection ? call->connection->queued_bytes : 0;
}

void varlink_call_set_hooks(VarlinkCall *call, void (*drained)(VarlinkCall *, gpointer),
                            void (*closed)(VarlinkCall *, gpointer), gpointer user_data) {
  if (!call->connection)
    return;
  call->drained = drained;
  call->closed = closed;
  call->hook_data = user_data;
}

/* There will be no more replies to the call. */
static Connection *detach(VarlinkCall *call) {
  Connection *connection = call->connection;

  call->connection = NULL;
  call->drained = NULL;
  call->closed = NULL;
  call->hook_data = NULL;
  return connection;
}

void call_disconnect(VarlinkCall *call, bool tell) {
  void (*closed)(VarlinkCall *, gpointer) = call->closed;
  gpointer data = call->hook_data;

  detach(call)->call = NULL;
  if (tell && closed) {
    varlink_call_ref(call);
    closed(call, data);
    varlink_call_unref(call);
  }
}

/* Does the reply have to be encoded at all? */
static bool begin_answer(VarlinkCall *call, bool continues) {
  Connection *connection = call->connection;

  if (!connection)
    return false;
  g_return_val_if_fail(!continues || call->more || call->oneway, false);

  /* If the client does not read its stream, the output must not grow without bound, even if the method forgot to check. */
  if (continues && connection_is_clogged(connection)) {
    g_debug("varlink: a client of uid %u does not read its stream of replies",
            (unsigned)call->peer->public.uid);
    connection_break(connection);
  }
  return true;
}

static void end_answer(VarlinkCall *call, const void *data, size_t length, GBytes *owner, bool continues) {
  Connection *connection = call->connection;

  if (!call->oneway)
    connection_send(connection, data, length, owner);
  if (!continues)
    connection_answered(detach(call));
}

/* Frees the buffer of a long reply instead of keeping it for the next one. */
static void end_answer_of_scratch(VarlinkCall *call, bool continues) {
  VarlinkServer *server = call->connection->server;

  end_answer(call, server->scratch->data, server->scratch->len, NULL, continues);
  if (server->scratch->len > SCRATCH_KEEP_BYTES) {
    g_byte_array_unref(server->scratch);
    server->scratch = g_byte_array_new();
  }
}

static GByteArray *scratch(VarlinkCall *call) {
  GByteArray *buffer = call->connection->server->scratch;

  g_byte_array_set_size(buffer, 0);
  return buffer;
}

static void encode_failed(VarlinkCall *call, GByteArray *buffer) {
  g_critical("varlink: cannot encode a reply of %s", call->full_name);
  varlink_encode_error_to(buffer, INTERNAL_ERROR, NULL);
}

void varlink_call_reply(VarlinkCall *call, json_t *parameters, bool continues) {
  if (begin_answer(call, continues)) {
    GByteArray *buffer = scratch(call);

    if (!call->oneway && !varlink_encode_reply_to(buffer, parameters, continues)) {
      encode_failed(call, buffer);
      continues = false;
    }
    end_answer_of_scratch(call, continues);
  }
  json_decref(parameters);
}

void varlink_call_reply_encoded(VarlinkCall *call, GBytes *message, bool continues) {
  size_t length;
  const void *data = g_bytes_get_data(message, &length);

  if (begin_answer(call, continues))
    end_answer(call, data, length, message, continues);
}

void varlink_call_error(VarlinkCall *call, const char *name, json_t *parameters) {
  if (begin_answer(call, false)) {
    GByteArray *buffer = scratch(call);

    if (!call->oneway && !varlink_encode_error_to(buffer, name, parameters))
      encode_failed(call, buffer);
    end_answer_of_scratch(call, false);
  }
  json_decref(parameters);
}

void varlink_call_invalid_parameter(VarlinkCall *call, const char *parameter) {
  varlink_call_error(call, SERVICE_ERROR("InvalidParameter"), json_pack("{s:s}", "parameter", parameter));
}

void varlink_call_permission_denied(VarlinkCall *call) {
  varlink_call_error(call, SERVICE_ERROR("PermissionDenied"), NULL);
}

/* Replies with an error to a message that did not become a call. */
static void refuse(Connection *connection, const VarlinkCallMessage *message, const char *error,
                   const char *key, const char *value) {
  GByteArray *buffer = connection->server->scratch;
  json_t *parameters;

  if (message->oneway)
    return;
  parameters = json_pack("{s:s}", key, value);
  g_byte_array_set_size(buffer, 0);
  varlink_encode_error_to(buffer, error, parameters);
  connection_send(connection, buffer->data, buffer->len, NULL);
  json_decref(parameters);
}

static void refuse_unknown(Connection *connection, const VarlinkCallMessage *message) {
  const char *dot = strrchr(message->method, '.');
  g_autofree char *interface = g_strndup(message->method, dot ? (size_t)(dot - message->method) : 0);

  if (dot && !g_hash_table_contains(connection->server->interfaces, interface))
    refuse(connection, message, SERVICE_ERROR("InterfaceNotFound"), "interface", interface);
  else
    refuse(connection, message, SERVICE_ERROR("MethodNotFound"), "method", message->method);
}

static bool is_authorized(const Connection *connection, const Method *method) {
  VarlinkServer *server = connection->server;

  return method->open_to_all || !server->authorize ||
         server->authorize(&connection->peer->public, method->full_name, server->authorize_data);
}

void call_dispatch(Connection *connection, VarlinkCallMessage *message) {
  const Method *method = g_hash_table_lookup(connection->server->methods, message->method);
  g_autofree char *parameter = NULL;
  VarlinkCall *call;

  if (!method) {
    refuse_unknown(connection, message);
    return;
  }
  if (!method->func || message->upgrade) {
    refuse(connection, message, SERVICE_ERROR("MethodNotImplemented"), "method", method->full_name);
    return;
  }

  call = g_new0(VarlinkCall, 1);
  call->n_refs = 1;
  call->connection = connection;
  call->method = method;
  call->full_name = g_ref_string_acquire(method->full_name);
  call->peer = g_rc_box_acquire(connection->peer);
  call->more = message->more;
  call->oneway = message->oneway;
  connection->call = call;

  if (!is_authorized(connection, method))
    varlink_call_permission_denied(call);
  else if (method->streams && !call->more)
    varlink_call_error(call, SERVICE_ERROR("ExpectedMore"), NULL);
  else if (!varlink_type_check(method->member->type, message->parameters, &parameter) ||
           !varlink_text_check(message->parameters, &parameter))
    varlink_call_invalid_parameter(call, parameter);
  else
    method->func(call, message->parameters, method->service->user_data);
  varlink_call_unref(call);
}

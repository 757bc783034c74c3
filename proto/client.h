/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A blocking varlink client: one connection, with calls one after the other or pipelined. For command-line tools. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct VarlinkClient VarlinkClient;

#define VARLINK_CLIENT_ERROR (varlink_client_error_quark())
GQuark varlink_client_error_quark(void);

typedef enum VarlinkClientError {
  VARLINK_CLIENT_ERROR_CONNECT,      /* could not connect: the message says why */
  VARLINK_CLIENT_ERROR_PERMISSION,   /* the mode of the socket does not allow connect() */
  VARLINK_CLIENT_ERROR_DISCONNECTED, /* the server closed the connection before it replied */
  VARLINK_CLIENT_ERROR_TIMEOUT,
  VARLINK_CLIENT_ERROR_PROTOCOL,   /* the message is not a valid varlink call or reply */
  VARLINK_CLIENT_ERROR_INTERRUPTED /* a signal came while waiting; call again to continue */
} VarlinkClientError;

typedef enum VarlinkCallFlags { VARLINK_CALL_MORE = 1 << 0, VARLINK_CALL_ONEWAY = 1 << 1 } VarlinkCallFlags;

/* One reply. */
typedef struct VarlinkReply {
  json_t *parameters; /* an object; not NULL after success */
  char *error;        /* full name, or NULL */
  bool continues;
} VarlinkReply;

void varlink_reply_clear(VarlinkReply *reply);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VarlinkReply, varlink_reply_clear)

VarlinkClient *varlink_client_connect(const char *path, GError **error);

/* Uses a connected socket. Takes `fd`. */
VarlinkClient *varlink_client_new_for_fd(int fd);

void varlink_client_free(VarlinkClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkClient, varlink_client_free)

int varlink_client_get_fd(const VarlinkClient *client);

/* Sends a call. Takes `parameters` (NULL: {}). A signal does not make it fail: what the socket has not taken is sent with the
 * next receive. If the server has disconnected, the next receive says so, after any replies that it had sent; only a oneway
 * call fails at once. */
bool varlink_client_send(VarlinkClient *client, const char *method, json_t *parameters,
                         VarlinkCallFlags flags, GError **error);

/* Waits at most `timeout_ms` (-1: forever) for the next reply. An error reply counts as success here, with ret_reply->error
 * set. */
bool varlink_client_receive(VarlinkClient *client, int timeout_ms, VarlinkReply *ret_reply, GError **error);

/* Sends one call and waits for its reply. Takes `parameters`. After TIMEOUT or INTERRUPTED the call has been made: continue
 * with varlink_client_receive(). */
bool varlink_client_call(VarlinkClient *client, const char *method, json_t *parameters, int timeout_ms,
                         VarlinkReply *ret_reply, GError **error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A varlink server on a Unix stream socket: connections, limits, dispatch. Knows nothing of handoffd. */
#pragma once

#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct VarlinkServer VarlinkServer;

/* One call of a client. Reference counted; use it only on the thread that runs the server's context. */
typedef struct VarlinkCall VarlinkCall;

/* The client's credentials, from SO_PEERCRED and SO_PEERGROUPS as of its connect(). */
typedef struct VarlinkPeer {
  uid_t uid;
  gid_t gid;
  pid_t pid;
  const gid_t *groups; /* supplementary groups */
  size_t n_groups;
} VarlinkPeer;

/* What org.varlink.service.GetInfo returns. */
typedef struct VarlinkServiceInfo {
  const char *vendor;
  const char *product;
  const char *version;
  const char *url;
} VarlinkServiceInfo;

/* There are two classes of peers, those that the service trusts and strangers. They share nothing that can run out. */
typedef enum VarlinkTrust { VARLINK_TRUSTED, VARLINK_STRANGER, VARLINK_N_TRUSTS } VarlinkTrust;

/* Limits on a class of peers. A client that reaches one gets a named error, has to wait, or loses its own connection, nobody
 * else's. 0 means the default: the first number is for trusted peers, the second for strangers. */
typedef struct VarlinkPeerLimits {
  /* 256 KiB, 64 KiB: one incoming message; a longer one ends the connection. */
  size_t max_message_bytes;
  /* 4 MiB, 256 KiB: unsent output of one connection; beyond it the server reads no more calls from it. */
  size_t max_queued_bytes;
  /* 4096, 128 */
  unsigned max_connections;
  /* 1024, 16 */
  unsigned max_connections_per_uid;
  /* 16 MiB, 8 MiB: input buffered for the whole class; beyond it, messages that have begun are read one at a time. */
  size_t max_input_bytes;
  /* 48 MiB, 8 MiB: unsent output of the whole class; beyond it, the connection that holds most is closed. */
  size_t max_output_bytes;
  /* 10,000, 5,000: time for the class in one round of the loop; a call that has begun may exceed it. */
  unsigned max_round_us;
  /* 0, 250: a connection that sent an invalid call is closed only after this time, which slows repeated attempts down. */
  unsigned linger_ms;
} VarlinkPeerLimits;

typedef struct VarlinkLimits {
  VarlinkPeerLimits of[VARLINK_N_TRUSTS];
  unsigned
      partial_message_timeout_ms; /* 30,000: a message that is not complete by then ends the connection */
} VarlinkLimits;

/* Handles one call. `parameters` is borrowed, has been checked against the interface, and is an object in normal form: null
 * fields are absent, an int is a JSON integer and a float a JSON real, whatever the client sent. The function replies at once,
 * or keeps a reference to the call and replies later. If a call is released without a reply, the server answers it with
 * org.varlink.service.InternalError(method). The function must not run the server's context or free the server. */
typedef void (*VarlinkMethodFunc)(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* May this peer call this method? Asked before the parameters are checked, and only for methods that are implemented. Not
 * asked for org.varlink.service, which is open to all. */
typedef bool (*VarlinkAuthorizeFunc)(const VarlinkPeer *peer, const char *method, gpointer user_data);

/* Which class is this peer in? Asked once, when it connects. */
typedef VarlinkTrust (*VarlinkTrustFunc)(const VarlinkPeer *peer, gpointer user_data);

typedef struct VarlinkMethod {
  const char *name;       /* without the interface: "Start" */
  VarlinkMethodFunc func; /* NULL: answered with MethodNotImplemented */
  bool streams;           /* replies more than once; a call without `more` gets ExpectedMore */
} VarlinkMethod;

/* `context` is borrowed for the lifetime of the server. `info` and `limits` are copied; `limits` may be NULL. */
VarlinkServer *varlink_server_new(GMainContext *context, const VarlinkServiceInfo *info,
                                  const VarlinkLimits *limits);

/* Closes all connections. Replies to calls that are still referenced then do nothing. NULL is fine. */
void varlink_server_free(VarlinkServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkServer, varlink_server_free)

void varlink_server_set_authorize(VarlinkServer *server, VarlinkAuthorizeFunc func, gpointer user_data);

/* Without it, all peers are trusted. */
void varlink_server_set_trust(VarlinkServer *server, VarlinkTrustFunc func, gpointer user_data);

/* Sets the error that a client gets, before it is disconnected, if a limit on connections is reached: its full name. It has
 * the parameter `limit: int`. Without this, the client is only disconnected. */
void varlink_server_set_overload_error(VarlinkServer *server, const char *name);

/* Serves an interface. `description` is the text of the interface file; it and `methods` are borrowed for the lifetime of the
 * server. Methods of the interface that are not in `methods` return MethodNotImplemented. It is an error if `methods` has one
 * that the interface does not have. */
bool varlink_server_add_interface(VarlinkServer *server, const char *description,
                                  const VarlinkMethod *methods, size_t n_methods, gpointer user_data,
                                  GError **error);

/* Accepts connections on a socket that is already listening (socket activation). Takes `fd`. May be called more than once. */
bool varlink_server_listen_fd(VarlinkServer *server, int fd, GError **error);

/* Creates a socket at `path` with `mode`, and with group `gid` unless it is (gid_t)-1. Replaces a stale socket file. Fails if
 * another server is listening there, or if the file is not a socket. */
bool varlink_server_listen_path(VarlinkServer *server, const char *path, mode_t mode, gid_t gid,
                                GError **error);

unsigned varlink_server_get_n_connections(const VarlinkServer *server);

/* Input not handled yet plus output not sent yet, over all connections of a class. */
size_t varlink_server_get_buffered_bytes(const VarlinkServer *server, VarlinkTrust trust);

VarlinkCall *varlink_call_ref(VarlinkCall *call);
void varlink_call_unref(VarlinkCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkCall, varlink_call_unref)

const VarlinkPeer *varlink_call_get_peer(const VarlinkCall *call);
const char *varlink_call_get_method(const VarlinkCall *call); /* "io.handoffd.Agent.Start" */
bool varlink_call_wants_more(const VarlinkCall *call);
bool varlink_call_is_oneway(const VarlinkCall *call);

/* False once the client has disconnected or the call has its last reply. */
bool varlink_call_is_open(const VarlinkCall *call);

/* Replies. Takes `parameters` (NULL: {}). With `continues`, more replies follow. Does nothing if the call is not open. For a
 * oneway call, replies and errors are discarded. Runs no hook and no method. A stream that goes on while more than
 * max_queued_bytes are unsent loses its connection. */
void varlink_call_reply(VarlinkCall *call, json_t *parameters, bool continues);

/* The same with a message that varlink_encode_reply() has encoded, so that many watchers can share it. `continues` must match
 * the message. */
void varlink_call_reply_encoded(VarlinkCall *call, GBytes *message, bool continues);

/* Replies with an error, by its full name. Takes `parameters` (NULL: {}). */
void varlink_call_error(VarlinkCall *call, const char *name, json_t *parameters);

void varlink_call_invalid_parameter(VarlinkCall *call, const char *parameter);
void varlink_call_permission_denied(VarlinkCall *call);

/* Bytes of this call's connection that the kernel has not taken yet. */
size_t varlink_call_get_queued_bytes(const VarlinkCall *call);

/* `drained` is called when queued output has been sent completely; `closed` when the client disconnects before the last reply.
 * Either may be NULL. Both are cleared once the call has its last reply. */
void varlink_call_set_hooks(VarlinkCall *call, void (*drained)(VarlinkCall *, gpointer),
                            void (*closed)(VarlinkCall *, gpointer), gpointer user_data);

/* Encodes a reply as it goes over the wire, including its NUL. Takes `parameters`. */
GBytes *varlink_encode_reply(json_t *parameters, bool continues);

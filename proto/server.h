/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A varlink server on a Unix stream socket: connections, limits, dispatch. Knows nothing of handoffd. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct VarlinkServer VarlinkServer;

/* One call that a client made and that has not been answered yet. Reference counted; everything that is
 * done with it is done on the thread that runs the server's context. */
typedef struct VarlinkCall VarlinkCall;

/* Who is at the other end, by SO_PEERCRED and SO_PEERGROUPS at the time of connect(). */
typedef struct VarlinkPeer {
  uid_t uid;
  gid_t gid;
  pid_t pid;
  const gid_t *groups; /* supplementary groups */
  size_t n_groups;
} VarlinkPeer;

/* What org.varlink.service.GetInfo tells. */
typedef struct VarlinkServiceInfo {
  const char *vendor;
  const char *product;
  const char *version;
  const char *url;
} VarlinkServiceInfo;

/* Peers come in two classes, which share nothing that can run out: those whom the service trusts, and strangers. */
typedef enum VarlinkTrust { VARLINK_TRUSTED, VARLINK_STRANGER, VARLINK_N_TRUSTS } VarlinkTrust;

/* What the peers of a class may take. Each can be reached by a client; reaching it is answered by a named error, makes
 * it wait, or ends that client's connection only. 0 takes the default: the first number for trusted peers, the second for
 * strangers. */
typedef struct VarlinkPeerLimits {
  /* 256 KiB, 64 KiB: one message in; longer ones end the connection. */
  size_t max_message_bytes;
  /* 4 MiB, 256 KiB: unsent output of a connection past which it reads no more calls. */
  size_t max_queued_bytes;
  /* 4096, 128 */
  unsigned max_connections;
  /* 1024, 16 */
  unsigned max_connections_per_uid;
  /* 16 MiB, 8 MiB: received by all of them; past it, messages that have begun go on one after the other. */
  size_t max_input_bytes;
  /* 48 MiB, 8 MiB: unsent, of all of them; past it, whoever holds most is disconnected. */
  size_t max_output_bytes;
  /* 10,000, 5,000: in one round of the loop, but for the call that is being handled then. */
  unsigned max_round_us;
  /* 0, 250: who sent what is no call is disconnected after so long, and cannot do it again before. */
  unsigned linger_ms;
} VarlinkPeerLimits;

typedef struct VarlinkLimits {
  VarlinkPeerLimits of[VARLINK_N_TRUSTS];
  unsigned partial_message_timeout_ms; /* 30,000: half a message and then silence ends the connection */
} VarlinkLimits;

/* Handles one call. `parameters` is borrowed, has been checked against the interface, and is an object in its
 * normal form: fields that were null are absent, an int is a JSON integer and a float a JSON real, however they
 * came. The function answers at once or keeps a reference of the call and answers later; a call that is released
 * unanswered is answered by the server with org.varlink.service.InternalError(method). It runs no loop of the
 * server's context and does not free the server. */
typedef void (*VarlinkMethodFunc)(VarlinkCall *call, json_t *parameters, gpointer user_data);

/* May this peer make this call? Asked before the parameters are looked at, of methods that are served; not of
 * org.varlink.service, which is open to all. */
typedef bool (*VarlinkAuthorizeFunc)(const VarlinkPeer *peer, const char *method, gpointer user_data);

/* Which class is it of? Asked once, when it connects. */
typedef VarlinkTrust (*VarlinkTrustFunc)(const VarlinkPeer *peer, gpointer user_data);

typedef struct VarlinkMethod {
  const char *name;       /* without the interface: "Start" */
  VarlinkMethodFunc func; /* NULL: answered with MethodNotImplemented */
  bool streams;           /* answers more than once, so that a call without `more` gets ExpectedMore */
} VarlinkMethod;

/* `context` is borrowed for the life of the server; `info` and `limits` are copied (limits may be NULL). */
VarlinkServer *varlink_server_new(GMainContext *context, const VarlinkServiceInfo *info,
                                  const VarlinkLimits *limits);

/* Closes all connections; calls that are kept somewhere become unanswerable, which is no error. NULL is fine.
 */
void varlink_server_free(VarlinkServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkServer, varlink_server_free)

void varlink_server_set_authorize(VarlinkServer *server, VarlinkAuthorizeFunc func, gpointer user_data);

/* Without it all are trusted. */
void varlink_server_set_trust(VarlinkServer *server, VarlinkTrustFunc func, gpointer user_data);

/* What a client is answered that comes when a limit on connections is reached, before it is disconnected: an
 * error by its full name, with the parameter `limit: int`. Without a name it is only disconnected. */
void varlink_server_set_overload_error(VarlinkServer *server, const char *name);

/* Serves an interface. `description` is the text of the interface file; it and `methods` are borrowed for the
 * life of the server. Methods of the interface that `methods` does not name answer MethodNotImplemented; a
 * method there that the interface does not have is an error. */
bool varlink_server_add_interface(VarlinkServer *server, const char *description,
                                  const VarlinkMethod *methods, size_t n_methods, gpointer user_data,
                                  GError **error);

/* Accepts on a socket that listens already (socket activation). Takes `fd`. May be called more than once. */
bool varlink_server_listen_fd(VarlinkServer *server, int fd, GError **error);

/* Makes a socket at `path` with `mode` (and group `gid`, unless it is (gid_t)-1). A stale socket file is
 * replaced; a live one (somebody accepts there) or a file that is no socket is an error. */
bool varlink_server_listen_path(VarlinkServer *server, const char *path, mode_t mode, gid_t gid,
                                GError **error);

unsigned varlink_server_get_n_connections(const VarlinkServer *server);

/* What is held for all connections of a class: received and not taken yet, sent and not gone yet. */
size_t varlink_server_get_buffered_bytes(const VarlinkServer *server, VarlinkTrust trust);

VarlinkCall *varlink_call_ref(VarlinkCall *call);
void varlink_call_unref(VarlinkCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(VarlinkCall, varlink_call_unref)

const VarlinkPeer *varlink_call_get_peer(const VarlinkCall *call);
const char *varlink_call_get_method(const VarlinkCall *call); /* "io.handoffd.Agent.Start" */
bool varlink_call_wants_more(const VarlinkCall *call);
bool varlink_call_is_oneway(const VarlinkCall *call);

/* False once the client is gone or the call has been answered for good. */
bool varlink_call_is_open(const VarlinkCall *call);

/* Answers. Takes `parameters` (NULL: {}). With `continues` more answers follow. Does nothing on a call that
 * is not open. A oneway call swallows answers and errors alike. No hook and no method runs within it. A stream
 * that answers on while more than max_queued_bytes wait loses its connection. */
void varlink_call_reply(VarlinkCall *call, json_t *parameters, bool continues);

/* The same with a whole message that was encoded before by varlink_encode_reply(), so that many watchers
 * share one encoding. `continues` must be what the message says. */
void varlink_call_reply_encoded(VarlinkCall *call, GBytes *message, bool continues);

/* Answers with an error, by its full name. Takes `parameters` (NULL: {}). */
void varlink_call_error(VarlinkCall *call, const char *name, json_t *parameters);

void varlink_call_invalid_parameter(VarlinkCall *call, const char *parameter);
void varlink_call_permission_denied(VarlinkCall *call);

/* Output of this call's connection that the kernel has not taken yet. */
size_t varlink_call_get_queued_bytes(const VarlinkCall *call);

/* `drained` is called when the output has gone out after it was not; `closed` when the client went away
 * before the last answer. Either may be NULL. Cleared once the call is answered for good. */
void varlink_call_set_hooks(VarlinkCall *call, void (*drained)(VarlinkCall *, gpointer),
                            void (*closed)(VarlinkCall *, gpointer), gpointer user_data);

/* A reply as the bytes that go over the wire, with its NUL. Takes `parameters`. */
GBytes *varlink_encode_reply(json_t *parameters, bool continues);

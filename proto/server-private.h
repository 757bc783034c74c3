/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of the server: server.c, listen.c, service.c, connection.c, output.c and call.c. */
#pragma once

#include "proto/framing.h"
#include "proto/idl.h"
#include "proto/message.h"
#include "proto/server.h"

#include <stdint.h>

typedef struct Connection Connection;
typedef struct Listener Listener;

/* What an epoll event points to. */
typedef enum PollKind { POLL_LISTENER, POLL_CONNECTION } PollKind;

typedef struct Poll {
  PollKind kind;
  int fd;
} Poll;

struct Listener {
  Poll poll;
  bool waited_for; /* a client is connecting */
  char *path;      /* NULL: we did not create the socket file, so we do not remove it */
  dev_t dev;
  ino_t ino;
};

/* One served interface. */
typedef struct Service {
  VarlinkInterface *interface;
  const char *description; /* borrowed */
  gpointer user_data;
} Service;

/* One method of a service. Calls find it by its full name. */
typedef struct Method {
  char *full_name; /* a GRefString, shared with the calls, which may outlive the server */
  const VarlinkMember *member;
  VarlinkMethodFunc func;
  bool streams;
  bool open_to_all; /* org.varlink.service: needs no authorization */
  const Service *service;
} Method;

/* A connection's link in one of the lists of its class. */
typedef struct Link {
  Connection *next;
  Connection *previous;
  bool linked;
} Link;

typedef enum ListKind {
  LIST_ALL,
  LIST_EVENTS,
  LIST_READY,
  LIST_PARTIAL,
  LIST_STARVED,
  LIST_LINGER,
  N_LISTS
} ListKind;

typedef struct List {
  Connection *first;
  Connection *last;
  size_t length;
} List;

/* The connections of all trusted peers, or of all strangers. */
typedef struct PeerClass {
  VarlinkPeerLimits limits;
  GHashTable *uids; /* uid → number of connections */
  List lists[N_LISTS];
  size_t input_bytes;  /* allocated by framings */
  size_t output_bytes; /* in chunks, including their overhead */
} PeerClass;

struct VarlinkServer {
  GMainContext *context;
  GSource *source; /* the main loop sees a single fd, whatever the number of connections */
  int epoll_fd;
  VarlinkServiceInfo info;
  unsigned partial_message_timeout_ms;
  char *overload_error;
  VarlinkAuthorizeFunc authorize;
  gpointer authorize_data;
  VarlinkTrustFunc trust;
  gpointer trust_data;
  GPtrArray *listeners;
  GPtrArray *services;    /* in the order in which GetInfo lists them */
  GHashTable *methods;    /* full name → Method */
  GHashTable *interfaces; /* name → Service */
  PeerClass classes[VARLINK_N_TRUSTS];
  bool dispatching;
  Connection *graveyard; /* closed in this round; events already fetched may still point to them */
  bool accepting;        /* false: out of descriptors, retrying at `accept_again_us` */
  int64_t accept_again_us;
  bool memory_lent;     /* much has been buffered since memory was last given back */
  int64_t give_back_us; /* when to give memory back; 0: not planned */
  int64_t gave_back_us; /* when it was last given back */
  bool accept_failed;   /* the failure has been logged; not again until accept() has succeeded */
  GByteArray *scratch;  /* the message being encoded */
  GByteArray *cork;     /* collected replies of the connection being handled */
  char *read_buffer;    /* READ_BYTES, for the connection being read */
};

#define READ_BYTES ((size_t)64 * 1024)

/* A reference counted box, shared by a connection and its calls, since a call may outlive its connection. */
typedef struct Peer {
  VarlinkPeer public;
  gid_t groups[];
} Peer;

/* Output that the kernel has not taken yet. */
typedef struct Chunk {
  GBytes *bytes;
  size_t offset;
} Chunk;

struct Connection {
  Poll poll;
  uint32_t events; /* as registered with epoll */
  VarlinkServer *server;
  PeerClass *class;
  Link links[N_LISTS];
  uint32_t pending_events; /* in LIST_EVENTS: fetched but not handled yet */
  Connection *next_dead;
  Peer *peer;
  VarlinkFraming framing;
  size_t input_bytes;  /* of the framing, as counted in the class */
  VarlinkCall *call;   /* the call in progress; not a reference */
  GArray *output;      /* of Chunk; NULL while nothing is queued */
  size_t output_first; /* chunks before this one have been sent */
  size_t queued_bytes;
  size_t output_bytes;      /* as counted in the class: a chunk counts in full until its last byte is sent */
  bool corked;              /* its replies are being collected in the server's cork */
  int64_t partial_until_us; /* in LIST_PARTIAL: deadline for completing the message */
  int64_t linger_until_us;  /* in LIST_LINGER: when it is closed; nothing is read until then */
  bool peer_wrote_all;      /* the peer will send no more, but may still read */
  bool gave_up;             /* the peer sent an invalid call: nothing more is read */
  bool hung_up;             /* the peer is gone */
  bool broken;              /* to be closed in the next round */
};

struct VarlinkCall {
  int n_refs;
  Connection *connection; /* NULL: closed, or the last reply has been sent */
  const Method *method;   /* valid only while there is a connection */
  char *full_name;
  Peer *peer;
  bool more;
  bool oneway;
  void (*drained)(VarlinkCall *, gpointer);
  void (*closed)(VarlinkCall *, gpointer);
  gpointer hook_data;
};

/* server.c */
void list_add(ListKind kind, Connection *connection);
void list_remove(ListKind kind, Connection *connection);

/* listen.c */
void server_accept(VarlinkServer *server, Listener *listener);
void server_resume_accepting(VarlinkServer *server);
void uid_release(PeerClass *class, uid_t uid);
void listener_free(gpointer data);

/* service.c */
bool service_add(VarlinkServer *server);

/* connection.c */
bool connection_new(VarlinkServer *server, PeerClass *class, int fd, Peer *peer);
void connection_close(Connection *connection, bool tell);
void connection_free(Connection *connection);
void connection_handle_event(Connection *connection, uint32_t events);
void connection_continue(Connection *connection);
void connection_end_linger(Connection *connection);
void connection_feed_starved(PeerClass *class);
void connection_watch_output(Connection *connection);
void connection_answered(Connection *connection);
void connection_break(Connection *connection);
bool connection_is_clogged(const Connection *connection);

/* output.c */
void connection_send(Connection *connection, const void *data, size_t length, GBytes *owner);
void connection_flush(Connection *connection);
void connection_cork(Connection *connection);
void connection_uncork(Connection *connection);
void connection_clear_output(Connection *connection);

/* call.c */
void call_dispatch(Connection *connection, VarlinkCallMessage *message);
void call_disconnect(VarlinkCall *call, bool tell);

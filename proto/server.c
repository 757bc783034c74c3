/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The varlink server: its lists, its event source, and the interfaces that it serves. */
#include "proto/server-private.h"

#include <errno.h>
#include <gio/gio.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Theory of Operation
 *
 * The server is one GSource on one epoll descriptor. GLib's loop looks at every source and every descriptor in each round, so
 * one source per connection would slow down every call once there are thousands of watchers. epoll returns only what is ready.
 *
 * One round (dispatch): fetch events and put the connections that have one into LIST_EVENTS. Then each class of peers has its
 * turn, the trusted ones first: connections with events, and in between those that can go on without one (LIST_READY). The time
 * of a class is limited, and whoever is left is first in the next round; so neither the program's timers nor the other class
 * wait for long, whatever one class sends. After that: end connections whose message took too long (LIST_PARTIAL, which is in
 * order of its deadlines because all have the same timeout; so is LIST_LINGER); read on where there was no room (LIST_STARVED);
 * accept (listen.c), also after descriptors had run out; free what was closed. Methods run only within a round. They may reply
 * from anywhere on the same thread. */

#define EVENTS_AT_ONCE 128

/* Events take little time. Long work is done when a connection is taken from LIST_READY. */
#define EVENTS_FOR_ONE_READY 8

/* Once this much has been buffered at a time, it is worth giving the memory back. */
#define MUCH_BYTES         ((size_t)4 << 20)
#define GIVE_BACK_PAUSE_US G_USEC_PER_SEC

typedef struct ServerSource {
  GSource source;
  VarlinkServer *server;
  gpointer tag;
} ServerSource;

void list_add(ListKind kind, Connection *connection) {
  List *list = &connection->class->lists[kind];
  Link *link = &connection->links[kind];

  if (link->linked)
    return;
  *link = (Link){.previous = list->last, .linked = true};
  if (list->last)
    list->last->links[kind].next = connection;
  else
    list->first = connection;
  list->last = connection;
  list->length++;
}

void list_remove(ListKind kind, Connection *connection) {
  List *list = &connection->class->lists[kind];
  Link *link = &connection->links[kind];

  if (!link->linked)
    return;
  if (link->previous)
    link->previous->links[kind].next = link->next;
  else
    list->first = link->next;
  if (link->next)
    link->next->links[kind].previous = link->previous;
  else
    list->last = link->previous;
  *link = (Link){0};
  list->length--;
}

/* When there is something to do without an event, or -1. */
static int64_t next_deadline(const VarlinkServer *server) {
  int64_t deadline = -1;

  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++) {
    const List *lists = server->classes[i].lists;
    const Connection *partial = lists[LIST_PARTIAL].first;
    const Connection *lingering = lists[LIST_LINGER].first;

    if (lists[LIST_READY].first || lists[LIST_EVENTS].first)
      return 0;
    if (partial && (deadline < 0 || partial->partial_until_us < deadline))
      deadline = partial->partial_until_us;
    if (lingering && (deadline < 0 || lingering->linger_until_us < deadline))
      deadline = lingering->linger_until_us;
  }
  if (!server->accepting && (deadline < 0 || server->accept_again_us < deadline))
    deadline = server->accept_again_us;
  if (server->give_back_us > 0 && (deadline < 0 || server->give_back_us < deadline))
    deadline = server->give_back_us;
  return deadline;
}

static gboolean source_prepare(GSource *source, int *ret_timeout_ms) {
  int64_t deadline = next_deadline(((ServerSource *)source)->server);
  int64_t now;

  *ret_timeout_ms = -1;
  if (deadline < 0)
    return FALSE;
  now = deadline > 0 ? g_source_get_time(source) : 0;
  if (deadline <= now)
    return TRUE;
  *ret_timeout_ms = (int)MIN((deadline - now + 999) / 1000, G_MAXINT);
  return FALSE;
}

static gboolean source_check(GSource *source) {
  const ServerSource *self = (ServerSource *)source;
  int64_t deadline = next_deadline(self->server);

  return g_source_query_unix_fd(source, self->tag) != 0 ||
         (deadline >= 0 && deadline <= g_source_get_time(source));
}

static void end_late_messages(PeerClass *class) {
  Connection *connection;

  while ((connection = class->lists[LIST_PARTIAL].first) &&
         connection->partial_until_us <= g_get_monotonic_time()) {
    g_debug("varlink: a client of uid %u did not finish its message in time",
            (unsigned)connection->peer->public.uid);
    connection_close(connection, true);
  }
  while ((connection = class->lists[LIST_LINGER].first) &&
         connection->linger_until_us <= g_get_monotonic_time())
    connection_end_linger(connection);
}

static void bury(VarlinkServer *server) {
  while (server->graveyard) {
    Connection *connection = server->graveyard;

    server->graveyard = connection->next_dead;
    connection_free(connection);
  }
}

/* Puts events into a list of our own: otherwise epoll would report the same connections first each time, and those for which
 * the time is too short would never get their turn. */
static void fetch_events(VarlinkServer *server) {
  struct epoll_event events[EVENTS_AT_ONCE];
  int n = epoll_wait(server->epoll_fd, events, EVENTS_AT_ONCE, 0);

  for (int i = 0; i < n; i++) {
    Poll *poll = events[i].data.ptr;

    if (poll->kind == POLL_LISTENER) {
      ((Listener *)poll)->waited_for = true;
    } else {
      Connection *connection = (Connection *)poll;

      connection->pending_events |= events[i].events;
      list_add(LIST_EVENTS, connection);
    }
  }
}

/* Runs after the other events: by then clients that hung up have made room. */
static void accept_new(VarlinkServer *server) {
  for (guint i = 0; i < server->listeners->len; i++) {
    Listener *listener = server->listeners->pdata[i];

    if (listener->waited_for)
      server_accept(server, listener);
    listener->waited_for = false;
  }
}

static void handle_next_event(PeerClass *class) {
  Connection *connection = class->lists[LIST_EVENTS].first;
  uint32_t events = connection->pending_events;

  list_remove(LIST_EVENTS, connection);
  connection->pending_events = 0;
  connection_handle_event(connection, events);
}

/* Handles each connection in turn; small calls overtake long ones. What becomes ready meanwhile waits for the next round,
 * behind the events of the others. */
static void run_class(PeerClass *class) {
  int64_t until_us = g_get_monotonic_time() + class->limits.max_round_us;
  size_t n_ready = class->lists[LIST_READY].length;

  while (n_ready > 0 || class->lists[LIST_EVENTS].first) {
    for (unsigned i = 0; i < EVENTS_FOR_ONE_READY && class->lists[LIST_EVENTS].first; i++)
      handle_next_event(class);
    /* Fewer may be left: handling an event may close one of them. */
    if (n_ready > 0 && class->lists[LIST_READY].first) {
      n_ready--;
      connection_continue(class->lists[LIST_READY].first);
    } else {
      n_ready = 0;
    }
    if (g_get_monotonic_time() >= until_us)
      break;
  }
}

/* The C library keeps what was freed in small pieces, unless it is told to look for whole free pages. That takes some
 * milliseconds, so it is not done after each burst. */
static void give_memory_back(VarlinkServer *server) {
  int64_t now_us = g_get_monotonic_time();
  size_t held = 0;

  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++)
    held += server->classes[i].input_bytes + server->classes[i].output_bytes;
  if (held > MUCH_BYTES)
    server->memory_lent = true;
  server->give_back_us = server->memory_lent && held < MUCH_BYTES / 4
                             ? MAX(now_us, server->gave_back_us + GIVE_BACK_PAUSE_US)
                             : 0;
  if (server->give_back_us == 0 || server->give_back_us > now_us)
    return;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  server->memory_lent = false;
  server->give_back_us = 0;
  server->gave_back_us = now_us;
}

static gboolean source_dispatch(GSource *source, GSourceFunc callback, gpointer user_data) {
  VarlinkServer *server = ((ServerSource *)source)->server;

  g_return_val_if_fail(!server->dispatching, G_SOURCE_CONTINUE);
  server->dispatching = true;
  fetch_events(server);
  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++) {
    PeerClass *class = &server->classes[i];

    run_class(class);
    end_late_messages(class);
    connection_feed_starved(class);
  }
  accept_new(server);
  if (!server->accepting && server->accept_again_us <= g_get_monotonic_time())
    server_resume_accepting(server);
  bury(server);
  give_memory_back(server);
  server->dispatching = false;
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs source_funcs = {
    .prepare = source_prepare,
    .check = source_check,
    .dispatch = source_dispatch,
};

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* The largest call that makes sense, a drain to 64 targets, has some 130 KiB. jansson takes some 15 ms for each MiB of one
 * string. The limit on the input of strangers is what all of them can send at once. */
static const VarlinkPeerLimits default_limits[] = {
    [VARLINK_TRUSTED] = {.max_message_bytes = KIB(256),
                         .max_queued_bytes = MIB(4),
                         .max_connections = 4096,
                         .max_connections_per_uid = 1024,
                         .max_input_bytes = MIB(16),
                         .max_output_bytes = MIB(48),
                         .max_round_us = 10000},
    [VARLINK_STRANGER] = {.max_message_bytes = KIB(64),
                          .max_queued_bytes = KIB(256),
                          .max_connections = 128,
                          .max_connections_per_uid = 16,
                          .max_input_bytes = MIB(8),
                          .max_output_bytes = MIB(8),
                          .max_round_us = 5000,
                          .linger_ms = 250},
};

#define OR_DEFAULT(field)                                                                                    \
  if (limits->field == 0)                                                                                    \
  limits->field = otherwise->field

static void fill_in(VarlinkPeerLimits *limits, const VarlinkPeerLimits *otherwise) {
  OR_DEFAULT(max_message_bytes);
  OR_DEFAULT(max_queued_bytes);
  OR_DEFAULT(max_connections);
  OR_DEFAULT(max_connections_per_uid);
  OR_DEFAULT(max_input_bytes);
  OR_DEFAULT(max_output_bytes);
  OR_DEFAULT(max_round_us);
  OR_DEFAULT(linger_ms);
}

static void set_limits(VarlinkServer *server, const VarlinkLimits *wanted) {
  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++) {
    PeerClass *class = &server->classes[i];

    if (wanted)
      class->limits = wanted->of[i];
    fill_in(&class->limits, &default_limits[i]);
    class->uids = g_hash_table_new(NULL, NULL);
  }
  server->partial_message_timeout_ms =
      wanted && wanted->partial_message_timeout_ms > 0 ? wanted->partial_message_timeout_ms : 30000;
}

static void service_free(gpointer data) {
  Service *service = data;

  varlink_interface_free(service->interface);
  g_free(service);
}

static void method_free(gpointer data) {
  Method *method = data;

  g_ref_string_release(method->full_name);
  g_free(method);
}

VarlinkServer *varlink_server_new(GMainContext *context, const VarlinkServiceInfo *info,
                                  const VarlinkLimits *limits) {
  VarlinkServer *server = g_new0(VarlinkServer, 1);

  server->context = context;
  server->info = (VarlinkServiceInfo){
      .vendor = g_strdup(info->vendor ? info->vendor : ""),
      .product = g_strdup(info->product ? info->product : ""),
      .version = g_strdup(info->version ? info->version : ""),
      .url = g_strdup(info->url ? info->url : ""),
  };
  set_limits(server, limits);
  server->accepting = true;
  server->listeners = g_ptr_array_new_with_free_func(listener_free);
  server->services = g_ptr_array_new_with_free_func(service_free);
  server->methods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, method_free);
  server->interfaces = g_hash_table_new(g_str_hash, g_str_equal);
  server->scratch = g_byte_array_new();
  server->cork = g_byte_array_new();
  server->read_buffer = g_malloc(READ_BYTES);

  server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (server->epoll_fd < 0)
    g_error("epoll_create1: %s", g_strerror(errno));

  server->source = g_source_new(&source_funcs, sizeof(ServerSource));
  g_source_set_name(server->source, "varlink server");
  /* Otherwise GLib would remove the descriptor from its poll set and add it again around each dispatch, at three system calls
   * per round. Nothing recurses, since methods run no loop of their own. */
  g_source_set_can_recurse(server->source, TRUE);
  ((ServerSource *)server->source)->server = server;
  ((ServerSource *)server->source)->tag = g_source_add_unix_fd(server->source, server->epoll_fd, G_IO_IN);
  g_source_attach(server->source, context);

  if (!service_add(server))
    g_assert_not_reached();
  return server;
}

void varlink_server_free(VarlinkServer *server) {
  if (!server)
    return;

  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++) {
    PeerClass *class = &server->classes[i];

    while (class->lists[LIST_ALL].first)
      connection_close(class->lists[LIST_ALL].first, false);
    g_hash_table_unref(class->uids);
  }
  bury(server);
  g_source_destroy(server->source);
  g_source_unref(server->source);
  g_ptr_array_unref(server->listeners);
  close(server->epoll_fd);

  g_hash_table_unref(server->methods);
  g_hash_table_unref(server->interfaces);
  g_ptr_array_unref(server->services);
  g_byte_array_unref(server->scratch);
  g_byte_array_unref(server->cork);
  g_free(server->read_buffer);
  g_free(server->overload_error);
  g_free((char *)(uintptr_t)server->info.vendor);
  g_free((char *)(uintptr_t)server->info.product);
  g_free((char *)(uintptr_t)server->info.version);
  g_free((char *)(uintptr_t)server->info.url);
  g_free(server);
}

void varlink_server_set_authorize(VarlinkServer *server, VarlinkAuthorizeFunc func, gpointer user_data) {
  server->authorize = func;
  server->authorize_data = user_data;
}

void varlink_server_set_trust(VarlinkServer *server, VarlinkTrustFunc func, gpointer user_data) {
  server->trust = func;
  server->trust_data = user_data;
}

void varlink_server_set_overload_error(VarlinkServer *server, const char *name) {
  g_free(server->overload_error);
  server->overload_error = g_strdup(name);
}

unsigned varlink_server_get_n_connections(const VarlinkServer *server) {
  unsigned n = 0;

  for (size_t i = 0; i < G_N_ELEMENTS(server->classes); i++)
    n += (unsigned)server->classes[i].lists[LIST_ALL].length;
  return n;
}

size_t varlink_server_get_buffered_bytes(const VarlinkServer *server, VarlinkTrust trust) {
  return server->classes[trust].input_bytes + server->classes[trust].output_bytes;
}

static void add_method(VarlinkServer *server, const Service *service, const VarlinkMember *member) {
  Method *method = g_new0(Method, 1);

  g_autofree char *full_name =
      g_strdup_printf("%s.%s", varlink_interface_get_name(service->interface), member->name);

  method->full_name = g_ref_string_new(full_name);
  method->member = member;
  method->service = service;
  g_hash_table_insert(server->methods, method->full_name, method);
}

bool varlink_server_add_interface(VarlinkServer *server, const char *description,
                                  const VarlinkMethod *methods, size_t n_methods, gpointer user_data,
                                  GError **error) {
  g_autoptr(VarlinkInterface) interface = varlink_interface_parse(description, error);
  const char *name;
  Service *service;

  if (!interface)
    return false;

  name = varlink_interface_get_name(interface);
  if (g_hash_table_contains(server->interfaces, name)) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is already served", name);
    return false;
  }
  for (size_t i = 0; i < n_methods; i++)
    if (!varlink_interface_find(interface, VARLINK_MEMBER_METHOD, methods[i].name)) {
      g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s has no method %s", name, methods[i].name);
      return false;
    }

  service = g_new0(Service, 1);
  service->interface = g_steal_pointer(&interface);
  service->description = description;
  service->user_data = user_data;
  g_ptr_array_add(server->services, service);
  g_hash_table_insert(server->interfaces, (gpointer)(uintptr_t)name, service);

  for (size_t i = 0; i < varlink_interface_get_n_members(service->interface); i++) {
    const VarlinkMember *member = varlink_interface_get_member(service->interface, i);

    if (member->kind == VARLINK_MEMBER_METHOD)
      add_method(server, service, member);
  }
  for (size_t i = 0; i < n_methods; i++) {
    g_autofree char *full_name = g_strdup_printf("%s.%s", name, methods[i].name);
    Method *method = g_hash_table_lookup(server->methods, full_name);

    method->func = methods[i].func;
    method->streams = methods[i].streams;
  }
  return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The varlink server: its lists, its loop source, the interfaces that it serves. */
#include "proto/server-private.h"

#include <errno.h>
#include <gio/gio.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Theory of Operation
 *
 * The server is one GSource on one epoll descriptor. GLib's loop looks at every source and every descriptor
 * in each round, so a source for each of some thousand watchers would make each call of anybody slow; epoll
 * tells only what is to be done.
 *
 * One round (dispatch): fetch events, hand them to listeners (listen.c) and connections (connection.c); go on
 * with connections that can without an event (LIST_READY); end messages that took too long to come
 * (LIST_PARTIAL, which is in the order of its deadlines because all have the same timeout); try to accept
 * again after running out of descriptors; free what was closed. Methods run only within this. They may be
 * answered from anywhere on the same thread. */

#define EVENTS_AT_ONCE 128

typedef struct ServerSource {
  GSource source;
  VarlinkServer *server;
  gpointer tag;
} ServerSource;

void server_list_add(VarlinkServer *server, ListKind kind, Connection *connection) {
  List *list = &server->lists[kind];
  Link *link = &connection->links[kind];

  if (link->linked)
    return;
  *link = (Link){.previous = list->last, .linked = true};
  if (list->last)
    list->last->links[kind].next = connection;
  else
    list->first = connection;
  list->last = connection;
}

void server_list_remove(VarlinkServer *server, ListKind kind, Connection *connection) {
  List *list = &server->lists[kind];
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
}

/* When something is to be done without an event, or -1. */
static int64_t next_deadline(const VarlinkServer *server) {
  const Connection *partial = server->lists[LIST_PARTIAL].first;
  int64_t deadline = -1;

  if (server->lists[LIST_READY].first)
    return 0;
  if (partial)
    deadline = partial->partial_until_us;
  if (!server->accepting && (deadline < 0 || server->accept_again_us < deadline))
    deadline = server->accept_again_us;
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

static void end_late_messages(VarlinkServer *server) {
  Connection *connection;

  while ((connection = server->lists[LIST_PARTIAL].first) &&
         connection->partial_until_us <= g_get_monotonic_time()) {
    g_debug("varlink: a client of uid %u did not end its message", (unsigned)connection->peer->public.uid);
    connection_close(connection, true);
  }
}

static void bury(VarlinkServer *server) {
  while (server->graveyard) {
    Connection *connection = server->graveyard;

    server->graveyard = connection->next_dead;
    connection_free(connection);
  }
}

static gboolean source_dispatch(GSource *source, GSourceFunc callback, gpointer user_data) {
  VarlinkServer *server = ((ServerSource *)source)->server;
  struct epoll_event events[EVENTS_AT_ONCE];
  Connection *last;
  int n;

  g_return_val_if_fail(!server->dispatching, G_SOURCE_CONTINUE);
  server->dispatching = true;
  n = epoll_wait(server->epoll_fd, events, EVENTS_AT_ONCE, 0);
  for (int i = 0; i < n; i++) {
    Poll *poll = events[i].data.ptr;

    if (poll->fd < 0)
      continue;
    if (poll->kind == POLL_LISTENER)
      server_accept(server, (Listener *)poll);
    else
      connection_handle_event((Connection *)poll, events[i].events);
  }

  /* What becomes ready meanwhile waits for the next round, behind the events of the others. */
  last = server->lists[LIST_READY].last;
  while (last) {
    Connection *connection = server->lists[LIST_READY].first;

    connection_continue(connection);
    if (connection == last)
      break;
  }

  end_late_messages(server);
  if (!server->accepting && server->accept_again_us <= g_get_monotonic_time())
    server_resume_accepting(server);
  bury(server);
  server->dispatching = false;
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs source_funcs = {
    .prepare = source_prepare,
    .check = source_check,
    .dispatch = source_dispatch,
};

static void set_limits(VarlinkLimits *limits, const VarlinkLimits *wanted) {
  if (wanted)
    *limits = *wanted;
  if (limits->max_message_bytes == 0)
    limits->max_message_bytes = (size_t)16 * 1024 * 1024;
  if (limits->max_queued_bytes == 0)
    limits->max_queued_bytes = (size_t)16 * 1024 * 1024;
  if (limits->max_connections == 0)
    limits->max_connections = 4096;
  if (limits->max_connections_per_uid == 0)
    limits->max_connections_per_uid = 1024;
  if (limits->partial_message_timeout_ms == 0)
    limits->partial_message_timeout_ms = 30000;
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
  set_limits(&server->limits, limits);
  server->accepting = true;
  server->listeners = g_ptr_array_new_with_free_func(listener_free);
  server->services = g_ptr_array_new_with_free_func(service_free);
  server->methods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, method_free);
  server->interfaces = g_hash_table_new(g_str_hash, g_str_equal);
  server->uids = g_hash_table_new(NULL, NULL);
  server->scratch = g_byte_array_new();
  server->cork = g_byte_array_new();
  server->read_buffer = g_malloc(READ_BYTES);

  server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (server->epoll_fd < 0)
    g_error("epoll_create1: %s", g_strerror(errno));

  server->source = g_source_new(&source_funcs, sizeof(ServerSource));
  g_source_set_name(server->source, "varlink server");
  /* Otherwise GLib takes the descriptor out of its poll set and puts it back around each dispatch, at three
   * system calls a round. Methods run no loop of their own, so that nothing recurses. */
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

  while (server->lists[LIST_ALL].first)
    connection_close(server->lists[LIST_ALL].first, false);
  bury(server);
  g_source_destroy(server->source);
  g_source_unref(server->source);
  g_ptr_array_unref(server->listeners);
  close(server->epoll_fd);

  g_hash_table_unref(server->methods);
  g_hash_table_unref(server->interfaces);
  g_hash_table_unref(server->uids);
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

void varlink_server_set_overload_error(VarlinkServer *server, const char *name) {
  g_free(server->overload_error);
  server->overload_error = g_strdup(name);
}

unsigned varlink_server_get_n_connections(const VarlinkServer *server) {
  return server->n_connections;
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
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS, "%s is served already", name);
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

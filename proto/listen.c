/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The listening sockets of the varlink server: creates them, accepts connections, rejects those over the limits. */
#include "proto/server-private.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections accepted from one socket before the next one gets its turn. */
#define ACCEPTS_AT_ONCE 64

/* How long to wait with accept() after it ran out of descriptors or memory. */
#define ACCEPT_PAUSE_US (100 * 1000)

#define BACKLOG 4096

void listener_free(gpointer data) {
  Listener *listener = data;
  struct stat status;

  if (listener->poll.fd >= 0)
    close(listener->poll.fd);

  /* Another socket may have replaced ours. */
  if (listener->path && lstat(listener->path, &status) == 0 && status.st_dev == listener->dev &&
      status.st_ino == listener->ino)
    unlink(listener->path);
  g_free(listener->path);
  g_free(listener);
}

static unsigned count_uid(const PeerClass *class, uid_t uid) {
  return GPOINTER_TO_UINT(g_hash_table_lookup(class->uids, GUINT_TO_POINTER(uid)));
}

static void set_uid_count(PeerClass *class, uid_t uid, unsigned count) {
  if (count > 0)
    g_hash_table_insert(class->uids, GUINT_TO_POINTER(uid), GUINT_TO_POINTER(count));
  else
    g_hash_table_remove(class->uids, GUINT_TO_POINTER(uid));
}

void uid_release(PeerClass *class, uid_t uid) {
  set_uid_count(class, uid, count_uid(class, uid) - 1);
}

static Peer *read_peer(int fd) {
  struct ucred credentials;
  socklen_t length = sizeof credentials;
  g_autofree gid_t *groups = NULL;
  Peer *peer;

  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
    return NULL;

  /* The kernel says how much room it needs: 0 bytes for a peer without supplementary groups. */
  length = 0;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) < 0) {
    if (errno != ERANGE)
      return NULL;
    groups = g_malloc(length);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0)
      return NULL;
  }

  peer = g_rc_box_alloc0(sizeof(Peer) + length);
  if (length > 0)
    memcpy(peer->groups, groups, length);
  peer->public = (VarlinkPeer){
      .uid = credentials.uid,
      .gid = credentials.gid,
      .pid = credentials.pid,
      .groups = peer->groups,
      .n_groups = length / sizeof(gid_t),
  };
  return peer;
}

/* Tells a client that there is no place for it. One send() is enough: the socket buffer of a new connection cannot be full. */
static void turn_away(const VarlinkServer *server, int fd, unsigned limit) {
  GByteArray *buffer = server->scratch;
  json_t *parameters;
  ssize_t n;

  if (!server->overload_error)
    return;
  parameters = json_pack("{s:i}", "limit", (int)MIN(limit, G_MAXINT));
  g_byte_array_set_size(buffer, 0);
  varlink_encode_error_to(buffer, server->overload_error, parameters);
  json_decref(parameters);
  n = send(fd, buffer->data, buffer->len, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)n;
}

static void welcome(VarlinkServer *server, int fd) {
  const VarlinkPeerLimits *limits;
  Peer *peer = read_peer(fd);
  PeerClass *class;

  if (!peer) {
    g_debug("varlink: cannot read a client's credentials: %s", g_strerror(errno));
    close(fd);
    return;
  }

  class =
      &server->classes[server->trust ? server->trust(&peer->public, server->trust_data) : VARLINK_TRUSTED];
  limits = &class->limits;
  if (class->lists[LIST_ALL].length >= limits->max_connections) {
    turn_away(server, fd, limits->max_connections);
    close(fd);
  } else if (count_uid(class, peer->public.uid) >= limits->max_connections_per_uid) {
    turn_away(server, fd, limits->max_connections_per_uid);
    close(fd);
  } else if (!connection_new(server, class, fd, peer)) {
    close(fd);
  } else {
    set_uid_count(class, peer->public.uid, count_uid(class, peer->public.uid) + 1);
  }
  g_rc_box_release(peer);
}

static bool watch(VarlinkServer *server, Listener *listener) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener->poll};

  return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, listener->poll.fd, &event) == 0;
}

/* If accept() fails, the socket stays readable. Without a pause the loop would spin on it. */
static void pause_accepting(VarlinkServer *server) {
  for (size_t i = 0; i < server->listeners->len; i++) {
    const Listener *listener = server->listeners->pdata[i];

    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, listener->poll.fd, NULL);
  }
  server->accepting = false;
  server->accept_again_us = g_get_monotonic_time() + ACCEPT_PAUSE_US;
}

void server_resume_accepting(VarlinkServer *server) {
  server->accepting = true;
  for (size_t i = 0; i < server->listeners->len; i++)
    if (!watch(server, server->listeners->pdata[i])) {
      pause_accepting(server);
      return;
    }
}

void server_accept(VarlinkServer *server, Listener *listener) {
  for (unsigned i = 0; i < ACCEPTS_AT_ONCE && server->accepting; i++) {
    int fd = accept4(listener->poll.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
      server->accept_failed = false;
      welcome(server, fd);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      if (!server->accept_failed)
        g_warning("varlink: cannot accept connections, retrying: %s", g_strerror(errno));
      server->accept_failed = true;
      pause_accepting(server);
    }
  }
}

G_GNUC_PRINTF(3, 4)
static bool fail(GError **error, int code, const char *format, ...) {
  g_autofree char *text = NULL;
  va_list arguments;

  va_start(arguments, format);
  text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(code), "%s: %s", text, g_strerror(code));
  return false;
}

static bool add_listener(VarlinkServer *server, int fd, const char *path, const struct stat *status,
                         GError **error) {
  Listener *listener = g_new0(Listener, 1);

  listener->poll = (Poll){.kind = POLL_LISTENER, .fd = fd};
  if (path) {
    listener->path = g_strdup(path);
    listener->dev = status->st_dev;
    listener->ino = status->st_ino;
  }
  if (server->accepting && !watch(server, listener)) {
    int code = errno;

    listener_free(listener);
    return fail(error, code, "epoll_ctl");
  }
  g_ptr_array_add(server->listeners, listener);
  return true;
}

bool varlink_server_listen_fd(VarlinkServer *server, int fd, GError **error) {
  int listening = 0, domain = 0;
  socklen_t length = sizeof listening;
  int flags;

  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0) {
    length = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
  }
  if (!listening || domain != AF_UNIX) {
    if (fd >= 0)
      close(fd);
    return fail(error, ENOTSOCK, "descriptor %d is not a listening Unix socket", fd);
  }

  flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
    int code = errno;

    close(fd);
    return fail(error, code, "descriptor %d", fd);
  }
  return add_listener(server, fd, NULL, NULL, error);
}

/* Removes the socket file that an earlier server left at the path. */
static bool clear_path(const struct sockaddr_un *address, GError **error) {
  const char *path = address->sun_path;
  struct stat status;
  int fd, code;

  if (lstat(path, &status) < 0)
    return errno == ENOENT || fail(error, errno, "%s", path);
  if (!S_ISSOCK(status.st_mode))
    return fail(error, ENOTSOCK, "%s", path);

  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return fail(error, errno, "socket");
  code = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
  close(fd);
  if (code == 0 || code == EAGAIN) /* EAGAIN: its queue is full */
    return fail(error, EADDRINUSE, "%s: another server is listening there", path);
  if (code != ECONNREFUSED)
    return fail(error, code, "%s", path);
  return unlink(path) == 0 || errno == ENOENT || fail(error, errno, "%s", path);
}

/* The socket file never has more permissions than `mode`: bind() gives the file the mode of the unbound socket. The group is
 * set before the rest of the permissions. */
static bool bind_path(int fd, const struct sockaddr_un *address, mode_t mode, gid_t gid,
                      struct stat *ret_status, GError **error) {
  const char *path = address->sun_path;

  if (fchmod(fd, mode & 0700) < 0)
    return fail(error, errno, "%s", path);
  if (bind(fd, (const struct sockaddr *)address, sizeof *address) < 0)
    return fail(error, errno, "%s", path);
  if ((gid != (gid_t)-1 && lchown(path, (uid_t)-1, gid) < 0) || chmod(path, mode) < 0 ||
      listen(fd, BACKLOG) < 0 || lstat(path, ret_status) < 0) {
    int code = errno;

    unlink(path);
    return fail(error, code, "%s", path);
  }
  return true;
}

bool varlink_server_listen_path(VarlinkServer *server, const char *path, mode_t mode, gid_t gid,
                                GError **error) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat status;
  int fd;

  if (strlen(path) >= sizeof address.sun_path)
    return fail(error, ENAMETOOLONG, "%s", path);
  strcpy(address.sun_path, path);

  if (!clear_path(&address, error))
    return false;

  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return fail(error, errno, "socket");
  if (!bind_path(fd, &address, mode, gid, &status, error)) {
    close(fd);
    return false;
  }
  return add_listener(server, fd, path, &status, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Can the network reach a host's libvirtd? Only tries a TCP connection, for a limited time. */
#include "libmigrate/virt/libvirt.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Theory of Operation. After a link failure, existing connections take long to notice that the link is back: TCP retries at
 * intervals that double, and keepalive may end the connection first. A new connection tries at once. So this opens one to the
 * port on which the URI's libvirtd, or its sshd, listens, and closes it immediately. Use it when nothing else answers, not for
 * health checks: libvirtd logs a line for each client that disconnects without a word. */

typedef struct Transport {
  const char *name;
  const char *port;
} Transport;

static const Transport transports[] = {
    {"tcp", "16509"}, {"tls", "16514"}, {"ssh", "22"}, {"libssh", "22"}, {"libssh2", "22"},
};

static const Transport *find_transport(const char *scheme) {
  const char *plus = strchr(scheme, '+');
  const char *name = plus ? plus + 1 : "tls";

  for (size_t i = 0; i < G_N_ELEMENTS(transports); i++)
    if (strcmp(transports[i].name, name) == 0)
      return &transports[i];
  return NULL;
}

/* Returns 0, or the errno of the failed connection. */
static int try_address(const struct addrinfo *address, gint64 until_us) {
  int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code = 0;
  socklen_t size = sizeof code;

  if (fd < 0)
    return errno;
  if (connect(fd, address->ai_addr, address->ai_addrlen) < 0)
    code = errno;
  while (code == EINPROGRESS) {
    gint64 left_ms = (until_us - g_get_monotonic_time()) / 1000;
    struct pollfd pfd = {fd, POLLOUT, 0};
    int n = poll(&pfd, 1, (int)CLAMP(left_ms, 0, G_MAXINT));

    if (n < 0 && errno == EINTR)
      continue;
    if (n == 0)
      code = ETIMEDOUT;
    else if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
      code = errno;
  }
  close(fd);
  return code;
}

bool mig_libvirt_reachable(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error) {
  g_autoptr(GUri) parsed = g_uri_parse(uri ? uri : "", G_URI_FLAGS_NONE, NULL);
  const char *host = parsed ? g_uri_get_host(parsed) : NULL;
  const Transport *transport = parsed ? find_transport(g_uri_get_scheme(parsed)) : NULL;
  gint64 until_us = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
  int code = ETIMEDOUT;
  char port[8];

  /* For a local socket, a transport that runs an external program, or a name that only ssh's configuration knows, only a
   * libvirt connection can tell. */
  if (!transport || !host || !*host)
    return true;
  g_snprintf(port, sizeof port, "%d", g_uri_get_port(parsed));
  if (getaddrinfo(host, g_uri_get_port(parsed) > 0 ? port : transport->port, &hints, &addresses) != 0)
    return true;

  for (const struct addrinfo *address = addresses; address; address = address->ai_next)
    if ((code = try_address(address, until_us)) == 0)
      break;
  freeaddrinfo(addresses);
  if (code == 0)
    return true;
  g_set_error(error, MIG_VIRT_ERROR, code == ETIMEDOUT ? MIG_VIRT_ERROR_TIMEOUT : MIG_VIRT_ERROR_UNREACHABLE,
              "cannot reach %s, port %s: %s", host, g_uri_get_port(parsed) > 0 ? port : transport->port,
              g_strerror(code));
  return false;
}

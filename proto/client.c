/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A blocking varlink client. */
#include "proto/client.h"

#include "proto/framing.h"
#include "proto/message.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A server that accepts no connection for this long counts as not running. */
#define CONNECT_TIMEOUT_S 10

/* The longest reply that is accepted: the server is trusted, but not with all our memory. */
#define MAX_MESSAGE_BYTES ((size_t)256 * 1024 * 1024)

#define READ_BYTES ((size_t)64 * 1024)

struct VarlinkClient {
  int fd;
  VarlinkFraming framing;
  GByteArray *output; /* what the socket has not taken yet */
  bool write_broken;  /* the server closed its end; there may still be replies to read */
  bool read_ended;
  char buffer[READ_BYTES];
};

G_DEFINE_QUARK(varlink - client - error - quark, varlink_client_error)

void varlink_reply_clear(VarlinkReply *reply) {
  json_decref(reply->parameters);
  g_free(reply->error);
  *reply = (VarlinkReply){0};
}

G_GNUC_PRINTF(3, 4)
static bool fail(GError **error, VarlinkClientError code, const char *format, ...) {
  va_list arguments;

  va_start(arguments, format);
  if (error)
    *error = g_error_new_valist(VARLINK_CLIENT_ERROR, (int)code, format, arguments);
  va_end(arguments);
  return false;
}

VarlinkClient *varlink_client_new_for_fd(int fd) {
  VarlinkClient *client = g_new(VarlinkClient, 1);

  client->fd = fd;
  varlink_framing_init(&client->framing, MAX_MESSAGE_BYTES);
  client->output = g_byte_array_new();
  client->write_broken = client->read_ended = false;
  return client;
}

void varlink_client_free(VarlinkClient *client) {
  if (!client)
    return;

  close(client->fd);
  varlink_framing_clear(&client->framing);
  g_byte_array_unref(client->output);
  g_free(client);
}

int varlink_client_get_fd(const VarlinkClient *client) {
  return client->fd;
}

/* connect() has no timeout of its own and blocks while the server's queue is full. SO_SNDTIMEO gives it one. */
VarlinkClient *varlink_client_connect(const char *path, GError **error) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct timeval timeout = {.tv_sec = CONNECT_TIMEOUT_S};
  int fd, code;

  if (strlen(path) >= sizeof address.sun_path) {
    fail(error, VARLINK_CLIENT_ERROR_CONNECT, "%s: path too long for a socket", path);
    return NULL;
  }
  strcpy(address.sun_path, path);

  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    fail(error, VARLINK_CLIENT_ERROR_CONNECT, "socket: %s", g_strerror(errno));
    return NULL;
  }

  if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
      connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
    return varlink_client_new_for_fd(fd);

  code = errno;
  close(fd);
  if (code == EACCES || code == EPERM)
    fail(error, VARLINK_CLIENT_ERROR_PERMISSION, "%s: %s", path, g_strerror(code));
  else if (code == EINTR)
    fail(error, VARLINK_CLIENT_ERROR_INTERRUPTED, "%s: interrupted", path);
  else if (code == EAGAIN)
    fail(error, VARLINK_CLIENT_ERROR_CONNECT, "%s: the server does not accept connections", path);
  else
    fail(error, VARLINK_CLIENT_ERROR_CONNECT, "%s: %s", path, g_strerror(code));
  return NULL;
}

static bool disconnected(GError **error) {
  return fail(error, VARLINK_CLIENT_ERROR_DISCONNECTED, "the server closed the connection");
}

/* Writes what the socket takes without blocking. */
static void write_some(VarlinkClient *client) {
  while (client->output->len > 0 && !client->write_broken) {
    ssize_t n = send(client->fd, client->output->data, client->output->len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0)
      g_byte_array_remove_range(client->output, 0, (guint)n);
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    else if (n < 0 && errno != EINTR)
      client->write_broken = true;
  }
}

static void read_some(VarlinkClient *client) {
  ssize_t n = recv(client->fd, client->buffer, READ_BYTES, MSG_DONTWAIT);

  if (n > 0)
    varlink_framing_push(&client->framing, client->buffer, (size_t)n);
  else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
    client->read_ended = true;
}

/* Waits until the socket is readable, or writable if there is output; then reads and writes. `deadline_us` -1: no deadline. */
static bool wait_and_move(VarlinkClient *client, int64_t deadline_us, GError **error) {
  bool writing = client->output->len > 0 && !client->write_broken;
  struct pollfd poll_fd = {.fd = client->fd, .events = (short)(POLLIN | (writing ? POLLOUT : 0))};
  int timeout_ms = -1;
  int n;

  if (deadline_us >= 0) {
    int64_t left_us = MAX(deadline_us - g_get_monotonic_time(), 0);

    timeout_ms = (int)MIN((left_us + 999) / 1000, G_MAXINT);
  }

  n = poll(&poll_fd, 1, timeout_ms);
  if (n < 0 && errno == EINTR)
    return fail(error, VARLINK_CLIENT_ERROR_INTERRUPTED, "interrupted");
  if (n < 0)
    return fail(error, VARLINK_CLIENT_ERROR_DISCONNECTED, "poll: %s", g_strerror(errno));
  if (n == 0)
    return fail(error, VARLINK_CLIENT_ERROR_TIMEOUT, "timed out waiting for a reply");

  if (poll_fd.revents & POLLOUT)
    write_some(client);
  if (poll_fd.revents & (POLLIN | POLLHUP | POLLERR))
    read_some(client);
  return true;
}

bool varlink_client_send(VarlinkClient *client, const char *method, json_t *parameters,
                         VarlinkCallFlags flags, GError **error) {
  bool oneway = flags & VARLINK_CALL_ONEWAY;
  bool good = varlink_encode_call_to(client->output, method, parameters, flags & VARLINK_CALL_MORE, oneway);

  json_decref(parameters);
  if (!good)
    return fail(error, VARLINK_CLIENT_ERROR_PROTOCOL, "cannot encode the call of %s", method);

  write_some(client);

  /* The server may not read on before we read, so this does both. A signal does not leave half a message behind: the rest is
   * sent with the next wait. */
  while (client->output->len > 0 && !client->write_broken && !client->read_ended) {
    g_autoptr(GError) wait_error = NULL;

    if (wait_and_move(client, -1, &wait_error))
      continue;
    if (g_error_matches(wait_error, VARLINK_CLIENT_ERROR, VARLINK_CLIENT_ERROR_INTERRUPTED))
      break;
    g_propagate_error(error, g_steal_pointer(&wait_error));
    return false;
  }

  /* A server that rejects us says why before it closes the connection; the next receive() finds that. */
  if (oneway && (client->write_broken || client->read_ended))
    return disconnected(error);
  return true;
}

static bool parse_reply(const char *data, size_t length, VarlinkReply *ret_reply, GError **error) {
  g_auto(VarlinkReplyMessage) message = {0};
  g_autoptr(GError) parse_error = NULL;

  if (!varlink_reply_message_parse(data, length, &message, &parse_error))
    return fail(error, VARLINK_CLIENT_ERROR_PROTOCOL, "the server sent an invalid reply: %s",
                parse_error->message);

  *ret_reply = (VarlinkReply){
      .parameters = json_incref(message.parameters),
      .error = g_strdup(message.error),
      .continues = message.continues,
  };
  return true;
}

static bool receive_until(VarlinkClient *client, int64_t deadline_us, VarlinkReply *ret_reply,
                          GError **error) {
  for (;;) {
    char *data;
    size_t length;

    switch (varlink_framing_next(&client->framing, &data, &length)) {
    case VARLINK_FRAMING_MESSAGE:
      return parse_reply(data, length, ret_reply, error);
    case VARLINK_FRAMING_TOO_LONG:
      return fail(error, VARLINK_CLIENT_ERROR_PROTOCOL, "the server's reply is too long");
    case VARLINK_FRAMING_INCOMPLETE:
      break;
    }

    if (client->read_ended)
      return disconnected(error);
    if (!wait_and_move(client, deadline_us, error))
      return false;
  }
}

static int64_t deadline_of(int timeout_ms) {
  return timeout_ms < 0 ? -1 : g_get_monotonic_time() + (int64_t)timeout_ms * 1000;
}

bool varlink_client_receive(VarlinkClient *client, int timeout_ms, VarlinkReply *ret_reply, GError **error) {
  return receive_until(client, deadline_of(timeout_ms), ret_reply, error);
}

bool varlink_client_call(VarlinkClient *client, const char *method, json_t *parameters, int timeout_ms,
                         VarlinkReply *ret_reply, GError **error) {
  int64_t deadline_us = deadline_of(timeout_ms);

  return varlink_client_send(client, method, parameters, 0, error) &&
         receive_until(client, deadline_us, ret_reply, error);
}

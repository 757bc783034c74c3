/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One connection of the server: reads calls, dispatches them in order, and ends. */
#include "proto/server-private.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Theory of Operation
 *
 * A connection handles one call at a time: `call` is set from the moment the method's function is called until its last reply.
 * Nothing is read in the meantime. So what a client pipelines waits in the kernel and slows down that client, nobody else. The
 * same applies while more output is queued than the limit allows.
 *
 *   wants_input()  no call, output below the limit, the peer may still send, no complete message in the buffer
 *   LIST_EVENTS    has an event from epoll; handled as soon as it is its turn
 *   LIST_READY     the buffer may hold a complete message (or the end) and the connection may go on; or it holds a lot, which
 *                  would delay small calls of others. Handled in the next round of the loop. Stops after CALLS_AT_ONCE or
 *                  TURN_US, for the sake of the others
 *   LIST_PARTIAL   wants_input(), and a message has begun: its timeout runs. It does not run while a call is handled
 *   LIST_STARVED   wants_input(), but there is no room: its class has reached the limit on received bytes. The message that
 *                  began first is still read, so that one after the other gets through; and each connection may have
 *                  SMALL_BYTES, so that small calls of others do, too
 *   LIST_LINGER    sent an invalid call, and is closed only after a while: this slows down a stranger that connects and does so
 *                  again and again
 *
 * How a connection ends. `peer_wrote_all`: the peer shut down its sending side (or closed; that shows soon). Its calls still get
 * replies, and the connection closes once these are sent. `hung_up`: both sides are shut down, so nobody reads a reply. Calls
 * that were received completely are still handled, since a oneway call sent before close() counts, until one of them is not
 * answered at once. `gave_up`: the stream is not varlink; replies to earlier calls are still sent. `broken`: a write failed, or
 * too much was left unread.
 *
 * No function that a method may call closes a connection or runs another method: it only marks the connection and puts it into
 * LIST_READY. So handlers may walk lists of calls while they answer them, and nothing recurses. The memory of a closed
 * connection is kept until the end of the round, since an event already fetched may point to it.
 *
 * epoll is told only lazily that we do not read: the usual client sends nothing before it has its reply, and this saves two
 * system calls for each call that is answered later. */

#define CALLS_AT_ONCE 64
#define TURN_US       1000
#define SMALL_BYTES   ((size_t)4096)

static bool wants_input(const Connection *connection) {
  return !connection->call && !connection->broken && !connection->peer_wrote_all &&
         !connection->links[LIST_READY].linked && !connection->gave_up && !connection_is_clogged(connection);
}

/* How much may be read now: at most up to one byte past the longest message. */
static size_t input_room(const Connection *connection) {
  const PeerClass *class = connection->class;
  size_t held = connection->framing.end - connection->framing.start;
  size_t most = class->limits.max_message_bytes + 1;

  if (class->input_bytes >= class->limits.max_input_bytes && class->lists[LIST_PARTIAL].first != connection)
    most = MIN(most, SMALL_BYTES);
  return held < most ? MIN(most - held, READ_BYTES) : 0;
}

static bool may_read(const Connection *connection) {
  return wants_input(connection) && input_room(connection) > 0;
}

static void count_input(Connection *connection) {
  connection->class->input_bytes += connection->framing.allocated - connection->input_bytes;
  connection->input_bytes = connection->framing.allocated;
}

static void set_events(Connection *connection, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = &connection->poll};

  if (events == connection->events)
    return;
  if (epoll_ctl(connection->server->epoll_fd, EPOLL_CTL_MOD, connection->poll.fd, &event) < 0)
    connection_break(connection);
  else
    connection->events = events;
}

/* Output is queued from now on. Registered at once: a reply from outside a round never gets to settle(). */
void connection_watch_output(Connection *connection) {
  set_events(connection, connection->events | EPOLLOUT);
}

static uint32_t wanted_events(const Connection *connection) {
  uint32_t events = connection->output ? EPOLLOUT : 0;

  return may_read(connection) ? events | EPOLLIN : events;
}

static void update_events(Connection *connection) {
  uint32_t wanted = wanted_events(connection);

  if ((wanted | EPOLLIN) == connection->events && !connection->peer_wrote_all)
    return;
  set_events(connection, wanted);
}

bool connection_new(VarlinkServer *server, PeerClass *class, int fd, Peer *peer) {
  Connection *connection = g_new0(Connection, 1);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connection->poll};

  connection->poll = (Poll){.kind = POLL_CONNECTION, .fd = fd};
  connection->server = server;
  connection->class = class;
  connection->events = EPOLLIN;
  varlink_framing_init(&connection->framing, class->limits.max_message_bytes);

  if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
    g_free(connection);
    return false;
  }
  connection->peer = g_rc_box_acquire(peer);
  list_add(LIST_ALL, connection);
  return true;
}

void connection_free(Connection *connection) {
  g_rc_box_release(connection->peer);
  g_free(connection);
}

void connection_close(Connection *connection, bool tell) {
  VarlinkServer *server = connection->server;

  if (connection->poll.fd < 0)
    return;

  /* close() alone is not enough: a child between fork() and exec() may hold the socket, too. */
  epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->poll.fd, NULL);
  close(connection->poll.fd);
  connection->poll.fd = -1;
  connection->broken = true;
  for (ListKind kind = 0; kind < N_LISTS; kind++)
    list_remove(kind, connection);
  connection_clear_output(connection);
  varlink_framing_clear(&connection->framing);
  count_input(connection);
  uid_release(connection->class, connection->peer->public.uid);

  connection->next_dead = server->graveyard;
  server->graveyard = connection;

  if (connection->call)
    call_disconnect(connection->call, tell);
}

void connection_break(Connection *connection) {
  connection->broken = true;
  if (connection->poll.fd >= 0)
    list_add(LIST_READY, connection);
}

/* Its call has had its last reply. */
void connection_answered(Connection *connection) {
  connection->call = NULL;

  /* Within handle_calls(), its loop goes on. Otherwise there is something to do only in these cases. */
  if (!connection->corked && (!varlink_framing_is_empty(&connection->framing) || connection->peer_wrote_all ||
                              connection->hung_up || !(connection->events & EPOLLIN)))
    list_add(LIST_READY, connection);
}

/* The client sent an invalid call. There is no reply to it, since nobody knows where the next call would begin. Earlier calls
 * have their replies, which the client may still have to read. */
static void give_up(Connection *connection) {
  unsigned linger_ms = connection->class->limits.linger_ms;

  connection->gave_up = true;
  varlink_framing_clear(&connection->framing);
  if (linger_ms == 0)
    return;
  connection->linger_until_us = g_get_monotonic_time() + (int64_t)linger_ms * 1000;
  list_add(LIST_LINGER, connection);
}

/* Handles the complete messages in the buffer. */
static void handle_calls(Connection *connection) {
  int64_t until_us = g_get_monotonic_time() + TURN_US;
  bool stop = false;

  connection_cork(connection);
  for (unsigned n = 0;
       !stop && !connection->call && !connection->broken && !connection_is_clogged(connection); n++) {
    g_auto(VarlinkCallMessage) message = {0};
    g_autoptr(GError) error = NULL;
    char *data;
    size_t length;

    if (n == CALLS_AT_ONCE || (n > 0 && g_get_monotonic_time() >= until_us)) {
      list_add(LIST_READY, connection);
      break;
    }

    switch (varlink_framing_next(&connection->framing, &data, &length)) {
    case VARLINK_FRAMING_MESSAGE:
      list_remove(LIST_PARTIAL, connection);
      if (varlink_call_message_parse(data, length, &message, &error)) {
        call_dispatch(connection, &message);
      } else {
        g_debug("varlink: a client of uid %u sent an invalid call: %s",
                (unsigned)connection->peer->public.uid, error->message);
        stop = true;
      }
      break;
    case VARLINK_FRAMING_TOO_LONG:
      g_debug("varlink: a client of uid %u sent a message of more than %zu bytes",
              (unsigned)connection->peer->public.uid, connection->framing.max_message_bytes);
      stop = true;
      break;
    case VARLINK_FRAMING_INCOMPLETE:
      goto out;
    }
  }
out:
  connection_uncork(connection);
  if (stop) /* only now: earlier calls have their replies */
    give_up(connection);
  varlink_framing_release(&connection->framing);
  count_input(connection);
}

static bool is_finished(const Connection *connection) {
  if (connection->broken)
    return true;
  if (connection->links[LIST_READY].linked)
    return false;
  if (connection->hung_up && (connection->call || connection->output || connection->gave_up))
    return true;
  if (connection->gave_up)
    return !connection->output && !connection->links[LIST_LINGER].linked;
  return connection->peer_wrote_all && !connection->call && !connection->output;
}

/* Called after any change: closes the connection, or waits for the right events. */
static void settle(Connection *connection) {
  if (connection->poll.fd < 0)
    return;

  if (is_finished(connection)) {
    connection_close(connection, true);
    return;
  }

  if (wants_input(connection) && !varlink_framing_is_empty(&connection->framing)) {
    if (!connection->links[LIST_PARTIAL].linked) {
      connection->partial_until_us =
          g_get_monotonic_time() + (int64_t)connection->server->partial_message_timeout_ms * 1000;
      list_add(LIST_PARTIAL, connection);
    }
  } else {
    list_remove(LIST_PARTIAL, connection);
  }
  if (wants_input(connection) && input_room(connection) == 0)
    list_add(LIST_STARVED, connection);
  else
    list_remove(LIST_STARVED, connection);
  update_events(connection);
}

/* Its time in LIST_LINGER is up. */
void connection_end_linger(Connection *connection) {
  list_remove(LIST_LINGER, connection);
  settle(connection);
}

/* Called when there may be room again. */
void connection_feed_starved(PeerClass *class) {
  const List *starved = &class->lists[LIST_STARVED];
  Connection *oldest = class->lists[LIST_PARTIAL].first;

  if (oldest && oldest->links[LIST_STARVED].linked)
    settle(oldest);
  for (size_t n = starved->length; n > 0 && class->input_bytes < class->limits.max_input_bytes; n--)
    settle(starved->first);
}

/* Handles a connection from LIST_READY. */
void connection_continue(Connection *connection) {
  list_remove(LIST_READY, connection);
  handle_calls(connection);
  settle(connection);
}

static void write_out(Connection *connection) {
  VarlinkCall *call;

  connection_flush(connection);
  if (connection->broken)
    return;

  /* Calls that stayed in the buffer because too much output was queued. */
  if (!connection->call && !varlink_framing_is_empty(&connection->framing) &&
      !connection_is_clogged(connection))
    list_add(LIST_READY, connection);
  if (connection->output)
    return;

  call = connection->call;
  if (call && call->drained) {
    varlink_call_ref(call);
    call->drained(call, call->hook_data);
    varlink_call_unref(call);
  }
}

/* A large input waits for its turn among the other large ones. */
static void handle_input(Connection *connection) {
  if (connection->framing.end - connection->framing.start <= SMALL_BYTES)
    handle_calls(connection);
  else if (varlink_framing_has_more(&connection->framing))
    list_add(LIST_READY, connection);
}

static void read_in(Connection *connection) {
  char *buffer = connection->server->read_buffer;
  size_t room = input_room(connection);
  ssize_t n;

  do
    n = recv(connection->poll.fd, buffer, room, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);

  if (n > 0) {
    varlink_framing_push(&connection->framing, buffer, (size_t)n);
    count_input(connection);
    handle_input(connection);
  } else if (n == 0) {
    connection->peer_wrote_all = true;
  } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
    connection_break(connection);
  }
}

void connection_handle_event(Connection *connection, uint32_t events) {
  if (events & (EPOLLHUP | EPOLLERR))
    connection->hung_up = true;

  if (events & EPOLLOUT)
    write_out(connection);

  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    if (may_read(connection))
      read_in(connection);
    else if (!connection->broken)
      set_events(connection, wanted_events(connection));
  }
  settle(connection);
}

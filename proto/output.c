/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of a connection: written directly if the kernel takes it, else queued. */
#include "proto/server-private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Replies to pipelined calls are collected up to this size and sent with one send(). */
#define CORK_BYTES ((size_t)64 * 1024)

/* The most chunks per sendmsg(). */
#define CHUNKS_AT_ONCE 64

/* The overhead of a queued chunk. It is counted, so that many tiny chunks are limited too. */
#define CHUNK_OVERHEAD_BYTES 128

bool connection_is_clogged(const Connection *connection) {
  size_t n_chunks = connection->output ? connection->output->len - connection->output_first : 0;

  return connection->queued_bytes + n_chunks * CHUNK_OVERHEAD_BYTES >
         connection->class->limits.max_queued_bytes;
}

/* A chunk that many watchers share counts for each of them. */
static size_t cost_of(const Chunk *chunk) {
  return g_bytes_get_size(chunk->bytes) + CHUNK_OVERHEAD_BYTES;
}

static void take_chunk(Connection *connection, const Chunk *chunk) {
  connection->output_bytes += cost_of(chunk);
  connection->class->output_bytes += cost_of(chunk);
}

static void drop_chunk(Connection *connection, const Chunk *chunk) {
  connection->output_bytes -= cost_of(chunk);
  connection->class->output_bytes -= cost_of(chunk);
  g_bytes_unref(chunk->bytes);
}

void connection_clear_output(Connection *connection) {
  if (!connection->output)
    return;

  for (size_t i = connection->output_first; i < connection->output->len; i++)
    drop_chunk(connection, &g_array_index(connection->output, Chunk, i));
  g_array_unref(connection->output);
  connection->output = NULL;
  connection->output_first = 0;
  connection->queued_bytes = 0;
}

/* Limits the queued output of a whole class. Beyond it, the connection with the most output loses that output and is closed, so
 * that replies that one client does not read do not cost others theirs. */
static void keep_below_limit(PeerClass *class) {
  while (class->output_bytes > class->limits.max_output_bytes) {
    Connection *most = NULL;

    for (Connection *each = class->lists[LIST_ALL].first; each; each = each->links[LIST_ALL].next)
      if (!most || each->output_bytes > most->output_bytes)
        most = each;
    if (!most || most->output_bytes == 0)
      return;
    g_debug("varlink: a client of uid %u left %zu bytes of replies unread, and the buffers are full",
            (unsigned)most->peer->public.uid, most->output_bytes);
    connection_clear_output(most);
    connection_break(most);
  }
}

/* Queues `data`: by a reference to `owner`, if given, of which it is the end; else as a copy. */
static void enqueue(Connection *connection, const char *data, size_t length, GBytes *owner) {
  Chunk chunk = {0};

  if (owner) {
    chunk.bytes = g_bytes_ref(owner);
    chunk.offset = g_bytes_get_size(owner) - length;
  } else {
    chunk.bytes = g_bytes_new(data, length);
  }

  if (!connection->output) {
    connection->output = g_array_new(FALSE, FALSE, sizeof(Chunk));
    connection_watch_output(connection);
  }
  g_array_append_val(connection->output, chunk);
  connection->queued_bytes += length;
  take_chunk(connection, &chunk);
  keep_below_limit(connection->class);
}

/* Returns how much the kernel took. Marks the connection as broken if the write failed. */
static size_t write_now(Connection *connection, struct iovec *vectors, size_t n_vectors) {
  struct msghdr message = {.msg_iov = vectors, .msg_iovlen = n_vectors};
  ssize_t n;

  do
    n = sendmsg(connection->poll.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);

  if (n >= 0)
    return (size_t)n;
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
    g_debug("varlink: cannot send to a client of uid %u: %s", (unsigned)connection->peer->public.uid,
            g_strerror(errno));
    connection_break(connection);
  }
  return 0;
}

static void send_or_enqueue(Connection *connection, const char *data, size_t length, GBytes *owner) {
  size_t written = 0;

  if (!connection->output) {
    struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};

    written = write_now(connection, &vector, 1);
  }
  if (written < length && !connection->broken)
    enqueue(connection, data + written, length - written, owner);
}

static void flush_cork(Connection *connection) {
  GByteArray *cork = connection->server->cork;

  if (cork->len > 0 && !connection->broken)
    send_or_enqueue(connection, (const char *)cork->data, cork->len, NULL);
  g_byte_array_set_size(cork, 0);
}

void connection_cork(Connection *connection) {
  connection->corked = true;
}

void connection_uncork(Connection *connection) {
  flush_cork(connection);
  connection->corked = false;
}

void connection_send(Connection *connection, const void *data, size_t length, GBytes *owner) {
  if (connection->broken)
    return;

  if (connection->corked) {
    GByteArray *cork = connection->server->cork;

    if (cork->len + length > CORK_BYTES)
      flush_cork(connection);
    if (length <= CORK_BYTES) {
      g_byte_array_append(cork, data, (guint)length);
      return;
    }
    if (connection->broken)
      return;
  }
  send_or_enqueue(connection, data, length, owner);
}

static void forget_written(Connection *connection, size_t written) {
  GArray *output = connection->output;

  connection->queued_bytes -= written;
  while (written > 0) {
    Chunk *chunk = &g_array_index(output, Chunk, connection->output_first);
    size_t left = g_bytes_get_size(chunk->bytes) - chunk->offset;

    if (written < left) {
      chunk->offset += written;
      break;
    }
    written -= left;
    drop_chunk(connection, chunk);
    connection->output_first++;
  }

  if (connection->output_first == output->len) {
    connection_clear_output(connection);
  } else if (connection->output_first > output->len / 2) {
    g_array_remove_range(output, 0, (guint)connection->output_first);
    connection->output_first = 0;
  }
}

void connection_flush(Connection *connection) {
  while (connection->output && !connection->broken) {
    struct iovec vectors[CHUNKS_AT_ONCE];
    size_t n = 0, wanted = 0, written;

    for (size_t i = connection->output_first; i < connection->output->len && n < CHUNKS_AT_ONCE; i++, n++) {
      const Chunk *chunk = &g_array_index(connection->output, Chunk, i);
      size_t size;
      const char *data = g_bytes_get_data(chunk->bytes, &size);

      vectors[n].iov_base = (void *)(uintptr_t)(data + chunk->offset);
      vectors[n].iov_len = size - chunk->offset;
      wanted += vectors[n].iov_len;
    }

    written = write_now(connection, vectors, n);
    if (written > 0)
      forget_written(connection, written);
    if (written < wanted)
      return;
  }
}

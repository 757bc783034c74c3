/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Splits a byte stream into NUL-terminated messages of limited length. */
#include "proto/framing.h"

#include <glib.h>
#include <string.h>

/* Small enough for a connection to keep between two calls. */
#define KEEP_BYTES 1024

/* A buffer larger than this shrinks when most of it is free. */
#define SHRINK_BYTES ((size_t)16 * 1024)

void varlink_framing_init(VarlinkFraming *framing, size_t max_message_bytes) {
  *framing = (VarlinkFraming){.max_message_bytes = max_message_bytes};
}

void varlink_framing_clear(VarlinkFraming *framing) {
  g_free(framing->buffer);
  varlink_framing_init(framing, framing->max_message_bytes);
}

bool varlink_framing_is_empty(const VarlinkFraming *framing) {
  return framing->start == framing->end;
}

static void move_to_front(VarlinkFraming *framing) {
  if (framing->start == 0)
    return;
  framing->end -= framing->start;
  framing->scanned -= framing->start;
  if (framing->end > 0)
    memmove(framing->buffer, framing->buffer + framing->start, framing->end);
  framing->start = 0;
}

void varlink_framing_release(VarlinkFraming *framing) {
  size_t held = framing->end - framing->start;

  if (held == 0 && framing->allocated > KEEP_BYTES) {
    varlink_framing_clear(framing);
  } else if (framing->allocated > SHRINK_BYTES && held <= framing->allocated / 4) {
    move_to_front(framing);
    framing->allocated = MAX(held, KEEP_BYTES);
    framing->buffer = g_realloc(framing->buffer, framing->allocated);
  }
}

/* Makes room for `length` more bytes. Doubling keeps the cost of copying linear. It stops where the longest message and its
 * NUL fit. */
static void reserve(VarlinkFraming *framing, size_t length) {
  size_t needed = framing->end - framing->start + length;

  move_to_front(framing);
  if (needed > framing->allocated) {
    size_t size = MAX(framing->allocated, 256);

    while (size < needed)
      size *= 2;
    size = MIN(size, MAX(needed, framing->max_message_bytes + 1));
    framing->buffer = g_realloc(framing->buffer, size);
    framing->allocated = size;
  }
}

void varlink_framing_push(VarlinkFraming *framing, const char *data, size_t length) {
  if (length == 0)
    return;

  if (framing->allocated - framing->end < length)
    reserve(framing, length);
  memcpy(framing->buffer + framing->end, data, length);
  framing->end += length;
}

bool varlink_framing_has_more(VarlinkFraming *framing) {
  const char *nul = NULL;

  if (framing->scanned < framing->end)
    nul = memchr(framing->buffer + framing->scanned, '\0', framing->end - framing->scanned);
  framing->scanned = nul ? (size_t)(nul - framing->buffer) : framing->end;
  return nul || framing->end - framing->start > framing->max_message_bytes;
}

VarlinkFramingResult varlink_framing_next(VarlinkFraming *framing, char **ret_message, size_t *ret_length) {
  size_t length;
  char *nul = NULL;

  if (framing->scanned < framing->end)
    nul = memchr(framing->buffer + framing->scanned, '\0', framing->end - framing->scanned);

  if (!nul) {
    framing->scanned = framing->end;
    return framing->end - framing->start > framing->max_message_bytes ? VARLINK_FRAMING_TOO_LONG
                                                                      : VARLINK_FRAMING_INCOMPLETE;
  }

  length = (size_t)(nul - (framing->buffer + framing->start));
  if (length > framing->max_message_bytes) {
    framing->scanned = framing->start; /* found again each time, since the stream cannot recover */
    return VARLINK_FRAMING_TOO_LONG;
  }

  *ret_message = framing->buffer + framing->start;
  *ret_length = length;
  framing->start += length + 1;
  framing->scanned = framing->start;

  /* An empty buffer is filled from its beginning again, so nothing has to be moved. */
  if (framing->start == framing->end)
    framing->start = framing->scanned = framing->end = 0;

  return VARLINK_FRAMING_MESSAGE;
}

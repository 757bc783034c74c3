/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cuts a byte stream into messages that end with a NUL, with a limit on their length. */
#include "proto/framing.h"

#include <glib.h>
#include <string.h>

/* Small enough to be kept by a connection between two calls. */
#define KEEP_BYTES 1024

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

void varlink_framing_release(VarlinkFraming *framing) {
  if (varlink_framing_is_empty(framing) && framing->allocated > KEEP_BYTES)
    varlink_framing_clear(framing);
}

/* Makes room for `length` more bytes. Doubling keeps the copies linear in what is received. */
static void reserve(VarlinkFraming *framing, size_t length) {
  size_t held = framing->end - framing->start;
  size_t needed = held + length;

  if (framing->start > 0) {
    if (held > 0)
      memmove(framing->buffer, framing->buffer + framing->start, held);
    framing->scanned -= framing->start;
    framing->start = 0;
    framing->end = held;
  }

  if (needed > framing->allocated) {
    size_t size = MAX(framing->allocated, 256);

    while (size < needed)
      size *= 2;
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
    framing->scanned = framing->start; /* found again each time: the stream is broken for good */
    return VARLINK_FRAMING_TOO_LONG;
  }

  *ret_message = framing->buffer + framing->start;
  *ret_length = length;
  framing->start += length + 1;
  framing->scanned = framing->start;

  /* An empty buffer is used from its beginning again, without anything to move. */
  if (framing->start == framing->end)
    framing->start = framing->scanned = framing->end = 0;

  return VARLINK_FRAMING_MESSAGE;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Splits a byte stream into NUL-terminated messages of limited length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Plain data, meant to be embedded. Empty if all is zero except max_message_bytes. */
typedef struct VarlinkFraming {
  size_t max_message_bytes; /* without the NUL */
  char *buffer;             /* [start, end) was pushed and not taken yet */
  size_t allocated;
  size_t start;
  size_t scanned; /* [start, scanned) has no NUL, so no byte is scanned twice */
  size_t end;
} VarlinkFraming;

typedef enum VarlinkFramingResult {
  VARLINK_FRAMING_MESSAGE,
  VARLINK_FRAMING_INCOMPLETE, /* push more */
  VARLINK_FRAMING_TOO_LONG    /* the next message is too long, complete or not; the stream cannot recover */
} VarlinkFramingResult;

void varlink_framing_init(VarlinkFraming *framing, size_t max_message_bytes);
void varlink_framing_clear(VarlinkFraming *framing);

/* Appends what was read. Push only after varlink_framing_next() returned INCOMPLETE: then the buffer holds at most one message
 * of the maximum length plus one read. */
void varlink_framing_push(VarlinkFraming *framing, const char *data, size_t length);

/* Takes the next complete message. `ret_message` points into the buffer, is valid until the next push or release, and is
 * NUL-terminated; `ret_length` excludes the NUL and may be 0. */
VarlinkFramingResult varlink_framing_next(VarlinkFraming *framing, char **ret_message, size_t *ret_length);

/* Would varlink_framing_next() return anything but INCOMPLETE? */
bool varlink_framing_has_more(VarlinkFraming *framing);

/* Have all bytes been taken? */
bool varlink_framing_is_empty(const VarlinkFraming *framing);

/* Frees the buffer if it is empty, or most of it if little is in use. So an idle connection costs no buffer, and a long
 * message costs memory only while it is there. */
void varlink_framing_release(VarlinkFraming *framing);

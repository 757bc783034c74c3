/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cuts a byte stream into messages that end with a NUL, with a limit on their length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Plain data, to be embedded; all zero but for max_message_bytes is an empty one. */
typedef struct VarlinkFraming {
  size_t max_message_bytes; /* without the NUL */
  char *buffer;             /* [start, end) holds what was pushed and not taken yet */
  size_t allocated;
  size_t start;
  size_t scanned; /* in [start, scanned) there is no NUL: nothing is looked at twice */
  size_t end;
} VarlinkFraming;

typedef enum VarlinkFramingResult {
  VARLINK_FRAMING_MESSAGE,
  VARLINK_FRAMING_INCOMPLETE, /* push more */
  VARLINK_FRAMING_TOO_LONG    /* the message at the head is longer than allowed, whole or not; for good */
} VarlinkFramingResult;

void varlink_framing_init(VarlinkFraming *framing, size_t max_message_bytes);
void varlink_framing_clear(VarlinkFraming *framing);

/* Appends what was read. The caller pushes only after varlink_framing_next() asked for more, so that at most
 * one message of the allowed length and one read lie here. */
void varlink_framing_push(VarlinkFraming *framing, const char *data, size_t length);

/* Takes the next whole message. `ret_message` points into the buffer until the next push or release, and is
 * NUL terminated; `ret_length` is without the NUL and may be 0. */
VarlinkFramingResult varlink_framing_next(VarlinkFraming *framing, char **ret_message, size_t *ret_length);

/* Would varlink_framing_next() answer anything but INCOMPLETE? */
bool varlink_framing_has_more(VarlinkFraming *framing);

/* Is there any byte that was not taken yet? */
bool varlink_framing_is_empty(const VarlinkFraming *framing);

/* Gives the buffer back if nothing is in it, or most of it if little is: a connection that is silent costs no buffer, and
 * one long message no more than while it is there. */
void varlink_framing_release(VarlinkFraming *framing);

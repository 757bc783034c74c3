/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to core: sentences in a buffer of a fixed size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_NUMBER_SIZE 24

typedef struct Text {
  char *text;
  size_t size;
  size_t used;
  unsigned items;   /* of the list that is being written */
  unsigned dropped; /* of it, for lack of room */
} Text;

/* "96 MiB", "1.2 GiB": two digits at least, four at most. */
const char *text_bytes(uint64_t bytes, char text[static TEXT_NUMBER_SIZE]);

/* "7.2.22" of 7002022. */
const char *text_version(uint64_t version, char text[static TEXT_NUMBER_SIZE]);

void text_add(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Before each item of a list: its beginning, once. */
void text_lead(Text *text, const char *lead);

/* One more of a list: with ", " after others. What has no room is counted. */
void text_item(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the list, and the sentence: " and 3 more." False: nothing was listed. */
bool text_end(Text *text);

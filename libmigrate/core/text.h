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
  unsigned dropped; /* items left out for lack of room */
} Text;

/* "96 MiB", "1.2 GiB": two to four digits. */
const char *text_bytes(uint64_t bytes, char text[static TEXT_NUMBER_SIZE]);

/* "7.2.22" of 7002022. */
const char *text_version(uint64_t version, char text[static TEXT_NUMBER_SIZE]);

void text_add(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Call before each item of a list: adds the lead once. */
void text_lead(Text *text, const char *lead);

/* Adds an item, with ", " after others. Items without room are counted. */
void text_item(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the list and the sentence: " and 3 more." False: the list is empty. */
bool text_end(Text *text);

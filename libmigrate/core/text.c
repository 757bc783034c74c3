/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sentences in a buffer of a fixed size. */
#include "libmigrate/core/text.h"

#include "libmigrate/core/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* For " and 4294967295 more." */
#define END_SIZE  24
#define ITEM_SIZE 200

const char *text_bytes(uint64_t bytes, char text[static TEXT_NUMBER_SIZE]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1023.5 && unit < TABLE_LENGTH(units) - 1) {
    value /= 1024;
    unit++;
  }
  snprintf(text, TEXT_NUMBER_SIZE, value < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

const char *text_version(uint64_t version, char text[static TEXT_NUMBER_SIZE]) {
  snprintf(text, TEXT_NUMBER_SIZE, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, version / 1000000 % 100000,
           version / 1000 % 1000, version % 1000);
  return text;
}

void text_add(Text *text, const char *format, ...) {
  va_list args;
  if (text->used >= text->size)
    return;
  va_start(args, format);
  int n = vsnprintf(text->text + text->used, text->size - text->used, format, args);
  va_end(args);
  text->used += n > 0 ? (size_t)n : 0;
}

static bool is_listing(const Text *text) {
  return text->items > 0 || text->dropped > 0;
}

void text_lead(Text *text, const char *lead) {
  if (!is_listing(text))
    text_add(text, "%s", lead);
}

void text_item(Text *text, const char *format, ...) {
  char item[ITEM_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(item, sizeof item, format, args);
  va_end(args);
  if (text->dropped > 0 || text->used + strlen(item) + 2 + END_SIZE > text->size) {
    text->dropped++;
    return;
  }
  text_add(text, "%s%s", text->items > 0 ? ", " : " ", item);
  text->items++;
}

bool text_end(Text *text) {
  if (!is_listing(text))
    return false;
  if (text->dropped > 0)
    text_add(text, "%s%u more", text->items > 0 ? " and " : " ", text->dropped);
  text_add(text, ".");
  text->items = text->dropped = 0;
  return true;
}

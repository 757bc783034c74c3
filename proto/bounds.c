/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits on the contents of a call, checked on its bytes before a parser allocates anything. */
#include "proto/message.h"

/* Theory of Operation
 *
 * Outside strings, JSON has at most one value per comma and opening bracket, plus one. So counting these limits what a parser
 * may have to allocate, whatever else is wrong with the text. Finding that out is left to the parser. */

typedef struct Counts {
  unsigned values;
  unsigned depth;
  size_t number_bytes; /* of the current number or word, or of garbage */
} Counts;

/* Returns the position after the string whose contents begin at `at`. */
static size_t skip_string(const char *data, size_t length, size_t at) {
  while (at < length && data[at] != '"')
    at += data[at] == '\\' ? 2 : 1;
  return at + 1;
}

static void count(char c, Counts *counts) {
  switch (c) {
  case '[':
  case '{':
    counts->depth++;
    counts->values++;
    counts->number_bytes = 0;
    break;
  case ']':
  case '}':
    counts->depth -= counts->depth > 0;
    counts->number_bytes = 0;
    break;
  case ',':
    counts->values++;
    counts->number_bytes = 0;
    break;
  case ':':
  case ' ':
  case '\t':
  case '\n':
  case '\r':
    counts->number_bytes = 0;
    break;
  default:
    counts->number_bytes++;
  }
}

static bool refuse(GError **error, const char *what, unsigned limit) {
  g_set_error(error, VARLINK_MESSAGE_ERROR, VARLINK_MESSAGE_ERROR_BOUNDS, "more than %u %s", limit, what);
  return false;
}

bool varlink_call_check_bounds(const char *data, size_t length, GError **error) {
  Counts counts = {0};

  for (size_t at = 0; at < length;) {
    char c = data[at++];

    if (c == '"') {
      counts.number_bytes = 0;
      at = skip_string(data, length, at);
      continue;
    }
    count(c, &counts);
    if (counts.values > VARLINK_CALL_VALUES_MAX)
      return refuse(error, "values", VARLINK_CALL_VALUES_MAX);
    if (counts.depth > VARLINK_CALL_DEPTH_MAX)
      return refuse(error, "levels of nesting", VARLINK_CALL_DEPTH_MAX);
    if (counts.number_bytes > VARLINK_CALL_NUMBER_BYTES_MAX)
      return refuse(error, "characters in a number", VARLINK_CALL_NUMBER_BYTES_MAX);
  }
  return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a call may consist of: a look at its bytes before a parser allocates anything for them. */
#include "proto/message.h"

/* Theory of Operation
 *
 * Outside of strings JSON has no more values than commas and opening brackets, plus one: so counting these bounds what
 * a parser may have to make of them, whatever else is wrong with the text. What it is, the parser finds out. */

typedef struct Counts {
  unsigned values;
  unsigned depth;
  size_t number_bytes; /* of a number or a word; or of what is neither */
} Counts;

/* Where the string that begins before `at` has ended. */
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

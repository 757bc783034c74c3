/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Suggestions for mistyped words. */
#include "agent/ctl/nearest.h"

#include <string.h>

#define LENGTH_MAX 40
#define OFF_MAX    2

/* Levenshtein distance: the number of letters to insert, delete or change, computed row by row. */
static unsigned letters_off(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  unsigned row[LENGTH_MAX + 1];

  if (n > LENGTH_MAX || m > LENGTH_MAX)
    return G_MAXUINT;
  for (size_t j = 0; j <= m; j++)
    row[j] = (unsigned)j;
  for (size_t i = 1; i <= n; i++) {
    unsigned diagonal = row[0];

    row[0] = (unsigned)i;
    for (size_t j = 1; j <= m; j++) {
      unsigned changed = diagonal + (a[i - 1] != b[j - 1]);

      diagonal = row[j];
      row[j] = MIN(changed, MIN(row[j], row[j - 1]) + 1);
    }
  }
  return row[m];
}

/* A prefix of the word counts as at most one letter off. */
static unsigned distance(const char *given, const char *word) {
  unsigned off = letters_off(given, word);

  if (strlen(given) >= 3 && g_str_has_prefix(word, given))
    off = MIN(off, 1);
  return off <= OFF_MAX && off * 2 < strlen(given) ? off : G_MAXUINT;
}

const char *nearest_word(const char *given, const char *const *words) {
  unsigned best = G_MAXUINT;
  const char *found = NULL;

  for (; *words; words++) {
    unsigned off = distance(given, *words);

    if (off == G_MAXUINT || off > best)
      continue;
    found = off < best ? *words : NULL;
    best = off;
  }
  return found;
}

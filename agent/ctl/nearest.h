/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Suggestions for mistyped words. */
#pragma once

#include <glib.h>

/* The one of `words` (NULL-terminated) that `given` is a prefix of, or that is at most two letters and less than half of
 * `given` away. NULL if there is none, or if several are equally close. */
const char *nearest_word(const char *given, const char *const *words);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mistyped word may have been meant to be. */
#pragma once

#include <glib.h>

/* Of the words, NULL-terminated, the one that the given one begins, or that is at most two letters off, and fewer than half of
 * them; NULL: none is, or more than one is as near. */
const char *nearest_word(const char *given, const char *const *words);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where text goes: a terminal with one line that is drawn over, or a plain stream. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Term {
  FILE *out;
  FILE *err;
  bool redraws; /* out is a terminal that can go back to the start of a line */
  bool utf8;
  bool drawn; /* a progress line stands on the terminal, without a line end */
} Term;

/* Looks at the streams and at the locale, which the caller has set. */
void term_init(Term *term, FILE *out, FILE *err);

/* Columns of the terminal, asked each time: it may have been resized. 80 where there is none. */
unsigned term_width(const Term *term);

/* Text, made safe, after the progress line was taken away. */
void term_print(Term *term, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The same to the error stream, with "handoffctl: " before it and a line end behind. */
void term_error(Term *term, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* One JSON object, one line. */
void term_print_json(Term *term, json_t *json);

/* Draws `line` over the progress line that stands there. */
void term_draw(Term *term, const char *line);

/* Leaves the terminal at the start of an empty line. */
void term_clear(Term *term);

/* Nobody reads any more. */
bool term_is_broken(const Term *term);

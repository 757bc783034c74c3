/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Output: a terminal with a progress line that is redrawn, or a plain stream. */
#pragma once

#include "proto/json.h"

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Term {
  FILE *out;
  FILE *err;
  bool redraws; /* out is a terminal that can return to the start of a line */
  bool utf8;
  bool drawn; /* a progress line is displayed, without a newline */
} Term;

/* Inspects the streams and the locale, which the caller must have set. */
void term_init(Term *term, FILE *out, FILE *err);

/* Width of the terminal, queried each time because it may be resized; 80 without a terminal. */
unsigned term_width(const Term *term);

/* Clears the progress line and prints the text, made safe for the terminal. */
void term_print(Term *term, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The same to the error stream, prefixed with "handoffctl: " and followed by a newline. */
void term_error(Term *term, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Prints one JSON object on one line. */
void term_print_json(Term *term, json_t *json);

/* Replaces the progress line. */
void term_draw(Term *term, const char *line);

/* Clears the progress line. */
void term_clear(Term *term);

/* Writing failed, for example because nobody reads any more. */
bool term_is_broken(const Term *term);

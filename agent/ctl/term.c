/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Output: a terminal with a progress line that is redrawn, or a plain stream. */
#include "agent/ctl/term.h"
#include "agent/ctl/format.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void term_init(Term *term, FILE *out, FILE *err) {
  const char *name = getenv("TERM");
  int fd = fileno(out);

  *term = (Term){
      .out = out,
      .err = err,
      .redraws = fd >= 0 && isatty(fd) && name && *name && strcmp(name, "dumb") != 0,
      .utf8 = g_get_charset(NULL),
  };
}

unsigned term_width(const Term *term) {
  struct winsize size;
  int fd = fileno(term->out);

  if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 80;
}

static void term_put(Term *term, FILE *stream, const char *prefix, const char *suffix, const char *format,
                     va_list args) G_GNUC_PRINTF(5, 0);

static void term_put(Term *term, FILE *stream, const char *prefix, const char *suffix, const char *format,
                     va_list args) {
  g_autofree char *text = g_strdup_vprintf(format, args);
  g_autofree char *safe = format_safe(text, term->utf8);

  term_clear(term);
  fprintf(stream, "%s%s%s", prefix, safe, suffix);
}

void term_print(Term *term, const char *format, ...) {
  va_list args;

  va_start(args, format);
  term_put(term, term->out, "", "", format, args);
  va_end(args);
}

void term_error(Term *term, const char *format, ...) {
  va_list args;

  fflush(term->out);
  va_start(args, format);
  term_put(term, term->err, "handoffctl: ", "\n", format, args);
  va_end(args);
}

void term_print_json(Term *term, json_t *json) {
  /* ENSURE_ASCII also keeps control characters in domain names away from the terminal. */
  json_dumpf(json, term->out, JSON_COMPACT | JSON_ENSURE_ASCII);
  fputc('\n', term->out);
  fflush(term->out);
}

void term_draw(Term *term, const char *line) {
  g_autofree char *safe = format_safe(line, term->utf8);

  fprintf(term->out, "\r%s\033[K", safe);
  fflush(term->out);
  term->drawn = true;
}

void term_clear(Term *term) {
  if (!term->drawn)
    return;
  fputs("\r\033[K", term->out);
  fflush(term->out);
  term->drawn = false;
}

bool term_is_broken(const Term *term) {
  return ferror(term->out);
}

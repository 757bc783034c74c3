/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What LeakSanitizer is not to report: fontconfig, which cairo asks for a font, keeps what it has read to the end of the process.
 * Only in a -Db_sanitize=address build. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) {
  return "leak:libfontconfig\n";
}

/* A report of it would be one. */
const char *__lsan_default_options(void);

const char *__lsan_default_options(void) {
  return "print_suppressions=0";
}

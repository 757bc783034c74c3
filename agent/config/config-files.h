/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The format of configuration files: which files there are, and what sections and settings are in them. Knows no
 * setting. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Where something stands. */
typedef struct ConfigPlace {
  const char *file; /* for people: valid UTF-8 */
  unsigned line;
} ConfigPlace;

/* What is found, in the order of the files and their lines. `place` and all texts are borrowed. */
typedef struct ConfigFileHooks {
  /* Before the first line of each file: no section is open. */
  void (*begin)(gpointer user_data);
  /* What stands between the brackets, without white space about it; NULL: the line is broken, and what follows belongs
   * to nothing. */
  void (*section)(const ConfigPlace *place, const char *text, gpointer user_data);
  void (*setting)(const ConfigPlace *place, const char *name, const char *value, gpointer user_data);
  /* A line that is none of these, in words. */
  void (*complaint)(const ConfigPlace *place, const char *text, gpointer user_data);
} ConfigFileHooks;

/* Reads `path` alone; or, with NULL, handoffd.conf from the first of the directories (NULL-terminated) that has it,
 * and then each handoffd.conf.d/NAME.conf of all of them in the order of the names, of files of one name that in the
 * first directory. Only a file that is there and cannot be read is an error, and a `path` that is not there. */
bool config_files_read(const char *path, const char *const *directories, const ConfigFileHooks *hooks,
                       gpointer user_data, GError **error);

/* One file that is in memory, with a NUL behind it; its text is overwritten. */
void config_files_parse(const char *file, char *text, size_t size, const ConfigFileHooks *hooks,
                        gpointer user_data);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration file format: which files to read, and their sections and settings. Knows no setting. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Where a line is. */
typedef struct ConfigPlace {
  const char *file; /* for people: valid UTF-8 */
  unsigned line;
} ConfigPlace;

/* Called in the order of the files and their lines. `place` and all texts are borrowed. */
typedef struct ConfigFileHooks {
  /* Before the first line of each file: no section is open. */
  void (*begin)(gpointer user_data);
  /* The text between the brackets, stripped; NULL: the line is malformed, and the settings that follow belong to no
   * section. */
  void (*section)(const ConfigPlace *place, const char *text, gpointer user_data);
  void (*setting)(const ConfigPlace *place, const char *name, const char *value, gpointer user_data);
  /* A message about a malformed line. */
  void (*complaint)(const ConfigPlace *place, const char *text, gpointer user_data);
} ConfigFileHooks;

/* Reads `path` alone; or, if NULL, handoffd.conf from the first of the directories (NULL-terminated) that has it, and
 * then every handoffd.conf.d/NAME.conf, sorted by name; of files with the same name, the one in the first directory.
 * It is an error only if an existing file cannot be read, or if `path` does not exist. */
bool config_files_read(const char *path, const char *const *directories, const ConfigFileHooks *hooks,
                       gpointer user_data, GError **error);

/* One file in memory, NUL-terminated; its text is overwritten. */
void config_files_parse(const char *file, char *text, size_t size, const ConfigFileHooks *hooks,
                        gpointer user_data);

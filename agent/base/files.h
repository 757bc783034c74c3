/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading and replacing whole files: a reader sees the old text or the new one. Safe on any thread. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* Of a file that is still being written. */
#define FILES_TEMPORARY_SUFFIX ".tmp"

/* "cannot WHAT NAME: …", from an errno. */
void files_set_error(GError **error, const char *what, const char *name, int code);

/* False: see errno. */
bool files_write_all(int fd, const char *data, size_t size);

/* The whole file in one piece (json_loadfd() reads byte by byte), NUL-terminated. NULL: NOT_FOUND, INVALID_DATA (not a regular file,
 * or too large), or as the error says. */
char *files_read(int directory_fd, const char *name, size_t max_bytes, size_t *ret_size, GError **error);

/* Writes a temporary file and renames it. With `sync` the file is fsynced before the rename; syncing the directory is up to the
 * caller. */
bool files_replace(int directory_fd, const char *name, const char *text, bool sync, GError **error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that are read, and replaced, as a whole: whoever reads one sees the old text or the new. Nothing here is bound to a thread. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

/* What is written, until it stands under its name. */
#define FILES_TEMPORARY_SUFFIX ".tmp"

/* "cannot WHAT NAME: …", of an errno. */
void files_set_error(GError **error, const char *what, const char *name, int code);

/* False: errno says why. */
bool files_write_all(int fd, const char *data, size_t size);

/* All of the file in one piece (json_loadfd() reads byte by byte), with a NUL behind. NULL: NOT_FOUND, INVALID_DATA (it is not a
 * file, or too large), or what else the error says. */
char *files_read(int directory_fd, const char *name, size_t max_bytes, size_t *ret_size, GError **error);

/* Writes the file beside it and renames it; `sync`: what was written is on the disk before, while the directory is the
 * caller's to sync. */
bool files_replace(int directory_fd, const char *name, const char *text, bool sync, GError **error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that others read while it is written anew again and again, by a thread of its own. */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct TextFile TextFile;

/* At this absolute path. Nothing is written yet. */
TextFile *text_file_new(const char *path);

/* Ends the thread and removes the file: what is not kept up to date is not to be read. Waits for a second at most; a disk that
 * hangs keeps the thread, and the file. NULL is fine. */
void text_file_free(TextFile *file);

const char *text_file_get_path(const TextFile *file);

/* Has the file written, and takes `text`. One that waits to be written is replaced. */
void text_file_write(TextFile *file, char *text);

/* Why the last one could not be written, or NULL. The caller's. */
char *text_file_get_error(TextFile *file);

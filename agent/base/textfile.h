/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is rewritten again and again while others read it, on a thread of its own. */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct TextFile TextFile;

/* `path` is absolute. Writes nothing yet. */
TextFile *text_file_new(const char *path);

/* Ends the thread and removes the file, so that nobody reads outdated numbers. Waits a second at most; if the disk hangs, the
 * thread and the file stay. NULL is fine. */
void text_file_free(TextFile *file);

const char *text_file_get_path(const TextFile *file);

/* Queues `text`, and takes it; replaces a text that is still waiting. */
void text_file_write(TextFile *file, char *text);

/* Why the last write failed, or NULL. The caller frees it. */
char *text_file_get_error(TextFile *file);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is rewritten while others read it.
 *
 * Theory of Operation. Readers see the whole old text or the whole new one: it is written to a file with ".tmp" appended to its name,
 * and renamed. It is not synced, since nobody needs it after a crash. The disk may be slow or hang, so a thread writes; only
 * the newest text waits for it. The thread holds a reference, and outlives its owner if the disk hangs.
 *
 * Locks: `mutex` guards next, quit, ended and error; never held over I/O. */
#include "agent/base/textfile.h"

#include "agent/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The collector runs as another user; the unit's UMask= would lock it out. */
#define MODE            0644
#define CLOSE_WAIT_USEC G_USEC_PER_SEC

struct TextFile {
  gint refs;
  char *path;
  char *temporary;
  GMutex mutex;
  GCond cond;
  char *next; /* waiting to be written */
  bool quit;
  bool begun; /* the thread was started; owner only */
  bool ended;
  char *error;
};

static void text_file_unref(TextFile *file) {
  if (!g_atomic_int_dec_and_test(&file->refs))
    return;
  g_free(file->path);
  g_free(file->temporary);
  g_free(file->next);
  g_free(file->error);
  g_mutex_clear(&file->mutex);
  g_cond_clear(&file->cond);
  g_free(file);
}

/* NULL, or the error. */
static char *replace_file(const TextFile *file, const char *text) {
  const char *failed = NULL;
  int fd, code;

  /* Left by a kill, or placed there by somebody: it may be a symbolic link. */
  unlink(file->temporary);
  fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
  if (fd < 0)
    return g_strdup_printf("cannot create %s: %s", file->temporary, g_strerror(errno));
  if (fchmod(fd, MODE) < 0 || !files_write_all(fd, text, strlen(text)))
    failed = "write";
  code = errno;
  if (close(fd) < 0 && !failed)
    failed = "close", code = errno;
  if (!failed && rename(file->temporary, file->path) < 0)
    failed = "rename", code = errno;
  if (!failed)
    return NULL;
  unlink(file->temporary);
  return g_strdup_printf("cannot %s %s: %s", failed, file->temporary, g_strerror(code));
}

/* NULL: no more will come. */
static char *wait_for_text(TextFile *file) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&file->mutex);

  while (!file->next && !file->quit)
    g_cond_wait(&file->cond, &file->mutex);
  return file->quit ? NULL : g_steal_pointer(&file->next);
}

static void set_error(TextFile *file, char *error) {
  g_mutex_lock(&file->mutex);
  g_free(file->error);
  file->error = error;
  g_mutex_unlock(&file->mutex);
}

static gpointer writer_thread(gpointer data) {
  TextFile *file = data;
  char *text;

  while ((text = wait_for_text(file))) {
    set_error(file, replace_file(file, text));
    g_free(text);
  }
  unlink(file->path);
  g_mutex_lock(&file->mutex);
  file->ended = true;
  g_cond_broadcast(&file->cond);
  g_mutex_unlock(&file->mutex);
  text_file_unref(file);
  return NULL;
}

TextFile *text_file_new(const char *path) {
  TextFile *file = g_new0(TextFile, 1);

  file->refs = 1;
  file->path = g_strdup(path);
  file->temporary = g_strconcat(path, ".tmp", NULL);
  g_mutex_init(&file->mutex);
  g_cond_init(&file->cond);
  return file;
}

/* If the thread cannot be started, the next text tries again. */
static void begin(TextFile *file) {
  g_autoptr(GError) error = NULL;
  GThread *thread;

  if (file->begun)
    return;
  g_atomic_int_inc(&file->refs);
  thread = g_thread_try_new("metrics", writer_thread, file, &error);
  file->begun = thread != NULL;
  if (thread) {
    g_thread_unref(thread);
    return;
  }
  g_atomic_int_add(&file->refs, -1);
  set_error(file, g_strdup_printf("cannot start a thread: %s", error->message));
}

void text_file_free(TextFile *file) {
  gint64 until = g_get_monotonic_time() + CLOSE_WAIT_USEC;

  if (!file)
    return;
  g_mutex_lock(&file->mutex);
  file->quit = true;
  g_cond_broadcast(&file->cond);
  while (file->begun && !file->ended && g_cond_wait_until(&file->cond, &file->mutex, until))
    ;
  g_mutex_unlock(&file->mutex);
  text_file_unref(file);
}

const char *text_file_get_path(const TextFile *file) {
  return file->path;
}

void text_file_write(TextFile *file, char *text) {
  begin(file);
  g_mutex_lock(&file->mutex);
  g_free(file->next);
  file->next = text;
  g_cond_broadcast(&file->cond);
  g_mutex_unlock(&file->mutex);
}

char *text_file_get_error(TextFile *file) {
  g_autoptr(GMutexLocker) G_GNUC_UNUSED locker = g_mutex_locker_new(&file->mutex);

  return g_strdup(file->error);
}

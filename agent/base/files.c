/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading and replacing whole files. */
#include "agent/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void files_set_error(GError **error, const char *what, const char *name, int code) {
  g_set_error(error, G_IO_ERROR, (gint)g_io_error_from_errno(code), "cannot %s %s: %s", what, name,
              g_strerror(code));
}

bool files_write_all(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}

/* `size`: in, the file's size at most; out, the bytes read. False: see errno. */
static bool read_all(int fd, char *data, size_t *size) {
  size_t at = 0;

  while (at < *size) {
    ssize_t n = read(fd, data + at, *size - at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    if (n == 0)
      break;
    at += (size_t)n;
  }
  *size = at;
  return true;
}

char *files_read(int directory_fd, const char *name, size_t max_bytes, size_t *ret_size, GError **error) {
  int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  g_autofree char *text = NULL;
  struct stat st;

  if (fd < 0 || fstat(fd, &st) < 0) {
    files_set_error(error, "open", name, errno);
    if (fd >= 0)
      close(fd);
    return NULL;
  }
  if (!S_ISREG(st.st_mode) || (size_t)st.st_size > max_bytes) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "%s is not a regular file, or is larger than %zu KiB", name, max_bytes / 1024);
    close(fd);
    return NULL;
  }
  *ret_size = (size_t)st.st_size;
  text = g_malloc(*ret_size + 1);
  if (!read_all(fd, text, ret_size)) {
    files_set_error(error, "read", name, errno);
    close(fd);
    return NULL;
  }
  close(fd);
  text[*ret_size] = '\0';
  return g_steal_pointer(&text);
}

bool files_replace(int directory_fd, const char *name, const char *text, bool sync, GError **error) {
  g_autofree char *temporary = g_strconcat(name, FILES_TEMPORARY_SUFFIX, NULL);
  const char *failed = NULL;
  int fd, code;

  fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    files_set_error(error, "create", name, errno);
    return false;
  }
  if (!files_write_all(fd, text, strlen(text)))
    failed = "write";
  else if (sync && fsync(fd) < 0)
    failed = "sync";
  code = errno;
  if (close(fd) < 0 && !failed)
    failed = "close", code = errno;
  if (!failed && renameat(directory_fd, temporary, directory_fd, name) < 0)
    failed = "rename", code = errno;
  if (failed) {
    unlinkat(directory_fd, temporary, 0);
    files_set_error(error, failed, name, code);
  }
  return !failed;
}

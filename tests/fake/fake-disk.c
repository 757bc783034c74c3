/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A disk that takes its time: while the file that FAKE_DISK names exists, fsync() does not return. To be linked into a program:
 * its symbol comes before the C library's. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS (5 * 1000 * 1000)

int fsync(int fd) {
  const char *path = getenv("FAKE_DISK");
  int (*real)(int fd) = (int (*)(int fd))dlsym(RTLD_NEXT, "fsync");

  while (path && access(path, F_OK) == 0)
    nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
  return real(fd);
}

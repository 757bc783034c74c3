/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A time of day that a test can set, for one process: the file that FAKE_CLOCK names holds an int64_t, in seconds, which is
 * added to it. It is mapped at the first use, so it may change at any time. Without such a file nothing is added. What goes
 * on evenly, CLOCK_MONOTONIC, is left alone. To be linked into a program: its symbols come before the C library's. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none;
static const int64_t *offset;

static const int64_t *map(void) {
  const char *path = getenv("FAKE_CLOCK");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *mapped = fd >= 0 ? mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

  if (fd >= 0)
    close(fd);
  return mapped == MAP_FAILED ? &none : mapped;
}

static int64_t offset_s(void) {
  const int64_t *known = __atomic_load_n(&offset, __ATOMIC_ACQUIRE);

  if (!known) {
    known = map();
    __atomic_store_n(&offset, known, __ATOMIC_RELEASE);
  }
  return __atomic_load_n(known, __ATOMIC_RELAXED);
}

/* The next in the order of libraries: a sanitizer's, if there is one, which wants to be called (ThreadSanitizer delivers
 * signals then), else the C library's. */
int clock_gettime(clockid_t id, struct timespec *ret) {
  static int (*next)(clockid_t id, struct timespec * ret);
  int (*real)(clockid_t id, struct timespec * ret) = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
  int status;

  if (!real) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    __atomic_store_n(&next, real, __ATOMIC_RELEASE);
  }
  status = real(id, ret);

  if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    ret->tv_sec += offset_s();
  return status;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
  struct timespec now;

  if (clock_gettime(CLOCK_REALTIME, &now) < 0)
    return -1;
  ret->tv_sec = now.tv_sec;
  ret->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *ret) {
  struct timespec now;

  if (clock_gettime(CLOCK_REALTIME, &now) < 0)
    return -1;
  if (ret)
    *ret = now.tv_sec;
  return now.tv_sec;
}

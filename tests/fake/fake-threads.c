/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A node that has no threads left, for one process: the file that FAKE_THREADS names holds an int64_t, how many more may be made;
 * below 0: no limit. It is mapped at the first use, so it may change at any time. Without such a file there is no limit. To be
 * linked into a program: its symbol comes before the C library's. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t unlimited = -1;
static int64_t *left;

static int64_t *map(void) {
  const char *path = getenv("FAKE_THREADS");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  void *mapped = fd >= 0 ? mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

  if (fd >= 0)
    close(fd);
  return mapped == MAP_FAILED ? &unlimited : mapped;
}

/* One of those that are left. */
static int take_one(void) {
  int64_t *known = __atomic_load_n(&left, __ATOMIC_ACQUIRE);
  int64_t n;

  if (!known) {
    known = map();
    __atomic_store_n(&left, known, __ATOMIC_RELEASE);
  }
  n = __atomic_load_n(known, __ATOMIC_RELAXED);
  while (n > 0 && !__atomic_compare_exchange_n(known, &n, n - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  return n != 0;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*func)(void *), void *restrict data) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT,
                                                                                     "pthread_create");

  return take_one() ? real(thread, attributes, func, data) : EAGAIN;
}

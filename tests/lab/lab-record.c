/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lab-record: records when something grew; lab-report evaluates it.
 *
 *   lab-record serial FILE LOG   "TIME SIZE" each time the file has grown; ends
 *                                when the file is removed
 *   lab-record wire DEVICE LOG   "TIME TX RX", byte counters of a device of this
 *                                network namespace, every 10 ms while they change
 *   lab-record now               print TIME
 *   lab-record tsc-khz           print the frequency of the TSC
 *
 * TIME is CLOCK_MONOTONIC in microseconds, the journal's __MONOTONIC_TIMESTAMP.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

enum {
  WIRE_INTERVAL_US = 10000,
  SERIAL_POLL_MS = 500, /* only to notice that the file is gone */
  TSC_INTERVAL_US = 100000,
};

static int64_t now_us(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int fail(const char *what) {
  fprintf(stderr, "lab-record: %s: %s\n", what, strerror(errno));
  return 1;
}

/* Late recorders invent silences. Not being allowed to is no reason to stop. */
static void ask_for_priority(void) {
  struct sched_param param = {.sched_priority = 1};

  if (sched_setscheduler(0, SCHED_RR, &param) < 0)
    perror("lab-record: no real-time priority");
}

static int open_log(const char *path) {
  return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int record_serial(const char *path, const char *log_path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC), log_fd = open_log(log_path);
  int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  off_t size = 0;

  if (fd < 0 || log_fd < 0)
    return fail(path);
  if (watch_fd < 0 || inotify_add_watch(watch_fd, path, IN_MODIFY | IN_ATTRIB) < 0)
    return fail("inotify");
  for (;;) {
    struct pollfd pfd = {watch_fd, POLLIN, 0};
    char events[4096];
    struct stat st;
    int64_t t_us;

    if (poll(&pfd, 1, SERIAL_POLL_MS) < 0 && errno != EINTR)
      return fail("poll");
    t_us = now_us();
    while (read(watch_fd, events, sizeof(events)) > 0)
      ;
    if (fstat(fd, &st) < 0 || st.st_nlink == 0)
      return 0;
    if (st.st_size > size && dprintf(log_fd, "%" PRId64 " %lld\n", t_us, (long long)st.st_size) < 0)
      return fail(log_path);
    size = st.st_size;
  }
}

/* /proc/net/dev: the network namespace's, also where /sys is another's. */
static int read_counters(int fd, const char *device, uint64_t *ret_tx, uint64_t *ret_rx) {
  char text[16384], key[32], *line;
  ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

  if (n < 0)
    return 0;
  text[n] = '\0';
  snprintf(key, sizeof(key), " %s:", device);
  line = strstr(text, key);
  return line &&
         sscanf(line + strlen(key), "%" SCNu64 " %*s %*s %*s %*s %*s %*s %*s %" SCNu64, ret_rx, ret_tx) == 2;
}

static int record_wire(const char *device, const char *log_path) {
  int fd = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC), log_fd = open_log(log_path);
  uint64_t tx = 0, rx = 0, last_tx = UINT64_MAX, last_rx = UINT64_MAX;
  int64_t due_us = now_us(), last_us = 0;
  int was_silent = 0;

  if (fd < 0 || log_fd < 0)
    return fail(log_path);
  for (;;) {
    struct timespec due = {due_us / 1000000, due_us % 1000000 * 1000};
    int64_t t_us;

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
      ;
    if (!read_counters(fd, device, &tx, &rx))
      return fail(device);
    t_us = now_us();
    if (tx != last_tx || rx != last_rx) {
      /* the end of a silence too: it is where the growth began */
      if (was_silent &&
          dprintf(log_fd, "%" PRId64 " %" PRIu64 " %" PRIu64 "\n", last_us, last_tx, last_rx) < 0)
        return fail(log_path);
      if (dprintf(log_fd, "%" PRId64 " %" PRIu64 " %" PRIu64 "\n", t_us, tx, rx) < 0)
        return fail(log_path);
      was_silent = 0;
    } else {
      was_silent = 1;
    }
    last_tx = tx;
    last_rx = rx;
    last_us = t_us;
    due_us += WIRE_INTERVAL_US;
    if (due_us < t_us) /* no burst after a stall */
      due_us = t_us + WIRE_INTERVAL_US;
  }
}

static int print_tsc_khz(void) {
#if defined(__x86_64__) || defined(__i386__)
  int64_t begin_us = now_us(), end_us;
  uint64_t begin = __rdtsc(), end;

  do {
    usleep(TSC_INTERVAL_US / 10);
    end_us = now_us();
    end = __rdtsc();
  } while (end_us - begin_us < TSC_INTERVAL_US);
  printf("%" PRIu64 "\n", (end - begin) * 1000 / (uint64_t)(end_us - begin_us));
  return 0;
#else
  fputs("lab-record: no TSC on this machine\n", stderr);
  return 1;
#endif
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "now"))
    return printf("%" PRId64 "\n", now_us()) < 0;
  if (argc == 2 && !strcmp(argv[1], "tsc-khz"))
    return print_tsc_khz();
  if (argc == 4) {
    ask_for_priority();
    if (!strcmp(argv[1], "serial"))
      return record_serial(argv[2], argv[3]);
    if (!strcmp(argv[1], "wire"))
      return record_wire(argv[2], argv[3]);
  }
  fputs("usage: lab-record serial FILE LOG | wire DEVICE LOG | now | tsc-khz\n", stderr);
  return 2;
}

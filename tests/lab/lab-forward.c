/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lab-forward: a TCP forwarder whose connections can be broken, for migration streams.
 *
 *   lab-forward PIDFILE LISTEN-ADDRESS PORT TO-ADDRESS TO-PORT
 *
 * SIGUSR1 resets all connections at once, on both sides (RST, by SO_LINGER 0), like a middlebox that loses its state.
 * SIGRTMIN + 1 holds back what the connecting side sends, SIGRTMIN + 2 the answers to it, SIGRTMIN + 3 both. SIGRTMIN + 4
 * passes on what has arrived so far and keeps holding; SIGRTMIN ends the hold. New connections are always accepted. A side
 * that closes its connection, by FIN or RST, closes the other side likewise. Buffers are small, so that what one side believes
 * to be sent has nearly reached the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  PAIRS_MAX = 64,
  BUFFER_BYTES = 65536,
  SOCKET_BUFFER_BYTES = 131072,
};

/* What goes from one socket to the other. */
struct flow {
  size_t begin, end;
  bool eof, shut; /* the reading side has ended; the writing side has been told */
  char buffer[BUFFER_BYTES];
};

struct pair {
  int fds[2];           /* -1: free */
  struct flow flows[2]; /* flows[i]: read from fds[i], written to fds[!i] */
};

static struct pair pairs[PAIRS_MAX];
enum { PASS = 4 };

static volatile sig_atomic_t reset_wanted, pass_wanted, held; /* held: bit i is flows[i] */

static void on_reset(int sig) {
  (void)sig;
  reset_wanted = 1;
}

static void on_hold(int sig) {
  if (sig - SIGRTMIN == PASS)
    pass_wanted = 1;
  else
    held = sig - SIGRTMIN;
}

static void die(const char *what) {
  fprintf(stderr, "lab-forward: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void end_pair(struct pair *pair, bool reset) {
  struct linger linger = {.l_onoff = 1, .l_linger = 0};

  for (int side = 0; side < 2; side++) {
    if (reset)
      setsockopt(pair->fds[side], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(pair->fds[side]);
    pair->fds[side] = -1;
  }
}

static int open_socket(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = SOCKET_BUFFER_BYTES;

  if (fd >= 0) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  }
  return fd;
}

static struct sockaddr_in parse_address(const char *address, const char *port) {
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

  if (inet_pton(AF_INET, address, &in.sin_addr) != 1 || !in.sin_port) {
    fprintf(stderr, "lab-forward: not an address and a port: %s %s\n", address, port);
    exit(2);
  }
  return in;
}

/* Connecting does not block: whether it worked is seen when something is written or read. */
static void take(int listener, const struct sockaddr_in *to) {
  int in_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), out_fd;
  struct pair *pair = NULL;

  if (in_fd < 0)
    return;
  for (int i = 0; i < PAIRS_MAX && !pair; i++)
    if (pairs[i].fds[0] < 0)
      pair = &pairs[i];
  out_fd = open_socket();
  if (!pair || out_fd < 0 || fcntl(out_fd, F_SETFL, O_NONBLOCK) < 0 ||
      (connect(out_fd, (const struct sockaddr *)to, sizeof(*to)) < 0 && errno != EINPROGRESS)) {
    perror("lab-forward: connect");
    close(in_fd);
    if (out_fd >= 0)
      close(out_fd);
    return;
  }
  memset(pair->flows, 0, sizeof(pair->flows));
  pair->fds[0] = in_fd;
  pair->fds[1] = out_fd;
}

static short wanted(const struct pair *pair, int side) {
  const struct flow *in = &pair->flows[side], *out = &pair->flows[!side];

  return (short)((in->end == 0 && !in->eof && !(held & 1 << side) ? POLLIN : 0) |
                 (out->end > 0 ? POLLOUT : 0));
}

static bool is_temporary(void) {
  return errno == EAGAIN || errno == EINTR || errno == ENOTCONN || errno == EINPROGRESS;
}

/* False: the pair is over, and broken rather than ended. */
static bool move(struct pair *pair, int side, short events) {
  struct flow *in = &pair->flows[side], *out = &pair->flows[!side];
  ssize_t n;

  if ((events & (POLLIN | POLLHUP | POLLERR)) && in->end == 0 && !in->eof) {
    n = recv(pair->fds[side], in->buffer, sizeof(in->buffer), 0);
    if (n > 0)
      in->end = (size_t)n;
    else if (n == 0)
      in->eof = true;
    else if (!is_temporary())
      return false;
  }
  if ((events & POLLOUT) && out->end > 0) {
    n = send(pair->fds[side], out->buffer + out->begin, out->end - out->begin, MSG_NOSIGNAL);
    if (n < 0 && !is_temporary())
      return false;
    if (n > 0)
      out->begin += (size_t)n;
    if (out->begin == out->end)
      out->begin = out->end = 0;
  }
  if (out->eof && out->end == 0 && !out->shut) {
    shutdown(pair->fds[side], SHUT_WR);
    out->shut = true;
  }
  return true;
}

int main(int argc, char **argv) {
  struct sigaction action = {.sa_handler = on_reset}, hold = {.sa_handler = on_hold};
  struct sockaddr_in from, to;
  int listener, yes = 1;
  sigset_t set, old_set;
  FILE *file;

  if (argc != 6) {
    fputs("usage: lab-forward PIDFILE LISTEN-ADDRESS PORT TO-ADDRESS TO-PORT\n", stderr);
    return 2;
  }
  from = parse_address(argv[2], argv[3]);
  to = parse_address(argv[4], argv[5]);
  for (int i = 0; i < PAIRS_MAX; i++)
    pairs[i].fds[0] = pairs[i].fds[1] = -1;
  /* The signal is taken in ppoll() only, so none is missed between a look at the flag and the wait. */
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  for (int bits = 0; bits <= PASS; bits++)
    sigaddset(&set, SIGRTMIN + bits);
  sigprocmask(SIG_BLOCK, &set, &old_set);
  sigaction(SIGUSR1, &action, NULL);
  for (int bits = 0; bits <= PASS; bits++)
    sigaction(SIGRTMIN + bits, &hold, NULL);
  listener = open_socket();
  if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
      bind(listener, (struct sockaddr *)&from, sizeof(from)) < 0 || listen(listener, 16) < 0)
    die("listen");
  if (!(file = fopen(argv[1], "we")) || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) < 0)
    die(argv[1]);

  for (;;) {
    struct pollfd fds[1 + 2 * PAIRS_MAX] = {{listener, POLLIN, 0}};

    for (int i = 0; i < 2 * PAIRS_MAX; i++) {
      const struct pair *pair = &pairs[i / 2];
      short events = pair->fds[0] >= 0 ? wanted(pair, i % 2) : 0;

      /* One that nothing is wanted of would report its end over and over. */
      fds[1 + i] = (struct pollfd){events ? pair->fds[i % 2] : -1, events, 0};
    }
    if (ppoll(fds, 1 + 2 * PAIRS_MAX, NULL, &old_set) < 0 && errno != EINTR)
      die("poll");
    if (reset_wanted) {
      reset_wanted = 0;
      for (int i = 0; i < PAIRS_MAX; i++)
        if (pairs[i].fds[0] >= 0)
          end_pair(&pairs[i], true);
      continue;
    }
    for (int i = 0; pass_wanted && i < 2 * PAIRS_MAX; i++)
      if (pairs[i / 2].fds[0] >= 0 && !move(&pairs[i / 2], i % 2, POLLIN))
        end_pair(&pairs[i / 2], true);
    if (pass_wanted) {
      pass_wanted = 0;
      continue;
    }
    for (int i = 0; i < 2 * PAIRS_MAX; i++) {
      struct pair *pair = &pairs[i / 2];

      if (pair->fds[0] < 0 || fds[1 + i].fd < 0 || !fds[1 + i].revents)
        continue;
      if (!move(pair, i % 2, fds[1 + i].revents))
        end_pair(pair, true);
      else if (pair->flows[0].shut && pair->flows[1].shut)
        end_pair(pair, false);
    }
    if (fds[0].revents)
      take(listener, &to);
  }
}

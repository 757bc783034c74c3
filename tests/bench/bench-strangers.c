/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Local users who send what they can: how long a polite one waits for GetInfo meanwhile, what the daemon's memory comes to,
 * and whether the service manager's watchdog is fed in time.
 *
 * The daemon is handoffd itself, its libvirtd away. Each of 36 senders is a process, as strangers of a user of its own or as
 * root; one that is disconnected connects again at once. Two polite clients call GetInfo each 5 ms on a connection that stays:
 * root, and a reader without rights. */
#include "tests/bench/bench-daemon.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDERS     36
#define SENDER_UID  61000 /* and the next ones; nobody's */
#define READER_UID  62000
#define PAUSE_MS    5
#define WATCHDOG_MS 1000
#define SAMPLES_MAX 100000

#define P99_AIM_MS   50
#define PEAK_AIM_MIB 128

#define MESSAGE_HEAD "{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"a\":"

/* What one sender sends again and again. */
typedef struct Row {
  const char *name;
  const char *remark;
  bool trusted;
  const char *unit, *separator; /* repeated within the parameter, up to `bytes` of a message */
  size_t bytes;
  bool reads;   /* the answers, between two messages; else it sends on */
  bool endless; /* the message never ends */
  bool stays;   /* one half message, and silence */
  bool same_user;
} Row;

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

static const Row rows[] = {
    {"alone", "nobody else", .bytes = 0},
    {"objects_16mib", "16 MiB of empty objects each", .unit = "{}", .separator = ",", .bytes = MIB(16) - 64,
     .reads = true},
    {"endless", "16 MiB and more that never end", .unit = "x", .separator = "", .bytes = MIB(17),
     .endless = true},
    {"one_user", "the same, all of one user", .unit = "{}", .separator = ",", .bytes = MIB(16) - 64,
     .reads = true, .same_user = true},
    {"objects_64kib", "calls of the longest that a stranger may send, of objects", .unit = "{}",
     .separator = ",", .bytes = KIB(64) - 64, .reads = true},
    {"string_64kib", "the same, of one string, pipelined, answers unread", .unit = "\\u00e9", .separator = "",
     .bytes = KIB(64) - 64},
    {"small", "pipelined GetInfo, answers unread", .unit = "1", .separator = "", .bytes = 64},
    {"halves", "half a message of 64 KiB and silence", .unit = "x", .separator = "", .bytes = KIB(60),
     .endless = true, .stays = true},
    {"trusted_objects_256kib", "36 of root's, calls of the longest, of objects", .trusted = true,
     .unit = "{}", .separator = ",", .bytes = KIB(256) - 64, .reads = true},
    {"trusted_string_256kib", "36 of root's, of one string", .trusted = true, .unit = "\\u00e9",
     .separator = "", .bytes = KIB(256) - 64, .reads = true},
};

/* --- senders --- */

/* What all senders together got rid of, and how often they had to connect. */
typedef struct Counts {
  gint sent_kib;
  gint connections;
  gint answers;
} Counts;

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  g_strlcpy(address.sun_path, path, sizeof address.sun_path);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
    return fd;
  close(fd);
  return -1;
}

static GString *make_message(const Row *row) {
  GString *message = g_string_new(MESSAGE_HEAD);
  bool string = !strchr("{[1", *row->unit);

  g_string_append_c(message, string ? '"' : '[');
  for (bool first = true; message->len < row->bytes; first = false) {
    if (!first)
      g_string_append(message, row->separator);
    g_string_append(message, row->unit);
  }
  if (!row->endless) {
    g_string_append(message, string ? "\"}}" : "]}}");
    g_string_append_c(message, '\0');
  }
  return message;
}

/* False: the daemon has closed the connection. */
static bool send_message(int fd, const GString *message, Counts *counts) {
  for (size_t at = 0; at < message->len;) {
    ssize_t n = send(fd, message->str + at, message->len - at, MSG_NOSIGNAL);

    if (n <= 0)
      return false;
    at += (size_t)n;
    g_atomic_int_add(&counts->sent_kib, (gint)(n / 1024));
  }
  return true;
}

static bool read_answer(int fd, Counts *counts) {
  char buffer[4096];
  ssize_t n;

  do {
    n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0)
      return false;
  } while (buffer[n - 1] != '\0');
  g_atomic_int_inc(&counts->answers);
  return true;
}

static void send_for_ever(const Row *row, const GString *message, const char *path, uid_t uid,
                          Counts *counts) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!row->trusted &&
      (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
    _exit(1);
  for (;;) {
    int fd = connect_to(path);
    bool open = fd >= 0;

    g_atomic_int_inc(&counts->connections);
    while (open) {
      open = send_message(fd, message, counts);
      if (row->stays)
        open = read_answer(fd, counts);
      else if (row->reads)
        open = open && read_answer(fd, counts);
    }
    close(fd);
  }
}

static void start_senders(const Row *row, const char *path, pid_t *ret_pids, Counts *counts) {
  /* Made once: 36 processes that make it would keep the machine busy for a while. */
  g_autoptr(GString) message = row->bytes > 0 ? make_message(row) : NULL;

  fflush(NULL);
  for (int i = 0; i < SENDERS; i++) {
    ret_pids[i] = row->bytes > 0 ? fork() : 0;
    if (row->bytes > 0 && ret_pids[i] == 0)
      send_for_ever(row, message, path, (uid_t)(SENDER_UID + (row->same_user ? 0 : i)), counts);
  }
}

static void end_senders(const pid_t *pids) {
  for (int i = 0; i < SENDERS && pids[i] > 0; i++) {
    kill(pids[i], SIGKILL);
    waitpid(pids[i], NULL, 0);
  }
}

/* --- polite clients, and the watchdog: threads of this program --- */

typedef struct Polite {
  VarlinkClient *client;
  const gint *over;
  double *latencies_ms;
  size_t n;
  bool lost; /* its connection */
} Polite;

static void wait_ms(int ms) {
  struct pollfd nothing = {.fd = -1};

  poll(&nothing, 1, ms);
}

static gpointer be_polite(gpointer data) {
  Polite *polite = data;

  while (!g_atomic_int_get(polite->over) && polite->n < SAMPLES_MAX && !polite->lost) {
    gint64 before_us = g_get_monotonic_time();
    g_auto(VarlinkReply) reply = {0};

    polite->lost =
        !varlink_client_call(polite->client, "org.varlink.service.GetInfo", NULL, 60000, &reply, NULL);
    polite->latencies_ms[polite->n++] = (double)(g_get_monotonic_time() - before_us) / 1000;
    wait_ms(PAUSE_MS);
  }
  return NULL;
}

typedef struct Watchdog {
  int fd;
  const gint *over;
  double longest_gap_ms;
} Watchdog;

static gpointer watch_watchdog(gpointer data) {
  Watchdog *watchdog = data;
  gint64 last_us = g_get_monotonic_time();

  while (!g_atomic_int_get(watchdog->over)) {
    struct pollfd poll_fd = {.fd = watchdog->fd, .events = POLLIN};
    char message[512] = "";

    if (poll(&poll_fd, 1, 20) > 0)
      (void)!recv(watchdog->fd, message, sizeof message - 1, 0);
    watchdog->longest_gap_ms =
        MAX(watchdog->longest_gap_ms, (double)(g_get_monotonic_time() - last_us) / 1000);
    if (strstr(message, "WATCHDOG=1"))
      last_us = g_get_monotonic_time();
  }
  return NULL;
}

/* --- a row --- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double quantile(const Polite *polite, double q) {
  qsort(polite->latencies_ms, polite->n, sizeof(double), compare);
  return polite->n > 0 ? polite->latencies_ms[MIN((size_t)((double)polite->n * q), polite->n - 1)] : 0;
}

static bool missed;

static const char *aim(bool met, const char *text) {
  missed = missed || !met;
  return met ? text : "AIM MISSED";
}

static void report_polite(const Row *row, const char *who, const Polite *polite, bool has_aim) {
  double p99 = quantile(polite, 0.99);
  bool met = p99 <= P99_AIM_MS && !polite->lost && polite->n > 0;

  printf("%-24s %-9s p50 %8.2f ms  p99 %8.2f ms  worst %8.2f ms  %5zu calls%s  %s\n", row->name, who,
         quantile(polite, 0.5), p99, quantile(polite, 1), polite->n, polite->lost ? ", LOST" : "",
         has_aim ? aim(met, "at most 50 ms") : "");
}

static void polite_start(Polite *polite, const Daemon *daemon, const gint *over) {
  *polite =
      (Polite){.client = daemon_connect(daemon), .over = over, .latencies_ms = g_new(double, SAMPLES_MAX)};
}

static void polite_clear(Polite *polite) {
  varlink_client_free(polite->client);
  g_free(polite->latencies_ms);
}

static void run_row(const Row *row, double seconds) {
  DaemonOptions options = {.program = g_getenv("HANDOFFD"),
                           .libvirt_uri = "qemu+unix:///system?socket=/nonexistent/libvirt-sock",
                           .watchdog_ms = WATCHDOG_MS};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  Counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  gint over = 0;
  Watchdog watchdog = {.fd = daemon->notify_fd, .over = &over};
  GThread *threads[3];
  pid_t pids[SENDERS];
  Polite root, reader;
  Memory memory;
  long before;

  if (chmod(daemon->directory, 0711) < 0 || counts == MAP_FAILED)
    die("%s: %s", daemon->directory, g_strerror(errno));
  polite_start(&root, daemon, &over);
  if (seteuid(READER_UID) < 0)
    die("this needs root");
  polite_start(&reader, daemon, &over);
  if (seteuid(0) < 0)
    die("seteuid: %s", g_strerror(errno));
  before = daemon_memory(daemon).rss;
  start_senders(row, daemon->socket, pids, counts);
  threads[0] = g_thread_new("root", be_polite, &root);
  threads[1] = g_thread_new("reader", be_polite, &reader);
  threads[2] = g_thread_new("watchdog", watch_watchdog, &watchdog);
  wait_ms((int)(seconds * 1000));
  g_atomic_int_set(&over, 1);
  for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
    g_thread_join(threads[i]);
  end_senders(pids);
  wait_ms(500);
  memory = daemon_memory(daemon);

  report_polite(row, "root", &root, !row->trusted);
  report_polite(row, "a reader", &reader, !row->trusted);
  printf("%-24s %-9s peak %.1f MiB (at most %d)%s, %.1f MiB before and %.1f MiB after; longest without "
         "WATCHDOG=1 %.0f ms "
         "(at most %d)%s; %.1f MiB/s sent, %d connections, %d answers: %s\n",
         row->name, "the agent", (double)memory.peak_rss / 1024, PEAK_AIM_MIB,
         aim(memory.peak_rss <= PEAK_AIM_MIB * 1024, ""), (double)before / 1024, (double)memory.rss / 1024,
         watchdog.longest_gap_ms, WATCHDOG_MS, aim(watchdog.longest_gap_ms <= WATCHDOG_MS, ""),
         counts->sent_kib / 1024.0 / seconds, counts->connections, counts->answers, row->remark);
  fflush(stdout);
  polite_clear(&root);
  polite_clear(&reader);
  munmap(counts, sizeof *counts);
}

int main(int argc, char **argv) {
  const char *seconds = g_getenv("SECONDS_EACH");

  if (geteuid() != 0)
    die("strangers are other users: this needs root");
  if (!g_getenv("HANDOFFD"))
    die("to be run by tests/bench/run, which says where the program is");
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    bool wanted = argc == 1;

    for (int k = 1; k < argc; k++)
      wanted = wanted || strcmp(argv[k], rows[i].name) == 0;
    if (wanted)
      run_row(&rows[i], seconds ? g_ascii_strtod(seconds, NULL) : 10);
  }
  return missed ? 1 : 0;
}

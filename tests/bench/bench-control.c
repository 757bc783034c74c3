/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the agent costs: Start, Get, memory, watchers, a restart. Medians, with the machine's own time for its disk beside.
 *
 * The hypervisor is scripted and lives in the daemon's process, so CPU time and memory are given both as they are and
 * without what the script takes: the same daemon in the same state before the load in question. */
#include "tests/bench/bench-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB        (INT64_C(1) << 20)
#define STARTS     200
#define GETS       40000
#define GET_ROUNDS 5
#define MIGRATIONS 32
#define WATCHERS   1000
#define WATCH_S    5

#define RESTART_FINISHED 1000
#define RESTART_RUNNING  20
#define RESTART_ROUNDS   5

static bool as_json;
static json_t *results;

/* One figure. `aim` NULL: there is none. */
static void report(const char *key, double value, const char *unit, const char *aim, bool met,
                   const char *remark) {
  json_t *row = json_pack("{sf ss}", "value", value, "unit", unit);

  if (aim)
    json_object_update_new(row, json_pack("{ss sb}", "aim", aim, "met", (int)met));
  json_object_set_new(results, key, row);
  if (as_json)
    return;
  printf("%-34s %10.*f %-8s %-14s %s\n", key,
         value < 10     ? 3
         : value < 1000 ? 1
                        : 0,
         value, unit,
         !aim  ? ""
         : met ? aim
               : "AIM MISSED",
         remark);
  fflush(stdout);
}

static double now_s(void) {
  return (double)g_get_monotonic_time() / G_USEC_PER_SEC;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double quantile(double *values, size_t n, double q) {
  qsort(values, n, sizeof *values, compare);
  return values[MIN((size_t)((double)n * q), n - 1)];
}

static double median(double *values, size_t n) {
  return quantile(values, n, 0.5);
}

/* --- Start --- */

/* What a durable write takes here: write, fsync, rename, fsync of the directory. */
static double write_durably(int directory, const char *data, size_t size) {
  double before = now_s();
  int fd = openat(directory, "probe.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  if (fd < 0 || write(fd, data, size) != (ssize_t)size || fsync(fd) < 0 || close(fd) < 0 ||
      renameat(directory, "probe.tmp", directory, "probe") < 0 || fsync(directory) < 0)
    die("the probe of the disk: %s", g_strerror(errno));
  return now_s() - before;
}

static size_t record_size(const Daemon *daemon, const char *id) {
  g_autofree char *path = g_strdup_printf("%s/jobs/%s.json", daemon->state_directory, id);
  struct stat st;

  if (stat(path, &st) < 0)
    die("%s: %s", path, g_strerror(errno));
  return (size_t)st.st_size;
}

static void end_move(const Daemon *daemon, VarlinkClient *client, const char *id) {
  await_phase(daemon, id, "migrating");
  json_decref(call(client, "Abort", json_pack("{ss}", "job", id)));
  await_phase(daemon, id, "aborted");
}

static void report_start(const char *name, const char *figure, double value, const char *unit,
                         const char *remark) {
  g_autofree char *key = g_strdup_printf("%s_%s", name, figure);

  report(key, value, unit, NULL, true, remark);
}

/* `alone`: each job has ended before the next one comes, so that the store has nothing else to write. Otherwise one
 * migration runs and the others wait for it. */
static void bench_start_of(const char *name, const char *what, bool alone) {
  static double start_s[STARTS], disk_s[STARTS], ratio[STARTS];
  DaemonOptions options = {.domains = STARTS + 1,
                           .memory_bytes = 16 * MIB,
                           .link_bytes_per_s = 1 * MIB,
                           .config = "MaxOutgoing=1\nPollInterval=50ms\n",
                           .policy = "completion_timeout_s_per_gib=0\n"};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  g_autofree char *first = daemon_start_move(daemon, client, STARTS);
  unsigned starts = alone ? STARTS / 4 : STARTS;
  size_t size = record_size(daemon, first);
  g_autofree char *data = g_strnfill(size, 'x');
  int directory = open(daemon->state_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  double fsyncs;

  await_phase(daemon, first, "migrating");
  if (alone)
    end_move(daemon, client, first);
  for (unsigned i = 0; i < starts; i++) {
    g_autofree char *id = NULL;
    double before;

    /* One after the other, so that both meet the same disk in the same mood. */
    disk_s[i] = write_durably(directory, data, size);
    before = now_s();
    id = daemon_start_move(daemon, client, i);
    start_s[i] = now_s() - before;
    ratio[i] = start_s[i] / disk_s[i];
    if (alone)
      end_move(daemon, client, id);
  }
  close(directory);
  report_start(name, "disk_pair_ms", median(disk_s, starts) * 1000, "ms",
               "write, fsync, rename, fsync of the directory: one pair");
  report_start(name, "ms", median(start_s, starts) * 1000, "ms", what);
  report_start(name, "p95_ms", quantile(start_s, starts, 0.95) * 1000, "ms", "");
  fsyncs = 2 * median(ratio, starts);
  {
    g_autofree char *key = g_strconcat(name, "_fsyncs", NULL);

    report(key, fsyncs, "fsyncs", "at most 3", fsyncs <= 3, "two in each pair");
  }
}

static void bench_start(void) {
  bench_start_of("start_alone", "call to durable answer, nothing else to write", true);
  bench_start_of("start_queued", "call to durable answer, while a migration runs", false);
}

/* --- Get --- */

static double gets_per_s(VarlinkClient *client, const char *job, unsigned window, unsigned n) {
  unsigned sent = 0, received = 0;
  double before = now_s();
  g_autoptr(GError) error = NULL;

  while (received < n) {
    g_auto(VarlinkReply) reply = {0};

    while (sent < n && sent - received < window) {
      if (!varlink_client_send(client, "io.handoffd.Agent.Get", json_pack("{ss}", "job", job), 0, &error))
        die("Get: %s", error->message);
      sent++;
    }
    if (!varlink_client_receive(client, 10000, &reply, &error) || reply.error)
      die("Get: %s", error ? error->message : reply.error);
    received++;
  }
  return n / (now_s() - before);
}

/* A client that costs as little as one can: the bytes of a call over and over, NULs counted in what comes. What is left
 * is the daemon's own speed. */
static double raw_gets_per_s(const Daemon *daemon, const char *job, unsigned window, unsigned n) {
  g_autofree char *text =
      g_strdup_printf("{\"method\":\"io.handoffd.Agent.Get\",\"parameters\":{\"job\":\"%s\"}}", job);
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  size_t length = strlen(text) + 1;
  int fd = varlink_client_get_fd(client);
  static char buffer[1 << 18];
  unsigned sent = 0, received = 0;
  double before = now_s();

  while (received < n) {
    ssize_t got;

    while (sent < n && sent - received < window) {
      if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
        die("Get: %s", g_strerror(errno));
      sent++;
    }
    got = recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0)
      die("Get: %s", g_strerror(errno));
    for (const char *at = buffer; (at = memchr(at, 0, (size_t)(buffer + got - at))); at++)
      received++;
  }
  return n / (now_s() - before);
}

static void bench_get_of(const Daemon *daemon, const char *job, const char *what) {
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  double ping[GET_ROUNDS], pipe[GET_ROUNDS], raw[GET_ROUNDS], raw_ping[GET_ROUNDS], cpu[GET_ROUNDS];
  g_autofree char *ping_key = g_strdup_printf("get_%s_pingpong_per_s", what);
  g_autofree char *pipe_key = g_strdup_printf("get_%s_pipelined_per_s", what);
  g_autofree char *raw_ping_key = g_strdup_printf("get_%s_raw_pingpong_per_s", what);
  g_autofree char *raw_key = g_strdup_printf("get_%s_raw_pipelined_per_s", what);
  g_autofree char *cpu_key = g_strdup_printf("get_%s_daemon_cpu_us", what);
  double best;

  for (int i = 0; i < GET_ROUNDS; i++) {
    double before;

    ping[i] = gets_per_s(client, job, 1, GETS / GET_ROUNDS);
    pipe[i] = gets_per_s(client, job, 64, GETS / GET_ROUNDS);
    raw_ping[i] = raw_gets_per_s(daemon, job, 1, GETS / GET_ROUNDS);
    before = daemon_cpu_s(daemon);
    raw[i] = raw_gets_per_s(daemon, job, 64, GETS);
    cpu[i] = (daemon_cpu_s(daemon) - before) / GETS * 1e6;
  }
  best = median(pipe, GET_ROUNDS);
  report(ping_key, median(ping, GET_ROUNDS), "/s", NULL, true,
         "one call at a time, answers parsed by our client");
  report(pipe_key, best, "/s", NULL, true, "64 calls on their way, answers parsed by our client");
  report(raw_ping_key, median(raw_ping, GET_ROUNDS), "/s", NULL, true,
         "one call at a time, answers not parsed");
  best = median(raw, GET_ROUNDS);
  report(raw_key, best, "/s", "at least 20000", best >= 20000, "64 on their way, answers not parsed");
  report(cpu_key, median(cpu, GET_ROUNDS), "us", NULL, true, "of the daemon for each Get");
}

/* The machine's own time for it: a child that answers each message of a call's size with one of an answer's, and does
 * nothing else. What ping-pong costs beyond that is the daemon's. */
static double echoes_per_s(size_t call_size, size_t answer_size, unsigned n) {
  g_autofree char *buffer = g_malloc0(call_size + answer_size);
  int fds[2];
  double before;
  pid_t pid;

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || (pid = fork()) < 0)
    die("echo: %s", g_strerror(errno));
  if (pid == 0) {
    close(fds[0]);
    while (recv(fds[1], buffer, call_size, MSG_WAITALL) == (ssize_t)call_size &&
           send(fds[1], buffer, answer_size, MSG_NOSIGNAL) == (ssize_t)answer_size)
      ;
    _exit(0);
  }
  close(fds[1]);
  before = now_s();
  for (unsigned i = 0; i < n; i++)
    if (send(fds[0], buffer, call_size, MSG_NOSIGNAL) != (ssize_t)call_size ||
        recv(fds[0], buffer, answer_size, MSG_WAITALL) != (ssize_t)answer_size)
      die("echo: %s", g_strerror(errno));
  before = now_s() - before;
  close(fds[0]);
  waitpid(pid, NULL, 0);
  return n / before;
}

static void bench_get(void) {
  DaemonOptions options = {.domains = 2,
                           .memory_bytes = 64 * MIB,
                           .link_bytes_per_s = 1024 * MIB,
                           .config = "MaxOutgoing=1\n",
                           .policy = "completion_timeout_s_per_gib=0\n"};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  g_autofree char *job = daemon_start_move(daemon, client, 0);

  await_phase(daemon, job, "succeeded");
  report("echo_pingpong_per_s", echoes_per_s(100, 2048, GETS), "/s", NULL, true,
         "the machine itself: a child that answers with 2 KiB at once");
  bench_get_of(daemon, job, "finished");
}

/* --- memory --- */

static void bench_memory_idle(void) {
  DaemonOptions fake_options = {.domains = 1, .memory_bytes = MIB, .link_bytes_per_s = MIB};
  DaemonOptions real_options = {.domains = 1,
                                .memory_bytes = MIB,
                                .link_bytes_per_s = MIB,
                                .program = g_getenv("HANDOFFD"),
                                .libvirt_uri = "qemu+unix:///system?socket=/nonexistent/libvirt-sock"};
  g_autoptr(Daemon) fake = daemon_new(&fake_options);
  g_autoptr(Daemon) real = daemon_new(&real_options);
  g_autoptr(VarlinkClient) client = daemon_connect(real);
  Memory memory;

  /* It has tried to connect, and so has loaded what libvirt loads, once a second call is answered. */
  for (int i = 0; i < 100; i++)
    json_decref(call(client, "GetNode", NULL));
  memory = daemon_memory(real);
  report("idle_rss_mib", (double)memory.rss / 1024, "MiB", "at most 20", memory.rss <= 20 * 1024,
         "handoffd itself, its libvirtd away");
  report("idle_pss_mib", (double)memory.pss / 1024, "MiB", NULL, true, "shared pages by their share");
  report("idle_private_mib", (double)memory.private_pages / 1024, "MiB", NULL, true,
         "what its end would free");
  report("idle_shared_mib", (double)memory.shared / 1024, "MiB", NULL, true,
         "pages that others map too: libraries");
  report("idle_anonymous_mib", (double)memory.anonymous / 1024, "MiB", NULL, true, "heap, stacks, data");
  report("idle_threads", (double)memory.threads, "threads", NULL, true, "");
  memory = daemon_memory(fake);
  report("idle_fake_rss_mib", (double)memory.rss / 1024, "MiB", NULL, true,
         "the one with the scripted hypervisor");
}

static void bench_memory_each(void) {
  DaemonOptions options = {.domains = MIGRATIONS + 1,
                           .memory_bytes = 1024 * MIB,
                           .link_bytes_per_s = MIB,
                           .config = "MaxOutgoing=1000\n",
                           .policy = "completion_timeout_s_per_gib=0\nprogress_timeout_s=0\n"};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  char *jobs[MIGRATIONS];
  g_autofree char *first = daemon_start_move(daemon, client, MIGRATIONS);
  Memory before, after;
  double each;

  await_phase(daemon, first, "migrating");
  before = daemon_memory(daemon);
  for (unsigned i = 0; i < MIGRATIONS; i++)
    jobs[i] = daemon_start_move(daemon, client, i);
  for (unsigned i = 0; i < MIGRATIONS; i++) {
    await_phase(daemon, jobs[i], "migrating");
    g_free(jobs[i]);
  }
  /* Some rounds of numbers from each. */
  for (int i = 0; i < 5; i++) {
    struct pollfd nothing = {.fd = -1};

    poll(&nothing, 1, 400);
  }
  after = daemon_memory(daemon);
  each = (double)(after.rss - before.rss) / MIGRATIONS;
  report("migration_rss_kib", each, "KiB", "at most 256", each <= 256,
         "each of 32 under way, with its three threads");
  report("migration_private_kib", (double)(after.private_pages - before.private_pages) / MIGRATIONS, "KiB",
         NULL, true, "");
  report("migration_threads", (double)(after.threads - before.threads) / MIGRATIONS, "threads", NULL, true,
         "");
}

static void bench_memory(void) {
  bench_memory_idle();
  bench_memory_each();
}

/* --- watchers --- */

typedef struct Watchers {
  int epoll;
  VarlinkClient *clients[WATCHERS];
  unsigned messages; /* whole ones */
  unsigned in_round; /* of watchers that the current message has reached */
  double round_began_s;
  double lags_s[4096];
  size_t n_lags;
  double bytes;
} Watchers;

/* Reads what is there. The daemon tells all of one change before it comes to the next, so that each WATCHERS messages
 * are one round. */
static void drain(Watchers *watchers, int timeout_ms) {
  struct epoll_event events[256];
  int n = epoll_wait(watchers->epoll, events, G_N_ELEMENTS(events), timeout_ms);
  static char buffer[1 << 16];

  for (int i = 0; i < n; i++) {
    ssize_t got = recv(events[i].data.fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (got <= 0)
      die("a watcher was left");
    watchers->bytes += (double)got;
    for (const char *at = buffer; (at = memchr(at, 0, (size_t)(buffer + got - at))); at++) {
      watchers->messages++;
      if (watchers->in_round++ == 0)
        watchers->round_began_s = now_s();
      if (watchers->in_round == WATCHERS) {
        watchers->in_round = 0;
        if (watchers->n_lags < G_N_ELEMENTS(watchers->lags_s))
          watchers->lags_s[watchers->n_lags++] = now_s() - watchers->round_began_s;
      }
    }
  }
}

static void drain_for(Watchers *watchers, double seconds) {
  double until = now_s() + seconds;

  while (now_s() < until)
    drain(watchers, (int)((until - now_s()) * 1000) + 1);
}

static void wait_s(double seconds) {
  struct pollfd nothing = {.fd = -1};

  poll(&nothing, 1, (int)(seconds * 1000));
}

static void bench_watch(void) {
  DaemonOptions options = {.domains = 1,
                           .memory_bytes = 1024 * MIB,
                           .link_bytes_per_s = 4 * MIB,
                           .policy = "completion_timeout_s_per_gib=0\nprogress_timeout_s=0\n"};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  g_autoptr(VarlinkClient) client = daemon_connect(daemon);
  g_autofree char *job = daemon_start_move(daemon, client, 0);
  g_autofree Watchers *watchers = g_new0(Watchers, 1);
  double alone, watched, began, cpu;

  await_phase(daemon, job, "migrating");
  cpu = daemon_cpu_s(daemon);
  wait_s(WATCH_S);
  alone = (daemon_cpu_s(daemon) - cpu) / WATCH_S * 100;

  watchers->epoll = epoll_create1(EPOLL_CLOEXEC);
  for (unsigned i = 0; i < WATCHERS; i++) {
    struct epoll_event event = {.events = EPOLLIN};

    watchers->clients[i] = daemon_connect(daemon);
    event.data.fd = varlink_client_get_fd(watchers->clients[i]);
    epoll_ctl(watchers->epoll, EPOLL_CTL_ADD, event.data.fd, &event);
    varlink_client_send(watchers->clients[i], "io.handoffd.Agent.Watch", json_pack("{ss}", "job", job),
                        VARLINK_CALL_MORE, NULL);
  }
  /* Their first messages, and the round in the middle of which the last one came. */
  drain_for(watchers, 1);
  while (watchers->in_round != 0)
    drain(watchers, 100);
  watchers->in_round = 0;
  watchers->messages = 0;
  watchers->n_lags = 0;
  watchers->bytes = 0;

  began = now_s();
  cpu = daemon_cpu_s(daemon);
  drain_for(watchers, WATCH_S);
  watched = (daemon_cpu_s(daemon) - cpu) / (now_s() - began) * 100;

  report("watch_cpu_pct", watched, "%", "below 5", watched < 5, "of a core, 1,000 watchers of one migration");
  report("watch_cpu_alone_pct", alone, "%", NULL, true,
         "the same without watchers: mostly the scripted hypervisor");
  report("watch_messages_per_s", watchers->messages / (double)WATCH_S, "/s", NULL, true,
         "told to all watchers");
  report("watch_message_bytes", watchers->bytes / MAX(watchers->messages, 1), "bytes", NULL, true, "");
  if (watchers->n_lags > 0) {
    report("watch_lag_ms", median(watchers->lags_s, watchers->n_lags) * 1000, "ms", NULL, true,
           "from the first watcher's reception to the last's");
    report("watch_lag_worst_ms", quantile(watchers->lags_s, watchers->n_lags, 1) * 1000, "ms", NULL, true,
           "");
  }
  for (unsigned i = 0; i < WATCHERS; i++)
    varlink_client_free(watchers->clients[i]);
  close(watchers->epoll);
}

/* --- restart --- */

static json_t *load(const char *path) {
  json_t *record = json_load_file(path, 0, NULL);

  if (!record)
    die("%s cannot be read", path);
  return record;
}

/* As so many moves would have left them: copies of one's record. */
static void put_finished(const Daemon *daemon, const char *job, unsigned n) {
  g_autofree char *path = g_strdup_printf("%s/jobs/%s.json", daemon->state_directory, job);
  json_t *record = load(path);

  for (unsigned i = 1; i <= n; i++) {
    g_autofree char *id = g_strdup_printf("%032x", i);
    g_autofree char *copy = g_strdup_printf("%s/jobs/%s.json", daemon->state_directory, id);

    json_object_set_new(json_object_get(record, "job"), "id", json_string(id));
    json_object_set_new(json_object_get(record, "agent"), "seq", json_integer(1000 + i));
    if (json_dump_file(record, copy, JSON_COMPACT) < 0)
      die("%s cannot be written", copy);
  }
  json_decref(record);
}

static bool is_steered(VarlinkClient *client, const char *job) {
  json_t *reply = call(client, "Get", json_pack("{ss}", "job", job));
  json_t *object = json_object_get(reply, "job");
  bool steered = g_strcmp0(json_string_value(json_object_get(object, "phase")), "migrating") == 0 &&
                 json_object_get(object, "progress");

  json_decref(reply);
  return steered;
}

static void bench_restart(void) {
  DaemonOptions options = {.domains = RESTART_RUNNING + 1,
                           .memory_bytes = 16 * MIB,
                           .link_bytes_per_s = MIB / 16,
                           .config = "MaxOutgoing=100\nKeepFinished=10000\nPollInterval=50ms\n",
                           .policy = "completion_timeout_s_per_gib=0\n"};
  g_autoptr(Daemon) daemon = daemon_new(&options);
  g_autoptr(VarlinkClient) before = daemon_connect(daemon);
  g_autofree char *first = daemon_start_move(daemon, before, RESTART_RUNNING);
  char *jobs[RESTART_RUNNING];
  double took_s[RESTART_ROUNDS], serves_s[RESTART_ROUNDS];

  end_move(daemon, before, first);
  for (unsigned i = 0; i < RESTART_RUNNING; i++) {
    jobs[i] = daemon_start_move(daemon, before, i);
    await_phase(daemon, jobs[i], "migrating");
  }
  put_finished(daemon, first, RESTART_FINISHED);
  for (unsigned round = 0; round < RESTART_ROUNDS; round++) {
    g_autoptr(VarlinkClient) client = NULL;
    double began;

    daemon_kill(daemon);
    began = now_s();
    daemon_start(daemon);
    client = daemon_connect(daemon);
    serves_s[round] = now_s() - began;
    for (unsigned i = 0; i < RESTART_RUNNING; i++)
      while (!is_steered(client, jobs[i]))
        if (now_s() - began > 30)
          die("job %s is not steered 30 s after a restart", jobs[i]);
    took_s[round] = now_s() - began;
  }
  for (unsigned i = 0; i < RESTART_RUNNING; i++)
    g_free(jobs[i]);
  report("restart_serves_ms", median(serves_s, RESTART_ROUNDS) * 1000, "ms", NULL, true,
         "from exec to the first connection, 1,000 finished and 20 running jobs");
  report("restart_steering_ms", median(took_s, RESTART_ROUNDS) * 1000, "ms", "at most 1000",
         median(took_s, RESTART_ROUNDS) <= 1, "until all 20 have numbers again");
}

/* --- the whole --- */

static const struct {
  const char *name;
  void (*run)(void);
} rows[] = {
    {"start", bench_start}, {"get", bench_get},         {"memory", bench_memory},
    {"watch", bench_watch}, {"restart", bench_restart},
};

static void raise_descriptor_limit(void) {
  struct rlimit limit;

  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv) {
  bool all = true;

  results = json_object();
  raise_descriptor_limit();
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--json") == 0)
      as_json = true;
    else
      all = false;
  if (!g_getenv("HANDOFFD") || !g_getenv("HANDOFFD_FAKE"))
    die("to be run by tests/bench/run, which says where the programs are");
  for (size_t row = 0; row < G_N_ELEMENTS(rows); row++) {
    bool wanted = all;

    for (int i = 1; i < argc; i++)
      wanted = wanted || strcmp(argv[i], rows[row].name) == 0;
    if (wanted)
      rows[row].run();
  }
  if (as_json) {
    json_dumpf(results, stdout, JSON_INDENT(1));
    putchar('\n');
  }
  json_decref(results);
  return 0;
}

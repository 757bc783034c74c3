/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the whole daemon over its socket: fuzz-calls [--calls N] [--seed N] [--restart-every N] [--quiet]
 *
 * Theory of Operation. The daemon is handoffd-fake: all of handoffd but the hypervisor, which is scripted. Some connections
 * of root's and of strangers are fed with what make.c writes, pipelined, in pieces of any size; due.c says of each message
 * what has to come of it. Some connections do not read for a while, some break off. Now and then the daemon is killed or
 * ended, and started on the same directory. What must hold:
 *
 * - it lives, and says nothing of sanitizers, criticals or warnings
 * - each call gets the answers that are due, in order, no more; each fits the interface
 * - what is no call ends its connection, and nothing else does
 * - GetInfo of a polite client is answered in time
 * - after a restart each job that was acknowledged is there, the same request_key gives the same job, and no record was set
 *   aside
 *
 * A seed gives the same calls; how they meet in the daemon depends on the machine. */
#include "due.h"
#include "make.h"

#include "proto/framing.h"
#include "tests/bench/bench-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS   24
#define STRANGERS     6 /* of these, where we are root */
#define STRANGER_UID  61000
#define CALLS_AT_ONCE 16
#define DUES_MAX      48
#define DOMAINS       24
#define KEPT_JOBS     64
#define POLITE_EVERY  2000

#define TURNED_AWAY "io.handoffd.Agent.TooManyConnections"

#define POLITE_MS   5000
#define PATIENCE_US (60 * G_USEC_PER_SEC)

typedef struct Connection {
  int fd; /* -1: to be made */
  bool trusted;
  GString *out; /* to be sent */
  gsize sent;
  GString *tail; /* of a message that has begun, in front of the next ones */
  VarlinkFraming in;
  GQueue dues;  /* Due */
  bool ends;    /* what was sent is no call */
  bool streams; /* nothing more is sent: it may never be answered */
  gint64 progress_us;
  gint64 deaf_until_us;
  gint64 leaves_us; /* when it breaks off, or 0 */
} Connection;

/* An acknowledged job. */
typedef struct Kept {
  char *id;
  char *method;
  json_t *keyed; /* parameters with a key, or NULL */
} Kept;

typedef struct Fuzz {
  guint32 seed;
  guint64 calls_wanted, restart_every;
  Interfaces interfaces;
  Maker *maker;
  Daemon *daemon;
  VarlinkClient *polite;
  Connection connections[CONNECTIONS];
  GQueue kept;
  unsigned first_domain;
  guint64 calls, answers, errors, ends, jobs, restarts, turned_away;
  guint64 next_restart, next_polite;
  double polite_worst_ms;
  long peak_kib;
  bool quiet;
} Fuzz;

static void print_log(const Fuzz *fuzz) {
  g_autofree char *path = g_build_filename(fuzz->daemon->directory, "log", NULL);
  g_autofree char *text = NULL;
  gsize length;

  if (g_file_get_contents(path, &text, &length, NULL))
    fprintf(stderr, "--- the end of the daemon's log\n%s\n---\n", text + (length > 6000 ? length - 6000 : 0));
}

G_GNUC_PRINTF(2, 3)
G_GNUC_NORETURN
static void fail(const Fuzz *fuzz, const char *format, ...) {
  g_autofree char *text = NULL;
  va_list arguments;

  va_start(arguments, format);
  text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  print_log(fuzz);
  fprintf(stderr, "fuzz-calls: --seed %u, after %" G_GUINT64_FORMAT " calls, directory %s: %s\n", fuzz->seed,
          fuzz->calls, fuzz->daemon->directory, text);
  daemon_kill(fuzz->daemon);
  exit(1);
}

/* --- the world --- */

static void write_world(Fuzz *fuzz) {
  static const json_int_t rates[] = {64 << 10, 1 << 20, 64 << 20, 1 << 30};
  g_autofree char *temporary = g_strconcat(fuzz->daemon->control, ".new", NULL);
  json_t *domains = json_object(), *world;

  for (unsigned i = 0; i < DOMAINS; i++) {
    g_autofree char *name = g_strdup_printf("vm%u", fuzz->first_domain + i);

    json_object_set_new(domains, name,
                        json_pack("{ss si si}", "host", i % 4 == 0 ? "b" : "a", "memory_bytes", 16 << 20,
                                  "dirty_bytes_per_s", (int)maker_below(fuzz->maker, 4 << 20)));
    maker_learn(fuzz->maker, POOL_DOMAIN, name);
  }
  world = json_pack("{s{s{} s{} s{sb}} so s{sI} si}", "hosts", "a", "b", "c", "reachable", 0, "domains",
                    domains, "link", "bytes_per_s", rates[maker_below(fuzz->maker, G_N_ELEMENTS(rates))],
                    "keepalive_ms", 2000);
  if (json_dump_file(world, temporary, 0) < 0 || g_rename(temporary, fuzz->daemon->control) < 0)
    fail(fuzz, "%s cannot be written", fuzz->daemon->control);
  json_decref(world);
}

static void write_config(Fuzz *fuzz) {
  const char *control = fuzz->daemon->control;
  g_autofree char *text = g_strdup_printf(
      "[Agent]\nMaxOutgoing=6\nMaxIncoming=6\nKeepFinished=400\nPollInterval=50ms\nWatchInterval=10ms\n"
      "ConnectTimeout=1s\nPrepareTimeout=2s\nLinkBandwidth=100M\nPublicRead=all\n"
      "[Policy]\n[Policy quick]\nMaxDowntime=1s\n[Policy patient]\nMaxDowntime=100ms\n"
      "[Target b]\nLibvirtURI=fake://%s?host=b\n[Target c]\nLibvirtURI=fake://%s?host=c\n",
      control, control);

  if (!g_file_set_contents(fuzz->daemon->config, text, -1, NULL))
    fail(fuzz, "%s cannot be written", fuzz->daemon->config);
}

static void teach_targets(Fuzz *fuzz) {
  static const char *const hosts[] = {"a", "b", "b", "c", "d"};

  for (size_t i = 0; i < G_N_ELEMENTS(hosts); i++) {
    g_autofree char *uri = g_strdup_printf("fake://%s?host=%s", fuzz->daemon->control, hosts[i]);

    maker_learn(fuzz->maker, POOL_TARGET, uri);
    maker_learn(fuzz->maker, POOL_TARGET, i % 2 ? "b" : "c");
    maker_learn(fuzz->maker, POOL_TARGET, "b");
  }
}

/* --- connections --- */

static void connection_reset(Connection *connection) {
  if (connection->fd >= 0)
    close(connection->fd);
  connection->fd = -1;
  g_string_truncate(connection->out, 0);
  g_string_truncate(connection->tail, 0);
  connection->sent = 0;
  varlink_framing_clear(&connection->in);
  g_queue_clear_full(&connection->dues, (GDestroyNotify)due_free);
  g_queue_init(&connection->dues);
  connection->ends = connection->streams = false;
  connection->deaf_until_us = connection->leaves_us = 0;
}

static void connect_as(uid_t uid) {
  if (geteuid() == 0 || uid == 0)
    if (seteuid(uid) < 0)
      die("seteuid: %s", g_strerror(errno));
}

static void connection_open(Fuzz *fuzz, Connection *connection) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  g_strlcpy(address.sun_path, fuzz->daemon->socket, sizeof address.sun_path);
  connection->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!connection->trusted)
    connect_as(STRANGER_UID + maker_below(fuzz->maker, 2));
  if (connect(connection->fd, (const struct sockaddr *)&address, sizeof address) < 0)
    fail(fuzz, "connect: %s", g_strerror(errno));
  if (!connection->trusted)
    connect_as(0);
  fcntl(connection->fd, F_SETFL, O_NONBLOCK);
  connection->progress_us = g_get_monotonic_time();
}

/* What is to come of the bytes up to where nothing more is to be sent; the rest is dropped. */
static void expect(Fuzz *fuzz, Connection *connection, GString *bytes) {
  gsize at = 0;
  const char *nul;

  while (at < bytes->len && !connection->ends && !connection->streams &&
         (nul = memchr(bytes->str + at, '\0', bytes->len - at))) {
    gsize length = (gsize)(nul - (bytes->str + at));
    Due *due;

    fuzz->calls++;
    switch (due_of(&fuzz->interfaces, bytes->str + at, length, connection->trusted, &due)) {
    case DUE_ANSWER:
      connection->streams = due->streams && !due->error;
      g_queue_push_tail(&connection->dues, due);
      break;
    case DUE_NOTHING:
      break;
    case DUE_END:
      connection->ends = true;
      fuzz->ends++;
    }
    at += length + 1;
  }
  g_string_append_len(connection->out, bytes->str, (gssize)at);
  if (!connection->ends && !connection->streams)
    g_string_append_len(connection->tail, bytes->str + at, (gssize)(bytes->len - at));
}

static void make_calls(Fuzz *fuzz, Connection *connection) {
  g_autoptr(GString) bytes = g_string_new_len(connection->tail->str, (gssize)connection->tail->len);
  unsigned n = 1 + maker_below(fuzz->maker, CALLS_AT_ONCE);

  g_string_truncate(connection->tail, 0);
  for (unsigned i = 0; i < n; i++)
    maker_append_call(fuzz->maker, bytes);
  expect(fuzz, connection, bytes);
}

static void send_out(Fuzz *fuzz, Connection *connection) {
  while (connection->sent < connection->out->len) {
    gsize left = connection->out->len - connection->sent;
    gsize piece = maker_chance(fuzz->maker, 0.05) ? 1 + maker_below(fuzz->maker, (unsigned)left) : left;
    ssize_t n = send(connection->fd, connection->out->str + connection->sent, piece, MSG_NOSIGNAL);

    /* That it is closed is for the reader to judge. */
    if (n <= 0) {
      if (errno != EAGAIN)
        connection->sent = connection->out->len;
      break;
    }
    connection->sent += (gsize)n;
    if (piece < left)
      break;
  }
  if (connection->sent == connection->out->len) {
    g_string_truncate(connection->out, 0);
    connection->sent = 0;
  }
}

/* --- answers --- */

static void kept_free(gpointer data) {
  Kept *kept = data;

  g_free(kept->id);
  g_free(kept->method);
  json_decref(kept->keyed);
  g_free(kept);
}

/* Of Start and Prepare: it is acknowledged. */
static void keep_job(Fuzz *fuzz, const Due *due, const VarlinkReplyMessage *reply) {
  const char *id = json_string_value(json_object_get(json_object_get(reply->parameters, "job"), "id"));
  Kept *kept;

  if (!id || !json_is_true(json_object_get(reply->parameters, "created")))
    return;
  kept = g_new0(Kept, 1);
  kept->id = g_strdup(id);
  kept->method = g_strdup(due->method);
  kept->keyed = json_incref(due->keyed);
  g_queue_push_tail(&fuzz->kept, kept);
  if (g_queue_get_length(&fuzz->kept) > KEPT_JOBS)
    kept_free(g_queue_pop_head(&fuzz->kept));
  maker_learn(fuzz->maker, POOL_JOB, id);
  if (kept->keyed)
    maker_learn(fuzz->maker, POOL_KEY, json_string_value(json_object_get(kept->keyed, "request_key")));
  fuzz->jobs++;
}

static void handle_answer(Fuzz *fuzz, Connection *connection, const char *data, size_t length) {
  g_auto(VarlinkReplyMessage) reply = {0};
  g_autoptr(GError) error = NULL;
  g_autofree char *wrong = NULL;
  Due *due = g_queue_peek_head(&connection->dues);

  if (!varlink_reply_message_parse(data, length, &reply, &error))
    fail(fuzz, "an answer is none: %s: %.*s", error->message, (int)MIN(length, 2000), data);
  /* Those that have broken off count until the daemon has seen it. */
  if (!connection->trusted && g_strcmp0(reply.error, TURNED_AWAY) == 0) {
    connection_reset(connection);
    fuzz->turned_away++;
    return;
  }
  if (!due)
    fail(fuzz, "an answer to no call: %.2000s", data);
  wrong = due_judge(&fuzz->interfaces, due, &reply);
  if (wrong)
    fail(fuzz, "%s\ncall: %s\nanswer: %.3000s", wrong, due->message, data);
  fuzz->answers++;
  fuzz->errors += reply.error != NULL;
  if (reply.continues)
    return;
  if (!reply.error)
    keep_job(fuzz, due, &reply);
  due_free(g_queue_pop_head(&connection->dues));
  if (g_queue_is_empty(&connection->dues))
    connection->streams = false;
}

static void receive(Fuzz *fuzz, Connection *connection) {
  static char buffer[1 << 16];
  ssize_t n = recv(connection->fd, buffer, sizeof buffer, 0);
  const Due *due = g_queue_peek_head(&connection->dues);
  char *message;
  size_t length;

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    if (!connection->ends || due)
      fail(fuzz, "a connection of %s ended, %u answers were due. First: %s",
           connection->trusted ? "root's" : "a stranger", g_queue_get_length(&connection->dues),
           due ? due->message : "none");
    connection_reset(connection);
    return;
  }
  connection->progress_us = g_get_monotonic_time();
  varlink_framing_push(&connection->in, buffer, (size_t)n);
  while (varlink_framing_next(&connection->in, &message, &length) == VARLINK_FRAMING_MESSAGE)
    handle_answer(fuzz, connection, message, length);
  varlink_framing_release(&connection->in);
}

/* --- what must hold of the whole --- */

static void check_directory(const Fuzz *fuzz, const char *name) {
  g_autofree char *path = g_build_filename(fuzz->daemon->state_directory, name, NULL);
  g_autoptr(GDir) directory = g_dir_open(path, 0, NULL);

  for (const char *entry; directory && (entry = g_dir_read_name(directory));)
    if (g_str_has_suffix(entry, ".bad"))
      fail(fuzz, "a record was set aside: %s/%s", path, entry);
}

static void check_log(const Fuzz *fuzz) {
  static const char *const complaints[] = {"Sanitizer", "runtime error:", "-CRITICAL **", "-WARNING **"};
  g_autofree char *path = g_build_filename(fuzz->daemon->directory, "log", NULL);
  g_autofree char *text = NULL;

  if (!g_file_get_contents(path, &text, NULL, NULL))
    return;
  for (size_t i = 0; i < G_N_ELEMENTS(complaints); i++)
    if (strstr(text, complaints[i]))
      fail(fuzz, "the daemon complains: %s", complaints[i]);
  /* It has been read. */
  if (truncate(path, 0) < 0)
    fail(fuzz, "%s: %s", path, g_strerror(errno));
}

static void be_polite(Fuzz *fuzz) {
  gint64 before_us = g_get_monotonic_time();
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (!varlink_client_call(fuzz->polite, "org.varlink.service.GetInfo", NULL, POLITE_MS, &reply, &error))
    fail(fuzz, "GetInfo: %s", error->message);
  fuzz->polite_worst_ms = MAX(fuzz->polite_worst_ms, (double)(g_get_monotonic_time() - before_us) / 1000);
}

static json_t *ask(Fuzz *fuzz, const char *method, json_t *parameters) {
  g_auto(VarlinkReply) reply = {0};
  g_autoptr(GError) error = NULL;

  if (!varlink_client_call(fuzz->polite, method, parameters, 60000, &reply, &error))
    fail(fuzz, "%s: %s", method, error->message);
  return reply.error ? json_pack("{ss so}", "error", reply.error, "parameters", json_incref(reply.parameters))
                     : json_incref(reply.parameters);
}

static void check_is_job(Fuzz *fuzz, const Kept *kept, json_t *answer, const char *how) {
  const char *id = json_string_value(json_object_get(json_object_get(answer, "job"), "id"));

  if (g_strcmp0(id, kept->id) != 0 || json_is_true(json_object_get(answer, "created"))) {
    g_autofree char *text = json_dumps(answer, 0);

    fail(fuzz, "job %s was acknowledged by %s; after a restart %s says %.3000s", kept->id, kept->method, how,
         text);
  }
  json_decref(answer);
}

static void check_kept(Fuzz *fuzz) {
  for (GList *link = fuzz->kept.head; link; link = link->next) {
    const Kept *kept = link->data;

    check_is_job(fuzz, kept, ask(fuzz, "io.handoffd.Agent.Get", json_pack("{ss}", "job", kept->id)), "Get");
    if (kept->keyed)
      check_is_job(fuzz, kept, ask(fuzz, kept->method, json_deep_copy(kept->keyed)), "the same request");
  }
}

static void end_daemon(Fuzz *fuzz, int signal_number) {
  int status;

  fuzz->peak_kib = MAX(fuzz->peak_kib, daemon_memory(fuzz->daemon).peak_rss);
  kill(fuzz->daemon->pid, signal_number);
  while (waitpid(fuzz->daemon->pid, &status, 0) < 0 && errno == EINTR)
    ;
  fuzz->daemon->pid = 0;
  check_log(fuzz);
  check_directory(fuzz, "jobs");
  check_directory(fuzz, "history");
  if (signal_number == SIGTERM && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    fail(fuzz, "the daemon's status at its end is %x", (unsigned)status);
}

static void begin(Fuzz *fuzz) {
  write_world(fuzz);
  daemon_start(fuzz->daemon);
  fuzz->polite = daemon_connect(fuzz->daemon);
}

static void restart(Fuzz *fuzz) {
  int status;

  if (waitpid(fuzz->daemon->pid, &status, WNOHANG) != 0) {
    fuzz->daemon->pid = 0;
    fail(fuzz, "the daemon has ended, status %x", (unsigned)status);
  }
  for (int i = 0; i < CONNECTIONS; i++)
    connection_reset(&fuzz->connections[i]);
  varlink_client_free(fuzz->polite);
  end_daemon(fuzz, maker_chance(fuzz->maker, 0.7) ? SIGKILL : SIGTERM);
  fuzz->first_domain += DOMAINS / 3;
  begin(fuzz);
  check_directory(fuzz, "jobs");
  check_kept(fuzz);
  fuzz->restarts++;
}

/* --- the loop --- */

static bool is_stuck(Connection *connection, gint64 now_us) {
  return (connection->ends || (!g_queue_is_empty(&connection->dues) && !connection->streams)) &&
         now_us > connection->progress_us + PATIENCE_US;
}

/* What it does next, by chance. */
static void go_on(Fuzz *fuzz, Connection *connection, gint64 now_us) {
  if (connection->leaves_us > 0 && now_us >= connection->leaves_us)
    connection_reset(connection);
  if (connection->fd < 0)
    connection_open(fuzz, connection);
  if (!connection->ends && !connection->streams && connection->out->len == 0 &&
      g_queue_get_length(&connection->dues) < DUES_MAX) {
    if (g_queue_is_empty(&connection->dues))
      connection->progress_us = now_us;
    make_calls(fuzz, connection);
    if (maker_chance(fuzz->maker, 0.01))
      connection->deaf_until_us = now_us + 20000;
    if (connection->streams)
      connection->leaves_us = now_us + 2000 + maker_below(fuzz->maker, 50000);
    else if (maker_chance(fuzz->maker, 0.02))
      connection->leaves_us = now_us + maker_below(fuzz->maker, 5000);
  }
  send_out(fuzz, connection);
  if (is_stuck(connection, now_us)) {
    const Due *due = g_queue_peek_head(&connection->dues);

    fail(fuzz, "no answer for a minute: %s",
         due ? due->message : "what is no call should have ended its connection");
  }
}

static void run_round(Fuzz *fuzz) {
  struct pollfd poll_fds[CONNECTIONS];
  gint64 now_us = g_get_monotonic_time();

  for (int i = 0; i < CONNECTIONS; i++) {
    Connection *connection = &fuzz->connections[i];
    bool deaf;

    go_on(fuzz, connection, now_us);
    deaf = now_us < connection->deaf_until_us;
    poll_fds[i] =
        (struct pollfd){.fd = connection->fd,
                        .events = (short)((deaf ? 0 : POLLIN) | (connection->out->len > 0 ? POLLOUT : 0))};
  }
  if (poll(poll_fds, CONNECTIONS, 20) < 0 && errno != EINTR)
    fail(fuzz, "poll: %s", g_strerror(errno));
  for (int i = 0; i < CONNECTIONS; i++)
    if (poll_fds[i].revents & (poll_fds[i].events & POLLIN ? POLLIN | POLLHUP | POLLERR : 0))
      receive(fuzz, &fuzz->connections[i]);
}

static void report(const Fuzz *fuzz, double seconds) {
  printf("%" G_GUINT64_FORMAT " calls (%.0f/s), %" G_GUINT64_FORMAT " answers, %" G_GUINT64_FORMAT
         " of them errors, %" G_GUINT64_FORMAT " were none, %" G_GUINT64_FORMAT " jobs, %" G_GUINT64_FORMAT
         " restarts; GetInfo at most %.1f ms; peak %.1f MiB\n",
         fuzz->calls, (double)fuzz->calls / seconds, fuzz->answers, fuzz->errors, fuzz->ends, fuzz->jobs,
         fuzz->restarts, fuzz->polite_worst_ms, (double)fuzz->peak_kib / 1024);
  fflush(stdout);
}

static void run(Fuzz *fuzz) {
  gint64 began_us = g_get_monotonic_time(), said_us = began_us;

  fuzz->next_restart = fuzz->restart_every;
  while (fuzz->calls < fuzz->calls_wanted) {
    run_round(fuzz);
    if (fuzz->calls >= fuzz->next_polite) {
      be_polite(fuzz);
      fuzz->next_polite = fuzz->calls + POLITE_EVERY;
    }
    if (fuzz->calls >= fuzz->next_restart) {
      restart(fuzz);
      fuzz->next_restart = fuzz->calls + fuzz->restart_every;
    }
    if (!fuzz->quiet && g_get_monotonic_time() > said_us + 60 * G_USEC_PER_SEC) {
      said_us = g_get_monotonic_time();
      report(fuzz, (double)(said_us - began_us) / G_USEC_PER_SEC);
    }
  }
  restart(fuzz);
  for (int i = 0; i < CONNECTIONS; i++)
    connection_reset(&fuzz->connections[i]);
  varlink_client_free(fuzz->polite);
  end_daemon(fuzz, SIGTERM);
  report(fuzz, (double)(g_get_monotonic_time() - began_us) / G_USEC_PER_SEC);
}

static void fuzz_init(Fuzz *fuzz) {
  bool root = geteuid() == 0;
  DaemonOptions options = {.domains = 1, .memory_bytes = 16 << 20, .link_bytes_per_s = 1 << 20};

  interfaces_init(&fuzz->interfaces);
  fuzz->maker = maker_new(fuzz->seed, fuzz->interfaces.agent, fuzz->interfaces.service);
  fuzz->daemon = daemon_new(&options);
  if (chmod(fuzz->daemon->directory, 0711) < 0)
    die("%s: %s", fuzz->daemon->directory, g_strerror(errno));
  end_daemon(fuzz, SIGTERM);
  write_config(fuzz);
  teach_targets(fuzz);
  for (int i = 0; i < CONNECTIONS; i++) {
    Connection *connection = &fuzz->connections[i];

    connection->fd = -1;
    connection->trusted = !root || i >= STRANGERS;
    connection->out = g_string_new(NULL);
    connection->tail = g_string_new(NULL);
    varlink_framing_init(&connection->in, (size_t)64 << 20);
    g_queue_init(&connection->dues);
  }
  begin(fuzz);
}

static void fuzz_clear(Fuzz *fuzz) {
  for (int i = 0; i < CONNECTIONS; i++) {
    g_string_free(fuzz->connections[i].out, TRUE);
    g_string_free(fuzz->connections[i].tail, TRUE);
  }
  g_queue_clear_full(&fuzz->kept, kept_free);
  maker_free(fuzz->maker);
  interfaces_clear(&fuzz->interfaces);
  daemon_free(fuzz->daemon);
}

int main(int argc, char **argv) {
  gint64 calls = 20000, seed = 1, restart_every = 20000;
  gboolean quiet = FALSE;
  const GOptionEntry entries[] = {
      {"calls", 0, 0, G_OPTION_ARG_INT64, &calls, "How many; 20000", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &seed, "Of the calls; 1", "N"},
      {"restart-every", 0, 0, G_OPTION_ARG_INT64, &restart_every,
       "After so many the daemon is restarted; 20000", "N"},
      {"quiet", 0, 0, G_OPTION_ARG_NONE, &quiet, "Say nothing each minute", NULL},
      {0},
  };
  g_autoptr(GOptionContext) context = g_option_context_new(NULL);
  g_autoptr(GError) error = NULL;
  Fuzz fuzz = {0};

  g_option_context_add_main_entries(context, entries, NULL);
  if (!g_option_context_parse(context, &argc, &argv, &error))
    die("%s", error->message);
  fuzz.calls_wanted = (guint64)calls;
  fuzz.restart_every = (guint64)restart_every;
  fuzz.seed = (guint32)seed;
  fuzz.quiet = quiet;
  fuzz_init(&fuzz);
  run(&fuzz);
  fuzz_clear(&fuzz);
  return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program: options, sockets, signals, the main loop. */
#include "agent/daemon/daemon.h"

#include "agent/daemon/agent.h"
#include "agent/daemon/notify.h"
#include "agent/daemon/reload.h"
#include "agent/job/log.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define SOCKET_NAME "io.handoffd.Agent"

/* EXIT_INVALIDARGUMENT in systemd.exec(5) */
#define EXIT_USAGE 2

typedef struct Options {
  char *config;
  char *socket;
  char *state_directory;
  char *runtime_directory;
  char *libvirt_uri;
  gboolean version;
} Options;

static void options_clear(Options *options) {
  g_free(options->config);
  g_free(options->socket);
  g_free(options->state_directory);
  g_free(options->runtime_directory);
  g_free(options->libvirt_uri);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static const char summary[] =
    "Live-migration agent for a libvirt hypervisor. Serves the varlink interface io.handoffd.Agent on a "
    "Unix\n"
    "socket; handoffctl(1) is its client. Runs in the foreground and needs no file under /etc.";

static const char description[] =
    "Under systemd, handoffd.socket may provide the socket; --socket is then ignored.\n"
    "\n"
    "Signals:\n"
    "  SIGTERM, SIGINT   shut down; running migrations continue in libvirtd, and the next start takes\n"
    "                    them over\n"
    "  SIGHUP            reload the configuration; if there is an error in it, the old one stays in effect\n"
    "                    and the journal says what is wrong\n"
    "\n"
    "Exit status: 0 terminated by a signal, 1 failure, 2 usage error.\n"
    "\n"
    "Files: /etc/handoffd/handoffd.conf and handoffd.conf.d/*.conf, see handoffd.conf(5).\n"
    "See also: handoffctl(1), handoffd(8), journalctl -u handoffd.";

/* False: *ret_status is the exit status. */
static bool parse_options(int *argc, char ***argv, Options *options, int *ret_status) {
  const GOptionEntry entries[] = {
      {"config", 0, 0, G_OPTION_ARG_FILENAME, &options->config,
       "Read only FILE instead of handoffd.conf and its drop-ins in /etc, /run and /usr/lib", "FILE"},
      {"socket", 0, 0, G_OPTION_ARG_FILENAME, &options->socket,
       "Listen on PATH (default: " SOCKET_NAME " in the runtime directory)", "PATH"},
      {"state-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->state_directory,
       "Keep job records in DIR (default: $STATE_DIRECTORY, else /var/lib/handoffd)", "DIR"},
      {"runtime-dir", 0, 0, G_OPTION_ARG_FILENAME, &options->runtime_directory,
       "Runtime directory (default: $RUNTIME_DIRECTORY, else /run/handoffd)", "DIR"},
      {"libvirt-uri", 0, 0, G_OPTION_ARG_STRING, &options->libvirt_uri,
       "URI of this node's libvirtd (default: qemu:///system)", "URI"},
      {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version and exit", NULL},
      {0},
  };
  g_autoptr(GOptionContext) context = g_option_context_new(NULL);
  g_autoptr(GError) error = NULL;

  g_option_context_set_summary(context, summary);
  g_option_context_set_description(context, description);
  g_option_context_add_main_entries(context, entries, NULL);
  *ret_status = EXIT_SUCCESS;
  if (!g_option_context_parse(context, argc, argv, &error)) {
    fprintf(stderr, "handoffd: %s\nTry: handoffd --help\n", error->message);
    *ret_status = EXIT_USAGE;
    return false;
  }
  if (*argc > 1) {
    fprintf(stderr, "handoffd: unexpected argument '%s'\nTry: handoffd --help\n", (*argv)[1]);
    *ret_status = EXIT_USAGE;
    return false;
  }
  if (options->version) {
    printf("handoffd %s\n", HANDOFFD_VERSION);
    return false;
  }
  return true;
}

/* systemd passes a list of directories; the first one is ours. */
static void set_directory(char **option, const char *variable, const char *otherwise) {
  const char *value = g_getenv(variable);

  if (*option)
    return;
  *option = value && *value ? g_strndup(value, strcspn(value, ":")) : g_strdup(otherwise);
}

static void set_defaults(Options *options) {
  set_directory(&options->state_directory, "STATE_DIRECTORY", "/var/lib/handoffd");
  set_directory(&options->runtime_directory, "RUNTIME_DIRECTORY", "/run/handoffd");
  if (!options->libvirt_uri)
    options->libvirt_uri = g_strdup("qemu:///system");
  if (!options->socket)
    options->socket = g_build_filename(options->runtime_directory, SOCKET_NAME, NULL);
}

static bool listen_on(Agent *agent, const Options *options, GError **error) {
  g_autofree char *directory = NULL;
  int n = sd_listen_fds(1);

  if (n > 0) {
    for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++)
      if (!varlink_server_listen_fd(agent->requests.server, fd, error))
        return false;
    return true;
  }
  directory = g_path_get_dirname(options->socket);
  if (g_mkdir_with_parents(directory, 0755) < 0) {
    g_set_error(error, G_IO_ERROR, (gint)g_io_error_from_errno(errno), "cannot create %s: %s", directory,
                g_strerror(errno));
    return false;
  }
  /* Anybody may connect; permissions are checked for each call. */
  return varlink_server_listen_path(agent->requests.server, options->socket, 0666, agent->requests.group_gid,
                                    error);
}

/* Enough descriptors for the server's maximum of connections, and for libvirt. */
static void raise_descriptor_limit(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void on_status_changed(gpointer user_data) {
  const Agent *agent = user_data;
  g_autofree char *status = agent_describe(agent);

  notify_status(agent->notify, status);
}

/* --- signals: read from a descriptor, and blocked in all threads, so that none is interrupted --- */

typedef struct Signals {
  Agent *agent;
  const Options *options;
  GMainLoop *loop;
} Signals;

static void signals_of_ours(sigset_t *ret_set) {
  static const int ours[] = {SIGTERM, SIGINT, SIGHUP};

  sigemptyset(ret_set);
  for (size_t i = 0; i < G_N_ELEMENTS(ours); i++)
    sigaddset(ret_set, ours[i]);
}

/* Must run before there are threads, which inherit the mask. Signals stay pending until the descriptor is read. */
static void block_signals(void) {
  sigset_t set;

  signals_of_ours(&set);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Reports READY=1 in any case, with the new configuration or with the old one. */
static void reload(const Signals *signals) {
  notify_reloading(signals->agent->notify);
  reload_config(signals->agent, signals->options->config);
  notify_ready(signals->agent->notify);
}

static gboolean on_signal(int fd, GIOCondition condition, gpointer user_data) {
  const Signals *signals = user_data;
  struct signalfd_siginfo info;

  if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
    return G_SOURCE_CONTINUE;
  if (info.ssi_signo == SIGHUP)
    reload(signals);
  else
    g_main_loop_quit(signals->loop);
  return G_SOURCE_CONTINUE;
}

static GSource *watch_signals(GMainContext *context, Signals *signals, int *ret_fd, GError **error) {
  GSource *source;
  sigset_t set;

  signals_of_ours(&set);
  *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (*ret_fd < 0) {
    g_set_error(error, G_IO_ERROR, (gint)g_io_error_from_errno(errno), "cannot read signals: %s",
                g_strerror(errno));
    return NULL;
  }
  source = g_unix_fd_source_new(*ret_fd, G_IO_IN);
  g_source_set_callback(source, G_SOURCE_FUNC(on_signal), signals, NULL);
  g_source_attach(source, context);
  return source;
}

static int serve(Agent *agent, GMainContext *context, const Options *options, GError **error) {
  g_autoptr(GMainLoop) loop = g_main_loop_new(context, FALSE);
  g_autoptr(Notify) notify = notify_new(context);
  Signals signals = {agent, options, loop};
  int fd = -1;
  GSource *source = listen_on(agent, options, error) ? watch_signals(context, &signals, &fd, error) : NULL;

  if (!source)
    return EXIT_FAILURE;
  agent->notify = notify;
  agent->mover.status_changed = on_status_changed;
  agent->mover.status_data = agent;
  on_status_changed(agent);
  notify_ready(notify);
  log_message(LOG_INFO, NAMES_MESSAGE_AGENT_STARTED, NULL, 0, "handoffd %s is serving %s, %u jobs on record",
              HANDOFFD_VERSION, options->socket, job_table_all(agent->jobs.table)->len);
  g_main_loop_run(loop);
  notify_stopping(notify, job_queue_count_running(agent->jobs.queue));
  log_message(LOG_INFO, NAMES_MESSAGE_AGENT_STOPPED, NULL, 0,
              "the agent is stopping; %u migrations in progress continue in libvirtd",
              job_queue_count_running(agent->jobs.queue));
  agent->mover.status_changed = NULL;
  g_source_destroy(source);
  g_source_unref(source);
  close(fd);
  return EXIT_SUCCESS;
}

static int fail(const GError *error) {
  log_message(LOG_ERR, NULL, NULL, 0, "%s", error->message);
  return EXIT_FAILURE;
}

int daemon_run(int argc, char **argv, DaemonDriverFunc driver_new) {
  g_auto(Options) options = {0};
  g_autoptr(GMainContext) context = NULL;
  g_autoptr(GError) error = NULL;
  Config *config;
  MigDriver *driver;
  Agent *agent;
  int status;

  if (!parse_options(&argc, &argv, &options, &status))
    return status;
  set_defaults(&options);
  block_signals();
  log_open();
  /* libvirt writes to sockets whose libvirtd was killed. Under systemd, IgnoreSIGPIPE= does this already. */
  signal(SIGPIPE, SIG_IGN);
  /* GLib registers an error domain at its first use, which two threads must not do at once. */
  (void)mig_virt_error_quark();
  raise_descriptor_limit();
  config = config_load(options.config, &error);
  if (!config)
    return fail(error);
  driver = driver_new(&error);
  if (!driver) {
    config_free(config);
    return fail(error);
  }

  /* Not the default context: libvirt's event thread runs that one. */
  context = g_main_context_new();
  g_main_context_push_thread_default(context);
  agent = agent_new(
      context, config, driver,
      &(AgentOptions){.state_directory = options.state_directory, .libvirt_uri = options.libvirt_uri},
      &error);
  if (!agent)
    return fail(error);
  status = serve(agent, context, &options, &error);
  if (status != EXIT_SUCCESS)
    fail(error);
  /* Threads stuck in libvirt cannot be ended, and use what exit() would destroy. */
  if (!agent_free(agent))
    _exit(status);
  g_main_context_pop_thread_default(context);
  return status;
}

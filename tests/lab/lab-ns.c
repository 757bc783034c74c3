/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lab-ns: the processes that hold the lab together.
 *
 * Theory of operation
 *
 *   lab-ns keep          outside; watches the owner, holds the lab's init
 *    `- lab-ns keep      pid 1 of the lab's pid namespace: only reaps
 *        |- lab-ns init  pid 1 of node a's pid namespace (nested in the lab's)
 *        |   `- libvirtd, QEMU, whatever `lab exec a` runs
 *        |- lab-ns init  pid 1 of node b's
 *        `- lab-record   the recorders
 *
 * Killing the lab's init makes the kernel end every process below it, however
 * well it daemonized. Network and mount namespaces are held by those processes
 * alone (they have no names), so they, the veth pairs and all mounts go with
 * the last process. The init in turn dies with its keeper (PDEATHSIG). A crash
 * at any point leaves nothing but plain files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* Exit statuses of a program that runs another one, as env(1) has them. */
enum {
  EXIT_OURS = 125,
  EXIT_CANNOT_RUN = 126,
  EXIT_NOT_FOUND = 127,
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
  int saved_errno = errno;
  va_list ap;

  va_start(ap, format);
  fputs("lab-ns: ", stderr);
  vfprintf(stderr, format, ap);
  va_end(ap);
  if (saved_errno)
    fprintf(stderr, ": %s", strerror(saved_errno));
  fputc('\n', stderr);
  exit(EXIT_OURS);
}

enum { NO_FD = -1, KEPT_FD = 3 };

/* Away from the caller's terminal, session, pipes and locks: a test harness
 * waits until the last holder of its pipe is gone. kept_fd becomes KEPT_FD. */
static void detach(const char *log_path, int kept_fd) {
  int in_fd, out_fd;

  setsid();
  in_fd = open("/dev/null", O_RDONLY);
  out_fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (in_fd < 0 || out_fd < 0)
    die("cannot open %s", log_path);
  if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0)
    die("cannot redirect");
  if (kept_fd >= 0 && dup2(kept_fd, KEPT_FD) < 0)
    die("cannot keep a descriptor");
  close_range(kept_fd >= 0 ? KEPT_FD + 1 : KEPT_FD, ~0U, 0);
}

/* Whatever is orphaned in a pid namespace becomes its init's child. */
__attribute__((noreturn)) static void reap_forever(void) {
  sigset_t set;

  /* SIGCHLD is ignored by default, unless it is blocked: then it is kept. */
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (;;) {
    while (waitpid(-1, NULL, WNOHANG) > 0)
      ;
    sigwaitinfo(&set, NULL);
  }
}

static void exec_or_die(char **argv) {
  execvp(argv[0], argv);
  fprintf(stderr, "lab-ns: cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static int open_pidfd(pid_t pid) {
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

static pid_t parse_pid(const char *text) {
  char *end;
  long pid = strtol(text, &end, 10);

  errno = 0;
  if (*end || end == text || pid < 0 || pid > INT_MAX)
    die("not a process id: %s", text);
  return (pid_t)pid;
}

/* keep OWNER LOG CLEANUP...: start the lab's pid namespace, print the pid of
 * its init, stay behind. OWNER 0 means that nobody owns the lab. */
static int verb_keep(int argc, char **argv) {
  int report[2], owner_fd = -1, init_fd;
  pid_t owner, pid;

  if (argc < 3)
    die("keep OWNER LOG CLEANUP...");
  owner = parse_pid(argv[0]);
  if (owner && (owner_fd = open_pidfd(owner)) < 0)
    die("the owner, process %d", (int)owner);
  if (pipe2(report, O_CLOEXEC) < 0)
    die("pipe");

  if ((pid = fork()) < 0)
    die("fork");
  if (pid) { /* the caller's child: pass the init's pid on, and go */
    char line[32];
    ssize_t n;

    close(report[1]);
    n = read(report[0], line, sizeof(line));
    if (n <= 0)
      return EXIT_OURS;
    return write(1, line, (size_t)n) == n ? 0 : EXIT_OURS;
  }

  /* A fork into a new pid namespace. Not unshare(2): the clean-up's children
     * would be born into that namespace too, which has no init then. */
  if ((pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0)) < 0)
    die("cannot create a pid namespace (not root?)");
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    detach(argv[1], NO_FD);
    if (chdir("/") < 0)
      die("chdir");
    reap_forever();
  }
  if (dprintf(report[1], "%d\n", (int)pid) < 0)
    die("report");
  detach(argv[1], owner_fd);
  owner_fd = owner ? KEPT_FD : -1; /* poll(2) ignores -1 */
  if (chdir("/") < 0)
    die("chdir");
  if ((init_fd = open_pidfd(pid)) < 0)
    die("the lab's init");
  for (;;) {
    struct pollfd fds[] = {{init_fd, POLLIN, 0}, {owner_fd, POLLIN, 0}};

    if (poll(fds, ARRAY_LENGTH(fds), -1) < 0) {
      if (errno == EINTR)
        continue;
      die("poll");
    }
    if (fds[0].revents) { /* `lab down` ended it, and cleans up itself */
      waitpid(pid, NULL, 0);
      return 0;
    }
    if (fds[1].revents)
      break;
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0); /* returns once the whole namespace is empty */
  exec_or_die(argv + 2);
  return EXIT_OURS;
}

static volatile sig_atomic_t child_pid;

/* The terminal sends its signals to the child as well; only what a process
 * sent to us alone has to be passed on. */
static void forward_signal(int sig, siginfo_t *info, void *context) {
  (void)context;
  if (info->si_code <= 0 && child_pid > 0)
    kill(child_pid, sig);
}

static int wait_like_child(pid_t pid) {
  int status;

  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      die("wait");
  if (WIFSIGNALED(status)) {
    struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

/* enter [-d LOG] [-n KINDS] PID COMMAND...: run a command in the namespaces of
 * a process. A pid namespace can be entered by a child only, so we stay as a
 * stand-in for it: signals pass through, we end as it ends, and it dies when
 * we are killed. With -d the command is on its own, below the init. */
static int verb_enter(int argc, char **argv) {
  static const struct {
    char letter;
    int flag;
    const char *name;
  } kinds[] = {
      /* the mount namespace last: /proc is another one after it */
      {'p', CLONE_NEWPID, "pid"},
      {'n', CLONE_NEWNET, "net"},
      {'u', CLONE_NEWUTS, "uts"},
      {'m', CLONE_NEWNS, "mnt"},
  };
  static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM};
  int fds[ARRAY_LENGTH(kinds)];
  const char *log_path = NULL, *letters = "pnum";
  char cwd[PATH_MAX];
  sigset_t set, old_set;
  pid_t target, pid;
  int option;

  optind = 0;
  while ((option = getopt(argc, argv, "+d:n:")) != -1) {
    if (option == 'd')
      log_path = optarg;
    else if (option == 'n')
      letters = optarg;
    else
      return EXIT_OURS;
  }
  if (argc - optind < 2)
    die("enter [-d LOG] [-n KINDS] PID COMMAND...");
  target = parse_pid(argv[optind]);
  argv += optind + 1;

  if (!getcwd(cwd, sizeof(cwd)))
    strcpy(cwd, "/");
  for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)target, kinds[i].name);
    fds[i] = -1;
    if (strchr(letters, kinds[i].letter) && (fds[i] = open(path, O_RDONLY | O_CLOEXEC)) < 0)
      die("%s (is the lab up?)", path);
  }
  for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
    if (fds[i] >= 0 && setns(fds[i], kinds[i].flag) < 0)
      die("cannot enter the %s namespace (not root?)", kinds[i].name);
  if (chdir(cwd) < 0 && chdir("/") < 0)
    die("chdir");

  sigemptyset(&set);
  for (size_t i = 0; i < ARRAY_LENGTH(forwarded); i++)
    sigaddset(&set, forwarded[i]);
  sigprocmask(SIG_BLOCK, &set, &old_set);
  if ((pid = fork()) < 0)
    die("fork");
  if (!pid) {
    if (log_path)
      detach(log_path, NO_FD);
    else
      prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    exec_or_die(argv);
  }
  if (log_path)
    return 0;
  child_pid = pid;
  for (size_t i = 0; i < ARRAY_LENGTH(forwarded); i++) {
    struct sigaction action = {.sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO};

    sigaction(forwarded[i], &action, NULL);
  }
  sigprocmask(SIG_SETMASK, &old_set, NULL);
  return wait_like_child(pid);
}

int main(int argc, char **argv) {
  if (argc >= 2 && !strcmp(argv[1], "init"))
    reap_forever();
  if (argc >= 2 && !strcmp(argv[1], "keep"))
    return verb_keep(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "enter"))
    return verb_enter(argc - 1, argv + 1);
  errno = 0;
  die("usage: lab-ns init | keep OWNER LOG CLEANUP... | enter [-d LOG] [-n KINDS] PID COMMAND...");
}

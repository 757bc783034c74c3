/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the journal is sent, by a journal of the test's own. */
#include "agent/job/log.h"
#include "tests/unit/core/rows.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int journal = -1;

/* In a mount namespace, so that nobody else's journal has any of it. */
static bool have_journal(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};

  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
      mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0 || mkdir("/run/systemd", 0755) < 0 ||
      mkdir("/run/systemd/journal", 0755) < 0)
    return false;
  journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return journal >= 0 && bind(journal, (const struct sockaddr *)&address, sizeof address) == 0;
}

static char *receive(void) {
  char message[8192];
  ssize_t n = recv(journal, message, sizeof message - 1, MSG_DONTWAIT);

  assert_true(n > 0);
  message[n] = '\0';
  return g_strconcat("\n", message, NULL);
}

static void assert_field(const char *message, const char *field) {
  g_autofree char *line = g_strconcat("\n", field, "\n", NULL);

  if (!strstr(message, line))
    fail_msg("no %s in %s", field, message);
}

static Job *make_job(const char *domain) {
  Job *job = job_new();

  job->domain_name = g_strdup(domain);
  strcpy(job->domain_uuid, "e47a3cb2-3cf1-43db-8764-d2f9d88cca43");
  job->target_uri = g_strdup("qemu+tls://b/system");
  return job;
}

static void who_asked_is_in_fields_of_its_own(void **state) {
  char unit[] = "nova-compute.service", comm[] = "python3";
  Caller caller = {1000, 1001, 4711, unit, comm};
  g_autoptr(Job) job = make_job("web3");
  g_autofree char *message = NULL;

  log_job_by(job, &caller, LOG_INFO, NAMES_MESSAGE_JOB_ACCEPTED, "to be moved to %s", "b");
  message = receive();
  assert_field(message, "MESSAGE=web3: to be moved to b");
  assert_field(message, "CALLER_UID=1000");
  assert_field(message, "CALLER_GID=1001");
  assert_field(message, "CALLER_PID=4711");
  assert_field(message, "CALLER_UNIT=nova-compute.service");
  assert_field(message, "CALLER_COMM=python3");
}

static void what_nobody_asked_for_has_none(void **state) {
  g_autoptr(Job) job = make_job("web3");
  g_autofree char *message = NULL;

  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "the migration begins");
  message = receive();
  assert_field(message, "DOMAIN_NAME=web3");
  assert_null(strstr(message, "CALLER_"));
}

static void no_text_begins_a_line(void **state) {
  static const char evil[] = "a\nCALLER_UID=0\033[2J";
  g_autoptr(Job) job = make_job(evil);
  g_autofree char *message = NULL, *plain = NULL;

  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "of %s", evil);
  message = receive();
  assert_field(message, "MESSAGE=a CALLER_UID=0 [2J: of a CALLER_UID=0 [2J");
  assert_field(message, "DOMAIN_NAME=a CALLER_UID=0 [2J");
  log_message(LOG_INFO, NULL, (const LogField[]){{NAMES_FIELD_REASON, evil}}, 1, "x\ny");
  plain = receive();
  assert_field(plain, "MESSAGE=x y");
  assert_field(plain, "REASON=a CALLER_UID=0 [2J");
}

int main(void) {
  Tests tests = {0};

  if (!have_journal()) {
    printf("1..0 # SKIP no mount namespace of its own: %s\n", g_strerror(errno));
    return 77;
  }
  tests_add(&tests, "who asked is in fields of its own", who_asked_is_in_fields_of_its_own, NULL);
  tests_add(&tests, "what nobody asked for has none", what_nobody_asked_for_has_none, NULL);
  tests_add(&tests, "no text begins a line", no_text_begins_a_line, NULL);
  return tests_run(&tests, "log");
}

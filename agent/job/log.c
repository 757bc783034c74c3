/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Structured messages for the journal, plain ones for stderr. */
#include "agent/job/log.h"

#include "libmigrate/core/plain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define FIELDS_MAX 32
#define OWN_FIELDS 4 /* of every message */

/* systemd sets JOURNAL_STREAM to the file that the journal reads. If stderr is that file, a line there would duplicate each
 * message. */
static bool stderr_is_journal(void) {
  const char *stream = g_getenv("JOURNAL_STREAM");
  unsigned long long device, inode;
  struct stat st;

  return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
         st.st_dev == device && st.st_ino == inode;
}

static bool to_stderr = true;

void log_open(void) {
  to_stderr = !stderr_is_journal();
}

/* The journal accepts a newline, but a reader of it, or of stderr, would see a forged line. */
static char *make_field(const char *name, const char *value) {
  char *field = g_strconcat(name, "=", value, NULL);

  mig_text_make_plain(field);
  return field;
}

static void send_message(int priority, const char *message_id, const LogField *fields, size_t n_fields,
                         const char *message) {
  struct iovec vectors[FIELDS_MAX];
  char *owned[FIELDS_MAX];
  size_t n = 0;

  owned[n++] = make_field("MESSAGE", message);
  owned[n++] = g_strdup_printf("PRIORITY=%d", priority);
  owned[n++] = g_strdup("SYSLOG_IDENTIFIER=handoffd");
  if (message_id)
    owned[n++] = g_strconcat("MESSAGE_ID=", message_id, NULL);
  for (size_t i = 0; i < n_fields && n < FIELDS_MAX; i++)
    if (fields[i].value)
      owned[n++] = make_field(fields[i].name, fields[i].value);
  for (size_t i = 0; i < n; i++)
    vectors[i] = (struct iovec){owned[i], strlen(owned[i])};
  sd_journal_sendv(vectors, (int)n);

  if (to_stderr && priority < LOG_DEBUG)
    fprintf(stderr, "handoffd: %s%s\n",
            priority <= LOG_ERR       ? "error: "
            : priority == LOG_WARNING ? "warning: "
                                      : "",
            owned[0] + strlen("MESSAGE="));
  for (size_t i = 0; i < n; i++)
    g_free(owned[i]);
}

void log_message(int priority, const char *message_id, const LogField *fields, size_t n_fields,
                 const char *format, ...) {
  g_autofree char *message = NULL;
  va_list args;

  va_start(args, format);
  message = g_strdup_vprintf(format, args);
  va_end(args);
  send_message(priority, message_id, fields, n_fields, message);
}

static char *format_count(bool have, uint64_t value) {
  return have ? g_strdup_printf("%" PRIu64, value) : NULL;
}

static void send_job(const Job *job, const Caller *caller, int priority, const char *message_id,
                     const char *text) {
  g_autofree char *message = g_strdup_printf("%s: %s", job->domain_name, text), *libvirt_code = NULL;
  g_autofree char *total_time = format_count(job_is_final(job), job->result.total_time_ms);
  g_autofree char *parts = job_is_final(job) ? job_times_describe(&job->times) : NULL;
  g_autofree char *downtime = format_count(job->result.have_downtime, job->result.downtime_ms);
  g_autofree char *transferred = format_count(job->result.have_transferred, job->result.transferred_bytes);
  g_autofree char *uid = caller ? g_strdup_printf("%u", (unsigned)caller->uid) : NULL;
  g_autofree char *gid = caller ? g_strdup_printf("%u", (unsigned)caller->gid) : NULL;
  g_autofree char *pid = caller ? g_strdup_printf("%d", (int)caller->pid) : NULL;

  if (job->failure.libvirt_message)
    libvirt_code = g_strdup_printf("%d", job->failure.libvirt_code);

  const LogField fields[] = {
      {NAMES_FIELD_JOB_ID, job->id},
      {NAMES_FIELD_DRAIN_ID, job->drain_id},
      {NAMES_FIELD_REQUEST_KEY, job->request_key},
      {NAMES_FIELD_DOMAIN_NAME, job->domain_name},
      {NAMES_FIELD_DOMAIN_UUID, job->domain_uuid},
      {NAMES_FIELD_TARGET, job->target_name ? job->target_name : job->target_uri},
      {NAMES_FIELD_TARGET_URI, job->target_uri},
      {NAMES_FIELD_PHASE, mig_phase_name(job->phase)},
      {NAMES_FIELD_STAGE, mig_stage_name(job->stage)},
      {NAMES_FIELD_CAUSE, job->failure.cause == MIG_CAUSE_NONE ? NULL : mig_cause_name(job->failure.cause)},
      {NAMES_FIELD_EVIDENCE, job->result.evidence},
      {NAMES_FIELD_RUNNING_AT, job_is_final(job) ? job_where_name(job->result.running_at) : NULL},
      {NAMES_FIELD_TOTAL_TIME_MS, total_time},
      {NAMES_FIELD_TIME_PARTS, parts},
      {NAMES_FIELD_DOWNTIME_MS, downtime},
      {NAMES_FIELD_TRANSFERRED_BYTES, transferred},
      {NAMES_FIELD_LIBVIRT_CODE, libvirt_code},
      {NAMES_FIELD_LIBVIRT_MESSAGE, job->failure.libvirt_message},
      {NAMES_FIELD_CALLER_UID, uid},
      {NAMES_FIELD_CALLER_GID, gid},
      {NAMES_FIELD_CALLER_PID, pid},
      {NAMES_FIELD_CALLER_UNIT, caller ? caller->unit : NULL},
      {NAMES_FIELD_CALLER_COMM, caller ? caller->comm : NULL},
  };
  G_STATIC_ASSERT(G_N_ELEMENTS(fields) + OWN_FIELDS <= FIELDS_MAX);
  send_message(priority, message_id, fields, G_N_ELEMENTS(fields), message);
}

void log_job_by(const Job *job, const Caller *caller, int priority, const char *message_id,
                const char *format, ...) {
  g_autofree char *text = NULL;
  va_list args;

  va_start(args, format);
  text = g_strdup_vprintf(format, args);
  va_end(args);
  send_job(job, caller, priority, message_id, text);
}

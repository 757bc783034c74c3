/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One migration: its state, its events, its first cause. */
#include "agent/job/job.h"

#include "agent/base/clock.h"
#include "agent/job/history.h"
#include "libmigrate/core/plain.h"
#include "libmigrate/core/table.h"

#include <gio/gio.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

static void job_event_free(gpointer data) {
  JobEvent *event = data;

  g_free(event->message);
  g_free(event);
}

static void job_finding_free(gpointer data) {
  JobFinding *finding = data;

  g_free(finding->code);
  g_free(finding->seen);
  g_free(finding->remedy);
  g_free(finding);
}

Job *job_new(void) {
  Job *job = g_new0(Job, 1);

  id_make(job->id);
  job->phase = MIG_PHASE_PENDING;
  job->created_usec = g_get_real_time();
  job->pending_since_usec = job->created_usec;
  job->times.since_usec = job->created_usec;
  job->pending_since_ms = job->times.since_ms = clock_now_ms();
  job->events = g_ptr_array_new_with_free_func(job_event_free);
  mig_policy_init(&job->policy);
  return job;
}

Job *job_new_for(const JobRequest *request) {
  Job *job = job_new();

  if (request->asked_ms > 0) {
    job->created_usec -= (int64_t)(job->pending_since_ms - request->asked_ms) * 1000;
    job->times.since_usec = job->created_usec;
    job->times.since_ms = request->asked_ms;
  }
  job->caller = caller_copy(request->caller);
  job->domain_name = job_copy_text(request->domain_name);
  g_strlcpy(job->domain_uuid, request->domain_uuid, sizeof job->domain_uuid);
  job->memory_bytes = request->memory_bytes;
  job->target_name = g_strdup(request->target_name);
  job->target_uri = g_strdup(request->target_uri);
  job->migrate_uri = g_strdup(request->migrate_uri);
  job->policy = request->goals->policy;
  memcpy(job->policy_sources, request->goals->sources, sizeof job->policy_sources);
  job->policy_name = g_strdup(request->policy_name);
  job->policy_matched = g_strdup(request->policy_matched);
  return job;
}

static const char *const where_names[] = {
    [JOB_AT_UNKNOWN] = "unknown",
    [JOB_AT_SOURCE] = "source",
    [JOB_AT_TARGET] = "target",
    [JOB_AT_NONE] = "none",
};
TABLE_COVERS(where_names, JOB_WHERE_COUNT);

const char *job_where_name(JobWhere where) {
  return table_name(where_names, JOB_WHERE_COUNT, (int)where);
}

int job_where_from_name(const char *name) {
  return table_find(where_names, JOB_WHERE_COUNT, name);
}

void job_free(Job *job) {
  if (!job)
    return;
  g_free(job->request_key);
  g_free(job->request_digest);
  g_free(job->domain_name);
  g_free(job->target_name);
  g_free(job->target_uri);
  g_free(job->migrate_uri);
  g_free(job->policy_name);
  g_free(job->policy_matched);
  g_free(job->drain_id);
  caller_free(job->caller);
  g_free(job->next_action);
  g_free(job->failure.message);
  g_free(job->failure.libvirt_message);
  g_free(job->result.evidence);
  g_free(job->recovery.error);
  job_lease_free(job->lease);
  g_ptr_array_unref(job->events);
  g_clear_pointer(&job->findings, g_ptr_array_unref);
  g_clear_pointer(&job->watch.final_reply, g_bytes_unref);
  history_free(job->readings.history);
  g_free(job);
}

/* Texts from elsewhere, or cut to size, may end inside a character, which JSON does not allow. A line break or a terminal's control
 * sequence would act wherever the job is displayed: they are replaced. libvirt's texts may have any length; a job keeps a
 * limited part. */
char *job_copy_text(const char *text) {
  char *copy = text ? g_utf8_make_valid(text, (gssize)strnlen(text, JOB_TEXT_MAX + 1)) : NULL;
  size_t length = JOB_TEXT_MAX - strlen(ELLIPSIS);

  if (copy)
    mig_text_make_plain(copy);
  if (!copy || strlen(copy) <= JOB_TEXT_MAX)
    return copy;
  while (length > 0 && ((unsigned char)copy[length] & 0xc0) == 0x80)
    length--;
  strcpy(copy + length, ELLIPSIS);
  return copy;
}

static char *G_GNUC_PRINTF(1, 0) format_text(const char *format, va_list args) {
  g_autofree char *text = g_strdup_vprintf(format, args);

  return job_copy_text(text);
}

static void G_GNUC_PRINTF(4, 0)
    job_add_event_valist(Job *job, const char *kind, MigCause cause, const char *format, va_list args) {
  JobEvent *event = g_new0(JobEvent, 1);

  event->seq = ++job->events_seq;
  event->time_usec = g_get_real_time();
  event->phase = job->phase;
  event->stage = job->stage;
  event->kind = g_intern_string(kind);
  event->cause = cause;
  event->message = format_text(format, args);

  /* The first event tells how it began, the newest how it ends; those in between may go. */
  if (job->events->len >= JOB_EVENTS_MAX)
    g_ptr_array_remove_index(job->events, 1);
  g_ptr_array_add(job->events, event);
  job->revision++;
}

void job_add_event(Job *job, const char *kind, MigCause cause, const char *format, ...) {
  va_list args;

  va_start(args, format);
  job_add_event_valist(job, kind, cause, format, args);
  va_end(args);
}

/* If the agent restarts during a recovery, that recovery continues. */
static void note_recovery(Job *job) {
  JobRecovery *recovery = &job->recovery;

  if (job->phase != MIG_PHASE_RECOVERING) {
    g_free(recovery->error);
    *recovery = (JobRecovery){0};
  } else if (recovery->since_usec == 0) {
    recovery->since_usec = g_get_real_time();
  }
}

/* A migration that is taken up again, or lost from sight, goes on where it was. */
static void note_part(Job *job, MigPhase before) {
  JobPart part = job->times.part;

  if (job->phase == MIG_PHASE_PENDING)
    part = JOB_PART_QUEUED;
  else if (job->phase == MIG_PHASE_PREPARING)
    part = JOB_PART_CHECKS;
  else if (job->phase == MIG_PHASE_MIGRATING && before != MIG_PHASE_RECOVERING)
    part = job->direction == MIG_DIRECTION_INCOMING ? JOB_PART_PASSES : JOB_PART_BEGIN;
  job_times_enter(&job->times, part, clock_now_ms());
}

void job_set_phase(Job *job, MigPhase phase, const char *format, ...) {
  MigPhase before = job->phase;
  va_list args;

  g_return_if_fail(mig_phase_may_follow(job->phase, phase));
  job->phase = phase;
  note_part(job, before);
  note_recovery(job);
  if (mig_phase_is_final(phase)) {
    job->stage = MIG_STAGE_NONE;
    job->finished_usec = g_get_real_time();
    job->finished_ms = (int64_t)job->times.since_ms;
    job->result.total_time_ms = job_times_total_ms(&job->times);
    g_clear_pointer(&job->next_action, g_free);
  }
  va_start(args, format);
  job_add_event_valist(job, "phase", job->failure.cause, format, args);
  va_end(args);
}

bool job_note_failure(Job *job, MigCause cause, const GError *error, const char *format, ...) {
  const char *libvirt_message = NULL;
  va_list args;

  if (job->failure.cause != MIG_CAUSE_NONE)
    return false;
  job->failure.cause = cause;
  job->failure.phase = job->phase;
  job->failure.stage = job->stage;
  va_start(args, format);
  job->failure.message = format_text(format, args);
  va_end(args);
  if (error && mig_virt_error_get_libvirt(error, &job->failure.libvirt_code, &libvirt_message))
    job->failure.libvirt_message = job_copy_text(libvirt_message);
  job->revision++;
  return true;
}

void job_clear_findings(Job *job) {
  g_clear_pointer(&job->findings, g_ptr_array_unref);
  job->revision++;
}

void job_add_finding(Job *job, const char *code, bool blocks, bool transient, const char *seen,
                     const char *remedy) {
  JobFinding *finding = g_new0(JobFinding, 1);

  finding->code = g_strdup(code);
  finding->blocks = blocks;
  finding->transient = transient;
  finding->seen = job_copy_text(seen);
  finding->remedy = job_copy_text(remedy);
  if (!job->findings)
    job->findings = g_ptr_array_new_with_free_func(job_finding_free);
  g_ptr_array_add(job->findings, finding);
  job->revision++;
}

void job_clear_failure(Job *job) {
  g_clear_pointer(&job->failure.message, g_free);
  g_clear_pointer(&job->failure.libvirt_message, g_free);
  job->failure = (JobFailure){0};
  job->revision++;
}

void job_set_evidence(Job *job, const char *evidence) {
  char *copy = job_copy_text(evidence);

  g_free(job->result.evidence);
  job->result.evidence = copy;
}

void job_set_next_action(Job *job, const char *text) {
  g_free(job->next_action);
  job->next_action = job_copy_text(text);
}

bool job_is_final(const Job *job) {
  return mig_phase_is_final(job->phase);
}

/* Checks one text that the job was given. */
static bool check_text(const char *what, const char *text, size_t max, GError **error) {
  size_t length = text ? strlen(text) : 0;

  if (length > max)
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "its %s has %zu bytes; the limit is %zu", what,
                length, max);
  return length <= max;
}

static bool check_images(const GPtrArray *images, GError **error) {
  if (images->len > JOB_IMAGES_MAX) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "it needs %u disk images; the limit is %d",
                images->len, JOB_IMAGES_MAX);
    return false;
  }
  for (guint i = 0; i < images->len; i++) {
    const JobImage *image = images->pdata[i];

    if (!check_text("disk's path", image->path, JOB_PATH_MAX, error) ||
        !check_text("disk", image->disk, JOB_WORD_MAX, error) ||
        !check_text("storage pool", image->pool, JOB_WORD_MAX, error) ||
        !check_text("volume", image->volume, JOB_WORD_MAX, error) ||
        !check_text("disk's format", image->format, JOB_WORD_MAX, error))
      return false;
  }
  return true;
}

bool job_check_limits(const Job *job, GError **error) {
  const struct {
    const char *what;
    const char *text;
    size_t max;
  } texts[] = {
      {"request key", job->request_key, JOB_NAME_MAX},
      {"digest", job->request_digest, JOB_NAME_MAX},
      {"domain's name", job->domain_name, JOB_NAME_MAX},
      {"target's name", job->target_name, JOB_NAME_MAX},
      {"target's URI", job->target_uri, JOB_URI_MAX},
      {"migrate_uri", job->migrate_uri, JOB_URI_MAX},
      {"policy's name", job->policy_name, JOB_NAME_MAX},
      {"matched policy's name", job->policy_matched, JOB_NAME_MAX},
      {"drain", job->drain_id, JOB_NAME_MAX},
      {"source", job->lease ? job->lease->source : NULL, JOB_URI_MAX},
  };

  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
    if (!check_text(texts[i].what, texts[i].text, texts[i].max, error))
      return false;
  return !job->lease || check_images(job->lease->images, error);
}

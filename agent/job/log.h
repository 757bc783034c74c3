/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's messages: structured, to the journal; and to stderr unless that is the journal. */
#pragma once

#include "agent/job/job.h"
#include "agent/job/names.h"

#include <glib.h>
#include <syslog.h>

typedef struct LogField {
  const char *name;  /* from names.h */
  const char *value; /* NULL: omits the field */
} LogField;

/* Call once, before the first message. */
void log_open(void);

/* Logs a message. `message_id` may be NULL if it is not an event of its own. */
void log_message(int priority, const char *message_id, const LogField *fields, size_t n_fields,
                 const char *format, ...) G_GNUC_PRINTF(5, 6);

/* Logs a message about a job, with all journal fields that apply to it, and the caller who requested what the message tells;
 * NULL: nobody did. */
void log_job_by(const Job *job, const Caller *caller, int priority, const char *message_id,
                const char *format, ...) G_GNUC_PRINTF(5, 6);

/* The same, if nobody did. */
#define log_job(job, ...) log_job_by(job, NULL, __VA_ARGS__)

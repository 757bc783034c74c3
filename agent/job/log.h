/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the agent says: structured, to the journal; and to stderr where that is not the journal. */
#pragma once

#include "agent/job/job.h"
#include "agent/job/names.h"

#include <glib.h>
#include <syslog.h>

typedef struct LogField {
  const char *name;  /* of names.h */
  const char *value; /* NULL: the field is left out */
} LogField;

/* To be called once, before the first message. */
void log_open(void);

/* One message. `message_id` may be NULL for what is no event of its own. */
void log_message(int priority, const char *message_id, const LogField *fields, size_t n_fields,
                 const char *format, ...) G_GNUC_PRINTF(5, 6);

/* The same as below, with who asked for what the message tells; NULL: nobody did. */
void log_job_by(const Job *job, const Caller *caller, int priority, const char *message_id,
                const char *format, ...) G_GNUC_PRINTF(5, 6);

/* One message about a job, with all that the journal's fields can say of it. */
void log_job(const Job *job, int priority, const char *message_id, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exit statuses and what they mean. */
#pragma once

#include "libmigrate/core/types.h"

/* Part of the interface: scripts depend on them. */
typedef enum ExitStatus {
  EXIT_DONE = 0,
  EXIT_INTERNAL = 1,
  EXIT_USAGE = 2,
  EXIT_UNREACHABLE = 3,
  EXIT_REFUSED = 4,
  EXIT_NOT_FOUND = 5,
  EXIT_FAILED = 10,
  EXIT_ABORTED = 11,
  EXIT_TIMED_OUT = 12,
  EXIT_PERMISSION = 13,
  EXIT_DETACHED = 130 /* by SIGINT; other signals likewise 128 + their number, as in the shell */
} ExitStatus;

typedef struct ExitStatusInfo {
  ExitStatus status;
  const char *summary;
} ExitStatusInfo;

/* For --help: rows in order; a row without a summary ends the table. */
const ExitStatusInfo *exit_status_table(void);

/* What a finished job means to whoever requested the migration. EXIT_INTERNAL for an unfinished job. */
ExitStatus exit_status_of_job(MigPhase phase, MigCause cause);

/* What an operator can do about a job that ended with this cause. Never NULL. */
const char *cause_next_step(MigCause cause);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares what domains run with to what their next start would use, on a thread. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <glib.h>

/* More changes of one domain are only counted. */
#define COMPARE_CHANGES_MAX 64

typedef struct Comparison {
  char *name;
  char uuid[MIG_UUID_STRING_SIZE];
  bool running, persistent;
  char *error;      /* why it could not be compared, or NULL */
  size_t n_changes; /* all changes */
  unsigned counts[MIG_REMEDY_COUNT];
  MigChange *changes;  /* the first COMPARE_CHANGES_MAX */
  GStringChunk *items; /* their strings */
} Comparison;

void comparison_free(gpointer comparison); /* NULL is fine */

/* Compares one domain, which must exist. */
Comparison *compare_domain(MigDriver *driver, MigConn *conn, const char *name_or_uuid, GError **error);

/* Compares those of `uuids` that exist and run, or, if NULL, all that run: of Comparison. One that cannot be read has its own
 * error; the whole call fails only if libvirtd does not answer. */
GPtrArray *compare_domains(MigDriver *driver, MigConn *conn, const GPtrArray *uuids, GError **error);

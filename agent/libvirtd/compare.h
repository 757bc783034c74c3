/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares what domains run with to what their next start would have, on a thread. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <glib.h>

/* More of one domain are counted only. */
#define COMPARE_CHANGES_MAX 64

typedef struct Comparison {
  char *name;
  char uuid[MIG_UUID_STRING_SIZE];
  bool running, persistent;
  char *error;      /* why it could not be compared, or NULL */
  size_t n_changes; /* all that there are */
  unsigned counts[MIG_REMEDY_COUNT];
  MigChange *changes;  /* the first COMPARE_CHANGES_MAX */
  GStringChunk *items; /* theirs */
} Comparison;

void comparison_free(gpointer comparison); /* NULL is fine */

/* One domain, which must be there. */
Comparison *compare_domain(MigDriver *driver, MigConn *conn, const char *name_or_uuid, GError **error);

/* Those of `uuids` that are there and run, or, with NULL, all that run: of Comparison. One that cannot be read has its error; it
 * ends with one of its own only if libvirtd does not answer. */
GPtrArray *compare_domains(MigDriver *driver, MigConn *conn, const GPtrArray *uuids, GError **error);

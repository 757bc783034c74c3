/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver around another that knows which calls are out, and since when. */
#pragma once

#include "libmigrate/virt/driver.h"

/* A call that should have been answered by now. */
typedef struct CallWatchLate {
  const char *what; /* static: in words that go on "…has not answered: " */
  char *uri;        /* whose libvirtd it is */
  char *about;      /* the domain, as it was asked for, or NULL */
  uint64_t since_ms;
} CallWatchLate;

void call_watch_late_free(gpointer late);

/* Takes `inner`, and is freed as any driver; not before the last call has come back. */
MigDriver *call_watch_new(MigDriver *inner);

/* All calls of `driver` (of call_watch_new()) that have been out for longer than they may, oldest first: of CallWatchLate,
 * the caller's. Does not wait for them. */
GPtrArray *call_watch_list_late(MigDriver *driver, uint64_t now_ms);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver that wraps another one and knows which calls are in progress, and since when. */
#pragma once

#include "libmigrate/virt/driver.h"

/* A call that should have been answered by now. */
typedef struct CallWatchLate {
  const char *what; /* static: follows "…has not answered: " */
  char *uri;        /* of the libvirtd */
  char *about;      /* the domain, as it was requested, or NULL */
  uint64_t since_ms;
} CallWatchLate;

/* Takes `inner`. Free it like any driver, after the last call has returned. */
MigDriver *call_watch_new(MigDriver *inner);

/* All calls of `driver` (from call_watch_new()) that are overdue, oldest first: of CallWatchLate, owned by the caller. Does not wait
 * for them. */
GPtrArray *call_watch_list_late(MigDriver *driver, uint64_t now_ms);

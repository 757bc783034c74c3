/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller of a request, as the kernel identifies it; kept with the job. */
#pragma once

#include "proto/json.h"
#include "proto/server.h"

#include <glib.h>

typedef struct Caller {
  uid_t uid; /* these three as of when it connected */
  gid_t gid;
  pid_t pid;
  char *unit; /* systemd unit; NULL: unknown */
  char *comm; /* name of its program, or NULL */
} Caller;

/* Reads unit and comm from the pid now. They are a hint only: the process may have ended, its pid may have been reused, and it
 * chooses its own name. They are unknown if /proc hides other users' processes from the agent. */
Caller *caller_new(const VarlinkPeer *peer);
Caller *caller_copy(const Caller *caller); /* NULL for NULL */
void caller_free(Caller *caller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Caller, caller_free)

/* "uid 0 (pid 42, nova-compute.service, python3)" */
char *caller_describe(const Caller *caller);

/* The interface's type Caller; records use it, too. */
json_t *caller_to_json(const Caller *caller);
Caller *caller_from_json(json_t *object); /* NULL: malformed */

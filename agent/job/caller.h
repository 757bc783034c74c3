/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who asked: what the kernel says of a caller, kept with what came of it. */
#pragma once

#include "proto/server.h"

#include <glib.h>
#include <jansson.h>

typedef struct Caller {
  uid_t uid; /* of the moment when it connected, as pid */
  gid_t gid;
  pid_t pid;
  char *unit; /* of the service manager, or NULL: not seen */
  char *comm; /* the name of its program, or NULL */
} Caller;

/* unit and comm are read of the pid now: a hint, for the process may have ended, its pid be another's, and its name be its own choice.
 * They are not seen where /proc hides the processes of others from the agent. */
Caller *caller_new(const VarlinkPeer *peer);
Caller *caller_copy(const Caller *caller); /* NULL of NULL */
void caller_free(Caller *caller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Caller, caller_free)

/* "uid 0 (pid 42, nova-compute.service, python3)" */
char *caller_describe(const Caller *caller);

/* The interface's type Caller, which records have as well. */
json_t *caller_to_json(const Caller *caller);
Caller *caller_from_json(json_t *object); /* NULL: it is none */

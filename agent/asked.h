/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What callers ask for: targets and policies, resolved against the configuration. */
#pragma once

#include "agent/agent.h"

/* Borrowed from the call's parameters or the configuration. */
typedef struct AskedTarget {
  const char *name; /* of the configuration, or NULL */
  const char *libvirt_uri;
  const char *migrate_uri; /* or NULL */
} AskedTarget;

/* All answer the call and return false if what it asks for cannot be. */
bool asked_take_target(Agent *agent, VarlinkCall *call, json_t *parameters, AskedTarget *ret_target);

/* Resolves request over named policy over the node's default. ret_name is the named one, or NULL; borrowed. */
bool asked_take_policy(Agent *agent, VarlinkCall *call, json_t *parameters, MigPolicy *ret_policy,
                       const char **ret_name);

/* Answers with what a lookup_domain() failed for. */
void asked_reply_lookup_error(Agent *agent, VarlinkCall *call, const char *domain, const GError *error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What callers ask for: targets and policies, resolved against the configuration. */
#pragma once

#include "agent/config/goals.h"
#include "agent/request/requests.h"

/* Borrowed from the call's parameters or the configuration. */
typedef struct AskedTarget {
  const char *name; /* of the configuration, or NULL */
  const char *libvirt_uri;
  const char *migrate_uri; /* or NULL */
} AskedTarget;

/* What a request says of its goals. They can be resolved only once the domain is known, which may choose a policy. */
typedef struct AskedGoals {
  char *policy_name; /* or NULL */
  MigPolicy over;
} AskedGoals;

void asked_goals_clear(AskedGoals *asked);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(AskedGoals, asked_goals_clear)

/* All answer the call and return false if what it asks for cannot be. */
bool asked_take_target(Requests *requests, VarlinkCall *call, json_t *parameters, AskedTarget *ret_target);

/* The same for a place of any name: a [Target], or a URI of those that a caller may name (core/uri.h). */
bool asked_find_place(Requests *requests, VarlinkCall *call, const char *text, AskedTarget *ret_place);

/* Looks at what can be said without the domain. */
bool asked_take_goals(Requests *requests, VarlinkCall *call, json_t *parameters, AskedGoals *ret_asked);

/* Resolves request over named policy over matched policy over the node's default. `facts` may be NULL: no domain. What
 * ret_goals points to is of the configuration. */
bool asked_resolve_goals(Requests *requests, VarlinkCall *call, const AskedGoals *asked,
                         const MigDomainFacts *facts, Goals *ret_goals);

/* The same, whether they exclude each other or not. */
bool asked_find_goals(Requests *requests, VarlinkCall *call, const AskedGoals *asked,
                      const MigDomainFacts *facts, Goals *ret_goals);

/* What of a domain's facts conditions are held against. Borrows. */
MigMatchFacts asked_match_facts(const MigDomainFacts *facts);

/* Answers with what a lookup_domain() failed for. */
void asked_reply_lookup_error(Requests *requests, VarlinkCall *call, const char *domain, const GError *error);

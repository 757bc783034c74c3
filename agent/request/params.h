/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What callers ask for: targets and policies, resolved against the configuration. */
#pragma once

#include "agent/config/goals.h"
#include "agent/request/requests.h"

/* Borrowed from the call's parameters or the configuration. */
typedef struct TargetParam {
  const char *name; /* of the configuration, or NULL */
  const char *libvirt_uri;
  const char *migrate_uri; /* or NULL */
} TargetParam;

/* What a request says of its goals. They can be resolved only once the domain is known, which may choose a policy. */
typedef struct GoalsParam {
  char *policy_name; /* or NULL */
  MigPolicy over;
} GoalsParam;

void goals_param_clear(GoalsParam *asked);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GoalsParam, goals_param_clear)

/* All answer the call and return false if what it asks for cannot be. */
bool params_take_target(Requests *requests, VarlinkCall *call, json_t *parameters, TargetParam *ret_target);

/* The same for a place of any name: a [Target], or a URI of those that a caller may name (core/uri.h). */
bool params_find_place(Requests *requests, VarlinkCall *call, const char *text, TargetParam *ret_place);

/* Looks at what can be said without the domain. */
bool params_take_goals(Requests *requests, VarlinkCall *call, json_t *parameters, GoalsParam *ret_asked);

/* Resolves request over named policy over matched policy over the node's default. `facts` may be NULL: no domain. What
 * ret_goals points to is of the configuration. */
bool params_resolve_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                          const MigDomainFacts *facts, Goals *ret_goals);

/* The same, whether they exclude each other or not. */
bool params_find_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                       const MigDomainFacts *facts, Goals *ret_goals);

/* What of a domain's facts conditions are held against. Borrows. */
MigMatchFacts params_match_facts(const MigDomainFacts *facts);

/* Answers with what a lookup_domain() failed for. */
void reply_lookup_error(Requests *requests, VarlinkCall *call, const char *domain, const GError *error);

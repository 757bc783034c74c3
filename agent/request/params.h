/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Targets and policies in requests, resolved against the configuration. */
#pragma once

#include "agent/config/goals.h"
#include "agent/request/requests.h"

/* Borrowed from the call's parameters or the configuration. */
typedef struct TargetParam {
  const char *name; /* in the configuration, or NULL */
  const char *libvirt_uri;
  const char *migrate_uri; /* or NULL */
} TargetParam;

/* The goals in a request. They can be resolved only once the domain is known, since it may match a policy. */
typedef struct GoalsParam {
  char *policy_name; /* or NULL */
  MigPolicy over;
} GoalsParam;

void goals_param_clear(GoalsParam *asked);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GoalsParam, goals_param_clear)

/* All of these answer the call with an error and return false if they cannot accept the request. */
bool params_take_target(Requests *requests, VarlinkCall *call, json_t *parameters, TargetParam *ret_target);

/* The same for a target by any name: a [Target], or a URI that callers may give (core/uri.h). */
bool params_find_place(Requests *requests, VarlinkCall *call, const char *text, TargetParam *ret_place);

/* The parameter "policy". */
bool params_take_policy(VarlinkCall *call, json_t *parameters, MigPolicy *ret_policy);

/* Checks what can be checked without the domain. */
bool params_take_goals(Requests *requests, VarlinkCall *call, json_t *parameters, GoalsParam *ret_asked);

/* Resolves the request over the named policy over the matched policy over the node's default. `facts` may be NULL: no
 * domain. Pointers in ret_goals are borrowed from the configuration. */
bool params_resolve_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                          const MigDomainFacts *facts, Goals *ret_goals);

/* The same, but accepts goals that exclude each other. */
bool params_find_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                       const MigDomainFacts *facts, Goals *ret_goals);

/* Answers with InvalidPolicy. */
void params_refuse_policy(VarlinkCall *call, const char *key, const char *message);

/* The facts of a domain that match conditions are compared with. Borrows. */
MigMatchFacts params_match_facts(const MigDomainFacts *facts);

/* Answers with the error of a failed lookup_domain(). */
void reply_lookup_error(Requests *requests, VarlinkCall *call, const char *domain, const GError *error);

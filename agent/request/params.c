/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Targets and policies in requests, resolved against the configuration. */
#include "agent/request/params.h"

#include "agent/base/policyjson.h"
#include "agent/request/reply.h"
#include "libmigrate/core/uri.h"

#include <string.h>

/* An error repeats the caller's text, but not a megabyte of it. */
#define TOLD_BYTES_MAX 200

static void refuse(VarlinkCall *call, const char *error, const char *asked, const char *about,
                   const char *message) {
  size_t length = strlen(asked);
  const char *end = asked + length;
  g_autofree char *told = NULL, *text = g_strconcat(about, message, NULL);

  if (length > TOLD_BYTES_MAX)
    end = g_utf8_find_prev_char(asked, asked + TOLD_BYTES_MAX);
  told = g_strdup_printf("%.*s%s", (int)(end - asked), asked, *end ? "..." : "");
  reply_error(call, error, json_pack("{ss ss}", "target", told, "message", text));
}

/* --- AllowTargets= --- */

static bool is_allowed_uri(const Config *config, const char *text, const MigUri *uri) {
  for (char **pattern = config->allow_targets; *pattern; pattern++) {
    MigAllow allow;

    if (mig_allow_parse(*pattern, &allow) && mig_allow_uri(&allow, text, uri))
      return true;
  }
  return false;
}

/* By its name, or by its URI if a caller could give that as well. */
static bool is_allowed_target(const Config *config, const ConfigTarget *target) {
  MigUri uri;

  for (char **pattern = config->allow_targets; *pattern; pattern++) {
    MigAllow allow;

    if (mig_allow_parse(*pattern, &allow) && mig_allow_name(&allow, target->name))
      return true;
  }
  return !mig_uri_parse(MIG_URI_LIBVIRT, target->libvirt_uri, &uri) &&
         is_allowed_uri(config, target->libvirt_uri, &uri);
}

static bool has_host(MigUriKind kind, const char *text, const MigUri *uri) {
  MigUri other;

  return text && !mig_uri_parse(kind, text, &other) && mig_uri_same_host(&other, uri);
}

/* The stream may also go to the host of the target, which is already allowed. */
static bool is_allowed_stream(const Config *config, const char *text, const MigUri *uri,
                              const TargetParam *target) {
  return has_host(MIG_URI_LIBVIRT, target->libvirt_uri, uri) ||
         has_host(MIG_URI_MIGRATION, target->migrate_uri, uri) || is_allowed_uri(config, text, uri);
}

static const char not_allowed[] = "AllowTargets= in the configuration does not permit it";

/* --- targets --- */

static const char *find_fault(const char *text, MigUri *uri) {
  if (!strstr(text, "://"))
    return "it is neither a [Target] in the configuration nor a libvirt URI such as qemu+tls://node-b/system";
  return mig_uri_parse(MIG_URI_LIBVIRT, text, uri);
}

bool params_find_place(Requests *requests, VarlinkCall *call, const char *text, TargetParam *ret_place) {
  const Config *config = requests->config;
  const ConfigTarget *configured = config_find_target(config, text);
  MigUri uri;
  const char *fault = configured ? NULL : find_fault(text, &uri);

  if (fault) {
    refuse(call, "NoSuchTarget", text, "", fault);
    return false;
  }
  if (config->allow_targets &&
      !(configured ? is_allowed_target(config, configured) : is_allowed_uri(config, text, &uri))) {
    refuse(call, "TargetNotAllowed", text, "", not_allowed);
    return false;
  }
  if (configured)
    *ret_place = (TargetParam){.name = configured->name,
                               .libvirt_uri = configured->libvirt_uri,
                               .migrate_uri = configured->migrate_uri};
  else
    *ret_place = (TargetParam){.libvirt_uri = text};
  return true;
}

static bool take_migrate_uri(const Config *config, VarlinkCall *call, const char *text, TargetParam *target) {
  MigUri uri;
  const char *fault = mig_uri_parse(MIG_URI_MIGRATION, text, &uri);

  if (fault) {
    refuse(call, "NoSuchTarget", text, "migrate_uri: ", fault);
    return false;
  }
  if (config->allow_targets && !is_allowed_stream(config, text, &uri, target)) {
    refuse(call, "TargetNotAllowed", text, "migrate_uri: ", not_allowed);
    return false;
  }
  target->migrate_uri = text;
  return true;
}

bool params_take_target(Requests *requests, VarlinkCall *call, json_t *parameters, TargetParam *ret_target) {
  const char *migrate_uri = json_string_of(parameters, "migrate_uri");

  return params_find_place(requests, call, json_string_of(parameters, "target"), ret_target) &&
         (!migrate_uri || take_migrate_uri(requests->config, call, migrate_uri, ret_target));
}

void goals_param_clear(GoalsParam *asked) {
  g_clear_pointer(&asked->policy_name, g_free);
}

static bool find_named(Requests *requests, VarlinkCall *call, const char *name,
                       const ConfigPolicy **ret_policy) {
  *ret_policy = config_find_policy(requests->config, name);
  if (!name || *ret_policy)
    return true;
  reply_error(call, "NoSuchPolicy", json_pack("{ss}", "policy_name", name));
  return false;
}

void params_refuse_policy(VarlinkCall *call, const char *key, const char *message) {
  reply_error(call, "InvalidPolicy", json_pack("{ss ss}", "key", key, "message", message));
}

bool params_take_policy(VarlinkCall *call, json_t *parameters, MigPolicy *ret_policy) {
  const char *key = NULL;
  char message[200];

  if (policy_from_json(json_object_get(parameters, "policy"), ret_policy, &key, message, sizeof message))
    return true;
  params_refuse_policy(call, key, message);
  return false;
}

bool params_take_goals(Requests *requests, VarlinkCall *call, json_t *parameters, GoalsParam *ret_asked) {
  const char *name = json_string_of(parameters, "policy_name");
  const ConfigPolicy *named;
  MigPolicy over;

  if (!find_named(requests, call, name, &named) || !params_take_policy(call, parameters, &over))
    return false;
  *ret_asked = (GoalsParam){.policy_name = g_strdup(name), .over = over};
  return true;
}

MigMatchFacts params_match_facts(const MigDomainFacts *facts) {
  return (MigMatchFacts){
      .name = facts->name,
      .title = facts->tags.title,
      .memory_bytes = facts->memory_bytes,
      .metadata = facts->tags.metadata,
      .n_metadata = facts->tags.n_metadata,
  };
}

bool params_find_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                       const MigDomainFacts *facts, Goals *ret_goals) {
  MigMatchFacts match_facts = facts ? params_match_facts(facts) : (MigMatchFacts){0};
  const ConfigPolicy *named;

  /* The configuration may have changed since the request was accepted. */
  if (!find_named(requests, call, asked->policy_name, &named))
    return false;
  goals_resolve(requests->config, named, &asked->over, facts ? &match_facts : NULL, ret_goals);
  return true;
}

bool params_resolve_goals(Requests *requests, VarlinkCall *call, const GoalsParam *asked,
                          const MigDomainFacts *facts, Goals *ret_goals) {
  Goals goals;

  if (!params_find_goals(requests, call, asked, facts, &goals) || reply_refuse_conflict(call, &goals.policy))
    return false;
  *ret_goals = goals;
  return true;
}

void reply_lookup_error(Requests *requests, VarlinkCall *call, const char *domain, const GError *error) {
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN))
    reply_error(call, "NoSuchDomain", json_pack("{ss}", "domain", domain));
  else
    reply_error(call, "HypervisorUnavailable",
                json_pack("{ss ss}", "uri", hypervisor_get_uri(requests->mover->hypervisor), "message",
                          error->message));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gathers the facts for the checks before a migration from both ends; core judges them. */
#pragma once

#include "agent/libvirtd/local-call.h"
#include "libmigrate/core/migratable.h"

/* The answers of both ends. */
typedef struct Survey {
  MigHostFacts source;
  MigDomainFacts domain;
  gint have_source; /* atomic: the two above are complete and final, even while the target is asked */
  MigTargetFacts target;
  bool have_target;
  GError *target_error; /* why the target could not be asked */
} Survey;

/* Large: never put one on a stack. */
Survey *survey_new(void);
void survey_free(Survey *survey);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Survey, survey_free)

/* Asks this node's libvirtd for the domain, by name or UUID, and then the target, connecting to it meanwhile. False: the source
 * cannot tell, so nothing can be judged. An unreachable target is a finding, not an error. */
bool survey_ask(Survey *survey, Hypervisor *hypervisor, const char *domain, const char *target_uri,
                unsigned connect_timeout_ms, GError **error);

/* Passes the answers to core; `input` borrows from `survey`. The rest of the input is up to the caller. */
void survey_fill(const Survey *survey, MigCheckInput *input);

/* On the main context, exactly once. `error`: this node's libvirtd cannot tell, so nothing can be judged. Otherwise the domain, the
 * source and the target of `input` are set for the duration of the call. */
typedef void (*SurveyFunc)(const MigCheckInput *input, const GError *error, gpointer user_data);

/* Of a pool of its own, so that targets that do not answer do not delay lookups at this node's libvirtd. */
#define SURVEY_THREADS 16

/* The domain by name or UUID. Takes limit_ms in total, at most 25 s: a target that does not answer by then counts as
 * unreachable. */
void survey_call(LocalCalls *calls, const char *domain, const char *target_uri, unsigned limit_ms,
                 SurveyFunc done, gpointer user_data);

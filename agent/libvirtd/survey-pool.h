/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks both ends of a migration what its checks need to know, off the main loop and within a time limit. */
#pragma once

#include "agent/libvirtd/survey.h"

typedef struct SurveyPool SurveyPool;

/* On the main context, exactly once. `error`: this node's libvirtd cannot tell, so nothing can be judged. Otherwise the domain, the
 * source and the target of `input` are set for the duration of the call. */
typedef void (*SurveyPoolFunc)(const MigCheckInput *input, const GError *error, gpointer user_data);

SurveyPool *survey_pool_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context,
                            unsigned connect_timeout_ms);

/* Fails all waiting requests. NULL is fine. */
void survey_pool_free(SurveyPool *checker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SurveyPool, survey_pool_free)

/* The domain by name or UUID. Takes limit_ms in total, at most 25 s: a target that does not answer by then counts as
 * unreachable. */
void survey_pool_ask(SurveyPool *checker, const char *domain, const char *target_uri, unsigned limit_ms,
                     SurveyPoolFunc done, gpointer user_data);

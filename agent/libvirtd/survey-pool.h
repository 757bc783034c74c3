/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks both ends of a move what its checks want to know, off the main loop and within a bound. */
#pragma once

#include "agent/libvirtd/survey.h"

typedef struct SurveyPool SurveyPool;

/* On the main context, exactly once. `error`: this node's libvirtd cannot say, and nothing can be judged; else the domain,
 * the source and the target of `input` are filled in, for as long as the call takes. */
typedef void (*SurveyPoolFunc)(const MigCheckInput *input, const GError *error, gpointer user_data);

SurveyPool *survey_pool_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context,
                            unsigned connect_timeout_ms);

/* Answers what still waits with an error. NULL is fine. */
void survey_pool_free(SurveyPool *checker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SurveyPool, survey_pool_free)

/* The domain by name or UUID. It may take limit_ms in all, and no more than 25 s: a target that does not answer by then is one
 * that is away. */
void survey_pool_ask(SurveyPool *checker, const char *domain, const char *target_uri, unsigned limit_ms,
                     SurveyPoolFunc done, gpointer user_data);

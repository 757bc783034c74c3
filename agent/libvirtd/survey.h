/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checks before a move, as a thread makes them: both ends are asked, and core judges. */
#pragma once

#include "agent/libvirtd/hypervisor.h"
#include "libmigrate/core/migratable.h"

/* What both ends said. */
typedef struct Survey {
  MigHostFacts source;
  MigDomainFacts domain;
  gint have_source; /* atomic: the two above stand, and change no more, whoever asks the target meanwhile */
  MigTargetFacts target;
  bool have_target;
  GError *target_error; /* why the target could not be asked */
} Survey;

/* Large: never on a stack. */
Survey *survey_new(void);
void survey_free(Survey *survey);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Survey, survey_free)

/* Asks this node's libvirtd for the domain, by name or UUID, and then the target, which is connected to meanwhile. False:
 * the source cannot say, and nothing can be judged. That the target cannot be asked is a finding, and no error. */
bool survey_ask(Survey *survey, MigDriver *driver, Hypervisor *hypervisor, const char *domain,
                const char *target_uri, unsigned connect_timeout_ms, GError **error);

/* Gives core what the ends said; what it borrows is of `survey`. The rest of the input is the caller's. */
void survey_fill(const Survey *survey, MigCheckInput *input);

/* The same where the target is still being asked, which takes too long: `late` says so in words. */
void survey_fill_late(const Survey *survey, const char *late, MigCheckInput *input);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a scripted host answers to a survey. fake-driver.h has the fields. */
#pragma once

#include "libmigrate/virt/driver.h"

#include <jansson.h>

/* Facts of a domain from its object's "xml", with its disks on storage as the host's object has it. NULL: it has none. */
bool fake_survey_parse(json_t *domain, json_t *host, MigDomainFacts *ret_facts, GError **error);

/* What only a survey sees of a domain. */
void fake_survey_domain(json_t *domain, json_t *host, MigDomainFacts *facts);

/* What of a host's "capabilities" and plain fields there is. `facts` is empty before. */
bool fake_survey_host(json_t *host, MigHostFacts *ret_facts, GError **error);

/* The answers of a target. `facts->host` is filled in before, the rest is empty. */
void fake_survey_target(json_t *host, const MigDomainFacts *domain, const MigHostFacts *source,
                        MigTargetFacts *facts);

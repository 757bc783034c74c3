/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs all checks on a domain's XML and on what hosts are scripted to answer (tests/fake/fake-driver.h). */
#pragma once

#include "libmigrate/core/migratable.h"

#include <jansson.h>

/* `domain`: "xml" and the rest of a domain's script, and "state" (running). `source`, `target`: hosts' scripts; of the
 * target also "unreachable" and "refuses" (why) and "domain_state" (absent). Paths of files are relative to the working directory.
 * `policy`: KEY=VALUE words, may be NULL. */
void check_run(json_t *domain, json_t *source, json_t *target, const char *policy,
               MigCheckReport *ret_report);

/* NULL, or the finding. */
const MigFinding *check_find(const MigCheckReport *report, const char *code);

/* All codes with a space between, blockers before a "|" and warnings after it. Free with g_free(). */
char *check_codes(const MigCheckReport *report);

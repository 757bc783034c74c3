/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The checks before a move, as a thread makes them: both ends are asked, and core judges. */
#pragma once

#include "agent/hypervisor.h"
#include "libmigrate/core/migratable.h"

typedef struct Precheck {
  MigHostFacts source;
  MigDomainFacts domain;
  MigTargetFacts target;
  bool have_target;
  GError *target_error; /* why the target could not be asked */
  MigCheckReport report;
} Precheck;

/* Large: never on a stack. */
Precheck *precheck_new(void);
void precheck_free(Precheck *precheck);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Precheck, precheck_free)

/* Asks this node's libvirtd for the domain, by name or UUID. False: it cannot say, and nothing can be judged. */
bool precheck_ask_source(Precheck *precheck, MigDriver *driver, Hypervisor *hypervisor, const char *domain,
                         unsigned connect_timeout_ms, GError **error);

/* Asks the target. That it cannot be asked is a finding, and no error. */
void precheck_ask_target(Precheck *precheck, MigDriver *driver, const char *target_uri,
                         unsigned connect_timeout_ms);

/* Judges by what is known: fills in the report, and the facts for the policy's rules. */
void precheck_judge(Precheck *precheck, const char *target_uri, const MigPolicy *policy,
                    MigPolicyFacts *ret_facts);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks this node's libvirtd for a domain, off the main loop and within a bound. */
#pragma once

#include "agent/hypervisor.h"

typedef struct Lookup Lookup;

/* On the main context, exactly once. `facts` (borrowed) or `error`. */
typedef void (*LookupFunc)(const MigDomainFacts *facts, const GError *error, gpointer user_data);

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms);

/* Answers what still waits with an error. NULL is fine. */
void lookup_free(Lookup *lookup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Lookup, lookup_free)

/* By name or UUID. */
void lookup_domain(Lookup *lookup, const char *domain, LookupFunc done, gpointer user_data);

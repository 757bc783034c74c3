/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks this node's libvirtd for a domain, off the main loop and within a bound. */
#pragma once

#include "agent/libvirtd/hypervisor.h"
#include "libmigrate/core/forecast.h"

typedef struct Lookup Lookup;

typedef struct LookupAnswer {
  MigDomainFacts facts;
  MigProbe probe; /* what was measured of it, perhaps nothing */
} LookupAnswer;

/* On the main context, exactly once. `answer` (borrowed) or `error`. */
typedef void (*LookupFunc)(const LookupAnswer *answer, const GError *error, gpointer user_data);

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms);

/* Answers what still waits with an error. NULL is fine. */
void lookup_free(Lookup *lookup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Lookup, lookup_free)

/* By name or UUID. With `measure` also what it dirties, which takes some seconds more. */
void lookup_domain(Lookup *lookup, const char *domain, bool measure, LookupFunc done, gpointer user_data);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks up a domain at this node's libvirtd, off the main loop and within a time limit. */
#pragma once

#include "agent/libvirtd/hypervisor.h"
#include "libmigrate/core/forecast.h"

typedef struct Lookup Lookup;

typedef struct LookupAnswer {
  MigDomainFacts facts;
  MigProbe probe; /* its measurements, perhaps none */
} LookupAnswer;

/* On the main context, exactly once, with either `answer` (borrowed) or `error`. */
typedef void (*LookupFunc)(const LookupAnswer *answer, const GError *error, gpointer user_data);

Lookup *lookup_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned timeout_ms);

/* Fails all waiting lookups. NULL is fine. */
void lookup_free(Lookup *lookup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Lookup, lookup_free)

/* By name or UUID. `measure_it` also measures what the guest dirties, which takes some seconds more. */
void lookup_domain(Lookup *lookup, const char *domain, bool measure, LookupFunc done, gpointer user_data);

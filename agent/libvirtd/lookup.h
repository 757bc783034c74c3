/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks up a domain at this node's libvirtd, off the main loop and within a time limit. */
#pragma once

#include "agent/libvirtd/local-call.h"
#include "libmigrate/core/forecast.h"

#define LOOKUP_THREADS 4

typedef struct LookupAnswer {
  MigDomainFacts facts;
  MigProbe probe; /* its measurements, perhaps none */
} LookupAnswer;

/* By name or UUID; `done` gets a LookupAnswer for the task. `measure_it` also measures what the guest dirties, which takes some
 * seconds more. */
void lookup_domain(LocalCalls *calls, const char *domain, bool measure_it, LocalCallDoneFunc done,
                   gpointer user_data);

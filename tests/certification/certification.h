/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What org.varlink.certification passes from each of its tests to the next; shared by both sides. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define CERTIFICATION "org.varlink.certification"

extern const char org_varlink_certification_varlink[];

/* One method, with what it must be called with (beside client_id) and what it answers, as JSON. */
typedef struct CertificationStep {
  const char *method;
  const char *takes;
  const char *gives;
} CertificationStep;

/* Test01 to Test09, in their order: what one gives is what the next takes. */
extern const CertificationStep certification_steps[];
extern const size_t n_certification_steps;

/* What Test10 takes. */
extern const char certification_mytype[];

#define CERTIFICATION_REPLIES 10

/* The replies of Test10, which are what Test11 takes: "Reply number 1" and so on. */
json_t *certification_reply(unsigned number);

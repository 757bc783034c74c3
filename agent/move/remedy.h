/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands that settle a migration whose outcome only an operator can know. */
#pragma once

#include "libmigrate/core/verdict.h"

/* What the commands need; not quoted yet. */
typedef struct RemedyPlaces {
  const char *domain;     /* name */
  const char *job;        /* id */
  const char *source_uri; /* of this node's libvirtd */
  const char *target_uri;
  bool seen_there; /* the guest was seen at the target, or libvirt reported the migration as completed */
} RemedyPlaces;

/* What to find out, and the command for each answer. The caller's; NULL: nothing to advise in these states. */
char *remedy_describe(MigEndState source, MigEndState target, const RemedyPlaces *places);

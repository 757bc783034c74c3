/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which commands settle a move whose outcome only an operator can know. */
#pragma once

#include "libmigrate/core/verdict.h"

/* Where things are, as an operator's shell takes them. */
typedef struct RemedyPlaces {
  const char *domain;     /* name */
  const char *job;        /* id */
  const char *source_uri; /* of this node's libvirtd */
  const char *target_uri;
  bool seen_there; /* the guest was seen at the target, or libvirt called the migration completed */
} RemedyPlaces;

/* What to find out, and the command for each answer. The caller's; NULL: there is nothing to say for these states. */
char *remedy_describe(MigEndState source, MigEndState target, const RemedyPlaces *places);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the images of an incoming job, and removes them, off the main loop. */
#pragma once

#include "agent/job/joblease.h"
#include "agent/libvirtd/local-call.h"

/* What became of it. The order of the images is that of the lease. */
typedef struct ImagesAnswer {
  GPtrArray *images;      /* JobImage with their new states; all of the lease's */
  GPtrArray *errors;      /* GError or NULL for each */
  bool have_status;       /* of removing */
  MigDomainStatus status; /* how the domain stood afterwards, or, where nothing was removed for it, before */
  bool removed;           /* nothing of the domain was here, and so they were removed */
} ImagesAnswer;

/* On the main context, exactly once; borrowed. With `error` nothing is known of what was done. */
typedef void (*ImagesFunc)(const ImagesAnswer *answer, const GError *error, gpointer user_data);

/* Makes those that are planned, up to the first that cannot be. One that is there already is LEFT. */
void images_make(LocalCalls *local_calls, const JobLease *lease, ImagesFunc done, gpointer user_data);

/* Asks for the domain once more, removes those that were made and that nobody wrote to, if nothing of it is here, not
 * even a definition, and asks again. By the connection of this serial alone, of which no event was missed. */
void images_remove(LocalCalls *local_calls, const JobLease *lease, const char *domain_uuid, unsigned serial,
                   ImagesFunc done, gpointer user_data);

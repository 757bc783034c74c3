/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Creates and removes the images of an incoming job, off the main loop. */
#pragma once

#include "agent/job/joblease.h"
#include "agent/libvirtd/local-call.h"

/* The outcome, which `done` gets for the task. With an error it is unknown what was done. The images are in the lease's order. */
typedef struct ImagesAnswer {
  GPtrArray *images;      /* JobImage with their new states; all those of the lease */
  GPtrArray *errors;      /* GError or NULL for each */
  bool have_status;       /* after a removal */
  MigDomainStatus status; /* the domain's state afterwards, or, if it prevented the removal, before */
  bool removed;           /* nothing of the domain was here, so they were removed */
} ImagesAnswer;

/* Creates the planned images, up to the first failure. One that exists already is LEFT. */
void images_make(LocalCalls *local_calls, const JobLease *lease, LocalCallDoneFunc done, gpointer user_data);

/* Looks at the domain once more; if nothing of it is here, not even a definition, removes the images that this agent made and nobody
 * wrote to, and looks again. Uses only the connection with this serial, which missed no event. */
void images_remove(LocalCalls *local_calls, const JobLease *lease, const char *domain_uuid, unsigned serial,
                   LocalCallDoneFunc done, gpointer user_data);

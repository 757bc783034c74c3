/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files that handle incoming jobs. */
#pragma once

#include "agent/libvirtd/images.h"
#include "agent/move/incoming.h"

/* --- incoming.c --- */

/* What an asynchronous call needs to find its job again. */
typedef struct IncomingBack {
  Mover *mover;
  char id[JOB_ID_SIZE];
  IncomingReadyFunc ready; /* or NULL */
  gpointer user_data;
} IncomingBack;

IncomingBack *incoming_back_new(Mover *mover, const Job *job);

/* NULL: the agent is stopping, or the job has ended. */
Job *incoming_back_find(const IncomingBack *back);

const char *incoming_name_source(const Job *job);

/* Enters a phase, through those in between. */
void incoming_enter(Mover *mover, Job *job, MigPhase phase, const char *message);

/* Checks the domain here; if a check is running, once more after it. */
void incoming_ask(Mover *mover, Job *job);

/* A check has ended: calls those who waited for one. The job may already be gone. */
void incoming_tell_waiters(Mover *mover, const char *id);

/* --- incoming-images.c --- */

void incoming_take_image_states(Job *job, const ImagesAnswer *answer);

/* Reports that the image stays; nothing touches it any more. */
void incoming_note_left(Job *job, const JobImage *image, const char *why);

/* Leaves all images that were created: each may be the only disk of its guest. */
void incoming_leave_images(Job *job, const char *why);

/* Reports what became of the images that were to be removed. */
void incoming_note_removed(Job *job, const ImagesAnswer *answer);

/* --- incoming-begin.c --- */

/* Creates the planned images; then the job waits for its domain. Takes `back`. */
void incoming_make_images(Mover *mover, Job *job, IncomingBack *back);

/* Creates a job for an unannounced migration. */
void incoming_begin(Mover *mover, const MigVirtEvent *event);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files that follow incoming jobs offer each other. */
#pragma once

#include "agent/libvirtd/images.h"
#include "agent/move/incoming.h"

/* --- incoming.c --- */

/* What a call needs to find its way back. */
typedef struct IncomingBack {
  Mover *mover;
  char id[JOB_ID_SIZE];
  IncomingReadyFunc ready; /* or NULL */
  gpointer user_data;
} IncomingBack;

IncomingBack *incoming_back_new(Mover *mover, const Job *job);

/* NULL: the agent ends, or the job is over. */
Job *incoming_back_find(const IncomingBack *back);

const char *incoming_name_source(const Job *job);

/* Goes to a phase, by those that lie between. */
void incoming_enter(Mover *mover, Job *job, MigPhase phase, const char *message);

/* Looks at the domain's end here, or, while it is being looked at, once more after that. */
void incoming_ask(Mover *mover, Job *job);

/* A look is over: calls those who waited for one. The job may be gone already. */
void incoming_tell_waiters(Mover *mover, const char *id);

/* --- incoming-images.c --- */

void incoming_take_image_states(Job *job, const ImagesAnswer *answer);

/* It stays, and nobody touches it any more. */
void incoming_note_left(Job *job, const JobImage *image, const char *why);

/* The same of all that were made: each was made for a guest, which may have it as its only disk. */
void incoming_leave_images(Job *job, const char *why);

/* Says what became of those that were to be removed. */
void incoming_note_removed(Job *job, const ImagesAnswer *answer);

/* --- incoming-begin.c --- */

/* Makes what images are planned; then the job waits for its domain. Takes `back`. */
void incoming_make_images(Mover *mover, Job *job, IncomingBack *back);

/* A job for what comes unannounced. */
void incoming_begin(Mover *mover, const MigVirtEvent *event);

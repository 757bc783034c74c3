/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domains that come to this node: what is held for them, and what becomes of them. */
#pragma once

#include "agent/move/mover.h"

/* Called once the lease can be used, or cannot be: with `error` its record could not be kept, and the job is gone; else
 * look at job->failure. */
typedef void (*IncomingReadyFunc)(Job *job, const GError *error, gpointer user_data);

/* Puts the job of a lease into the table and on stable storage, and makes its images. Takes the job. */
void incoming_accept(Mover *mover, Job *job, IncomingReadyFunc ready, gpointer user_data);

/* Called once; by then the job may be over, and gone. */
typedef void (*IncomingSeenFunc)(gpointer user_data);

/* Has the job's end here looked at, and calls back then. For who finds the domain here, and an incoming job that does not know
 * of it yet. If the agent ends before, `destroy` is called instead. */
void incoming_look(Mover *mover, Job *job, IncomingSeenFunc seen, gpointer user_data, GDestroyNotify destroy);

/* The lease is given back. False: what it was for has come, and its source alone can end that. The caller writes the record. */
bool incoming_release(Mover *mover, Job *job, const Caller *caller);

/* Takes up a job that was read back. */
void incoming_adopt(Mover *mover, Job *job);

/* Some times a second. May end the job. */
void incoming_tick(Mover *mover, Job *job, uint64_t now_ms);

/* libvirt says something of a domain with an incoming job, or of one without any (NULL). */
void incoming_handle_event(Mover *mover, Job *job, const MigVirtEvent *event);

/* The connection to libvirtd is another one, or there is none: events may have been lost. */
void incoming_lose_sight(Mover *mover, const char *why);

/* libvirtd answers again: nobody knows what happened meanwhile. */
void incoming_look_at_all(Mover *mover);

/* How many are awaited or on their way here, and how much memory is set aside for them. */
unsigned incoming_count(const Mover *mover, uint64_t *ret_reserved_bytes);

/* How other nodes reach this one's libvirtd. */
char *incoming_uri(const Mover *mover);

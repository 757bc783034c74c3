/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domains that migrate to this node: what is reserved for them, and what becomes of them. */
#pragma once

#include "agent/move/mover.h"

/* Called once the lease is ready or has failed. With `error` its record could not be stored, and the job is gone; otherwise
 * see job->failure. */
typedef void (*IncomingReadyFunc)(Job *job, const GError *error, gpointer user_data);

/* Puts the job of a lease into the table and on stable storage, and creates its images. Takes the job. */
void incoming_accept(Mover *mover, Job *job, IncomingReadyFunc ready, gpointer user_data);

/* Called once; by then the job may have ended and be gone. */
typedef void (*IncomingSeenFunc)(gpointer user_data);

/* Checks the job's domain here, then calls back. For callers that find the domain here while its incoming job does not know
 * of it yet. If the agent stops first, `destroy` is called instead. */
void incoming_look(Mover *mover, Job *job, IncomingSeenFunc seen, gpointer user_data, GDestroyNotify destroy);

/* Releases the lease. False: its domain has arrived, and only the source can end that. The caller writes the record. */
bool incoming_release(Mover *mover, Job *job, const Caller *caller);

/* Takes over a job that was loaded from its record. */
void incoming_adopt(Mover *mover, Job *job);

/* Call it several times a second. May end the job. */
void incoming_tick(Mover *mover, Job *job, uint64_t now_ms);

/* libvirt reports an event of a domain with an incoming job, or of one without any job (NULL). */
void incoming_handle_event(Mover *mover, Job *job, const MigVirtEvent *event);

/* The connection to libvirtd is a new one, or gone: events may have been lost. */
void incoming_lose_sight(Mover *mover, const char *why);

/* libvirtd answers again: checks all domains, since nobody knows what happened in the meantime. */
void incoming_look_at_all(Mover *mover);

/* How many are expected or migrating here, and how much memory is reserved for them. */
unsigned incoming_count(const Mover *mover, uint64_t *ret_reserved_bytes);

/* How other nodes reach this one's libvirtd. */
char *incoming_uri(const Mover *mover);
